//! Converts a prompt to the types of the client library.

use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ContentPart, MessageContent, Tool, ToolCall,
    ToolResponse,
};
use polyclaw_domain::media::Image;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::tool::ToolSpec;
use serde_json::json;

use crate::settings::ProviderVendor;
use crate::thinking;
use crate::tool_calls::replayed_arguments;

/// Anthropic accepts 5 MB per image, counted in base64.
const MAX_ANTHROPIC_IMAGE_BYTES: usize = 5 * 1024 * 1024 / 4 * 3;

pub(crate) fn chat_request(prompt: &Prompt, kind: ProviderVendor) -> ChatRequest {
    let mut request = ChatRequest::new(chat_messages(&prompt.messages, kind));
    if !prompt.system.is_empty() {
        request = request.with_system(prompt.system.as_str());
    }
    if !prompt.tools.is_empty() {
        request = request.with_tools(prompt.tools.iter().map(|spec| tool_definition(spec)));
    }
    request
}

/// Returns the prompt without images that exceed the provider's limit, or `None` if there are none. One such image
/// would make the provider reject the whole request.
pub(crate) fn without_oversized_images(prompt: &Prompt, kind: ProviderVendor) -> Option<Prompt> {
    let is_large =
        |image: &Image| kind == ProviderVendor::Anthropic && image.bytes().len() > MAX_ANTHROPIC_IMAGE_BYTES;
    if !prompt.messages.iter().any(|message| message.images().iter().any(is_large)) {
        return None;
    }
    let mut prompt = prompt.clone();
    for message in &mut prompt.messages {
        if let PromptMessage::User { text, images } = message {
            let before = images.len();
            images.retain(|image| !is_large(image));
            let reply = match before - images.len() {
                0 => continue,
                1 => "an image attached here is".to_owned(),
                left => format!("{left} images attached here are"),
            };
            text.push_str(&format!("\n[{reply} too large for you to see]"));
        }
    }
    Some(prompt)
}

pub(crate) fn chat_options(prompt: &Prompt, kind: ProviderVendor, model: &str) -> ChatOptions {
    let effort = thinking::reasoning_effort(prompt, kind, model);
    ChatOptions {
        // Anthropic rejects a temperature together with reasoning.
        temperature: prompt.temperature.filter(|_| effort.is_none() || kind != ProviderVendor::Anthropic),
        max_tokens: prompt.max_tokens,
        capture_usage: Some(true),
        reasoning_effort: effort,
        // Anthropic caches only marked prompts; other providers cache automatically.
        cache_control: (kind == ProviderVendor::Anthropic).then_some(CacheControl::Ephemeral),
        ..ChatOptions::default()
    }
}

/// Converts the messages. The results of one tool round are combined into one message, as Anthropic requires.
fn chat_messages(messages: &[PromptMessage], kind: ProviderVendor) -> Vec<ChatMessage> {
    let mut mapped = Vec::with_capacity(messages.len());
    let mut results = Vec::new();
    for message in messages {
        if let PromptMessage::ToolResult { call_id, name, content, is_error } = message {
            results.push(if *is_error && kind == ProviderVendor::Anthropic {
                failed_result(call_id, content)
            } else {
                ToolResponse::new(call_id, content).with_fn_name(name).into()
            });
            continue;
        }
        flush_results(&mut results, &mut mapped);
        match message {
            PromptMessage::User { text, images } => mapped.push(user_message(text, images)),
            PromptMessage::Assistant { text, calls } => {
                let parts = assistant_parts(text, calls);
                // Providers reject an assistant message without content.
                if !parts.is_empty() {
                    mapped.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
                }
            }
            PromptMessage::ToolResult { .. } => {}
        }
    }
    flush_results(&mut results, &mut mapped);
    mapped
}

fn flush_results(results: &mut Vec<ContentPart>, mapped: &mut Vec<ChatMessage>) {
    if !results.is_empty() {
        mapped.push(ChatMessage::tool(MessageContent::from_parts(std::mem::take(results))));
    }
}

fn user_message(text: &str, images: &[Image]) -> ChatMessage {
    let text = (!text.is_empty() || images.is_empty()).then(|| ContentPart::from_text(text));
    let shown = images
        .iter()
        .map(|image| ContentPart::from_binary_base64(image.media_type(), image.to_base64(), None));
    ChatMessage::user(MessageContent::from_parts(text.into_iter().chain(shown).collect::<Vec<_>>()))
}

fn assistant_parts(text: &str, calls: &[polyclaw_domain::tool::ToolCall]) -> Vec<ContentPart> {
    let text = (!text.is_empty()).then(|| ContentPart::from_text(text));
    let calls = calls.iter().map(|call| {
        ContentPart::ToolCall(ToolCall {
            call_id: call.id.clone(),
            fn_name: call.name.clone(),
            fn_arguments: replayed_arguments(call).into_owned(),
            thought_signatures: None,
        })
    });
    text.into_iter().chain(calls).collect()
}

/// The library has no type for a failed result, but passes custom parts through.
fn failed_result(call_id: &str, content: &str) -> ContentPart {
    let block =
        json!({ "type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": true });
    ContentPart::from_custom(block, None)
}

fn tool_definition(spec: &ToolSpec) -> Tool {
    Tool::new(spec.name.as_str())
        .with_description(spec.description.as_str())
        .with_schema(spec.parameters.clone())
}
