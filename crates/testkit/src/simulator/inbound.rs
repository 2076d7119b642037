//! Inbound messages of a simulated platform: commands, and messages that two agents answer. They go through the
//! inbound pipeline and are delivered again until accepted.

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

use super::check::{is_final, mentions_task};
use super::task_text;
use crate::ports::fake_channel::{inbound_dm, inbound_group};
use crate::world::World;

/// The agents that answer in the group, in this order.
const GROUP_AGENTS: [&str; 2] = ["ann", "bob"];
const GROUP_ID: &str = "-7";

#[derive(Clone, Debug)]
pub struct SimulatedInbound {
    pub name: String,
    pub text: String,
    pub after_ms: u64,
    kind: SimulatedInboundKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimulatedInboundKind {
    Command,
    Broadcast,
}

/// Names of accepted messages.
pub(super) type IngestedNames = Arc<Mutex<HashSet<String>>>;

pub(super) fn random_inbounds(rng: &mut Rng) -> Vec<SimulatedInbound> {
    let post = |rng: &mut Rng, n: usize, kind| {
        let (name, text) = match kind {
            SimulatedInboundKind::Command => (format!("c{n}"), "/help".to_owned()),
            SimulatedInboundKind::Broadcast => (format!("mg{n}"), task_text(rng, &format!("mg{n}"))),
        };
        SimulatedInbound { name, text, after_ms: rng.u64(0..120), kind }
    };
    let commands = rng.usize(0..=1);
    let groups = rng.usize(0..=1) * rng.usize(1..=2);
    let mut posts: Vec<SimulatedInbound> =
        (0..commands).map(|n| post(rng, n, SimulatedInboundKind::Command)).collect();
    posts.extend((0..groups).map(|n| post(rng, n, SimulatedInboundKind::Broadcast)));
    posts
}

/// Builds the config of the accounts and the group.
pub(super) fn group_config(in_turn: bool) -> String {
    let strategy = if in_turn { "sequential" } else { "parallel" };
    let agents: String = GROUP_AGENTS.iter().map(|id| format!("[[agents.list]]\nid = \"{id}\"\n")).collect();
    let listed = GROUP_AGENTS.map(|id| format!("\"{id}\"")).join(", ");
    format!(
        "[agents]\ndefault = \"main\"\n[[agents.list]]\nid = \"main\"\n{agents}
         [session]\ndm_scope = \"per-channel-peer\"\n[broadcast]\nstrategy = \"{strategy}\"\n\"{GROUP_ID}\" = [{listed}]
         [channels.telegram.default]\nbot_token = \"t\"\ndm_policy = \"open\"\ngroups = [\"{GROUP_ID}\"]"
    )
}

impl SimulatedInbound {
    fn to_inbound(&self) -> InboundMessage {
        let message = match self.kind {
            SimulatedInboundKind::Command => inbound_dm(&self.name, &self.text),
            SimulatedInboundKind::Broadcast => inbound_group(GROUP_ID, "someone", &self.text),
        };
        InboundMessage { platform_id: self.name.clone(), ..message }
    }
}

pub(super) fn deliver_missing(
    world: &World,
    posts: &[SimulatedInbound],
    taken: &IngestedNames,
    senders: &mut JoinSet<()>,
) {
    let known = taken.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for post in posts.iter().filter(|post| !known.contains(&post.name)).cloned() {
        let (engine, taken) = (world.engine.clone(), Arc::clone(taken));
        senders.spawn(async move {
            tokio::time::sleep(Duration::from_millis(post.after_ms)).await;
            while engine.ingest_message(post.to_inbound()).await != IngestOutcome::Done {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            taken.lock().unwrap_or_else(PoisonError::into_inner).insert(post.name);
        });
    }
}

/// Waits until every message is accepted and every agent has had its turn.
pub(super) async fn wait_until_quiet(world: &World, posts: &[SimulatedInbound], taken: &IngestedNames) {
    while taken.lock().unwrap_or_else(PoisonError::into_inner).len() < posts.len() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while !world.engine.db().read(broadcasts::list_open).await.is_ok_and(|open| open.is_empty()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The result of one broadcast message at one agent.
pub(super) struct GroupAnswer {
    name: String,
    agent: &'static str,
    copies: usize,
    state: Option<JobState>,
    naming: usize,
}

pub(super) fn group_transcripts(
    tx: &mut Tx<'_>,
) -> polyclaw_store::Result<Vec<(&'static str, Vec<SessionMessage>)>> {
    let mut found = Vec::new();
    for agent in GROUP_AGENTS {
        let Ok(key) = SessionKey::parse(&format!("agent:{agent}:telegram:group:{GROUP_ID}")) else {
            continue;
        };
        if let Some(session) = sessions::get(tx, &key)? {
            found.push((agent, messages::list_page(tx, &key, &session.id, 0, 10_000)?));
        }
    }
    Ok(found)
}

pub(super) fn collect_answers(
    tx: &mut Tx<'_>,
    posts: &[SimulatedInbound],
    transcripts: &[(&'static str, Vec<SessionMessage>)],
) -> polyclaw_store::Result<Vec<GroupAnswer>> {
    let mut found = Vec::new();
    for (agent, post) in GROUP_AGENTS.iter().flat_map(|agent| posts.iter().map(move |post| (*agent, post))) {
        if post.kind != SimulatedInboundKind::Broadcast {
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
        let naming = lines.iter().filter(|m| is_final(m) && mentions_task(&m.text, &post.name)).count();
        let (name, state) = (post.name.clone(), job.map(|job| job.state));
        found.push(GroupAnswer { name, agent, copies: copies.len(), state, naming });
    }
    Ok(found)
}

/// Every agent of the group has every message exactly once, and answers it once.
pub(super) fn each_answers_once(answered: &[GroupAnswer]) -> Result<(), String> {
    let is_whole = |one: &GroupAnswer| match one.state {
        Some(JobState::Done) => one.copies == 1 && one.naming == 1,
        Some(JobState::Failed) => one.copies == 1 && one.naming == 0,
        _ => false,
    };
    answered.iter().find(|one| !is_whole(one)).map_or(Ok(()), |one| {
        let GroupAnswer { name, agent, copies, state, naming } = one;
        Err(format!("{agent} has {copies} copies of {name}, ended {state:?}, named by {naming} answers"))
    })
}

/// Counts the messages that are answered without a turn.
pub(super) fn count_command_replies(posts: &[SimulatedInbound]) -> usize {
    posts.iter().filter(|post| post.kind == SimulatedInboundKind::Command).count()
}
