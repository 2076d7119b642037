//! What in a program's own JSON is the message: a hook's mapping.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::report::Report;

/// A message as it is posted to a hook.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    pub text: String,
    /// The sender's own id of this message: the same one is taken once.
    pub id: Option<String>,
    /// Whom the conversation is with; one sender may speak for many.
    pub peer: Option<String>,
    pub thread: Option<String>,
}

/// Where the parts of a message are in what a program posts. A path has dots (`issue.labels.0.name`); with braces it is
/// text with paths in it (`{sender.login}: {comment.body}`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mapping {
    /// What the agent is told. Without it the field `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The sender's own id of the message: the same one is taken once. Without it the field `id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whom the conversation is with. Without it the field `peer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The side conversation. Without it the field `thread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl Mapping {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The message in a post. What is not looked for may be there, whatever it is. `Err` says what is missing.
    pub fn read(&self, posted: &Value) -> Result<Post, String> {
        let found = |wanted: &Option<String>, own: &str| read(wanted.as_deref().unwrap_or(own), posted);
        let text = found(&self.text, "text");
        let missing = || format!("there is no {:?} in it", self.text.as_deref().unwrap_or("text"));
        Ok(Post {
            text: text.ok_or_else(missing)?,
            id: found(&self.id, "id"),
            peer: found(&self.peer, "peer"),
            thread: found(&self.thread, "thread"),
        })
    }

    pub(super) fn check(&self, path: &str, report: &mut Report) {
        let all = [("text", &self.text), ("id", &self.id), ("peer", &self.peer), ("thread", &self.thread)];
        for (name, wanted) in all {
            let Some(wanted) = wanted else { continue };
            if pieces(wanted).is_none_or(|pieces| pieces.iter().any(Piece::is_broken)) {
                let message = format!("{wanted:?} is neither a path nor text with paths in it");
                let hint = r#"write "issue.title", or "{sender.login}: {comment.body}""#;
                report.error(&format!("{path}.{name}"), message, hint);
            }
        }
    }
}

enum Piece<'a> {
    Text(&'a str),
    Path(&'a str),
}

impl Piece<'_> {
    fn is_broken(&self) -> bool {
        matches!(self, Self::Path(path) if path.split('.').any(|step| step.trim().is_empty()))
    }
}

/// A path alone, or text with paths in braces. `None`: a brace has no partner.
fn pieces(wanted: &str) -> Option<Vec<Piece<'_>>> {
    if !wanted.contains(['{', '}']) {
        return Some(vec![Piece::Path(wanted)]);
    }
    let (mut pieces, mut rest) = (Vec::new(), wanted);
    while let Some((before, behind)) = rest.split_once('{') {
        let (path, after) = behind.split_once('}')?;
        pieces.extend([Piece::Text(before), Piece::Path(path)]);
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    let is_open = |piece: &Piece<'_>| match piece {
        Piece::Text(text) | Piece::Path(text) => text.contains(['{', '}']),
    };
    (!pieces.iter().any(is_open)).then_some(pieces)
}

/// `None` where nothing of what is looked for is there.
fn read(wanted: &str, posted: &Value) -> Option<String> {
    let (mut out, mut found) = (String::new(), false);
    for piece in pieces(wanted)? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Path(path) => {
                let value = at(posted, path).and_then(words);
                found |= value.is_some();
                out.push_str(&value.unwrap_or_default());
            }
        }
    }
    found.then_some(out)
}

fn at<'a>(posted: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').map(str::trim).try_fold(posted, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

fn words(value: &Value) -> Option<Cow<'_, str>> {
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

    fn mapping(text: &str) -> Mapping {
        Mapping { text: Some(text.to_owned()), ..Mapping::default() }
    }

    #[test]
    fn a_message_is_found_by_path_and_by_template() {
        let posted = json!({
            "action": "opened", "issue": { "number": 7, "title": "It burns", "labels": [{ "name": "bug" }] },
            "repository": { "full_name": "a/b" }, "peer": "own", "anything": { "else": null },
        });
        let map = Mapping {
            peer: Some("repository.full_name".to_owned()),
            thread: Some("issue.number".to_owned()),
            id: Some("{repository.full_name}#{issue.number} {action}".to_owned()),
            ..mapping("{issue.title} ({issue.labels.0.name}){anything.else}")
        };
        let post = map.read(&posted).unwrap();
        assert_eq!(post.text, "It burns (bug)");
        assert_eq!(post.peer.as_deref(), Some("a/b"));
        assert_eq!(post.thread.as_deref(), Some("7"));
        assert_eq!(post.id.as_deref(), Some("a/b#7 opened"));
        assert_eq!(
            mapping("issue.title").read(&posted).unwrap().peer.as_deref(),
            Some("own"),
            "by its own name"
        );
        assert_eq!(mapping("issue").read(&posted).unwrap().text, posted["issue"].to_string());
    }

    #[test]
    fn what_is_not_there_is_said_and_not_made_up() {
        for wanted in ["issue.body", "issue.labels.3.name", "{issue.body}: {nobody}"] {
            let said = mapping(wanted).read(&json!({ "issue": { "body": null, "labels": [] } })).unwrap_err();
            assert!(said.contains(wanted), "{said}");
        }
    }
}
