//! Reads a streamed answer of the client library to its end.

use std::time::Duration;

use futures_util::StreamExt;
use genai::chat::{ChatStream, ChatStreamEvent, StopReason, StreamEnd};
use polyclaw_domain::provider::{DeltaSink, StreamDelta, TokenUsage};
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use crate::answer::{AnswerEnd, FinishReason, MAX_ANSWER_BYTES, ModelAnswer};
use crate::error_class::ModelCallError;
use crate::tool_calls::ToolCallAssembler;
use crate::wire::ToolCallStreaming;

/// Time given to a finished response to reach its end.
pub(crate) const CLOSE_DELAY: Duration = Duration::from_millis(50);

/// Settings for reading an answer.
pub(crate) struct AnswerReader<'a> {
    pub pieces: ToolCallStreaming,
    /// Maximum silence, before the first token and after each one.
    pub silence_timeout: Option<Duration>,
    pub sink: DeltaSink<'a>,
}

impl AnswerReader<'_> {
    pub async fn read_stream(self, mut stream: ChatStream) -> Result<ModelAnswer, ModelCallError> {
        let mut text = String::new();
        let mut calls = ToolCallAssembler::new(self.pieces);
        let mut has_started = false;
        while let Some(event) = next_event(&mut stream, (self.silence_timeout, has_started)).await? {
            match event {
                ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                    text.push_str(&chunk.content);
                    (self.sink)(StreamDelta::Text(chunk.content));
                }
                ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                    (self.sink)(StreamDelta::Reasoning(chunk.content));
                }
                ChatStreamEvent::ToolCallChunk(piece) => {
                    let call = piece.tool_call;
                    calls.add_piece(call.call_id, call.fn_name, call.fn_arguments);
                }
                ChatStreamEvent::End(end) => {
                    delay_close(stream);
                    return ModelAnswer::from_parts(text, calls, answer_end(end, self.pieces)?);
                }
                // The library sends this before the request.
                ChatStreamEvent::Start => continue,
                _ => {}
            }
            if text.len() + calls.byte_count() > MAX_ANSWER_BYTES {
                return ModelAnswer::from_truncated(text, calls, TokenUsage::default());
            }
            has_started = true;
        }
        Err(ModelCallError::cut_off())
    }
}

/// Returns the next event. Logging is suppressed while the library works, because it logs entire error bodies, which
/// may contain prompts.
async fn next_event(
    stream: &mut ChatStream,
    (timeout, has_started): (Option<Duration>, bool),
) -> Result<Option<ChatStreamEvent>, ModelCallError> {
    let next = stream.next().with_subscriber(Dispatch::none());
    let event = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, next)
            .await
            .map_err(|_| ModelCallError::silence_timeout(has_started))?,
        None => next.await,
    };
    event.transpose().map_err(ModelCallError::from)
}

fn answer_end(end: StreamEnd, pieces: ToolCallStreaming) -> Result<AnswerEnd, ModelCallError> {
    let stop = end.captured_stop_reason.map(|stop| match stop {
        StopReason::ToolCall(_) => FinishReason::Calls,
        StopReason::ContentFilter(_) => FinishReason::Filtered,
        stop if stop.is_max_tokens() => FinishReason::Length,
        _ => FinishReason::Done,
    });
    // For Gemini the library synthesizes an end when the stream just stops.
    if stop.is_none() && pieces == ToolCallStreaming::Whole {
        return Err(ModelCallError::cut_off());
    }
    Ok(AnswerEnd { stop, usage: token_usage(end.captured_usage) })
}

fn token_usage(usage: Option<genai::chat::Usage>) -> TokenUsage {
    let count = |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok());
    let usage = usage.unwrap_or_default();
    TokenUsage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_tokens: count(usage.prompt_tokens_details.and_then(|details| details.cached_tokens)),
    }
}

/// Drops the stream after a moment. The last event is not the end of the HTTP response, and dropping it now would close
/// the connection and cost the next call of this turn a new handshake; later it returns to the pool.
fn delay_close(stream: ChatStream) {
    tokio::spawn(async move {
        tokio::time::sleep(CLOSE_DELAY).await;
        drop(stream);
    });
}
