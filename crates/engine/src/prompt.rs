//! What a turn knows: its session, its agent, its transcript, and the prompt made of them. Loaded in one read.

use std::path::PathBuf;
use std::sync::Arc;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::backlog::ResumeToken;
use polyclaw_domain::channel::Address;
use polyclaw_domain::id::{SessionId, TurnId};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::message::{Part, Role, calls};
use polyclaw_domain::prompt::{self, Line};
use polyclaw_domain::provider::{ModelRef, Prompt, Reply, Usage};
use polyclaw_domain::session::Session;
use polyclaw_domain::tool::{Consent, Effect, Risk, ToolCall, ToolOutcome, ToolScope, ToolSpec};
use polyclaw_domain::turn::Step;
use polyclaw_store::backlog::Waiting;
use polyclaw_store::jobs::{Claim, Queued};
use polyclaw_store::messages::Message;
use polyclaw_store::sessions::{Compaction, Standing};
use polyclaw_store::{Tx, agents, backlog, jobs, messages, sessions};

use crate::core::Engine;
use crate::history::History;
use crate::settings::Settings;
use crate::turn::{Driven, Halt};

pub(crate) struct Context {
    pub agent_is_gone: bool,
    pub session: Session,
    /// The conversation this turn belongs to; its session may have begun another since.
    pub session_id: SessionId,
    pub spec: AgentSpec,
    pub candidates: Vec<ModelRef>,
    pub scope: ToolScope,
    pub tools: Vec<Arc<ToolSpec>>,
    /// Tools the caller of this turn runs itself.
    pub client_tools: Vec<Arc<ToolSpec>>,
    pub compaction: Compaction,
    pub lines: Vec<Line>,
    /// This turn's own rows: inputs, then steps.
    pub stored: Vec<Message>,
    pub steered: bool,
    pub usage: Usage,
    pub model_used: Option<String>,
    /// The newest reply ended at the model's length limit, not where the model would have ended it.
    pub truncated: bool,
    /// The newest model call; its usage is stored with the turn's end.
    pub last_call: Option<(String, Usage)>,
    taken: Vec<Waiting>,
    /// The messages that began the tasks this turn resumes.
    begun: Vec<Message>,
    nonce: String,
    system: String,
}

/// What a turn reads before it starts. Short histories come along with the claim.
#[derive(Clone)]
pub(crate) struct Rows {
    session: Session,
    session_id: SessionId,
    spec: Option<AgentSpec>,
    compaction: Compaction,
    lines: Vec<Line>,
    /// Only the lines after those that were known.
    goes_on: bool,
    stored: Vec<Message>,
    taken: Vec<Waiting>,
    begun: Vec<Message>,
    steered: bool,
}

/// A history that is known already: its conversation, the ticket it was folded through, and its last.
type Known = (SessionId, i64, i64);

/// Longest history, in tickets, that is read by the thread that writes: a longer one would hold others up.
const SHORT: i64 = 64;

/// Lines from which on a history is kept between turns: about where it is too long for the above.
const KEPT: usize = 48;

/// Reads a claimed turn's rows in the transaction that claims it, if they are few.
pub(crate) fn read_short(tx: &mut Tx<'_>, claim: &Claim) -> polyclaw_store::Result<Option<Rows>> {
    match sessions::standing(tx, &claim.session)? {
        Some(standing) if standing.uncompacted() <= SHORT => read(tx, claim, standing, None).map(Some),
        _ => Ok(None),
    }
}

/// The same for a turn that starts with the message that asks for it: nothing else waits in its session, and
/// what it has stored is at hand.
pub(crate) fn read_first(
    tx: &mut Tx<'_>,
    claim: &Claim,
    standing: Standing,
    stored: Vec<Message>,
) -> polyclaw_store::Result<Option<Rows>> {
    if standing.uncompacted() > SHORT {
        return Ok(None);
    }
    // Only a turn without a person's message takes up interrupted tasks as it opens.
    match claim.has_person {
        true => read_with(tx, claim, standing, (Own { stored, ..Own::default() }, None)).map(Some),
        false => read(tx, claim, standing, None).map(Some),
    }
}

impl Context {
    /// Reads a long history only from where the last turn of its session left it.
    pub async fn load(engine: &Engine, claim: &Claim) -> Driven<Self> {
        let wanted = claim.clone();
        let known = engine.histories.take(&claim.session);
        let from = known.as_ref().map(|known| (known.session_id.clone(), known.through, known.last()));
        let read = move |tx: &mut Tx<'_>| match sessions::standing(tx, &wanted.session)? {
            Some(standing) => read(tx, &wanted, standing, from.as_ref()).map(Some),
            None => Ok(None),
        };
        let rows = engine.db().read(read).await.map_err(|e| Halt::Lost(e.into()))?;
        let Some(mut rows) = rows else {
            return Err(Halt::Lost(crate::error::Error::UnknownSession(claim.session.to_string())));
        };
        if let Some(known) = known.filter(|_| rows.goes_on) {
            let new = std::mem::replace(&mut rows.lines, known.lines);
            rows.lines.extend(new);
        }
        Self::of(engine, claim, rows)
    }

    pub fn of(engine: &Engine, claim: &Claim, rows: Rows) -> Driven<Self> {
        // A turn whose agent is gone still needs an end that is told.
        let agent_is_gone = rows.spec.is_none();
        let spec = rows.spec.unwrap_or_else(|| AgentSpec::named(claim.agent.clone()));
        let settings = engine.settings();
        let scope = scope(&settings, claim, &spec, &rows.stored, &rows.begun);
        let tools =
            engine.tools().list(&scope).into_iter().filter(|tool| spec.policy.tools.allows(&tool.name));
        let client_tools = client_tools(&rows.stored);
        let nonce = engine.ports.ids.nonce();
        Ok(Self {
            agent_is_gone,
            candidates: candidates(&settings, &rows.session, &spec),
            tools: tools.collect(),
            client_tools,
            system: system_prompt(&spec, instructions(&rows.stored), &nonce),
            session: rows.session,
            session_id: rows.session_id,
            spec,
            scope,
            compaction: rows.compaction,
            lines: rows.lines,
            stored: rows.stored,
            steered: rows.steered,
            usage: Usage::ZERO,
            model_used: None,
            truncated: false,
            last_call: None,
            taken: rows.taken,
            begun: rows.begun,
            nonce,
        })
    }

    /// The stored steps, as the machine takes them.
    pub fn steps(&self) -> Vec<Step> {
        self.stored.iter().filter_map(step).collect()
    }

    pub fn resumes(&self) -> Vec<TurnId> {
        self.taken.iter().map(|row| row.task.token.turn_id.clone()).collect()
    }

    /// What goes into the backlog when this turn gives way: every message it answers for and what it had taken up.
    pub fn tokens(&self, turn: &TurnId) -> Vec<ResumeToken> {
        let again = self.taken.iter().map(|row| ResumeToken {
            message_id: row.task.token.message_id.clone(),
            turn_id: turn.clone(),
            steers: row.task.token.steers + 1,
        });
        let own = self.inputs().map(|message| ResumeToken {
            message_id: message.id.clone(),
            turn_id: turn.clone(),
            steers: 1,
        });
        again.chain(own).collect()
    }

    /// What drives this turn: messages and results of tools the caller ran. The `[Backlog]` line is not one of them.
    fn inputs(&self) -> impl Iterator<Item = &Message> {
        self.stored.iter().filter(|message| message.address.is_some())
    }

    /// Every conversation that waits for this turn, each address whole and once.
    pub fn addresses(&self) -> Vec<(Address, bool)> {
        let mut addresses: Vec<(Address, bool)> = Vec::new();
        for message in self.begun.iter().chain(self.inputs()) {
            let Some(address) = &message.address else { continue };
            match addresses.iter_mut().find(|(known, _)| known == address) {
                Some((_, wanted)) => *wanted |= message.deliver,
                None => addresses.push((address.clone(), message.deliver)),
            }
        }
        addresses
    }

    pub fn prompt(&self) -> Prompt {
        Prompt {
            system: self.system.clone(),
            messages: prompt::render(self.compaction.summary.as_deref(), &self.lines, &self.nonce),
            tools: self.tools.iter().chain(&self.client_tools).cloned().collect(),
            temperature: self.spec.defaults.temperature,
            max_tokens: self.spec.defaults.max_tokens,
        }
    }

    /// The caller of this turn runs this tool itself.
    pub fn is_for_client(&self, call: &ToolCall) -> bool {
        self.client_tools.iter().any(|tool| tool.name == call.name)
    }

    /// What the model last asked for.
    pub fn last_step(&self) -> Option<&Message> {
        self.stored.iter().rev().find(|message| message.role == Role::Assistant)
    }

    pub fn push(&mut self, step: Message) {
        self.lines.push(Line {
            ticket: step.ticket,
            role: step.role,
            origin: step.origin.clone(),
            text: step.text.clone(),
            parts: step.parts.clone(),
        });
        self.stored.push(step);
    }

    /// What the next turn of a long conversation need not read again.
    pub fn keep(mut self, engine: &Engine, session: &SessionKey, reply: Option<Message>) {
        let Some(reply) = reply.filter(|_| self.lines.len() >= KEPT) else { return };
        self.push(reply);
        let history =
            History { session_id: self.session_id, through: self.compaction.through, lines: self.lines };
        engine.histories.keep(session.clone(), history);
    }

    pub fn spend(&mut self, reply: &Reply) {
        self.usage = self.usage.plus(reply.usage);
        self.model_used = Some(reply.model.to_string());
        self.truncated = reply.truncated;
        self.last_call = Some((reply.model.to_string(), reply.usage));
    }
}

/// What belongs to one turn: its rows, the tasks it takes up, and what waits behind it.
#[derive(Default)]
struct Own {
    stored: Vec<Message>,
    taken: Vec<Waiting>,
    begun: Vec<Message>,
    queued: Option<Queued>,
}

fn read(
    tx: &mut Tx<'_>,
    claim: &Claim,
    standing: Standing,
    known: Option<&Known>,
) -> polyclaw_store::Result<Rows> {
    let stored = messages::of_turn(tx, &claim.turn)?;
    let taken = backlog::taken_by(tx, &claim.turn)?;
    let mut begun = Vec::new();
    for row in &taken {
        begun.extend(messages::get(tx, &row.task.token.message_id)?);
    }
    let queued = jobs::queued(tx, &claim.session)?;
    read_with(tx, claim, standing, (Own { stored, taken, begun, queued }, known))
}

fn read_with(
    tx: &mut Tx<'_>,
    claim: &Claim,
    standing: Standing,
    (Own { stored, taken, begun, queued }, known): (Own, Option<&Known>),
) -> polyclaw_store::Result<Rows> {
    let Standing { session, compaction, .. } = standing;
    let spec = agents::get(tx, &claim.agent)?.map(|stored| stored.spec);
    let session_id = stored.first().map_or_else(|| session.id.clone(), |own| own.session_id.clone());
    let conversation = (&claim.session, &session_id);
    let known = known.filter(|(id, through, _)| (id, *through) == (&session_id, compaction.through));
    let after = known.map_or(compaction.through, |(_, _, last)| *last);
    let lines = messages::history(tx, conversation, after, queued.as_ref().map(|queued| &queued.turn))?;
    let steered = queued.is_some_and(|queued| queued.steers);
    Ok(Rows {
        session,
        session_id,
        spec,
        compaction,
        lines,
        goes_on: known.is_some(),
        stored,
        taken,
        begun,
        steered,
    })
}

fn step(message: &Message) -> Option<Step> {
    match message.role {
        Role::User => None,
        Role::Assistant => {
            let calls: Vec<_> = calls(&message.parts).cloned().collect();
            (!calls.is_empty()).then_some(Step::Called(calls))
        }
        Role::Tool => message.parts.iter().find_map(|part| match part {
            Part::ToolResult { call_id, is_error, .. } => Some(Step::Resulted {
                call_id: call_id.clone(),
                outcome: ToolOutcome { content: message.text.clone(), is_error: *is_error, facts: None },
            }),
            _ => None,
        }),
    }
}

/// A model a person picked is used alone: it is never silently replaced.
fn candidates(settings: &Settings, session: &Session, spec: &AgentSpec) -> Vec<ModelRef> {
    if let Some(model) = &session.model_override {
        return vec![model.clone()];
    }
    let first = spec.defaults.model.clone().or_else(|| settings.default_model.clone());
    first.into_iter().chain(spec.defaults.fallbacks.iter().cloned()).collect()
}

fn scope(
    settings: &Settings,
    claim: &Claim,
    spec: &AgentSpec,
    stored: &[Message],
    begun: &[Message],
) -> ToolScope {
    let asked_by: Vec<&Message> = stored.iter().chain(begun).filter(|m| m.address.is_some()).collect();
    let can_ask = !asked_by.is_empty() && asked_by.iter().all(|message| message.channel == "cli");
    let folder = spec.workspace.as_ref().map_or_else(PathBuf::new, PathBuf::from);
    ToolScope {
        agent: claim.agent.clone(),
        session: claim.session.clone(),
        workspace: settings.workspace.join(folder),
        can_ask,
        isolation: spec.isolation,
        sandbox: spec.sandbox.clone(),
    }
}

/// What the caller of an OpenAI-shaped endpoint wrote as its system message. It comes after the agent's own
/// words, lasts for this turn and is never part of the history.
fn instructions(stored: &[Message]) -> Option<&str> {
    stored.iter().rev().find_map(|message| message.meta.as_ref()?.get("instructions")?.as_str())
}

fn system_prompt(spec: &AgentSpec, caller: Option<&str>, nonce: &str) -> String {
    let own = spec.defaults.system_prompt.clone().unwrap_or_else(|| {
        format!(
            "You are {}, an assistant. Answer helpfully and briefly. Use tools when they help.",
            spec.name
        )
    });
    let rule = prompt::frame_rule(nonce);
    match caller {
        Some(caller) => format!("{own}\n\n{rule}\n\nFor this conversation the caller adds:\n{caller}"),
        None => format!("{own}\n\n{rule}"),
    }
}

fn client_tools(stored: &[Message]) -> Vec<Arc<ToolSpec>> {
    let listed = stored
        .iter()
        .rev()
        .find_map(|message| message.meta.as_ref()?.get("client_tools")?.as_array().cloned());
    let spec = |tool: serde_json::Value| {
        Some(Arc::new(ToolSpec {
            name: tool.get("name")?.as_str()?.to_owned(),
            description: tool.get("description").and_then(|d| d.as_str()).unwrap_or_default().to_owned(),
            parameters: tool
                .get("parameters")
                .cloned()
                .unwrap_or_else(|| serde_json::json!({ "type": "object" })),
            effect: Effect::Effect,
            risk: Risk::Low,
            consent: Consent::NotNeeded,
            confined: false,
        }))
    };
    listed.unwrap_or_default().into_iter().filter_map(spec).collect()
}
