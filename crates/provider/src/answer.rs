//! Reads one streamed answer to its end.

use std::time::Duration;

use futures_util::StreamExt;
use genai::chat::{ChatStream, ChatStreamEvent, StopReason, StreamEnd};
use polyclaw_domain::provider::{Delta, ErrorClass, Sink, Usage};
use polyclaw_domain::tool::ToolCall;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use crate::calls::Calls;
use crate::fault::Fault;
use crate::wire::Pieces;

/// How long a finished answer's connection may take to say that it is over.
const LINGER: Duration = Duration::from_millis(50);

pub(crate) struct Answer {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
    pub truncated: bool,
}

/// How an answer is to be read.
pub(crate) struct Reading<'a> {
    pub pieces: Pieces,
    pub first_token_timeout: Option<Duration>,
    pub sink: Sink<'a>,
}

impl Reading<'_> {
    pub async fn read(self, mut stream: ChatStream) -> Result<Answer, Fault> {
        let mut text = String::new();
        let mut calls = Calls::new(self.pieces);
        let mut patience = self.first_token_timeout;
        while let Some(event) = next(&mut stream, patience).await? {
            match event {
                ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                    text.push_str(&chunk.content);
                    (self.sink)(Delta::Text(chunk.content));
                }
                ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                    (self.sink)(Delta::Reasoning(chunk.content));
                }
                ChatStreamEvent::ToolCallChunk(piece) => calls.add(piece.tool_call),
                ChatStreamEvent::End(end) => {
                    linger(stream);
                    return finish(text, calls, end, self.pieces);
                }
                // Said before the request is even sent.
                ChatStreamEvent::Start => continue,
                _ => {}
            }
            patience = None;
        }
        Err(Fault::malformed("the answer ended before it was complete"))
    }
}

/// The library logs whole error bodies; ours may hold prompts, so while it works nobody listens.
async fn next(stream: &mut ChatStream, patience: Option<Duration>) -> Result<Option<ChatStreamEvent>, Fault> {
    let next = stream.next().with_subscriber(Dispatch::none());
    let event = match patience {
        Some(patience) => tokio::time::timeout(patience, next)
            .await
            .map_err(|_| Fault::new(ErrorClass::Timeout, "no first token in time"))?,
        None => next.await,
    };
    event.transpose().map_err(Fault::from)
}

fn finish(text: String, calls: Calls, end: StreamEnd, pieces: Pieces) -> Result<Answer, Fault> {
    let stop = end.captured_stop_reason;
    let is_empty = text.is_empty() && calls.is_empty();
    match &stop {
        // For Gemini the library makes up an end when the stream just stops.
        None if is_empty || pieces == Pieces::Whole => {
            return Err(Fault::malformed("the answer ended before it was complete"));
        }
        Some(StopReason::ToolCall(_)) if calls.is_empty() => {
            return Err(Fault::malformed("the answer announces a tool call and has none"));
        }
        Some(StopReason::ContentFilter(_)) if is_empty => {
            return Err(Fault::new(
                ErrorClass::BadRequest,
                "the provider's content filter refused to answer",
            ));
        }
        _ => {}
    }
    let truncated = stop.is_some_and(|stop| stop.is_max_tokens());
    let calls = calls.finish(truncated)?;
    Ok(Answer { text, calls, usage: usage(end.captured_usage), truncated })
}

fn usage(usage: Option<genai::chat::Usage>) -> Usage {
    let count = |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok());
    let usage = usage.unwrap_or_default();
    Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_tokens: count(usage.prompt_tokens_details.and_then(|details| details.cached_tokens)),
    }
}

/// The last event is not yet the end of the HTTP answer. Dropped now, the connection would be closed and the next
/// call of this turn would begin with a new handshake; a moment later it goes back to the pool.
fn linger(stream: ChatStream) {
    tokio::spawn(async move {
        tokio::time::sleep(LINGER).await;
        drop(stream);
    });
}
