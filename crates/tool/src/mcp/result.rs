//! Converts the result of a call to text and images for a model.

use polyclaw_domain::media::{self, Image};
use polyclaw_domain::sanitize;
use polyclaw_domain::tool::ToolOutcome;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use super::settings::McpSettings;

/// Maximum characters of a result.
const MAX_RESULT_CHARS: usize = 100_000;
const MAX_WORD_CHARS: usize = 300;

pub fn to_tool_outcome(settings: &McpSettings, result: CallToolResult) -> ToolOutcome {
    let mut images = Vec::new();
    let blocks = result.content.iter().map(|content| block_text(content, &mut images));
    let mut text = blocks.collect::<Vec<_>>().join("\n");
    if let Some(value) = result.structured_content.filter(|_| result.content.is_empty()) {
        text = value.to_string();
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    let shown = sanitize::limit_block(&settings.redact(&text), MAX_RESULT_CHARS);
    let content = match shown.chars().count() > MAX_RESULT_CHARS {
        true => format!("{shown}\n[truncated: only the first {MAX_RESULT_CHARS} characters are shown]"),
        false => shown,
    };
    let notice = if result.is_error == Some(true) { ToolOutcome::error } else { ToolOutcome::ok };
    ToolOutcome { images, ..notice(content) }
}

type NamedImages = Vec<(String, Image)>;

/// Returns the text of one content block. Displayable images are added to `images`.
fn block_text(content: &ContentBlock, images: &mut NamedImages) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => show_image(&image.data, images)
            .unwrap_or_else(|| omitted_note("image", Some(&image.mime_type), image.data.len())),
        ContentBlock::Audio(audio) => omitted_note("audio", Some(&audio.mime_type), audio.data.len()),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {}]\n{text}", short_line(uri))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!(
                    "[resource {}] {}",
                    short_line(uri),
                    omitted_note("data", mime_type.as_deref(), blob.len())
                )
            }
            _ => unknown_block_text(),
        },
        ContentBlock::ResourceLink(link) => {
            format!("[link to the resource {}: {}]", short_line(&link.name), short_line(&link.uri))
        }
        // Types added by later versions of the protocol.
        _ => unknown_block_text(),
    }
}

/// Adds an image. Its bytes decide the type, not the server's claim.
fn show_image(data: &str, images: &mut NamedImages) -> Option<String> {
    let image =
        (images.len() < media::MAX_IMAGES_PER_MESSAGE).then(|| Image::from_base64(data).ok()).flatten()?;
    let text = format!("[image, {}, {} bytes]", image.media_type(), image.bytes().len());
    images.push((format!("image-{}", images.len() + 1), image));
    Some(text)
}

fn unknown_block_text() -> String {
    "[content that cannot be shown as text]".to_owned()
}

fn omitted_note(what: &str, kind: Option<&str>, encoded: usize) -> String {
    format!("[{what}, {}, {} bytes: not shown]", short_line(kind.unwrap_or("unknown type")), encoded / 4 * 3)
}

fn short_line(text: &str) -> String {
    sanitize::to_single_line(text, MAX_WORD_CHARS)
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::config::{McpServer, Secret};
    use serde_json::{Value, json};

    use super::*;
    use crate::mcp::settings::McpHost;

    fn shown(result: Value) -> ToolOutcome {
        let env = [("KEY".to_owned(), Secret::new("canary-4711"))].into();
        let server = McpServer { command: Some("x".to_owned()), env, ..McpServer::default() };
        let settings = McpSettings::from_config("lab", &server, &McpHost::default()).unwrap();
        to_tool_outcome(&settings, serde_json::from_value(result).unwrap())
    }

    #[test]
    fn non_text_mcp_content_becomes_a_note() {
        let outcome = shown(json!({ "content": [
            { "type": "text", "text": "hello\u{0} canary-4711" },
            { "type": "image", "data": "AAAAAAAA", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "demo://a\nb", "mimeType": "text/plain", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "demo://c", "blob": "AAAA" } },
            { "type": "resource_link", "uri": "demo://d", "name": "d" },
        ] }));
        assert_eq!(
            outcome.content,
            "hello ***\n[image, image/png, 6 bytes: not shown]\n[resource demo://a b]\ninside\n\
             [resource demo://c] [data, unknown type, 3 bytes: not shown]\n[link to the resource d: demo://d]"
        );
        assert!(!outcome.is_error);
    }

    #[test]
    fn mcp_images_are_attached_only_if_valid() {
        let block = |data: &str| json!({ "type": "image", "data": data, "mimeType": "image/png" });
        let outcome = shown(json!({ "content": [block("R0lGODlh"), block("aGVsbG8=")] }));
        assert_eq!(outcome.content, "[image, image/gif, 6 bytes]\n[image, image/png, 6 bytes: not shown]");
        assert_eq!(outcome.images, [("image-1".to_owned(), Image::from_bytes(*b"GIF89a").unwrap())]);
        let many = shown(json!({ "content": vec![block("R0lGODlh"); media::MAX_IMAGES_PER_MESSAGE + 1] }));
        assert_eq!(many.images.len(), media::MAX_IMAGES_PER_MESSAGE);
        let last = many.content.lines().last().unwrap();
        assert_eq!(
            last, "[image, image/png, 6 bytes: not shown]",
            "one too many is not told as if it were seen"
        );
    }

    #[test]
    fn mcp_result_is_limited_and_keeps_error_flag() {
        let outcome =
            shown(json!({ "isError": true, "content": [{ "type": "text", "text": "x".repeat(1_000_000) }] }));
        assert!(outcome.is_error && outcome.content.len() < MAX_RESULT_CHARS + 100);
        assert!(outcome.content.ends_with("[truncated: only the first 100000 characters are shown]"));
        assert_eq!(shown(json!({ "content": [] })).content, "(no output)");
        assert_eq!(shown(json!({ "content": [], "structuredContent": { "a": 1 } })).content, "{\"a\":1}");
    }
}
