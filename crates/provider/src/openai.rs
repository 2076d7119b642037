//! OpenAI's chat completions, which most providers and every local server speak. Written and read here and not by the
//! client library: a call is made into JSON once, from what is there, where the library makes trees of it three times.

mod body;
mod chunk;
mod events;

use futures_util::FutureExt;
use polyclaw_domain::provider::{DeltaSink, StreamDelta};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::answer::{Answer, Ending, MOST_BYTES, Stop};
use crate::calls::Calls;
use crate::endpoint::Endpoint;
use crate::fault::{self, Fault};
use crate::models::Question;
use crate::openai::chunk::Chunk;
use crate::openai::events::Events;
use crate::reading::LINGER;
use crate::wire::Pieces;

/// What a provider says about an error is short; more of it is not read.
const ERROR_BYTES: usize = 64 * 1024;

pub(crate) async fn ask(endpoint: &Endpoint, model: &str, question: Question<'_>) -> Result<Answer, Fault> {
    let client = endpoint.http(question.connection)?;
    let request = request(endpoint, client, body::bytes(model, question.prompt)?);
    let patience = question.patience(endpoint);
    let mut deadline = patience.map(|patience| Instant::now() + patience);
    let late = |_| Fault::silent(false);
    let mut reply = Reply::new(within(deadline, open(request)).await.map_err(late)??, question.sink);
    loop {
        let seen = reply.tokens;
        match within(deadline, reply.read()).await {
            Ok(Ok(true)) => return reply.finish(),
            Ok(Ok(false)) => {}
            Ok(Err(fault)) => return Err(fault),
            // It has said why it stopped: only the end of the connection is missing.
            Err(_) if reply.ending.stop.is_some() => return reply.finish(),
            Err(_) => return Err(Fault::silent(reply.tokens > 0)),
        }
        if reply.tokens > seen {
            deadline = patience.map(|patience| Instant::now() + patience);
        }
    }
}

async fn within<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await,
        None => Ok(work.await),
    }
}

fn request(endpoint: &Endpoint, client: &reqwest::Client, body: Vec<u8>) -> RequestBuilder {
    let request = client.post(endpoint.chat_url.clone());
    let request = request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream");
    let request = match &endpoint.key {
        Some(key) => request.bearer_auth(key.expose()),
        None => request,
    };
    request.body(body)
}

async fn open(request: RequestBuilder) -> Result<Response, Fault> {
    let mut response = request.send().await?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let mut body = Vec::new();
    while body.len() < ERROR_BYTES
        && let Some(bytes) = response.chunk().await?
    {
        body.extend_from_slice(&bytes);
    }
    Err(fault::from_status(status.as_u16(), &String::from_utf8_lossy(&body), response.headers()))
}

/// An answer that is being read.
struct Reply<'a> {
    response: Response,
    events: Events,
    sink: DeltaSink<'a>,
    text: String,
    calls: Calls,
    ending: Ending,
    /// Pieces of words, thoughts and calls so far.
    tokens: usize,
}

impl<'a> Reply<'a> {
    fn new(response: Response, sink: DeltaSink<'a>) -> Self {
        Self {
            response,
            events: Events::default(),
            sink,
            text: String::new(),
            calls: Calls::new(Pieces::Fragments),
            ending: Ending::default(),
            tokens: 0,
        }
    }

    /// Takes what came next; true when the answer is complete.
    async fn read(&mut self) -> Result<bool, Fault> {
        let Some(bytes) = self.response.chunk().await? else {
            // Some servers say why they stopped and then just hang up.
            return match self.ending.stop {
                Some(_) => Ok(true),
                None => Err(Fault::cut_off()),
            };
        };
        self.events.add(&bytes)?;
        while let Some(data) = self.events.next()? {
            if data == "[DONE]" {
                return Ok(true);
            }
            let chunk = serde_json::from_str(&data);
            self.take(chunk.map_err(|_| Fault::malformed("the answer could not be read"))?)?;
        }
        if self.text.len() + self.calls.bytes() > MOST_BYTES {
            self.ending.stop = Some(Stop::Length);
            return Ok(true);
        }
        Ok(false)
    }

    fn take(&mut self, chunk: Chunk) -> Result<(), Fault> {
        if let Some(error) = &chunk.error {
            return Err(fault::from_event(error));
        }
        if let Some(usage) = chunk.usage() {
            self.ending.usage = usage;
        }
        let Some(choice) = chunk.into_choice() else {
            return Ok(());
        };
        self.ending.stop = choice.stop().or(self.ending.stop);
        let mut delta = choice.delta.unwrap_or_default();
        let (reasoning, text) = delta.words();
        if let Some(reasoning) = reasoning {
            self.say(StreamDelta::Reasoning(reasoning));
        }
        if let Some(text) = text {
            self.text.push_str(&text);
            self.say(StreamDelta::Text(text));
        }
        for (place, piece) in delta.tool_calls.into_iter().flatten().enumerate() {
            let (id, name, arguments) = piece.into_parts(place);
            self.calls.add(id, name, arguments);
            self.tokens += 1;
        }
        Ok(())
    }

    fn say(&mut self, delta: StreamDelta) {
        self.tokens += 1;
        (self.sink)(delta);
    }

    fn finish(self) -> Result<Answer, Fault> {
        linger(self.response);
        Answer::finish(self.text, self.calls, self.ending)
    }
}

/// The last event is not yet the end of the HTTP answer. Dropped now, the connection would be closed and the next
/// call of this turn would begin with a new handshake. Mostly the end is there already.
fn linger(mut response: Response) {
    if let Some(Ok(None) | Err(_)) = response.chunk().now_or_never() {
        return;
    }
    tokio::spawn(tokio::time::timeout(
        LINGER,
        async move { while let Ok(Some(_)) = response.chunk().await {} },
    ));
}
