//! Exports spans to an OpenTelemetry collector over HTTP, in batches. No turn waits for it: spans that do not fit
//! into the queue, or that the collector does not accept, are dropped and counted.

mod collector;
mod otlp;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use polyclaw_domain::config;
use polyclaw_domain::span::{Span, SpanSink, Telemetry};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::failure::CommandFailure;
use collector::CollectorTarget;

/// Maximum number of queued spans.
const SPAN_QUEUE_CAPACITY: usize = 4_096;
/// Maximum number of spans in one request.
const EXPORT_BATCH_SIZE: usize = 512;
/// How long the first span of a batch waits for others.
const EXPORT_BATCH_DELAY: Duration = Duration::from_millis(500);
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between two warnings about an unavailable collector.
const FAILURE_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The engine's end of the queue.
struct SpanQueue {
    spans: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

impl SpanSink for SpanQueue {
    fn record_span(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn dropped_spans(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Sends spans from the queue to the collector.
pub struct SpanExporter {
    target: CollectorTarget,
    client: reqwest::Client,
    spans: mpsc::Receiver<Span>,
    dropped: Arc<AtomicU64>,
    complained: Option<Instant>,
}

/// A running exporter.
pub struct ExporterTask {
    over: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Opens both ends if the config or the environment names a collector.
pub fn open_exporter(
    settings: &config::TelemetryConfig,
) -> Result<(Telemetry, Option<SpanExporter>), CommandFailure> {
    let Some(target) = CollectorTarget::from_settings(settings, |name| std::env::var(name).ok())? else {
        return Ok((Telemetry::default(), None));
    };
    let mut client =
        reqwest::Client::builder().timeout(EXPORT_TIMEOUT).redirect(reqwest::redirect::Policy::none());
    if target.url.starts_with("http://") {
        // Loading the system's certificates is slow, and plain HTTP needs none.
        client = client.tls_certs_only([]);
    }
    let client = client.build().map_err(|error| CommandFailure::failed("client", error.to_string()))?;
    let (sender, spans) = mpsc::channel(SPAN_QUEUE_CAPACITY);
    let dropped = Arc::new(AtomicU64::new(0));
    let queue = SpanQueue { spans: sender, dropped: Arc::clone(&dropped) };
    Ok((
        Telemetry::with_sink(Arc::new(queue)),
        Some(SpanExporter { target, client, spans, dropped, complained: None }),
    ))
}

impl SpanExporter {
    pub fn start(self) -> ExporterTask {
        let (over, ended) = oneshot::channel();
        ExporterTask { over, task: tokio::spawn(self.export_until_closed(ended)) }
    }

    async fn export_until_closed(mut self, mut over: oneshot::Receiver<()>) {
        loop {
            let mut batch = Vec::new();
            let is_over = tokio::select! {
                biased;
                _ = &mut over => true,
                _ = self.spans.recv_many(&mut batch, EXPORT_BATCH_SIZE) => {
                    tokio::select! {
                        biased;
                        _ = &mut over => true,
                        () = tokio::time::sleep(EXPORT_BATCH_DELAY) => false,
                    }
                }
            };
            while batch.len() < if is_over { SPAN_QUEUE_CAPACITY } else { EXPORT_BATCH_SIZE }
                && let Ok(span) = self.spans.try_recv()
            {
                batch.push(span);
            }
            self.send_batch(batch).await;
            if is_over {
                return;
            }
        }
    }

    async fn send_batch(&mut self, batch: Vec<Span>) {
        if batch.is_empty() {
            return;
        }
        let body = otlp::export_request(&self.target.service, &batch);
        let headers = self.target.headers.iter();
        let request = headers.fold(self.client.post(&self.target.url), |request, (name, value)| {
            request.header(name, value.expose())
        });
        let refused = match request.json(&body).send().await {
            Ok(answer) if answer.status().is_success() => return,
            Ok(answer) => answer.status().to_string(),
            // The URL may contain a key, so the error must not show it.
            Err(error) => error.without_url().to_string(),
        };
        let count = batch.len();
        self.dropped.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        if self.complained.is_none_or(|at| at.elapsed() > FAILURE_LOG_INTERVAL) {
            self.complained = Some(Instant::now());
            tracing::warn!(
                spans = count,
                error = refused,
                "collector does not accept spans; they are dropped"
            );
        }
    }
}

impl ExporterTask {
    /// Exports the remaining spans, then stops.
    pub async fn flush_and_stop(self) {
        let _ = self.over.send(());
        let _ = self.task.await;
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::span::{OtelSpanId, OtelTraceId, SpanKind};
    use polyclaw_domain::time::Millis;

    use super::*;

    #[test]
    fn full_span_queue_drops_and_counts_spans() {
        let settings = config::TelemetryConfig {
            endpoint: Some("http://127.0.0.1:9".into()),
            ..config::TelemetryConfig::default()
        };
        let (telemetry, exporter) = open_exporter(&settings).unwrap();
        let span = || Span {
            trace: OtelTraceId(1),
            id: OtelSpanId(2),
            parent: None,
            links: Vec::new(),
            name: String::new(),
            kind: SpanKind::Internal,
            began: Millis(0),
            ended: Millis(0),
            attributes: Vec::new(),
            error: None,
        };
        (0..SPAN_QUEUE_CAPACITY + 10).for_each(|_| telemetry.record_span(span));
        assert!(exporter.is_some() && telemetry.dropped_spans() == 10, "{}", telemetry.dropped_spans());
    }
}
