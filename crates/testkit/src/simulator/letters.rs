//! Letters of a simulated platform: commands, and messages that two agents answer. They come by the reception, and
//! again until it says that they were taken.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use polyclaw_domain::channel::{InboundMessage, InboundSink, IngestOutcome};
use polyclaw_domain::job::JobState;
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Tx, broadcasts, jobs, messages, sessions};
use tokio::task::JoinSet;

use super::check::{is_final, names};
use super::task;
use crate::ports::outlet::{group_letter, letter};
use crate::world::World;

/// Who answers in the group, in this order.
const AGENTS: [&str; 2] = ["ann", "bob"];
const GROUP: &str = "-7";

#[derive(Clone, Debug)]
pub struct Post {
    pub name: String,
    pub text: String,
    pub after_ms: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Command,
    Round,
}

/// Names of letters that were taken.
pub(super) type TakenNames = Arc<Mutex<HashSet<String>>>;

pub(super) fn planned(rng: &mut Rng) -> Vec<Post> {
    let post = |rng: &mut Rng, n: usize, kind| {
        let (name, text) = match kind {
            Kind::Command => (format!("c{n}"), "/help".to_owned()),
            Kind::Round => (format!("mg{n}"), task(rng, &format!("mg{n}"))),
        };
        Post { name, text, after_ms: rng.u64(0..120), kind }
    };
    let commands = rng.usize(0..=1);
    let groups = rng.usize(0..=1) * rng.usize(1..=2);
    let mut posts: Vec<Post> = (0..commands).map(|n| post(rng, n, Kind::Command)).collect();
    posts.extend((0..groups).map(|n| post(rng, n, Kind::Round)));
    posts
}

/// The config of the accounts and the group.
pub(super) fn config(in_turn: bool) -> String {
    let strategy = if in_turn { "sequential" } else { "parallel" };
    let agents: String = AGENTS.iter().map(|id| format!("[[agents.list]]\nid = \"{id}\"\n")).collect();
    let listed = AGENTS.map(|id| format!("\"{id}\"")).join(", ");
    format!(
        "[agents]\ndefault = \"main\"\n[[agents.list]]\nid = \"main\"\n{agents}
         [session]\ndm_scope = \"per-channel-peer\"\n[broadcast]\nstrategy = \"{strategy}\"\n\"{GROUP}\" = [{listed}]
         [channels.telegram.default]\nbot_token = \"t\"\ndm_policy = \"open\"\ngroups = [\"{GROUP}\"]"
    )
}

impl Post {
    fn letter(&self) -> InboundMessage {
        let letter = match self.kind {
            Kind::Command => letter(&self.name, &self.text),
            Kind::Round => group_letter(GROUP, "someone", &self.text),
        };
        InboundMessage { platform_id: self.name.clone(), ..letter }
    }
}

pub(super) fn post_missing(world: &World, posts: &[Post], taken: &TakenNames, senders: &mut JoinSet<()>) {
    let known = taken.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for post in posts.iter().filter(|post| !known.contains(&post.name)).cloned() {
        let (engine, taken) = (world.engine.clone(), Arc::clone(taken));
        senders.spawn(async move {
            tokio::time::sleep(Duration::from_millis(post.after_ms)).await;
            while engine.ingest_message(post.letter()).await != IngestOutcome::Done {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            taken.lock().unwrap_or_else(PoisonError::into_inner).insert(post.name);
        });
    }
}

/// Waits until every letter is taken and every agent has had its turn.
pub(super) async fn quiet(world: &World, posts: &[Post], taken: &TakenNames) {
    while taken.lock().unwrap_or_else(PoisonError::into_inner).len() < posts.len() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while !world.engine.db().read(broadcasts::list_open).await.is_ok_and(|open| open.is_empty()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What became of one message of a round at one agent.
pub(super) struct Answered {
    name: String,
    agent: &'static str,
    copies: usize,
    state: Option<JobState>,
    naming: usize,
}

pub(super) fn transcripts(
    tx: &mut Tx<'_>,
) -> polyclaw_store::Result<Vec<(&'static str, Vec<SessionMessage>)>> {
    let mut found = Vec::new();
    for agent in AGENTS {
        let Ok(key) = SessionKey::parse(&format!("agent:{agent}:telegram:group:{GROUP}")) else { continue };
        if let Some(session) = sessions::get(tx, &key)? {
            found.push((agent, messages::list_page(tx, &key, &session.id, 0, 10_000)?));
        }
    }
    Ok(found)
}

pub(super) fn answered(
    tx: &mut Tx<'_>,
    posts: &[Post],
    transcripts: &[(&'static str, Vec<SessionMessage>)],
) -> polyclaw_store::Result<Vec<Answered>> {
    let mut found = Vec::new();
    for (agent, post) in AGENTS.iter().flat_map(|agent| posts.iter().map(move |post| (*agent, post))) {
        if post.kind != Kind::Round {
            continue;
        }
        let lines = transcripts
            .iter()
            .find(|(of, _)| *of == agent)
            .map_or(&[] as &[SessionMessage], |(_, lines)| lines);
        let asked =
            |m: &&SessionMessage| m.role == MessageRole::User && m.address.is_some() && m.text == post.text;
        let copies: Vec<&SessionMessage> = lines.iter().filter(asked).collect();
        let job = match copies.first() {
            Some(message) => jobs::find_answering(tx, &message.turn)?,
            None => None,
        };
        let naming = lines.iter().filter(|m| is_final(m) && names(&m.text, &post.name)).count();
        let (name, state) = (post.name.clone(), job.map(|job| job.state));
        found.push(Answered { name, agent, copies: copies.len(), state, naming });
    }
    Ok(found)
}

/// Every agent of the group has every message once, and answers it once.
pub(super) fn each_answers_once(answered: &[Answered]) -> Result<(), String> {
    let is_whole = |one: &Answered| match one.state {
        Some(JobState::Done) => one.copies == 1 && one.naming == 1,
        Some(JobState::Failed) => one.copies == 1 && one.naming == 0,
        _ => false,
    };
    answered.iter().find(|one| !is_whole(one)).map_or(Ok(()), |one| {
        let Answered { name, agent, copies, state, naming } = one;
        Err(format!("{agent} has {copies} copies of {name}, ended {state:?}, named by {naming} answers"))
    })
}

/// Letters that are answered without any turn.
pub(super) fn receipts(posts: &[Post]) -> usize {
    posts.iter().filter(|post| post.kind == Kind::Command).count()
}
