//! What a child costs over its model call, and whether many at once stay within their lane.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use polyclaw_testkit::model_server::{Request, Script};
use serde_json::json;

use crate::bench::subject::{DirectCall, Subject};
use crate::bench::{Bar, Report, Times};

/// Owners and the children of each: 200 in all, each as many as one may have.
const OWNERS: usize = 10;
const CHILDREN: usize = 20;
/// The lane's slots, as in a config that says nothing.
const SLOTS: u8 = 8;
/// How long each of the many thinks.
const THOUGHT: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);

const CONFIG: &str = "[turns]\nautomatic_budget = 100000\n[agents.defaults.subagents]\nmax_children_per_agent = 20\nmax_concurrent = 1000\n";

pub async fn run(report: &mut Report, seconds: Duration) -> anyhow::Result<()> {
    let subject = Subject::start(CONFIG).await?;
    one_at_a_time(report, &subject, seconds).await?;
    many(report, &subject).await
}

/// When the model was asked: by the owner, and by the owner that was told of this child and no other.
#[derive(Default)]
struct Clock {
    part: String,
    asked: Option<Instant>,
    told: Option<Instant>,
}

/// An owner begins a child and rests in one step; the child answers at once; the owner is told. From the owner's first
/// question to the model to its second is all that a child costs, with the child's own call in it.
async fn one_at_a_time(report: &mut Report, subject: &Subject, seconds: Duration) -> anyhow::Result<()> {
    let clock: Arc<Mutex<Clock>> = Arc::default();
    let watched = Arc::clone(&clock);
    subject.model.answer(move |request| {
        let mut clock = watched.lock().unwrap_or_else(PoisonError::into_inner);
        match Speaker::of(request) {
            Speaker::Child => Script::reply("ok"),
            Speaker::Owner => {
                clock.asked = Some(request.arrived);
                begin(1, &clock.part)
            }
            Speaker::Told => {
                if newest(request).contains(&clock.part) {
                    clock.told.get_or_insert(request.arrived);
                }
                Script::reply("heard")
            }
        }
    });
    let (mut direct, mut child) = (Times::default(), Times::default());
    let began = Instant::now();
    let mut n = 0;
    while began.elapsed() < seconds || n < 20 {
        let call = DirectCall::after(0);
        let start = Instant::now();
        subject.direct(&call).await?;
        direct.push(start.elapsed());
        *clock.lock().unwrap_or_else(PoisonError::into_inner) =
            Clock { part: format!("{CHILD} {n}."), ..Clock::default() };
        say(subject, &format!("one-{}", n / 10), &format!("{PERSON} {n}")).await?;
        let took = told(&clock).await?;
        // The first ones find a daemon that has done none yet.
        if n >= 5 {
            child.push(took);
        }
        n += 1;
    }
    let call = direct.percentile(0.5);
    report.add("direct call p50", call, "ms", None);
    let added = child.percentile(0.5) - call;
    report.add("spawn and announce of a child, over its call, p50", added, "ms", Some(Bar::AtMost(5.0)));
    report.add("the same, p99", child.percentile(0.99) - call, "ms", None);
    Ok(())
}

async fn told(clock: &Mutex<Clock>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        {
            let clock = clock.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(asked), Some(told)) = (clock.asked, clock.told) {
                return Ok(told.duration_since(asked));
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    anyhow::bail!("an owner was not told of its child")
}

/// What the model saw of many children.
#[derive(Default)]
struct Seen {
    /// When each was asked.
    asked: Vec<Instant>,
    /// Runs that their owners were told of.
    told: HashSet<String>,
}

async fn many(report: &mut Report, subject: &Subject) -> anyhow::Result<()> {
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let watched = Arc::clone(&seen);
    subject.model.answer(move |request| {
        let mut seen = watched.lock().unwrap_or_else(PoisonError::into_inner);
        match Speaker::of(request) {
            Speaker::Child => {
                seen.asked.push(request.arrived);
                Script::new().wait(THOUGHT).text("ok")
            }
            Speaker::Owner => begin(CHILDREN, CHILD),
            Speaker::Told => {
                seen.told.extend(runs(request));
                Script::reply("heard")
            }
        }
    });
    let began = Instant::now();
    for n in 0..OWNERS {
        say(subject, &format!("many-{n}"), PERSON).await?;
    }
    let count = || seen.lock().unwrap_or_else(PoisonError::into_inner).told.len();
    while count() < OWNERS * CHILDREN {
        ensure!(began.elapsed() < PATIENCE, "only {} of the children were told of", count());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = began.elapsed();
    let most = at_once(&seen.lock().unwrap_or_else(PoisonError::into_inner).asked);
    #[expect(clippy::cast_precision_loss, reason = "counts of children are small")]
    let (children, most) = ((OWNERS * CHILDREN) as f64, most as f64);
    report.add("children that their owners were told of", children, "", Some(Bar::AtLeast(200.0)));
    report.add("children at the model at once, of 200", most, "", Some(Bar::AtMost(SLOTS.into())));
    report.add("200 children of 50 ms each", took.as_secs_f64() * 1000.0, "ms", None);
    Ok(())
}

/// Most calls that were under way together: each lasts as long as its thought, at least.
fn at_once(asked: &[Instant]) -> usize {
    let open =
        |at: &Instant| asked.iter().filter(|one| *one <= at && at.duration_since(**one) < THOUGHT).count();
    asked.iter().map(open).max().unwrap_or(0)
}

/// Whose question it is.
enum Speaker {
    Owner,
    Child,
    /// An owner that is told of its child.
    Told,
}

impl Speaker {
    /// A person's word and what a child is told of may come to one turn: then the person is answered. A turn that is
    /// asked a second time has begun what it was to begin.
    fn of(request: &Request) -> Self {
        let newest = newest(request);
        match () {
            () if newest.contains(PERSON) => Self::Owner,
            () if newest.contains(CHILD) && !newest.contains(ANNOUNCE) => Self::Child,
            () => Self::Told,
        }
    }
}

/// What a child is told, what a person says, and what an owner is told with.
const CHILD: &str = "a trivial part";
const PERSON: &str = "please go";
const ANNOUNCE: &str = "[Context: subagent_announce]";

/// What the model was told since it last said something.
fn newest(request: &Request) -> String {
    let fresh = request.messages().iter().rev().take_while(|message| message["role"] != "assistant");
    let texts: Vec<&str> = fresh.filter_map(|message| message["content"].as_str()).collect();
    texts.join("\n")
}

/// Begins children, and rests until they are done.
fn begin(children: usize, part: &str) -> Script {
    let spawn = json!({ "task": part });
    let calls = (0..children)
        .fold(Script::new(), |script, n| script.call(&format!("s{n}"), "sessions_spawn", spawn.clone()));
    calls.call("y", "sessions_yield", json!({}))
}

/// The runs that a prompt tells of.
fn runs(request: &Request) -> Vec<String> {
    let told = request.messages().iter().filter_map(|message| message["content"].as_str());
    let blocks = told.filter(|text| text.contains(ANNOUNCE));
    let named =
        blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("Run: ")?.split_once(", session "));
    named.map(|(run, _)| run.to_owned()).collect()
}

async fn say(subject: &Subject, peer: &str, text: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/sessions/agent%3Amain%3Aapi%3Adm%3A{peer}/messages");
    subject.post(&path, &json!({ "text": text, "channel": "api" })).await.map(drop)
}
