//! A span collector: receives OTLP over HTTP as JSON and stores it. Runs on its own thread.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;
use tokio::sync::oneshot;

/// One span as received.
#[derive(Clone, Debug)]
pub struct CollectedSpan(pub Value);

impl CollectedSpan {
    pub fn text_field(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    /// Returns a string attribute.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let all = self.0["attributes"].as_array()?;
        all.iter().find(|one| one["key"] == key)?["value"]["stringValue"].as_str()
    }
}

type CollectedRequests = Arc<Mutex<Vec<Value>>>;

/// Runs until dropped.
pub struct SpanCollector {
    address: SocketAddr,
    requests: CollectedRequests,
    _stop: oneshot::Sender<()>,
}

impl SpanCollector {
    /// # Panics
    /// If no loopback port is available.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("a bound address");
        let requests = CollectedRequests::default();
        let (stop, stopped) = oneshot::channel::<()>();
        let router = Router::new().route("/v1/traces", post(receive_spans)).with_state(Arc::clone(&requests));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    _ = axum::serve(listener, router) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, requests, _stop: stop }
    }

    /// Returns the URL to configure as the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns every span so far.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let scopes = requests.iter().flat_map(|request| array_items(&request["resourceSpans"]));
        let spans = scopes
            .flat_map(|scope| array_items(&scope["scopeSpans"]))
            .flat_map(|scope| array_items(&scope["spans"]));
        spans.cloned().map(CollectedSpan).collect()
    }

    /// Returns all requests as text.
    pub fn all_text(&self) -> String {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.iter().map(Value::to_string).collect()
    }

    /// Waits until the received spans are enough.
    ///
    /// # Panics
    /// If they are not within 20 seconds.
    pub async fn wait_for_spans(
        &self,
        what: &str,
        is_enough: impl Fn(&[CollectedSpan]) -> bool,
    ) -> Vec<CollectedSpan> {
        let began = Instant::now();
        loop {
            let spans = self.spans();
            if is_enough(&spans) {
                return spans;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "not in time: {what}: {spans:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn array_items(list: &Value) -> std::slice::Iter<'_, Value> {
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

async fn receive_spans(
    State(kept): State<CollectedRequests>,
    Json(request): Json<Value>,
) -> (StatusCode, Json<Value>) {
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    (StatusCode::OK, Json(Value::Object(serde_json::Map::new())))
}
