//! What an editor says to an agent, and what it is told until the turn is over.

use polyclaw_domain::hex::encode_hex;
use reqwest::Response;
use serde_json::{Value, json};

use super::turn::Turn;
use super::{Done, Editor, Fault, session_of};
use crate::client::segment;
use crate::ids::random;
use crate::stream::Frames;

impl Editor {
    /// Asks in a session that was cancelled so often.
    pub(super) async fn prompt(&self, params: &Value, cancels: u64) -> Done {
        let session = session_of(params)?;
        let (text, images) = said(&params["prompt"])?;
        // Opened before the message is there: nothing of its turn is missed.
        let stream = self.client()?.stream(&stream_of(session, None)).await?;
        // The same for every try, so that asking again is not asking twice.
        let key = format!("acp-{}", encode_hex(&random::<12>()));
        // A person sits there who can be asked before a tool runs.
        let body = &json!({ "text": text, "channel": "cli", "idempotency_key": key, "attachments": images });
        let path = &format!("/sessions/{}/messages", segment(session));
        let accepted = self.insist(|client| async move { client.post(path, body).await }).await?;
        if self.is_cancelled(session, cancels) {
            // It was there before there was anything to stop.
            self.cancel(session).await?;
        }
        let id = accepted["turn_id"].as_str().unwrap_or_default();
        let mut turn = Turn::new(self, session, id);
        let reply = self.follow(&mut turn, (session, id), stream).await.map_err(taken)?;
        turn.complete(&reply);
        ended(&reply)
    }

    /// Tells what happens until there is a reply, also when the instance goes away and comes back.
    async fn follow<'a>(
        &'a self,
        turn: &mut Turn<'a>,
        (session, id): (&str, &str),
        mut stream: Response,
    ) -> Done {
        loop {
            turn.follow(Frames::new(stream)).await;
            // It is over by now, unless the stream broke.
            if let Some(reply) = self.reply(id, 0).await? {
                return Ok(reply);
            }
            let path = &stream_of(session, turn.heard());
            stream = self.insist(|client| async move { client.stream(path).await }).await?;
            // It may have ended before this stream was there.
            if let Some(reply) = self.reply(id, 1).await? {
                return Ok(reply);
            }
        }
    }

    /// The reply to a turn, if there is one within so many seconds.
    async fn reply(&self, turn: &str, seconds: u64) -> Result<Option<Value>, Fault> {
        let path = &format!("/turns/{}?wait={seconds}", segment(turn));
        let mut seen = self.insist(|client| async move { client.get(path).await }).await?;
        Ok(Some(seen["reply"].take()).filter(Value::is_object))
    }
}

/// What is live in a session, from the frame on that was heard last.
fn stream_of(session: &str, heard: Option<&str>) -> String {
    let after = heard.map(|frame| format!("?after={}", segment(frame))).unwrap_or_default();
    format!("/sessions/{}/stream{after}", segment(session))
}

/// Whoever asks again, asks twice.
fn taken(fault: Fault) -> Fault {
    let message = format!("{}; your message was taken: do not send it again", fault.message);
    Fault { message, ..fault }
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
