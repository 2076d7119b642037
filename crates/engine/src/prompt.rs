//! What a turn knows: its session, its agent, its transcript, and the prompt made of them. Loaded in one read.

use std::sync::Arc;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::backlog::ResumeToken;
use polyclaw_domain::briefing::Bootstrap;
use polyclaw_domain::budget::Nanos;
use polyclaw_domain::channel::Address;
use polyclaw_domain::id::{SessionId, TurnId};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::message::{Part, Role, calls};
use polyclaw_domain::policy::{self, Layers, Owner, Reason};
use polyclaw_domain::prompt::{self, Line};
use polyclaw_domain::provider::{ModelRef, Prompt, Usage};
use polyclaw_domain::session::Session;
use polyclaw_domain::tool::{Consent, Effect, Risk, ToolCall, ToolOutcome, ToolScope, ToolSpec};
use polyclaw_domain::turn::Step;
use polyclaw_store::agents::Source;
use polyclaw_store::backlog::Waiting;
use polyclaw_store::jobs::{Claim, Queued};
use polyclaw_store::messages::Message;
use polyclaw_store::sessions::{Compaction, Standing};
use polyclaw_store::{Tx, agents, backlog, jobs, messages, sessions, usage};

use crate::budget::Spent;
use crate::core::Engine;
use crate::history::History;
use crate::memory::Recall;
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
    /// What the one filter let through: what the model is shown, and all that can be called.
    pub tools: Vec<Offered>,
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
    /// What this turn has cost so far, as far as that is known.
    pub cost: Nanos,
    taken: Vec<Waiting>,
    /// The messages that began the tasks this turn resumes.
    begun: Vec<Message>,
    nonce: String,
    pub system: String,
    /// What was remembered for this turn; in no message and no row.
    pub recalled: Option<Recall>,
    /// A `BOOTSTRAP.md` that this turn tells.
    bootstrap: Option<Bootstrap>,
    in_config: bool,
    /// Everyone this turn answers, as `channel:account:peer`.
    senders: Vec<String>,
}

/// A tool of this turn.
pub(crate) struct Offered {
    pub spec: Arc<ToolSpec>,
    /// A person must agree before each call.
    pub asks: bool,
}

/// What a turn reads before it starts. Short histories come along with the claim.
#[derive(Clone)]
pub(crate) struct Rows {
    session: Session,
    session_id: SessionId,
    spec: Option<AgentSpec>,
    /// The config file has the spec.
    in_config: bool,
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
        Some(standing) if standing.uncompacted() <= SHORT => readable(read(tx, claim, standing, None)),
        _ => Ok(None),
    }
}

/// What can not be read keeps nobody from being accepted or claimed: its own turn says so.
fn readable(rows: polyclaw_store::Result<Rows>) -> polyclaw_store::Result<Option<Rows>> {
    match rows {
        Err(polyclaw_store::Error::Unreadable(_)) => Ok(None),
        rows => rows.map(Some),
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
        true => readable(read_with(tx, claim, standing, (Own { stored, ..Own::default() }, None))),
        false => readable(read(tx, claim, standing, None)),
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

    /// The same for a look from outside, while a turn of its session may run.
    pub async fn peek(engine: &Engine, claim: &Claim) -> Driven<Self> {
        let wanted = claim.clone();
        let look = move |tx: &mut Tx<'_>| match sessions::standing(tx, &wanted.session)? {
            Some(standing) => read(tx, &wanted, standing, None).map(Some),
            None => Ok(None),
        };
        let rows = engine.db().read(look).await.map_err(|e| Halt::Lost(e.into()))?;
        let unknown = || Halt::Lost(crate::error::Error::UnknownSession(claim.session.to_string()));
        Self::of(engine, claim, rows.ok_or_else(unknown)?)
    }

    pub fn of(engine: &Engine, claim: &Claim, rows: Rows) -> Driven<Self> {
        // A turn whose agent is gone still needs an end that is told.
        let agent_is_gone = rows.spec.is_none();
        let spec = rows.spec.unwrap_or_else(|| AgentSpec::named(claim.agent.clone()));
        let settings = engine.settings();
        let asked_by: Vec<&Address> = asked_by(&rows.stored, &rows.begun).collect();
        let scope = scope(engine, claim, &spec, &asked_by);
        let senders = asked_by.into_iter().map(sender).collect();
        let client_tools = client_tools(&rows.stored);
        let briefing = engine.brief(&spec, &scope.workspace, rows.session.spawn_depth > 0);
        let nonce = engine.ports.ids.nonce();
        let mut context = Self {
            agent_is_gone,
            candidates: candidates(&settings, &rows.session, &spec),
            tools: Vec::new(),
            client_tools,
            system: system_prompt(&spec, &briefing.text, instructions(&rows.stored), &nonce),
            bootstrap: briefing.bootstrap,
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
            cost: 0,
            taken: rows.taken,
            begun: rows.begun,
            nonce,
            recalled: None,
            in_config: rows.in_config,
            senders,
        };
        context.tools = context.offer(engine, &settings);
        Ok(context)
    }

    /// Asks the one filter about every tool there is.
    fn offer(&self, engine: &Engine, settings: &Settings) -> Vec<Offered> {
        let layers = self.layers(settings);
        let listed = engine.tools().list(&self.scope).into_iter();
        let allowed = listed.filter(|tool| policy::allows(tool, &layers));
        allowed.map(|spec| Offered { asks: policy::asks(&spec, &layers), spec }).collect()
    }

    fn layers<'a>(&'a self, settings: &'a Settings) -> Layers<'a> {
        Layers {
            rules: &settings.tools,
            agent: Owner {
                id: &self.spec.agent_id,
                policy: &self.spec.policy.tools,
                is_default: self.spec.agent_id == settings.default_agent,
                in_config: self.in_config,
            },
            spawn_depth: self.session.spawn_depth,
            senders: &self.senders,
            can_ask: self.scope.can_ask,
        }
    }

    /// What a model is told that calls a tool it was not shown.
    pub fn refusal(&self, engine: &Engine, name: &str) -> String {
        let settings = engine.settings();
        let layers = self.layers(&settings);
        let tools = engine.tools().list(&self.scope);
        let tool = tools.iter().find(|tool| tool.name == name);
        let step = tool.and_then(|tool| policy::steps(tool, &layers).find(|step| !step.rule.allows()));
        match step {
            Some(step) => Reason::of(name, &step, &layers).refusal(name),
            None => format!("There is no tool '{}' here.", name.chars().take(80).collect::<String>()),
        }
    }

    /// Lists the tools again: some were still being gathered.
    pub fn look_for_tools(&mut self, engine: &Engine) {
        self.tools = self.offer(engine, &engine.settings());
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

    /// What the people of this turn said, and those whose tasks it resumes.
    pub fn question(&self) -> String {
        let said = self.begun.iter().chain(self.inputs()).filter(|message| message.role == Role::User);
        said.map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    pub fn prompt(&self) -> Prompt {
        let mut messages = prompt::render(self.compaction.summary.as_deref(), &self.lines, &self.nonce);
        if let Some(recall) = &self.recalled {
            prompt::insert_recalled(&mut messages, &recall.text, &self.nonce);
        }
        Prompt {
            system: self.system.clone(),
            messages,
            tools: self.tools.iter().map(|tool| &tool.spec).chain(&self.client_tools).cloned().collect(),
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

    /// The turn has ended well: what it was to be told once has been told.
    pub fn settle(&self, engine: &Engine) {
        if let Some(bootstrap) = &self.bootstrap {
            engine.ports.briefings.shown(bootstrap);
        }
    }

    /// What the next turn of a long conversation need not read again.
    pub fn keep(mut self, engine: &Engine, session: &SessionKey, reply: Option<Message>) {
        let Some(reply) = reply.filter(|_| self.lines.len() >= KEPT) else { return };
        self.push(reply);
        let history =
            History { session_id: self.session_id, through: self.compaction.through, lines: self.lines };
        engine.histories.keep(session.clone(), history);
    }

    pub fn spend(&mut self, spent: &Spent) {
        self.usage = self.usage.plus(spent.usage);
        self.cost += spent.cost.unwrap_or(0);
        self.model_used = Some(spent.model.clone());
    }

    /// What calls have stored that an earlier life of this turn made.
    pub async fn recall_spent(&mut self, engine: &Engine, claim: &Claim) -> Driven<()> {
        let turn = claim.turn.clone();
        let spent = engine.db().read(move |tx| usage::of_turn(tx, &turn)).await;
        let spent = spent.map_err(|error| Halt::Lost(error.into()))?;
        (self.usage, self.cost, self.model_used) = (spent.usage, spent.cost_nanos, spent.model);
        Ok(())
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
    let found = agents::get(tx, &claim.agent)?;
    let in_config = found.as_ref().is_some_and(|stored| stored.source == Source::Config);
    let spec = found.map(|stored| stored.spec);
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
        in_config,
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

fn scope(engine: &Engine, claim: &Claim, spec: &AgentSpec, asked_by: &[&Address]) -> ToolScope {
    let can_ask = asked_by.iter().any(|address| can_ask(engine, address));
    ToolScope::of(spec, claim.session.clone(), &engine.settings().workspace, can_ask)
}

/// The conversations that wait for this turn.
fn asked_by<'a>(stored: &'a [Message], begun: &'a [Message]) -> impl Iterator<Item = &'a Address> {
    stored.iter().chain(begun).filter_map(|message| message.address.as_ref())
}

/// Who speaks there, as the rules about senders name them.
pub(crate) fn sender(address: &Address) -> String {
    format!("{}:{}:{}", address.channel, address.account, address.peer)
}

/// Whether a person reads along there and can answer: in the terminal and on the page, and in every channel
/// messages can be sent to. Behind the API there is a program.
pub(crate) fn can_ask(engine: &Engine, address: &Address) -> bool {
    match address.channel.as_str() {
        "cli" | "web" => true,
        channel => engine.ports.channels.contains_key(channel),
    }
}

/// What every conversation with an agent begins with, for a model that can take it in before it is asked.
pub fn opening(spec: &AgentSpec, files: &str, tools: Vec<Arc<ToolSpec>>, nonce: &str) -> Prompt {
    Prompt { system: system_prompt(spec, files, None, nonce), tools, ..Prompt::default() }
}

/// What the caller of an OpenAI-shaped endpoint wrote as its system message. It comes after the agent's own
/// words, lasts for this turn and is never part of the history.
fn instructions(stored: &[Message]) -> Option<&str> {
    stored.iter().rev().find_map(|message| message.meta.as_ref()?.get("instructions")?.as_str())
}

/// What stays the same from turn to turn comes first, so that providers can keep it.
fn system_prompt(spec: &AgentSpec, files: &str, caller: Option<&str>, nonce: &str) -> String {
    let own = spec.defaults.system_prompt.clone().unwrap_or_else(|| {
        format!(
            "You are {}, an assistant. Answer helpfully and briefly. Use tools when they help.",
            spec.name
        )
    });
    let rule = prompt::frame_rule(nonce);
    let caller = caller.map(|caller| format!("For this conversation the caller adds:\n{caller}"));
    let parts = [Some(own.as_str()), Some(files), Some(rule.as_str()), caller.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
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
