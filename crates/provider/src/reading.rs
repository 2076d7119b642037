//! Reads one answer that the client library streams to its end.

use std::time::Duration;

use futures_util::StreamExt;
use genai::chat::{ChatStream, ChatStreamEvent, StopReason, StreamEnd};
use polyclaw_domain::provider::{DeltaSink, StreamDelta, TokenUsage};
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use crate::answer::{Answer, Ending, MOST_BYTES, Stop};
use crate::calls::Calls;
use crate::fault::Fault;
use crate::wire::Pieces;

/// How long a finished answer's connection may take to say that it is over.
pub(crate) const LINGER: Duration = Duration::from_millis(50);

/// How an answer is to be read.
pub(crate) struct Reading<'a> {
    pub pieces: Pieces,
    /// How long it may be silent, before its first token and after each.
    pub silence_timeout: Option<Duration>,
    pub sink: DeltaSink<'a>,
}

impl Reading<'_> {
    pub async fn read(self, mut stream: ChatStream) -> Result<Answer, Fault> {
        let mut text = String::new();
        let mut calls = Calls::new(self.pieces);
        let mut has_begun = false;
        while let Some(event) = next(&mut stream, (self.silence_timeout, has_begun)).await? {
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
                    calls.add(call.call_id, call.fn_name, call.fn_arguments);
                }
                ChatStreamEvent::End(end) => {
                    linger(stream);
                    return Answer::finish(text, calls, ending(end, self.pieces)?);
                }
                // Said before the request is even sent.
                ChatStreamEvent::Start => continue,
                _ => {}
            }
            if text.len() + calls.bytes() > MOST_BYTES {
                return Answer::cut(text, calls, TokenUsage::default());
            }
            has_begun = true;
        }
        Err(Fault::cut_off())
    }
}

/// The library logs whole error bodies; ours may hold prompts, so while it works nobody listens.
async fn next(
    stream: &mut ChatStream,
    (patience, has_begun): (Option<Duration>, bool),
) -> Result<Option<ChatStreamEvent>, Fault> {
    let next = stream.next().with_subscriber(Dispatch::none());
    let event = match patience {
        Some(patience) => tokio::time::timeout(patience, next).await.map_err(|_| Fault::silent(has_begun))?,
        None => next.await,
    };
    event.transpose().map_err(Fault::from)
}

fn ending(end: StreamEnd, pieces: Pieces) -> Result<Ending, Fault> {
    let stop = end.captured_stop_reason.map(|stop| match stop {
        StopReason::ToolCall(_) => Stop::Calls,
        StopReason::ContentFilter(_) => Stop::Filtered,
        stop if stop.is_max_tokens() => Stop::Length,
        _ => Stop::Done,
    });
    // For Gemini the library makes up an end when the stream just stops.
    if stop.is_none() && pieces == Pieces::Whole {
        return Err(Fault::cut_off());
    }
    Ok(Ending { stop, usage: usage(end.captured_usage) })
}

fn usage(usage: Option<genai::chat::Usage>) -> TokenUsage {
    let count = |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok());
    let usage = usage.unwrap_or_default();
    TokenUsage {
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
