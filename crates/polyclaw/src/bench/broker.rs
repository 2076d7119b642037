//! Measures messages between instances that the control plane makes durable per second.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use polyclaw_api::control::instances::{InstanceView, NewInstance};
use polyclaw_api::control::messages::{EnvelopeReceipt, NewEnvelopeBody};
use polyclaw_api::control::rules::{NewRuleBody, RuleView};
use polyclaw_api::control::tokens::{CreatedTokenView, NewToken};
use polyclaw_domain::instance::TokenAccess;
use reqwest::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes, per_second};

const SENDER_COUNT: usize = 64;

/// A control plane of this build in a temporary home. Its token is looked up like an instance's.
struct BenchControlPlane {
    client: Client,
    url: String,
    token: String,
    server: Child,
    home: tempfile::TempDir,
}

impl Drop for BenchControlPlane {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl BenchControlPlane {
    async fn start() -> anyhow::Result<Self> {
        let home = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Command::new(std::env::current_exe()?)
            .arg("control")
            .env("POLYCLAW_HOME", home.path())
            .env("POLYCLAW_CP_PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let client = Client::builder().no_proxy().pool_max_idle_per_host(2_000).tcp_nodelay(true).build()?;
        let url = format!("http://127.0.0.1:{port}/api");
        let mut plane = Self { client, url, token: String::new(), server, home };
        plane.token = plane.wait_for_operator_token().await?;
        let new = NewToken { name: "bench".to_owned(), scope: TokenAccess::Operate };
        let scoped: CreatedTokenView = plane.post("/tokens", &new).await?;
        for name in ["a", "b"] {
            let new =
                NewInstance { name: name.to_owned(), port: None, provider: None, model: None, restart: None };
            let _: InstanceView = plane.post("/instances", &new).await?;
        }
        let rule = NewRuleBody {
            from: "a".to_owned(),
            to: "b".to_owned(),
            r#type: "task.*".to_owned(),
            max_retries: None,
            ttl_secs: None,
            auto_start: false,
        };
        let _: RuleView = plane.post("/routing-rules", &rule).await?;
        plane.token = scoped.secret.context("no token")?;
        Ok(plane)
    }

    /// Waits until the control plane responds, and returns the operator's token.
    async fn wait_for_operator_token(&self) -> anyhow::Result<String> {
        let file = self.home.path().join("cp/token");
        let began = Instant::now();
        loop {
            let token = std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
            let asked = self.client.get(format!("{}/version", self.url)).bearer_auth(&token).send().await;
            if asked.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(token);
            }
            ensure!(began.elapsed() < Duration::from_secs(60), "the control plane does not respond");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn post<B: Serialize, T: DeserializeOwned>(&self, path: &str, body: &B) -> anyhow::Result<T> {
        let request = self.client.post(format!("{}{path}", self.url)).bearer_auth(&self.token).json(body);
        let answer = request.send().await?;
        let status = answer.status();
        let body = answer.bytes().await?;
        ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        Ok(serde_json::from_slice(&body)?)
    }
}

pub async fn run(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let plane = Arc::new(BenchControlPlane::start().await?);
    let began = Instant::now();
    let senders: Vec<_> = (0..SENDER_COUNT)
        .map(|n| {
            let plane = Arc::clone(&plane);
            tokio::spawn(async move { send_messages(&plane, n, began, seconds).await })
        })
        .collect();
    let mut times = OperationTimes::default();
    for sender in senders {
        times.extend(sender.await??);
    }
    let accepted = per_second(times.len(), began.elapsed());
    report.add("messages between instances per second", accepted, "/s", Some(FigureTarget::AtLeast(2_000.0)));
    report.add("message between instances p99", times.percentile(0.99), "ms", None);
    Ok(())
}

async fn send_messages(
    plane: &BenchControlPlane,
    sender: usize,
    began: Instant,
    seconds: Duration,
) -> anyhow::Result<OperationTimes> {
    let mut times = OperationTimes::default();
    while began.elapsed() < seconds {
        let body = NewEnvelopeBody {
            from: Some("a".to_owned()),
            to: "b".to_owned(),
            r#type: "task.handoff".to_owned(),
            payload: json!({ "task": "a task of ordinary length, as agents write them" }),
            correlation_id: Some(format!("c{sender}")),
            idempotency_key: Some(format!("{sender}-{}", times.len())),
            hop_count: 0,
            trace_id: None,
        };
        let start = Instant::now();
        let _: EnvelopeReceipt = plane.post("/messages", &body).await?;
        times.push(start.elapsed());
    }
    Ok(times)
}
