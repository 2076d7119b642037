//! OpenAI's chat completions, which most providers and every local server support. Implemented here and not by the
//! client library, which builds three JSON trees per call; this code serializes the prompt once.

mod body;
mod chunk;
mod events;

use futures_util::FutureExt;
use polyclaw_domain::provider::{DeltaSink, StreamDelta};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::answer::{AnswerEnd, FinishReason, MAX_ANSWER_BYTES, ModelAnswer};
use crate::endpoint::ProviderEndpoint;
use crate::error_class::{self, ModelCallError};
use crate::models::CandidateRequest;
use crate::openai::chunk::UpstreamChunk;
use crate::openai::events::SseParser;
use crate::stream::CLOSE_DELAY;
use crate::tool_calls::ToolCallAssembler;
use crate::wire::ToolCallStreaming;

/// Maximum bytes read of an error body.
const MAX_ERROR_BYTES: usize = 64 * 1024;

pub(crate) async fn ask_openai(
    endpoint: &ProviderEndpoint,
    model: &str,
    question: CandidateRequest<'_>,
) -> Result<ModelAnswer, ModelCallError> {
    let client = endpoint.http_client(question.connection)?;
    let request = build_request(endpoint, client, body::request_bytes(model, question.prompt)?);
    let timeout = question.silence_timeout(endpoint);
    let mut deadline = timeout.map(|timeout| Instant::now() + timeout);
    let late = |_| ModelCallError::silence_timeout(false);
    let mut reply = StreamedReply::new(
        run_until_deadline(deadline, open_stream(request)).await.map_err(late)??,
        question.sink,
    );
    loop {
        let seen = reply.tokens;
        match run_until_deadline(deadline, reply.read_chunk()).await {
            Ok(Ok(true)) => return reply.finish(),
            Ok(Ok(false)) => {}
            Ok(Err(fault)) => return Err(fault),
            // The model has reported its finish reason; only the end of the connection is missing.
            Err(_) if reply.ending.stop.is_some() => return reply.finish(),
            Err(_) => return Err(ModelCallError::silence_timeout(reply.tokens > 0)),
        }
        if reply.tokens > seen {
            deadline = timeout.map(|timeout| Instant::now() + timeout);
        }
    }
}

async fn run_until_deadline<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
) -> Result<T, Elapsed> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await,
        None => Ok(work.await),
    }
}

fn build_request(endpoint: &ProviderEndpoint, client: &reqwest::Client, body: Vec<u8>) -> RequestBuilder {
    let request = client.post(endpoint.chat_url.clone());
    let request = request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream");
    let request = match &endpoint.key {
        Some(key) => request.bearer_auth(key.expose()),
        None => request,
    };
    request.body(body)
}

async fn open_stream(request: RequestBuilder) -> Result<Response, ModelCallError> {
    let mut response = request.send().await?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BYTES
        && let Some(bytes) = response.chunk().await?
    {
        body.extend_from_slice(&bytes);
    }
    Err(error_class::from_status(status.as_u16(), &String::from_utf8_lossy(&body), response.headers()))
}

/// An answer that is being read.
struct StreamedReply<'a> {
    response: Response,
    events: SseParser,
    sink: DeltaSink<'a>,
    text: String,
    calls: ToolCallAssembler,
    ending: AnswerEnd,
    /// Number of text, reasoning and tool call deltas so far.
    tokens: usize,
}

impl<'a> StreamedReply<'a> {
    fn new(response: Response, sink: DeltaSink<'a>) -> Self {
        Self {
            response,
            events: SseParser::default(),
            sink,
            text: String::new(),
            calls: ToolCallAssembler::new(ToolCallStreaming::Fragments),
            ending: AnswerEnd::default(),
            tokens: 0,
        }
    }

    /// Processes the next bytes. Returns true when the answer is complete.
    async fn read_chunk(&mut self) -> Result<bool, ModelCallError> {
        let Some(bytes) = self.response.chunk().await? else {
            // Some servers send a finish reason and then close the connection.
            return match self.ending.stop {
                Some(_) => Ok(true),
                None => Err(ModelCallError::cut_off()),
            };
        };
        self.events.push_bytes(&bytes)?;
        while let Some(data) = self.events.next_event()? {
            if data == "[DONE]" {
                return Ok(true);
            }
            let chunk = serde_json::from_str(&data);
            self.process_chunk(chunk.map_err(|_| ModelCallError::malformed("cannot parse the response"))?)?;
        }
        if self.text.len() + self.calls.byte_count() > MAX_ANSWER_BYTES {
            self.ending.stop = Some(FinishReason::Length);
            return Ok(true);
        }
        Ok(false)
    }

    fn process_chunk(&mut self, chunk: UpstreamChunk) -> Result<(), ModelCallError> {
        if let Some(error) = &chunk.error {
            return Err(error_class::from_event(error));
        }
        if let Some(usage) = chunk.usage() {
            self.ending.usage = usage;
        }
        let Some(choice) = chunk.into_choice() else {
            return Ok(());
        };
        self.ending.stop = choice.finish_reason().or(self.ending.stop);
        let mut delta = choice.delta.unwrap_or_default();
        let (reasoning, text) = delta.take_thought_and_text();
        if let Some(reasoning) = reasoning {
            self.emit_delta(StreamDelta::Reasoning(reasoning));
        }
        if let Some(text) = text {
            self.text.push_str(&text);
            self.emit_delta(StreamDelta::Text(text));
        }
        for (place, piece) in delta.tool_calls.into_iter().flatten().enumerate() {
            let (id, name, arguments) = piece.into_parts(place);
            self.calls.add_piece(id, name, arguments);
            self.tokens += 1;
        }
        Ok(())
    }

    fn emit_delta(&mut self, delta: StreamDelta) {
        self.tokens += 1;
        (self.sink)(delta);
    }

    fn finish(self) -> Result<ModelAnswer, ModelCallError> {
        drain_to_eof(self.response);
        ModelAnswer::from_parts(self.text, self.calls, self.ending)
    }
}

/// Reads the response to its end. The last event is not the end of the HTTP response, and dropping it now would close
/// the connection and cost the next call of this turn a new handshake. Usually the end has arrived already.
fn drain_to_eof(mut response: Response) {
    if let Some(Ok(None) | Err(_)) = response.chunk().now_or_never() {
        return;
    }
    tokio::spawn(tokio::time::timeout(CLOSE_DELAY, async move {
        while let Ok(Some(_)) = response.chunk().await {}
    }));
}
