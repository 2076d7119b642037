//! Runs many concurrent sessions for a long time. Expects no errors and no memory growth.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::{ReceivedRequest, ReplyScript};
use serde_json::json;

use crate::bench::bench_daemon::BenchDaemon;
use crate::bench::{BenchmarkReport, FigureTarget, per_second};

const CHAT_SESSION_COUNT: usize = 500;

/// Callers of the mixed load. Each starts a new conversation after `MESSAGES_PER_SESSION` messages.
const CALLER_COUNT: usize = 16;
const MESSAGES_PER_SESSION: usize = 20;
/// Pause between two messages of a caller: the load is sustained, not maximal.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(200);
const MEASURE_INTERVAL: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub struct Args {
    /// Minutes of mixed load instead: chats, tools, sub-agents and memories. Reports the memory in use every minute.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=600))]
    minutes: Option<u32>,
}

pub async fn run(report: &mut BenchmarkReport, args: &Args, seconds: Duration) -> anyhow::Result<()> {
    match args.minutes {
        Some(minutes) => run_mixed(report, minutes).await,
        None => run_chats(report, seconds).await,
    }
}

async fn run_chats(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let subject = Arc::new(BenchDaemon::start("").await?);
    let load = SoakLoad { subject, ends_at: Instant::now() + seconds, counts: Arc::default() };
    let began = Instant::now();
    let callers: Vec<_> =
        (0..CHAT_SESSION_COUNT).map(|n| tokio::spawn(load.clone().run_chat_caller(n, began))).collect();
    for quarter in 1..=4 {
        tokio::time::sleep_until((began + seconds * quarter / 4).into()).await;
        report.add(format!("memory after {quarter} of 4 quarters"), load.subject.memory_mb()?, "MB", None);
    }
    for caller in callers {
        caller.await?;
    }
    load.report_counts(report, "500 sessions", began);
    Ok(())
}

async fn run_mixed(report: &mut BenchmarkReport, minutes: u32) -> anyhow::Result<()> {
    let subject = Arc::new(BenchDaemon::start("[turns]\nautomatic_budget = 1000000\n").await?);
    subject.model.answer_with(answer_mixed);
    let began = Instant::now();
    let load = SoakLoad { subject, ends_at: began + MEASURE_INTERVAL * minutes, counts: Arc::default() };
    let callers: Vec<_> = (0..CALLER_COUNT).map(|n| tokio::spawn(load.clone().run_mixed_caller(n))).collect();
    let mut marks = Vec::new();
    for minute in 1..=minutes {
        tokio::time::sleep_until((began + MEASURE_INTERVAL * minute).into()).await;
        let memory = load.subject.memory_mb()?;
        marks.push(memory);
        report.add(format!("memory after minute {minute}"), memory, "MB", None);
    }
    for caller in callers {
        caller.await?;
    }
    if let (Some(tenth), Some(last)) = (marks.get(9), marks.last()) {
        report.add("memory at the end over minute 10", last / tenth, "x", Some(FigureTarget::AtMost(1.1)));
    }
    load.report_counts(report, "mixed load", began);
    Ok(())
}

/// Replies to a message: performs the action that its first word names, once, then answers.
fn answer_mixed(request: &ReceivedRequest) -> ReplyScript {
    let asked = request.last_user_text();
    let done = request.messages().iter().rev().take_while(|message| message["role"] != "user").count();
    let (name, arguments) = match asked.split_whitespace().next().unwrap_or_default() {
        "tool" => ("write_file", json!({ "path": "soak.txt", "content": "x".repeat(2_000) })),
        "child" => ("sessions_spawn", json!({ "task": "say something" })),
        "memory" => ("memory_store", json!({ "content": asked })),
        _ => ("", json!({})),
    };
    if request.tool_names().contains(&name) && done == 0 {
        ReplyScript::new().call("c", name, arguments)
    } else {
        ReplyScript::reply("word ".repeat(80))
    }
}

#[derive(Clone)]
struct SoakLoad {
    subject: Arc<BenchDaemon>,
    ends_at: Instant,
    counts: Arc<SoakCounts>,
}

#[derive(Default)]
struct SoakCounts {
    done: AtomicUsize,
    errors: AtomicUsize,
}

impl SoakLoad {
    async fn run_chat_caller(self, n: usize, began: Instant) {
        while Instant::now() < self.ends_at {
            self.count_outcome(
                self.subject.run_turn(&format!("soak-{n}-{}", began.elapsed().as_secs() / 30)).await,
            );
        }
    }

    async fn run_mixed_caller(self, n: usize) {
        const MESSAGE_KINDS: [&str; 4] = ["chat", "tool", "child", "memory"];
        for count in 0.. {
            if Instant::now() >= self.ends_at {
                return;
            }
            let text =
                format!("{} {n}-{count} {}", MESSAGE_KINDS[count % MESSAGE_KINDS.len()], "z".repeat(200));
            let user = format!("mixed-{n}-{}", count / MESSAGES_PER_SESSION);
            self.count_outcome(self.subject.run_turn_with_text(&user, &text).await);
            tokio::time::sleep(MESSAGE_INTERVAL).await;
        }
    }

    fn count_outcome(&self, outcome: anyhow::Result<()>) {
        match outcome {
            Ok(()) => self.counts.done.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                tracing::error!(%error, "benchmark call failed");
                self.counts.errors.fetch_add(1, Ordering::Relaxed)
            }
        };
    }

    fn report_counts(&self, report: &mut BenchmarkReport, what: &str, began: Instant) {
        #[expect(clippy::cast_precision_loss, reason = "counts of operations are small")]
        let errors = self.counts.errors.load(Ordering::Relaxed) as f64;
        report.add(format!("errors, {what}"), errors, "", Some(FigureTarget::AtMost(0.0)));
        let done = self.counts.done.load(Ordering::Relaxed);
        report.add(format!("turns per second, {what}"), per_second(done, began.elapsed()), "/s", None);
    }
}
