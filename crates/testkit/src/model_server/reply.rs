//! Plays a script as a response body.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::Value;

use super::script::{ReplyScript, ReplyStep, ScriptedRefusal};
use super::state::{ModelServerState, count_up};

/// Renders a response in one wire format.
pub(super) trait ReplyRenderer: Send + 'static {
    fn render_head(&mut self, script: &ReplyScript) -> String;
    fn render_step(&mut self, step: &ReplyStep) -> String;
    fn render_tail(&mut self, script: &ReplyScript) -> String;
    fn render_whole(&mut self, script: &ReplyScript) -> Value;
}

/// Counts a response as abandoned unless it was played to its end.
struct AbandonWatch {
    state: Arc<ModelServerState>,
    finished: bool,
}

impl AbandonWatch {
    fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for AbandonWatch {
    fn drop(&mut self) {
        if !self.finished {
            count_up(&self.state.abandoned);
        }
    }
}

pub(super) async fn play_script(
    mut script: ReplyScript,
    streams: bool,
    mut render: impl ReplyRenderer,
    state: Arc<ModelServerState>,
) -> Response {
    let watch = AbandonWatch { state, finished: false };
    let leading = script.steps.iter().take_while(|step| step.is_pause()).count();
    for step in script.steps.drain(..leading) {
        wait_step(&step).await;
    }
    let plain = !script.steps.iter().any(|step| step.is_pause() || matches!(step, ReplyStep::Cut));
    if let Some(refusal) = &script.refusal {
        watch.finish();
        return refusal_response(refusal);
    }
    if script.empty {
        watch.finish();
        return StatusCode::OK.into_response();
    }
    match (streams, plain) {
        // The path of benchmarks: one buffer, one write.
        (true, true) => {
            watch.finish();
            let mut body = render.render_head(&script);
            for step in &script.steps {
                body += &render.render_step(step);
            }
            body += &render.render_tail(&script);
            typed_response("text/event-stream", Body::from(body))
        }
        (true, false) => typed_response("text/event-stream", stream_body(script, render, watch)),
        (false, _) => whole_response(script, render, watch).await,
    }
}

async fn whole_response(
    script: ReplyScript,
    mut render: impl ReplyRenderer,
    watch: AbandonWatch,
) -> Response {
    for step in script.steps.iter().filter(|step| step.is_pause()) {
        wait_step(step).await;
    }
    watch.finish();
    let body = render.render_whole(&script).to_string();
    if script.steps.iter().any(|step| matches!(step, ReplyStep::Cut)) {
        let half = Bytes::from(body[..body.len() / 2].to_owned());
        return typed_response(
            "application/json",
            Body::from_stream(stream::iter([Ok(half), Err(broken_connection())])),
        );
    }
    typed_response("application/json", Body::from(body))
}

enum StreamPart {
    Bytes(String),
    Step(ReplyStep),
}

/// Streams one chunk per output step, each after the pauses before it.
fn stream_body(script: ReplyScript, mut render: impl ReplyRenderer, watch: AbandonWatch) -> Body {
    let mut parts = VecDeque::from([StreamPart::Bytes(render.render_head(&script))]);
    for step in &script.steps {
        parts.push_back(match step {
            ReplyStep::Wait(_) | ReplyStep::Gate(_) | ReplyStep::Hang | ReplyStep::Cut => {
                StreamPart::Step(step.clone())
            }
            _ => StreamPart::Bytes(render.render_step(step)),
        });
    }
    parts.push_back(StreamPart::Bytes(render.render_tail(&script)));
    Body::from_stream(stream::unfold((parts, watch), |(mut parts, mut watch)| async move {
        loop {
            match parts.pop_front() {
                Some(StreamPart::Bytes(bytes)) if bytes.is_empty() => {}
                Some(StreamPart::Bytes(bytes)) => return Some((Ok(Bytes::from(bytes)), (parts, watch))),
                Some(StreamPart::Step(ReplyStep::Cut)) => {
                    watch.finished = true;
                    return Some((Err(broken_connection()), (VecDeque::new(), watch)));
                }
                Some(StreamPart::Step(step)) => wait_step(&step).await,
                None => {
                    watch.finish();
                    return None;
                }
            }
        }
    }))
}

async fn wait_step(step: &ReplyStep) {
    match step {
        ReplyStep::Wait(pause) => tokio::time::sleep(*pause).await,
        ReplyStep::Gate(gate) => gate.wait_open().await,
        ReplyStep::Hang => std::future::pending().await,
        _ => {}
    }
}

fn refusal_response(refusal: &ScriptedRefusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = if refusal.body.starts_with('{') { "application/json" } else { "text/plain" };
    let mut response = typed_response(kind, Body::from(refusal.body.clone()));
    *response.status_mut() = status;
    if let Some(value) = refusal.retry_after.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

fn typed_response(kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn broken_connection() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "cut by the script")
}
