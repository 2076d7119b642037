//! Sends an editor's prompt to an agent, and reports the turn to the editor until it ends.

use polyclaw_api::attachments::AttachmentBody;
use polyclaw_api::messages::{NewSessionMessage, SessionMessageReceipt, TurnReply, WaitQuery};
use polyclaw_api::stream::StreamQuery;
use polyclaw_api::turns::TurnView;
use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobState;
use reqwest::Response;
use serde_json::{Value, json};

use super::turn::EditorTurn;
use super::{AcpError, AcpResult, EditorConnection, session_id_param};
use crate::client::{encode_segment, with_query};
use crate::ids::random_bytes;
use crate::stream::FrameStream;

impl EditorConnection {
    /// Sends a prompt. `cancels` is the session's number of cancellations when the prompt arrived.
    pub(super) async fn prompt_session(&self, params: &Value, cancels: u64) -> AcpResult {
        let session = session_id_param(params)?;
        let (text, images) = split_prompt(&params["prompt"])?;
        // Opened before the message is sent, so that nothing of its turn is missed.
        let stream = self.current_client()?.open_stream(&stream_path(session, None)).await?;
        // Idempotency key, the same for every try.
        let key = format!("acp-{}", encode_hex(&random_bytes::<12>()));
        // The `cli` channel means that a person can approve tool calls.
        let body = &NewSessionMessage {
            idempotency_key: Some(key),
            attachments: images,
            channel: Some("cli".to_owned()),
            ..NewSessionMessage::from_text(text)
        };
        let path = &format!("/sessions/{}/messages", encode_segment(session));
        let accepted: SessionMessageReceipt =
            self.retry_while_unavailable(|client| async move { client.post_as(path, body).await }).await?;
        if self.is_cancelled(session, cancels) {
            // The cancellation arrived before there was a turn to stop.
            self.cancel_session(session).await?;
        }
        let id = accepted.turn_id;
        let mut turn = EditorTurn::new(self, session, id.clone());
        let reply = self.follow_turn(&mut turn, (session, &id), stream).await.map_err(mark_accepted)?;
        turn.send_final_rest(&reply);
        prompt_result(reply)
    }

    /// Follows the turn until there is a reply, even if the instance restarts.
    async fn follow_turn<'a>(
        &'a self,
        turn: &mut EditorTurn<'a>,
        (session, id): (&str, &TurnId),
        mut stream: Response,
    ) -> Result<TurnReply, AcpError> {
        loop {
            turn.follow_stream(FrameStream::new(stream)).await;
            // The turn is over now, unless the stream broke.
            if let Some(reply) = self.poll_reply(id, 0.0).await? {
                return Ok(reply);
            }
            let path = &stream_path(session, turn.last_frame_id());
            stream =
                self.retry_while_unavailable(|client| async move { client.open_stream(path).await }).await?;
            // The turn may have ended before this stream was open.
            if let Some(reply) = self.poll_reply(id, 1.0).await? {
                return Ok(reply);
            }
        }
    }

    /// Returns the reply to a turn, if there is one within `seconds`.
    async fn poll_reply(&self, turn: &TurnId, seconds: f64) -> Result<Option<TurnReply>, AcpError> {
        let path = format!("/turns/{}", encode_segment(turn.as_str()));
        let path = &with_query(&path, &WaitQuery { wait: Some(seconds) });
        let seen: TurnView =
            self.retry_while_unavailable(|client| async move { client.get_as(path).await }).await?;
        Ok(seen.reply)
    }
}

/// Returns the path of the session's live stream, resuming after the last received frame.
fn stream_path(session: &str, heard: Option<&str>) -> String {
    let path = format!("/sessions/{}/stream", encode_segment(session));
    with_query(&path, &StreamQuery { after: heard.map(str::to_owned), code: None })
}

/// Adds that the message was accepted, because sending it again would ask twice.
fn mark_accepted(fault: AcpError) -> AcpError {
    let message = format!("{}; your message was accepted: do not send it again", fault.message);
    AcpError { message, ..fault }
}

fn prompt_result(reply: TurnReply) -> AcpResult {
    let reason = match reply.state {
        JobState::Cancelled => "cancelled",
        JobState::Done if reply.finish_reason.as_deref() == Some("length") => "max_tokens",
        JobState::Done => "end_turn",
        _ => {
            let code = reply.error_code.unwrap_or_else(|| "turn_failed".to_owned());
            return Err(AcpError { number: -32603, message: reply.text, code });
        }
    };
    Ok(json!({ "stopReason": reason }))
}

/// Splits a prompt into its text with attached files, and its images.
fn split_prompt(blocks: &Value) -> Result<(String, Vec<AttachmentBody>), AcpError> {
    let blocks = blocks.as_array().ok_or_else(|| AcpError::invalid_params("prompt must be a list"))?;
    let (images, others): (Vec<_>, Vec<_>) = blocks.iter().partition(|block| block["type"] == "image");
    let text = others.into_iter().map(block_text).collect::<Result<Vec<_>, _>>()?.join("\n\n");
    if text.trim().is_empty() && images.is_empty() {
        return Err(AcpError::invalid_params("the prompt is empty"));
    }
    let attachment = |(n, block): (usize, &Value)| AttachmentBody {
        name: format!("image-{}", n + 1),
        media_type: block["mimeType"].as_str().unwrap_or_default().to_owned(),
        text: None,
        url: None,
        data: Some(block["data"].as_str().unwrap_or_default().to_owned()),
    };
    Ok((text, images.into_iter().enumerate().map(attachment).collect()))
}

fn block_text(block: &Value) -> Result<String, AcpError> {
    let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => Ok(field(&block["text"])),
        Some("resource_link") => Ok(format!("[{}]({})", field(&block["name"]), field(&block["uri"]))),
        Some("resource") if block["resource"]["text"].is_string() => {
            let (uri, text) = (field(&block["resource"]["uri"]), field(&block["resource"]["text"]));
            Ok(format!("<file uri=\"{uri}\">\n{text}\n</file>"))
        }
        other => Err(AcpError::invalid_params(format!("content of type {other:?} is not supported"))),
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::provider::TokenUsage;

    use super::*;

    #[test]
    fn prompt_accepts_files_and_images_and_rejects_other_blocks() {
        let blocks = json!([
            { "type": "text", "text": "Look" },
            { "type": "resource_link", "name": "a.rs", "uri": "file:///a.rs" },
            { "type": "resource", "resource": { "uri": "file:///b.rs", "text": "fn b() {}" } },
            { "type": "image", "mimeType": "image/gif", "data": "R0lGODlh" },
        ]);
        let words = "Look\n\n[a.rs](file:///a.rs)\n\n<file uri=\"file:///b.rs\">\nfn b() {}\n</file>";
        let image = json!([{ "name": "image-1", "media_type": "image/gif", "data": "R0lGODlh" }]);
        let (text, images) = split_prompt(&blocks).unwrap();
        assert_eq!((text.as_str(), json!(images)), (words, image));
        for odd in [json!([]), json!(7), json!([{ "type": "audio", "data": "" }])] {
            assert_eq!(split_prompt(&odd).unwrap_err().number, -32602, "{odd}");
        }
    }

    #[test]
    fn failed_turn_is_an_error_and_others_get_stop_reason() {
        let reply = |state| TurnReply {
            message_id: None,
            text: "No.".to_owned(),
            state,
            error_code: Some("no_model".to_owned()),
            finish_reason: None,
            model: None,
            usage: TokenUsage::default().into(),
        };
        let ended = |reply| prompt_result(reply).map(|done| done["stopReason"].clone());
        assert_eq!(ended(reply(JobState::Done)).unwrap(), "end_turn");
        let cut = TurnReply { finish_reason: Some("length".to_owned()), ..reply(JobState::Done) };
        assert_eq!(ended(cut).unwrap(), "max_tokens");
        assert_eq!(ended(reply(JobState::Cancelled)).unwrap(), "cancelled");
        let failed = ended(reply(JobState::Failed)).unwrap_err();
        assert_eq!((failed.message.as_str(), failed.code.as_str()), ("No.", "no_model"));
    }
}
