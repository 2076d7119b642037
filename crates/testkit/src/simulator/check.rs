//! The rules that must hold after every run, whatever died in it.

use std::collections::{HashMap, HashSet};

use polyclaw_domain::delivery::OutboxState;
use polyclaw_domain::job::JobState;
use polyclaw_domain::message::{MessagePart, MessageRole, tool_calls};
use polyclaw_engine::ingress::AcceptedMessage;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::outbox::OutboxMessage;
use polyclaw_store::{Tx, jobs, messages, outbox, sessions};

use crate::simulator::inbound::{self, GroupAnswer, SimulatedInbound, each_answers_once};
use crate::simulator::{SimulationPlan, SimulationRun};
use crate::world::{DurableWorld, World};

/// A broken rule, with the seed that reproduces it.
#[derive(Clone, Debug)]
pub struct BrokenRule {
    pub seed: u64,
    pub rule: String,
    /// The stored state, for debugging.
    pub story: String,
}

impl BrokenRule {
    pub fn new(seed: u64, rule: impl Into<String>) -> Self {
        Self { seed, rule: rule.into(), story: String::new() }
    }
}

impl std::fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}: {}\n{}", self.seed, self.rule, self.story)
    }
}

impl std::error::Error for BrokenRule {}

struct RunFacts {
    jobs: Vec<jobs::TurnJob>,
    transcripts: Vec<Vec<SessionMessage>>,
    outbox_messages: Vec<OutboxMessage>,
    answers: Vec<(String, Option<jobs::TurnJob>, Option<SessionMessage>)>,
    group_answers: Vec<GroupAnswer>,
}

pub async fn check_rules(
    plan: &SimulationPlan,
    ground: &DurableWorld,
    acks: &[(String, AcceptedMessage)],
    run: &mut SimulationRun,
) -> Result<(), BrokenRule> {
    let facts = collect_facts(plan, ground, acks)
        .await
        .map_err(|error| BrokenRule::new(plan.seed, error.to_string()))?;
    run.steered = facts.jobs.iter().filter(|job| job.state == JobState::Steered).count();
    run.failed = facts.jobs.iter().filter(|job| job.state == JobState::Failed).count();
    run.unknown =
        facts.outbox_messages.iter().filter(|message| message.state == OutboxState::Unknown).count();
    let rules = [
        accepted_once(plan, acks),
        answered_once(&facts),
        replies_name_their_tasks(&facts),
        calls_paired(&facts),
        inputs_in_order(&facts),
        effects_once(ground),
        outbox_whole(plan, ground, &facts),
        each_answers_once(&facts.group_answers),
    ];
    let kept = rules.into_iter().collect::<Result<Vec<()>, String>>();
    kept.map(drop)
        .map_err(|rule| BrokenRule { story: render_story(run, &facts), ..BrokenRule::new(plan.seed, rule) })
}

fn render_story(run: &SimulationRun, facts: &RunFacts) -> String {
    let mut story = format!("killed at {:?}\n", run.killed_at);
    for message in facts.transcripts.iter().flatten() {
        let calls: Vec<_> =
            tool_calls(&message.parts).map(|call| format!("{}({})", call.name, call.id)).collect();
        let (session, turn) = (&message.session, &message.turn);
        story += &format!(
            "{session} {:3} {turn} {:9} {} {calls:?}\n",
            message.position,
            message.role.as_str(),
            message.text
        );
    }
    for job in &facts.jobs {
        let next = job.continued_by.as_ref().map_or("", |turn| turn.as_str());
        story += &format!(
            "{} {} {} attempt {} next {next}\n",
            job.turn,
            job.session,
            job.state.as_str(),
            job.attempt
        );
    }
    story
}

async fn collect_facts(
    plan: &SimulationPlan,
    ground: &DurableWorld,
    acks: &[(String, AcceptedMessage)],
) -> polyclaw_store::Result<RunFacts> {
    let names: HashSet<String> = plan.messages.iter().map(|m| m.session.clone()).collect();
    let (acks, posts) = (acks.to_vec(), plan.inbounds.clone());
    ground.db.read(move |tx| read_facts(tx, &names, &acks, &posts)).await
}

fn read_facts(
    tx: &mut Tx<'_>,
    names: &HashSet<String>,
    acks: &[(String, AcceptedMessage)],
    posts: &[SimulatedInbound],
) -> polyclaw_store::Result<RunFacts> {
    let groups = inbound::group_transcripts(tx)?;
    let rounds = inbound::collect_answers(tx, posts, &groups)?;
    let mut transcripts: Vec<Vec<SessionMessage>> = groups.into_iter().map(|(_, lines)| lines).collect();
    for name in names {
        let key = World::session_key(name);
        if let Some(session) = sessions::get(tx, &key)? {
            transcripts.push(messages::list_page(tx, &key, &session.id, 0, 10_000)?);
        }
    }
    let mut answers = Vec::new();
    for (name, accepted) in acks {
        let job = jobs::find_answering(tx, &accepted.turn_id)?;
        let reply = match job.as_ref().and_then(|job| job.reply.as_ref()) {
            Some(id) => messages::get(tx, id)?,
            None => None,
        };
        answers.push((name.clone(), job, reply));
    }
    Ok(RunFacts {
        jobs: jobs::list(tx, None, None, 10_000)?,
        transcripts,
        outbox_messages: outbox::list(tx, None, "", 10_000)?,
        answers,
        group_answers: rounds,
    })
}

fn accepted_once(plan: &SimulationPlan, acks: &[(String, AcceptedMessage)]) -> Result<(), String> {
    let distinct: HashSet<_> = acks.iter().map(|(_, accepted)| &accepted.message_id).collect();
    match acks.len() == plan.messages.len() && distinct.len() == acks.len() {
        true => Ok(()),
        false => Err(format!(
            "{} messages, {} accepted, {} stored",
            plan.messages.len(),
            acks.len(),
            distinct.len()
        )),
    }
}

fn answered_once(facts: &RunFacts) -> Result<(), String> {
    for (name, job, reply) in &facts.answers {
        let Some(job) = job else { return Err(format!("{name} has no turn")) };
        if !matches!(job.state, JobState::Done | JobState::Failed) {
            return Err(format!("{name} ended as {}", job.state.as_str()));
        }
        if reply.as_ref().is_none_or(|reply| reply.text.is_empty()) {
            return Err(format!("{name} has no reply"));
        }
    }
    Ok(())
}

/// Each task is named by exactly one answer: neither by none nor by another turn's answer as well.
fn replies_name_their_tasks(facts: &RunFacts) -> Result<(), String> {
    let finals: Vec<&SessionMessage> = facts.transcripts.iter().flatten().filter(|m| is_final(m)).collect();
    for (name, job, reply) in &facts.answers {
        let naming = finals.iter().filter(|m| mentions_task(&m.text, name)).count();
        let failed = job.as_ref().is_some_and(|job| job.state == JobState::Failed);
        let named = reply.as_ref().is_some_and(|reply| mentions_task(&reply.text, name));
        let answered = named && naming == 1 || failed && naming == 0;
        if !answered {
            return Err(format!(
                "{name} is named by {naming} answers, its own {}",
                if named { "too" } else { "not" }
            ));
        }
    }
    Ok(())
}

pub(super) fn is_final(message: &SessionMessage) -> bool {
    message.role == MessageRole::Assistant && tool_calls(&message.parts).next().is_none()
}

pub(super) fn mentions_task(answer: &str, task: &str) -> bool {
    answer.split(' ').any(|word| word == task)
}

/// Only other results may stand between a call and its result.
fn calls_paired(facts: &RunFacts) -> Result<(), String> {
    for transcript in &facts.transcripts {
        let mut open: Vec<&str> = Vec::new();
        for message in transcript {
            if message.role != MessageRole::Tool && !open.is_empty() {
                return Err(format!("calls {open:?} have no result before ticket {}", message.position));
            }
            open.extend(tool_calls(&message.parts).map(|call| call.id.as_str()));
            for part in &message.parts {
                if let MessagePart::ToolResult { call_id, .. } = part {
                    let at = open.iter().position(|id| id == call_id);
                    let at = at.ok_or_else(|| format!("result {call_id} has no call"))?;
                    open.remove(at);
                }
            }
        }
        if !open.is_empty() {
            return Err(format!("calls {open:?} have no result at the end"));
        }
    }
    Ok(())
}

/// A session takes its messages in the order of acceptance. IDs grow with acceptance.
fn inputs_in_order(facts: &RunFacts) -> Result<(), String> {
    for transcript in &facts.transcripts {
        let inputs: Vec<_> =
            transcript.iter().filter(|m| m.role == MessageRole::User && m.address.is_some()).collect();
        if !inputs.is_sorted_by_key(|message| &message.id) {
            return Err("inputs were taken up out of order".to_owned());
        }
    }
    Ok(())
}

fn effects_once(ground: &DurableWorld) -> Result<(), String> {
    let runs = ground.tools.run_counts();
    let repeated = runs.iter().find(|((_, _, tool), times)| tool == "pay" && **times > 1);
    repeated.map_or(Ok(()), |((turn, call, _), times)| {
        Err(format!("effect {call} of turn {turn} ran {times} times"))
    })
}

/// Every reply has exactly one outbox message. A person never sees a message twice, and sees every message recorded
/// as sent.
fn outbox_whole(plan: &SimulationPlan, ground: &DurableWorld, facts: &RunFacts) -> Result<(), String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (key, _) in ground.fake_channel.visible_messages() {
        *seen.entry(key).or_default() += 1;
    }
    if let Some((key, times)) = seen.iter().find(|(_, times)| **times > 1) {
        return Err(format!("{key} was shown {times} times"));
    }
    let replies = facts.transcripts.iter().flatten().filter(|m| is_final(m)).count();
    let receipts = inbound::count_command_replies(&plan.inbounds);
    if replies + receipts != facts.outbox_messages.len() {
        return Err(format!(
            "{replies} replies, {receipts} receipts, {} outbox messages",
            facts.outbox_messages.len()
        ));
    }
    for message in &facts.outbox_messages {
        let shown = seen.contains_key(&message.part_key);
        match message.state {
            OutboxState::Sent if shown => {}
            OutboxState::Unknown if !plan.idempotent_channel => {}
            state => {
                return Err(format!(
                    "{} is {} and {}shown",
                    message.part_key,
                    state.as_str(),
                    if shown { "" } else { "not " }
                ));
            }
        }
    }
    Ok(())
}
