//! Measures the cost of a sub-agent over its model call, and whether many concurrent ones stay within their lane.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use polyclaw_api::messages::NewSessionMessage;
use polyclaw_testkit::model_server::{ReceivedRequest, ReplyScript};
use serde_json::json;

use crate::bench::bench_daemon::{BenchDaemon, DirectCall};
use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes};

/// Owners and children per owner: 200 in total, the maximum for each owner.
const OWNER_COUNT: usize = 10;
const CHILDREN_PER_OWNER: usize = 20;
/// Default number of slots of the sub-agent lane.
const LANE_SLOTS: u8 = 8;
/// How long the model takes for each of the many children.
const MODEL_THINK_TIME: Duration = Duration::from_millis(50);
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(60);

const BENCH_CONFIG: &str = "[turns]\nautomatic_budget = 100000\n[agents.defaults.subagents]\nmax_children_per_agent = 20\nmax_concurrent = 1000\n";

pub async fn run(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let subject = BenchDaemon::start(BENCH_CONFIG).await?;
    measure_single_child(report, &subject, seconds).await?;
    measure_many_children(report, &subject).await
}

/// When the model received the owner's request, and when it received the announce of this child.
#[derive(Default)]
struct AnnounceTimes {
    part: String,
    asked: Option<Instant>,
    announced: Option<Instant>,
}

/// Measures a single child. The owner spawns a child and yields in one step; the child answers immediately; the
/// result is announced to the owner. The time between the owner's two model calls is the child's cost, including its
/// own call.
async fn measure_single_child(
    report: &mut BenchmarkReport,
    subject: &BenchDaemon,
    seconds: Duration,
) -> anyhow::Result<()> {
    let clock: Arc<Mutex<AnnounceTimes>> = Arc::default();
    let watched = Arc::clone(&clock);
    subject.model.answer_with(move |request| {
        let mut clock = watched.lock().unwrap_or_else(PoisonError::into_inner);
        match PromptSource::from_request(request) {
            PromptSource::Child => ReplyScript::reply("ok"),
            PromptSource::Owner => {
                clock.asked = Some(request.arrived);
                spawn_children_script(1, &clock.part)
            }
            PromptSource::Announce => {
                if new_input(request).contains(&clock.part) {
                    clock.announced.get_or_insert(request.arrived);
                }
                ReplyScript::reply("heard")
            }
        }
    });
    let (mut direct, mut child) = (OperationTimes::default(), OperationTimes::default());
    let began = Instant::now();
    let mut n = 0;
    while began.elapsed() < seconds || n < 20 {
        let call = DirectCall::after_turns(0);
        let start = Instant::now();
        subject.call_model(&call).await?;
        direct.push(start.elapsed());
        *clock.lock().unwrap_or_else(PoisonError::into_inner) =
            AnnounceTimes { part: format!("{CHILD_TASK} {n}."), ..AnnounceTimes::default() };
        send_message(subject, &format!("one-{}", n / 10), &format!("{PERSON_PROMPT} {n}")).await?;
        let took = wait_for_announce(&clock).await?;
        // Skips the first runs as warm-up.
        if n >= 5 {
            child.push(took);
        }
        n += 1;
    }
    let call = direct.percentile(0.5);
    report.add("direct call p50", call, "ms", None);
    let added = child.percentile(0.5) - call;
    report.add(
        "spawn and announce of a child, overhead over its model call, p50",
        added,
        "ms",
        Some(FigureTarget::AtMost(5.0)),
    );
    report.add("the same, p99", child.percentile(0.99) - call, "ms", None);
    Ok(())
}

async fn wait_for_announce(clock: &Mutex<AnnounceTimes>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    while began.elapsed() < ANNOUNCE_TIMEOUT {
        {
            let clock = clock.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(asked), Some(notified_at)) = (clock.asked, clock.announced) {
                return Ok(notified_at.duration_since(asked));
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    anyhow::bail!("an owner did not receive the announce of its child")
}

/// Model calls observed with many children.
#[derive(Default)]
struct ObservedCalls {
    /// When each child's call arrived.
    asked: Vec<Instant>,
    /// Runs that were announced to their owners.
    announced: HashSet<String>,
}

async fn measure_many_children(report: &mut BenchmarkReport, subject: &BenchDaemon) -> anyhow::Result<()> {
    let seen: Arc<Mutex<ObservedCalls>> = Arc::default();
    let watched = Arc::clone(&seen);
    subject.model.answer_with(move |request| {
        let mut seen = watched.lock().unwrap_or_else(PoisonError::into_inner);
        match PromptSource::from_request(request) {
            PromptSource::Child => {
                seen.asked.push(request.arrived);
                ReplyScript::new().wait(MODEL_THINK_TIME).text("ok")
            }
            PromptSource::Owner => spawn_children_script(CHILDREN_PER_OWNER, CHILD_TASK),
            PromptSource::Announce => {
                seen.announced.extend(announced_runs(request));
                ReplyScript::reply("heard")
            }
        }
    });
    let began = Instant::now();
    for n in 0..OWNER_COUNT {
        send_message(subject, &format!("many-{n}"), PERSON_PROMPT).await?;
    }
    let count = || seen.lock().unwrap_or_else(PoisonError::into_inner).announced.len();
    while count() < OWNER_COUNT * CHILDREN_PER_OWNER {
        ensure!(began.elapsed() < ANNOUNCE_TIMEOUT, "only {} of the children were announced", count());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = began.elapsed();
    let most = max_concurrent_calls(&seen.lock().unwrap_or_else(PoisonError::into_inner).asked);
    #[expect(clippy::cast_precision_loss, reason = "counts of children are small")]
    let (children, most) = ((OWNER_COUNT * CHILDREN_PER_OWNER) as f64, most as f64);
    report.add("children announced to their owners", children, "", Some(FigureTarget::AtLeast(200.0)));
    report.add(
        "concurrent children at the model, of 200",
        most,
        "",
        Some(FigureTarget::AtMost(LANE_SLOTS.into())),
    );
    report.add("200 children of 50 ms each", took.as_secs_f64() * 1000.0, "ms", None);
    Ok(())
}

/// Returns the maximum number of concurrent calls. Each lasts at least `MODEL_THINK_TIME`.
fn max_concurrent_calls(asked: &[Instant]) -> usize {
    let open = |at: &Instant| {
        asked.iter().filter(|one| *one <= at && at.duration_since(**one) < MODEL_THINK_TIME).count()
    };
    asked.iter().map(open).max().unwrap_or(0)
}

/// Who sent a prompt.
enum PromptSource {
    Owner,
    Child,
    /// An owner that receives an announce.
    Announce,
}

impl PromptSource {
    /// Classifies a request. A person's message and an announce may share one turn; it counts as the owner's. A
    /// repeated call of a turn has already spawned its children.
    fn from_request(request: &ReceivedRequest) -> Self {
        let newest = new_input(request);
        match () {
            () if newest.contains(PERSON_PROMPT) => Self::Owner,
            () if newest.contains(CHILD_TASK) && !newest.contains(ANNOUNCE_CONTEXT) => Self::Child,
            () => Self::Announce,
        }
    }
}

/// Text of a child's task, of a person's message, and of an announce.
const CHILD_TASK: &str = "a trivial part";
const PERSON_PROMPT: &str = "please go";
const ANNOUNCE_CONTEXT: &str = "[Context: subagent_announce]";

/// Returns the messages since the model's last answer.
fn new_input(request: &ReceivedRequest) -> String {
    let fresh = request.messages().iter().rev().take_while(|message| message["role"] != "assistant");
    let texts: Vec<&str> = fresh.filter_map(|message| message["content"].as_str()).collect();
    texts.join("\n")
}

/// Spawns children and yields until they are done.
fn spawn_children_script(children: usize, part: &str) -> ReplyScript {
    let spawn = json!({ "task": part });
    let calls = (0..children)
        .fold(ReplyScript::new(), |script, n| script.call(&format!("s{n}"), "sessions_spawn", spawn.clone()));
    calls.call("y", "sessions_yield", json!({}))
}

/// Returns the runs that a prompt announces.
fn announced_runs(request: &ReceivedRequest) -> Vec<String> {
    let body = request.messages().iter().filter_map(|message| message["content"].as_str());
    let blocks = body.filter(|text| text.contains(ANNOUNCE_CONTEXT));
    let named =
        blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("Run: ")?.split_once(", session "));
    named.map(|(run, _)| run.to_owned()).collect()
}

async fn send_message(subject: &BenchDaemon, peer: &str, text: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/sessions/agent%3Amain%3Aapi%3Adm%3A{peer}/messages");
    let message = NewSessionMessage { channel: Some("api".to_owned()), ..NewSessionMessage::from_text(text) };
    subject.post(&path, &message).await
}
