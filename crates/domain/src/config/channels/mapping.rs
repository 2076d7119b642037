//! Webhook mapping: where the message is in a program's own JSON.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::report::ConfigReport;

/// A message as it is posted to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookPost {
    pub text: String,
    /// The sender's own id of this message, used for deduplication.
    pub id: Option<String>,
    /// The peer of the conversation; one sender may post for many.
    pub peer: Option<String>,
    pub thread: Option<String>,
}

/// Where the fields of a message are in the posted JSON. A path uses dots (`issue.labels.0.name`); with braces it is a
/// text that contains paths (`{sender.login}: {comment.body}`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookMapping {
    /// The text for the agent. Defaults to the field `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The sender's own id of the message, used for deduplication. Defaults to the field `id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The peer of the conversation. Defaults to the field `peer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The thread. Defaults to the field `thread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl WebhookMapping {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Extracts the message from a post. Other fields are ignored. `Err` names the missing field.
    pub fn extract_post(&self, posted: &Value) -> Result<WebhookPost, String> {
        let found =
            |wanted: &Option<String>, own: &str| render_template(wanted.as_deref().unwrap_or(own), posted);
        let text = found(&self.text, "text");
        let missing = || format!("{:?} is missing in it", self.text.as_deref().unwrap_or("text"));
        Ok(WebhookPost {
            text: text.ok_or_else(missing)?,
            id: found(&self.id, "id"),
            peer: found(&self.peer, "peer"),
            thread: found(&self.thread, "thread"),
        })
    }

    pub(super) fn report_errors(&self, path: &str, report: &mut ConfigReport) {
        let all = [("text", &self.text), ("id", &self.id), ("peer", &self.peer), ("thread", &self.thread)];
        for (name, wanted) in all {
            let Some(wanted) = wanted else { continue };
            if parse_template(wanted).is_none_or(|pieces| pieces.iter().any(TemplatePiece::is_broken)) {
                let message = format!("{wanted:?} is neither a path nor a text with paths");
                let hint = r#"use "issue.title", or "{sender.login}: {comment.body}""#;
                report.add_error(&format!("{path}.{name}"), message, hint);
            }
        }
    }
}

enum TemplatePiece<'a> {
    Text(&'a str),
    Path(&'a str),
}

impl TemplatePiece<'_> {
    fn is_broken(&self) -> bool {
        matches!(self, Self::Path(path) if path.split('.').any(|step| step.trim().is_empty()))
    }
}

/// Parses a single path, or a text with paths in braces. `None` if braces are unbalanced.
fn parse_template(wanted: &str) -> Option<Vec<TemplatePiece<'_>>> {
    if !wanted.contains(['{', '}']) {
        return Some(vec![TemplatePiece::Path(wanted)]);
    }
    let (mut pieces, mut rest) = (Vec::new(), wanted);
    while let Some((before, behind)) = rest.split_once('{') {
        let (path, after) = behind.split_once('}')?;
        pieces.extend([TemplatePiece::Text(before), TemplatePiece::Path(path)]);
        rest = after;
    }
    pieces.push(TemplatePiece::Text(rest));
    let is_open = |piece: &TemplatePiece<'_>| match piece {
        TemplatePiece::Text(text) | TemplatePiece::Path(text) => text.contains(['{', '}']),
    };
    (!pieces.iter().any(is_open)).then_some(pieces)
}

/// Returns `None` if none of the paths exists.
fn render_template(wanted: &str, posted: &Value) -> Option<String> {
    let (mut out, mut found) = (String::new(), false);
    for piece in parse_template(wanted)? {
        match piece {
            TemplatePiece::Text(text) => out.push_str(text),
            TemplatePiece::Path(path) => {
                let value = value_at_path(posted, path).and_then(value_text);
                found |= value.is_some();
                out.push_str(&value.unwrap_or_default());
            }
        }
    }
    found.then_some(out)
}

fn value_at_path<'a>(posted: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').map(str::trim).try_fold(posted, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

fn value_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.as_str().into()),
        other => Some(other.to_string().into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mapping(text: &str) -> WebhookMapping {
        WebhookMapping { text: Some(text.to_owned()), ..WebhookMapping::default() }
    }

    #[test]
    fn webhook_fields_are_read_by_path_and_template() {
        let posted = json!({
            "action": "opened", "issue": { "number": 7, "title": "It burns", "labels": [{ "name": "bug" }] },
            "repository": { "full_name": "a/b" }, "peer": "own", "anything": { "else": null },
        });
        let map = WebhookMapping {
            peer: Some("repository.full_name".to_owned()),
            thread: Some("issue.number".to_owned()),
            id: Some("{repository.full_name}#{issue.number} {action}".to_owned()),
            ..mapping("{issue.title} ({issue.labels.0.name}){anything.else}")
        };
        let post = map.extract_post(&posted).unwrap();
        assert_eq!(post.text, "It burns (bug)");
        assert_eq!(post.peer.as_deref(), Some("a/b"));
        assert_eq!(post.thread.as_deref(), Some("7"));
        assert_eq!(post.id.as_deref(), Some("a/b#7 opened"));
        assert_eq!(
            mapping("issue.title").extract_post(&posted).unwrap().peer.as_deref(),
            Some("own"),
            "by its own name"
        );
        assert_eq!(mapping("issue").extract_post(&posted).unwrap().text, posted["issue"].to_string());
    }

    #[test]
    fn missing_webhook_field_is_reported() {
        for wanted in ["issue.body", "issue.labels.3.name", "{issue.body}: {nobody}"] {
            let text = mapping(wanted)
                .extract_post(&json!({ "issue": { "body": null, "labels": [] } }))
                .unwrap_err();
            assert!(text.contains(wanted), "{text}");
        }
    }
}
