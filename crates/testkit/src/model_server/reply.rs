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

use super::script::{Refusal, Script, Step};
use super::state::{State, count};

/// How one wire shape writes an answer.
pub(super) trait Render: Send + 'static {
    fn head(&mut self, script: &Script) -> String;
    fn step(&mut self, step: &Step) -> String;
    fn tail(&mut self, script: &Script) -> String;
    fn whole(&mut self, script: &Script) -> Value;
}

/// Counts an answer as abandoned unless it was played to its end.
struct Watch {
    state: Arc<State>,
    finished: bool,
}

impl Watch {
    fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.finished {
            count(&self.state.abandoned);
        }
    }
}

pub(super) async fn play(
    mut script: Script,
    streams: bool,
    mut render: impl Render,
    state: Arc<State>,
) -> Response {
    let watch = Watch { state, finished: false };
    let leading = script.steps.iter().take_while(|step| step.pauses()).count();
    for step in script.steps.drain(..leading) {
        pause(&step).await;
    }
    let plain = !script.steps.iter().any(|step| step.pauses() || matches!(step, Step::Cut));
    if let Some(refusal) = &script.refusal {
        watch.finish();
        return refuse(refusal);
    }
    if script.empty {
        watch.finish();
        return StatusCode::OK.into_response();
    }
    match (streams, plain) {
        // The path benchmarks take: one buffer, one write.
        (true, true) => {
            watch.finish();
            let mut body = render.head(&script);
            for step in &script.steps {
                body += &render.step(step);
            }
            body += &render.tail(&script);
            typed("text/event-stream", Body::from(body))
        }
        (true, false) => typed("text/event-stream", stepwise(script, render, watch)),
        (false, _) => whole(script, render, watch).await,
    }
}

async fn whole(script: Script, mut render: impl Render, watch: Watch) -> Response {
    for step in script.steps.iter().filter(|step| step.pauses()) {
        pause(step).await;
    }
    watch.finish();
    let body = render.whole(&script).to_string();
    if script.steps.iter().any(|step| matches!(step, Step::Cut)) {
        let half = Bytes::from(body[..body.len() / 2].to_owned());
        return typed("application/json", Body::from_stream(stream::iter([Ok(half), Err(broken())])));
    }
    typed("application/json", Body::from(body))
}

enum Part {
    Bytes(String),
    Step(Step),
}

/// One chunk per output step, each sent when the pauses before it are over.
fn stepwise(script: Script, mut render: impl Render, watch: Watch) -> Body {
    let mut parts = VecDeque::from([Part::Bytes(render.head(&script))]);
    for step in &script.steps {
        parts.push_back(match step {
            Step::Wait(_) | Step::Gate(_) | Step::Hang | Step::Cut => Part::Step(step.clone()),
            _ => Part::Bytes(render.step(step)),
        });
    }
    parts.push_back(Part::Bytes(render.tail(&script)));
    Body::from_stream(stream::unfold((parts, watch), |(mut parts, mut watch)| async move {
        loop {
            match parts.pop_front() {
                Some(Part::Bytes(bytes)) if bytes.is_empty() => {}
                Some(Part::Bytes(bytes)) => return Some((Ok(Bytes::from(bytes)), (parts, watch))),
                Some(Part::Step(Step::Cut)) => {
                    watch.finished = true;
                    return Some((Err(broken()), (VecDeque::new(), watch)));
                }
                Some(Part::Step(step)) => pause(&step).await,
                None => {
                    watch.finish();
                    return None;
                }
            }
        }
    }))
}

async fn pause(step: &Step) {
    match step {
        Step::Wait(pause) => tokio::time::sleep(*pause).await,
        Step::Gate(gate) => gate.passed().await,
        Step::Hang => std::future::pending().await,
        _ => {}
    }
}

fn refuse(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = if refusal.body.starts_with('{') { "application/json" } else { "text/plain" };
    let mut response = typed(kind, Body::from(refusal.body.clone()));
    *response.status_mut() = status;
    if let Some(value) = refusal.retry_after.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

fn typed(kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "cut by the script")
}
