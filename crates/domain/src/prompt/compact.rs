//! Compaction: where to cut a history, how to request a summary, and how to shorten a line that is too long.

use serde_json::Value;

use super::{TranscriptLine, estimate_line_tokens, estimate_text_tokens};
use crate::media::TOKENS_PER_IMAGE;
use crate::message::{MessageAttachment, MessagePart, MessageRole, attachments, tool_calls};

pub const SUMMARY_SYSTEM_PROMPT: &str = "Summarize this conversation for your own later use. Keep facts, names, \
                                         numbers, decisions, open tasks and the user's requests. Leave out small \
                                         talk. Answer only with the summary.";

/// Returns how many of the first lines to compact so that the rest fits `keep_tokens`. Never separates a call from its
/// results, and never compacts the last line.
pub fn summary_cut(lines: &[TranscriptLine], keep_tokens: usize) -> usize {
    let mut kept = 0;
    let mut at = lines.len();
    while at > 0 {
        kept += estimate_line_tokens(&lines[at - 1]);
        if kept > keep_tokens && at < lines.len() {
            break;
        }
        at -= 1;
    }
    while at > 0 && at < lines.len() && lines[at].role == MessageRole::Tool {
        at -= 1;
    }
    at
}

/// Returns how many of the first lines fit into one request, at least one. A call and its results stay together.
pub fn count_fitting_lines(lines: &[TranscriptLine], most_tokens: usize) -> usize {
    let mut used = 0;
    let over = lines.iter().position(|line| {
        used += estimate_line_tokens(line);
        used > most_tokens
    });
    let at = over.unwrap_or(lines.len()).max(1).min(lines.len());
    at + lines[at..].iter().take_while(|line| line.role == MessageRole::Tool).count()
}

/// Returns the request for a summary, within `most_tokens`.
pub fn summary_request(previous: Option<&str>, lines: &[TranscriptLine], most_tokens: usize) -> String {
    let mut text = String::new();
    if let Some(previous) = previous {
        text.push_str(&format!("Earlier summary:\n{previous}\n\n"));
    }
    for line in lines {
        let author =
            line.author.as_ref().map(|author| format!(" {}", author.author_tag(""))).unwrap_or_default();
        text.push_str(&format!("{}{author}: {}\n", line.role.as_str(), line.text));
        for attachment in attachments(&line.parts) {
            text.push_str(&format!("attached {}: {}\n", attachment.name, attachment_content(attachment)));
        }
        for call in tool_calls(&line.parts) {
            text.push_str(&format!("called {} {}\n", call.name, call.arguments));
        }
    }
    shorten_text(&mut text, most_tokens);
    text
}

/// Returns the part of an attachment that a summary can use.
fn attachment_content(attachment: &MessageAttachment) -> &str {
    match (&attachment.text, &attachment.url, &attachment.media) {
        (Some(text), ..) => text,
        (None, Some(url), _) => url,
        (None, None, Some(_)) => "an image",
        (None, None, None) => "",
    }
}

/// Shortens each text of a line to a token limit, and removes images that need more. Returns whether anything was
/// removed.
pub fn shorten_line(line: &mut TranscriptLine, most_tokens: usize) -> bool {
    let mut is_shorter = shorten_text(&mut line.text, most_tokens);
    for part in &mut line.parts {
        is_shorter |= match part {
            MessagePart::ToolCall(call) => shorten_value(&mut call.arguments, most_tokens),
            MessagePart::Attachment(attachment) => {
                let had_image = most_tokens < TOKENS_PER_IMAGE && attachment.media.take().is_some();
                had_image | attachment.text.as_mut().is_some_and(|text| shorten_text(text, most_tokens))
            }
            MessagePart::ToolResult { .. } => false,
        };
    }
    is_shorter
}

fn shorten_value(value: &mut Value, most_tokens: usize) -> bool {
    let each = |is_shorter: bool, value: &mut Value| is_shorter | shorten_value(value, most_tokens);
    match value {
        Value::String(text) => shorten_text(text, most_tokens),
        Value::Array(list) => list.iter_mut().fold(false, each),
        Value::Object(map) => map.values_mut().fold(false, each),
        _ => false,
    }
}

/// Estimated tokens of the omission note.
const OMISSION_MARK_TOKENS: usize = 20;

/// Shortens a text to a token limit. Keeps the beginning, which usually gives the topic, and the end, which often has
/// the question. Returns whether anything was removed.
pub fn shorten_text(text: &mut String, most_tokens: usize) -> bool {
    let tokens = estimate_text_tokens(text);
    if tokens <= most_tokens {
        return false;
    }
    let message_count = text.chars().count();
    let kept = message_count * most_tokens.saturating_sub(OMISSION_MARK_TOKENS) / tokens;
    let (head, tail) = (kept * 2 / 3, kept - kept * 2 / 3);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(message_count - tail).collect();
    let short =
        format!("{start}\n[… {} characters omitted: too long for this model …]\n{end}", message_count - kept);
    let is_shorter = estimate_text_tokens(&short) < tokens;
    if is_shorter {
        *text = short;
    }
    is_shorter
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::tests::{called, line, result};
    use super::*;

    #[test]
    fn summary_cut_keeps_what_fits_and_at_least_last_line() {
        let lines: Vec<_> = (0..10).map(|_| line(MessageRole::User, &"word ".repeat(40))).collect();
        assert_eq!(summary_cut(&lines, 1_000_000), 0);
        assert_eq!(summary_cut(&lines, 0), 9);
        let at = summary_cut(&lines, 200);
        assert!((5..9).contains(&at), "{at}");
    }

    #[test]
    fn summary_request_takes_at_least_one_line_with_results() {
        let lines: Vec<_> = (0..10).map(|_| line(MessageRole::User, &"word ".repeat(40))).collect();
        assert_eq!(
            (
                count_fitting_lines(&lines, 0),
                count_fitting_lines(&lines, 130),
                count_fitting_lines(&lines, 1_000_000)
            ),
            (1, 2, 10)
        );
        let called = [called("1"), result("1"), result("1"), line(MessageRole::User, "x")];
        assert_eq!((count_fitting_lines(&called, 0), count_fitting_lines(&[], 9)), (3, 0));
    }

    #[test]
    fn shortened_line_keeps_start_and_end_with_notice() {
        let long = format!("first {} last", "字".repeat(10_000));
        let file = MessageAttachment {
            name: "a".into(),
            media_type: "b".into(),
            url: None,
            text: Some(long.clone()),
            media: None,
        };
        let mut call = called("1");
        let MessagePart::ToolCall(made) = &mut call.parts[0] else { panic!() };
        made.arguments = json!({ "content": [long], "n": 1 });
        let mut lines = [
            line(MessageRole::User, &long),
            TranscriptLine { parts: vec![MessagePart::Attachment(file)], ..line(MessageRole::User, "") },
            call,
        ];
        for line in &mut lines {
            assert!(shorten_line(line, 300));
            assert!(estimate_line_tokens(line) < 500);
            let shown = format!("{line:?}");
            assert!(shown.contains("first 字") && shown.contains("字 last"), "{shown}");
            assert!(shown.contains("characters omitted"), "{shown}");
            assert!(!shorten_line(&mut line.clone(), 400), "what fits stays as it is");
        }
        assert!(estimate_text_tokens(&summary_request(Some(&long), &lines, 200)) < 230);
    }

    proptest! {
        #[test]
        fn summary_cut_never_separates_call_from_results(shape in prop::collection::vec(0u8..3, 1..30), keep in 0usize..400) {
            let mut lines = Vec::new();
            for (n, kind) in shape.iter().enumerate() {
                match kind {
                    0 => lines.push(line(MessageRole::User, "hello there")),
                    1 => lines.extend([called(&n.to_string()), result(&n.to_string())]),
                    _ => lines.extend([called(&n.to_string()), result(&n.to_string()), result(&n.to_string())]),
                }
            }
            let at = summary_cut(&lines, keep);
            prop_assert!(at < lines.len());
            prop_assert!(lines[at].role != MessageRole::Tool);
            let taken = count_fitting_lines(&lines, keep);
            prop_assert!(taken > 0 && lines.get(taken).is_none_or(|next| next.role != MessageRole::Tool));
        }
    }
}
