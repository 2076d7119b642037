//! The benchmark's subject: a daemon of this build in a temporary home, with a scripted model.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use reqwest::{Client, RequestBuilder};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

pub struct BenchDaemon {
    pub model: ModelServer,
    pub client: Client,
    pub url: String,
    home: tempfile::TempDir,
    child: Child,
    /// Time from spawning the process to its first successful response.
    pub ready_after: Duration,
}

/// A model request, built before the clock runs.
pub struct DirectCall(String);

impl DirectCall {
    pub fn after_turns(turns: usize) -> Self {
        let text_of = |role: &str, content: &str| json!({ "role": role, "content": content });
        let history = (0..turns).flat_map(|_| [text_of("user", "hi"), text_of("assistant", "ok")]);
        let messages: Vec<Value> = history.chain([text_of("user", "hi")]).collect();
        Self(json!({ "model": "m", "stream": true, "messages": messages }).to_string())
    }
}

const BENCH_TOKEN: &str = "bench";

impl BenchDaemon {
    pub async fn start(extra: &str) -> anyhow::Result<Self> {
        let model = ModelServer::start();
        model.answer_with(|_| ReplyScript::reply("ok"));
        model.retain_requests(0);
        let home = tempfile::tempdir()?;
        let config = format!(
            "[providers.bench]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
             [agents.defaults]\nmodel = \"bench/m\"\n[observability]\nlog_level = \"warn\"\n{extra}",
            model.url()
        );
        std::fs::write(home.path().join("config.toml"), config)?;
        let client = Client::builder().no_proxy().pool_max_idle_per_host(2_000).tcp_nodelay(true).build()?;
        // The first start creates the home. The measured start uses an existing one.
        let (child, url, _) = spawn_daemon(home.path(), &client).await?;
        kill_child(child);
        let (child, url_again, ready_after) = spawn_daemon(home.path(), &client).await?;
        drop(url);
        Ok(Self { model, client, url: url_again, home, child, ready_after })
    }

    /// Runs one turn through the daemon's OpenAI-compatible endpoint.
    pub async fn run_turn(&self, user: &str) -> anyhow::Result<()> {
        self.run_turn_with_text(user, "hi").await
    }

    /// Runs one turn with the given text.
    pub async fn run_turn_with_text(&self, user: &str, text: &str) -> anyhow::Result<()> {
        let body =
            json!({ "model": "polyclaw", "user": user, "messages": [{ "role": "user", "content": text }] });
        self.post("/v1/chat/completions", &body).await
    }

    /// Calls the model directly with the same kind of request that the daemon sends: streamed, with an equally long history.
    pub async fn call_model(&self, body: &DirectCall) -> anyhow::Result<()> {
        let request = self.client.post(format!("{}/chat/completions", self.model.url()));
        let request = request.header("content-type", "application/json").body(body.0.clone());
        let answer = request.send().await?;
        ensure!(answer.status().is_success(), "the model responded with {}", answer.status());
        answer.bytes().await?;
        Ok(())
    }

    /// Builds a request to the model.
    pub fn model_request(&self, body: &impl Serialize) -> RequestBuilder {
        self.client.post(format!("{}/chat/completions", self.model.url())).json(body)
    }

    /// Builds a request to the daemon with the owner's token.
    pub fn daemon_request(&self, path: &str, body: &impl Serialize) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.url)).bearer_auth(BENCH_TOKEN).json(body)
    }

    pub async fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<()> {
        let answer = self.daemon_request(path, body).send().await?;
        let status = answer.status();
        let body = answer.bytes().await?;
        ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice::<IgnoredAny>(&body)?;
        Ok(())
    }

    /// Returns the daemon's resident memory in megabytes.
    pub fn memory_mb(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
        let kb: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kb / 1024.0)
    }

    /// Returns the daemon's CPU time so far in seconds.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: f64 = fields.get(11).context("no utime")?.parse::<f64>()?
            + fields.get(12).context("no stime")?.parse::<f64>()?;
        Ok(ticks / 100.0)
    }

    /// Kills the daemon with SIGKILL and restarts it on the same home.
    pub async fn restart(&mut self) -> anyhow::Result<Duration> {
        self.child.kill()?;
        self.child.wait()?;
        let (child, url, ready_after) = spawn_daemon(self.home.path(), &self.client).await?;
        (self.child, self.url) = (child, url);
        Ok(ready_after)
    }
}

impl Drop for BenchDaemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill_child(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

async fn spawn_daemon(home: &std::path::Path, client: &Client) -> anyhow::Result<(Child, String, Duration)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let began = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["daemon", "--port", &port.to_string()])
        .env("POLYCLAW_HOME", home)
        .env("POLYCLAW_TOKEN", BENCH_TOKEN)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()?;
    let url = format!("http://127.0.0.1:{port}");
    while began.elapsed() < Duration::from_secs(20) {
        if client.get(format!("{url}/ready")).send().await.is_ok_and(|answer| answer.status().is_success()) {
            return Ok((child, url, began.elapsed()));
        }
        ensure!(child.try_wait()?.is_none(), "the daemon ended while starting");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    kill_child(child);
    anyhow::bail!("the daemon is not ready after 20 s")
}
