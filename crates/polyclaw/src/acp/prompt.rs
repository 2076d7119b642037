//! What an editor says to an agent, and what it is told until the turn is over.

use polyclaw_domain::hex::hex;
use serde_json::{Value, json};

use super::turn::Turn;
use super::{Done, Editor, Fault, session_of};
use crate::client::segment;
use crate::ids::random;
use crate::stream::Frames;

/// Seconds of a single wait at the instance.
const ONE_WAIT: u64 = 25;

impl Editor {
    pub(super) async fn prompt(&self, params: &Value) -> Done {
        let session = session_of(params)?;
        let (text, images) = said(&params["prompt"])?;
        let client = self.client()?;
        // Opened before the message is there: nothing of its turn is missed.
        let stream = client.stream(&format!("/sessions/{}/stream", segment(session))).await?;
        // A person sits there who can be asked before a tool runs.
        let key = format!("acp-{}", hex(&random::<12>()));
        let body = json!({ "text": text, "channel": "cli", "idempotency_key": key, "attachments": images });
        let path = format!("/sessions/{}/messages", segment(session));
        let accepted = client.post(&path, &body).await?;
        let id = accepted["turn_id"].as_str().unwrap_or_default().to_owned();
        let mut turn = Turn::new(self, &client, session, &id);
        turn.follow(Frames::new(stream)).await;
        let reply = loop {
            // It is over by now, unless the stream broke: then the rest comes at once.
            let path = format!("/turns/{}?wait={ONE_WAIT}", segment(&id));
            let mut seen = client.get(&path).await?;
            if seen["reply"].is_object() {
                break seen["reply"].take();
            }
        };
        turn.complete(&reply);
        ended(&reply)
    }
}

fn ended(reply: &Value) -> Done {
    let reason = match reply["state"].as_str() {
        Some("cancelled") => "cancelled",
        Some("done") if reply["finish_reason"] == "length" => "max_tokens",
        Some("done") => "end_turn",
        _ => {
            let message = reply["text"].as_str().unwrap_or("the turn failed").to_owned();
            let code = reply["error_code"].as_str().unwrap_or("turn_failed").to_owned();
            return Err(Fault { number: -32603, message, code });
        }
    };
    Ok(json!({ "stopReason": reason }))
}

/// The words of a prompt with the files that come with it, and its images as the API takes them.
fn said(blocks: &Value) -> Result<(String, Vec<Value>), Fault> {
    let blocks = blocks.as_array().ok_or_else(|| Fault::params("prompt must be a list"))?;
    let (images, others): (Vec<_>, Vec<_>) = blocks.iter().partition(|block| block["type"] == "image");
    let text = others.into_iter().map(words).collect::<Result<Vec<_>, _>>()?.join("\n\n");
    if text.trim().is_empty() && images.is_empty() {
        return Err(Fault::params("the prompt is empty"));
    }
    let attachment = |(n, block): (usize, &Value)| json!({ "name": format!("image-{}", n + 1), "media_type": block["mimeType"], "data": block["data"] });
    Ok((text, images.into_iter().enumerate().map(attachment).collect()))
}

fn words(block: &Value) -> Result<String, Fault> {
    let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => Ok(field(&block["text"])),
        Some("resource_link") => Ok(format!("[{}]({})", field(&block["name"]), field(&block["uri"]))),
        Some("resource") if block["resource"]["text"].is_string() => {
            let (uri, text) = (field(&block["resource"]["uri"]), field(&block["resource"]["text"]));
            Ok(format!("<file uri=\"{uri}\">\n{text}\n</file>"))
        }
        other => Err(Fault::params(format!("content of the type {other:?} is not taken"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_images_come_with_the_words_and_the_rest_is_refused() {
        let blocks = json!([
            { "type": "text", "text": "Look" },
            { "type": "resource_link", "name": "a.rs", "uri": "file:///a.rs" },
            { "type": "resource", "resource": { "uri": "file:///b.rs", "text": "fn b() {}" } },
            { "type": "image", "mimeType": "image/gif", "data": "R0lGODlh" },
        ]);
        let words = "Look\n\n[a.rs](file:///a.rs)\n\n<file uri=\"file:///b.rs\">\nfn b() {}\n</file>";
        let image = json!({ "name": "image-1", "media_type": "image/gif", "data": "R0lGODlh" });
        assert_eq!(said(&blocks).unwrap(), (words.to_owned(), vec![image]));
        for odd in [json!([]), json!(7), json!([{ "type": "audio", "data": "" }])] {
            assert_eq!(said(&odd).unwrap_err().number, -32602, "{odd}");
        }
    }

    #[test]
    fn a_turn_that_failed_is_an_error_and_every_other_end_has_a_word() {
        let ended = |reply: Value| ended(&reply).map(|done| done["stopReason"].clone());
        assert_eq!(ended(json!({ "state": "done" })).unwrap(), "end_turn");
        assert_eq!(ended(json!({ "state": "done", "finish_reason": "length" })).unwrap(), "max_tokens");
        assert_eq!(ended(json!({ "state": "cancelled" })).unwrap(), "cancelled");
        let failed =
            ended(json!({ "state": "failed", "text": "No.", "error_code": "no_model" })).unwrap_err();
        assert_eq!((failed.message.as_str(), failed.code.as_str()), ("No.", "no_model"));
    }
}
