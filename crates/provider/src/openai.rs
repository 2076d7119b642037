//! OpenAI's chat completions, which most providers and every local server speak. Written and read here and not by the
//! client library: a call is made into JSON once, from what is there, where the library makes trees of it three times.

mod body;
mod chunk;
mod events;

use futures_util::FutureExt;
use polyclaw_domain::provider::{Delta, ErrorClass, Sink};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};
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
    let (request, sink) = (request(endpoint, body::bytes(model, question.prompt)?), question.sink);
    let Some(patience) = question.patience(endpoint) else {
        let mut reply = Reply::new(open(request).await?, sink);
        while !reply.read().await? {}
        return reply.finish();
    };
    let deadline = Instant::now() + patience;
    let late = |_| Fault::new(ErrorClass::Timeout, "no first token in time");
    let mut reply = Reply::new(timeout_at(deadline, open(request)).await.map_err(late)??, sink);
    while !reply.has_begun {
        if timeout_at(deadline, reply.read()).await.map_err(late)?? {
            return reply.finish();
        }
    }
    while !reply.read().await? {}
    reply.finish()
}

fn request(endpoint: &Endpoint, body: Vec<u8>) -> RequestBuilder {
    let request = endpoint.http.post(endpoint.chat_url.clone());
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
    sink: Sink<'a>,
    text: String,
    calls: Calls,
    ending: Ending,
    has_begun: bool,
}

impl<'a> Reply<'a> {
    fn new(response: Response, sink: Sink<'a>) -> Self {
        Self {
            response,
            events: Events::default(),
            sink,
            text: String::new(),
            calls: Calls::new(Pieces::Fragments),
            ending: Ending::default(),
            has_begun: false,
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
            self.say(Delta::Reasoning(reasoning));
        }
        if let Some(text) = text {
            self.text.push_str(&text);
            self.say(Delta::Text(text));
        }
        for (place, piece) in delta.tool_calls.into_iter().flatten().enumerate() {
            let (id, name, arguments) = piece.into_parts(place);
            self.calls.add(id, name, arguments);
            self.has_begun = true;
        }
        Ok(())
    }

    fn say(&mut self, delta: Delta) {
        self.has_begun = true;
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
