//! Everything a turn works with: its session, agent, transcript and the prompt built from them. Loaded in one read.

mod broadcast;
mod images;
mod rows;
mod tools;

use std::sync::Arc;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::author::MessageAuthor;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::backlog::ResumeToken;
use polyclaw_domain::briefing::BootstrapVersion;
use polyclaw_domain::budget::NanoUsd;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{RunId, SessionId, TurnId};
use polyclaw_domain::media::ImageMap;
use polyclaw_domain::message::{MessagePart, MessageRole, to_stored_parts, tool_calls};
use polyclaw_domain::prompt::{self, TranscriptLine};
use polyclaw_domain::provider::{ModelRef, Prompt, TokenUsage};
use polyclaw_domain::run;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::tool::{ToolCall, ToolOutcome, ToolScope, ToolSpec};
use polyclaw_domain::turn::TurnStep;
use polyclaw_store::backlog::BacklogEntry;
use polyclaw_store::jobs::TurnClaim;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::sessions::CompactionPoint;
use polyclaw_store::{Tx, sessions, usage};

use crate::budget::UnstoredModelCall;
use crate::core::Engine;
use crate::history::CachedHistory;
use crate::memory::RecalledText;
use crate::settings::EngineSettings;
use crate::stream_mirror::{DelegationWaiters, StreamMirror};
use crate::team::TeamPromptContext;
use crate::turn::{TurnAbort, TurnResult, has_invalid_arguments};
use rows::read_rows;
use tools::{client_tools, input_addresses, tool_scope};

pub(crate) use rows::{TurnRows, load_answered_inputs, read_first_rows, read_short_rows};
pub(crate) use tools::{OfferedTool, can_ask_person, collect_senders, message_authority};

pub(crate) struct TurnContext {
    pub agent_is_gone: bool,
    pub session: Session,
    /// The conversation this turn belongs to. Its session may have started another one since.
    pub session_id: SessionId,
    pub spec: AgentSpec,
    pub candidates: Vec<ModelRef>,
    pub scope: ToolScope,
    /// Tools that passed the policy filter. The model is shown these, and nothing else can be called.
    pub tools: Vec<OfferedTool>,
    /// Tools that the caller of this turn runs itself.
    pub client_tools: Vec<Arc<ToolSpec>>,
    pub compaction: CompactionPoint,
    pub lines: Vec<TranscriptLine>,
    /// Images referenced by the lines.
    images: ImageMap,
    /// Rows of this turn: inputs, then steps.
    pub stored: Vec<SessionMessage>,
    pub steered: bool,
    pub usage: TokenUsage,
    pub model_used: Option<String>,
    /// The newest reply ended at the model's length limit.
    pub truncated: bool,
    /// Known cost of this turn so far.
    pub cost: NanoUsd,
    resumed_tasks: Vec<BacklogEntry>,
    /// Messages that started the tasks this turn resumes.
    resumed_messages: Vec<SessionMessage>,
    nonce: String,
    pub system: String,
    /// Memories recalled for this turn. They are not stored in any message or row.
    pub recalled: Option<RecalledText>,
    /// Replies of earlier agents to the same broadcast. They are not stored in any message or row.
    pub earlier_replies: Option<String>,
    /// Context window that the model turned out to accept in this turn.
    pub window: Option<usize>,
    /// Some lines are shortened, so the next turn cannot start from them.
    pub is_shortened: bool,
    /// Team state shown in the prompt. A successful turn stores its team messages as a line of the transcript.
    pub team_prompt: TeamPromptContext,
    /// Display name of the agent: its emoji, if any, and its name.
    pub face: String,
    /// The `BOOTSTRAP.md` included in this turn's prompt.
    bootstrap: Option<BootstrapVersion>,
    in_config: bool,
    /// The run that this turn's session works on.
    pub run: Option<RunId>,
    /// Audience that sees the streamed text while the session works for another one.
    pub mirror: Option<StreamMirror>,
    /// For a team member: addresses of the people the team works for.
    pub team_people: Vec<ChatAddress>,
    /// For a team member: it may only read until its plan is approved.
    pub awaits_plan: bool,
    /// People waiting for the delegation this turn works on. They can be asked for approval.
    pub waiters: Option<DelegationWaiters>,
    /// Everyone this turn answers, as `channel:account:peer`.
    senders: Vec<String>,
}

/// Minimum number of lines for caching a history between turns. Shorter ones are read with the claim anyway.
const MIN_CACHED_LINES: usize = 48;

/// A tool result that is neither empty nor an error.
pub(crate) fn is_meaningful_result(message: &SessionMessage) -> bool {
    let is_error = |part: &MessagePart| matches!(part, MessagePart::ToolResult { is_error: true, .. });
    message.role == MessageRole::Tool
        && !message.text.trim().is_empty()
        && !message.parts.iter().any(is_error)
}

impl TurnContext {
    /// Returns the name shown in approval requests. People know a team member by its member name.
    pub fn approval_name(&self) -> &str {
        match (&self.session.title, self.session.team_role) {
            (Some(name), Some(TeamRole::Member)) => name,
            _ => &self.spec.name,
        }
    }

    /// Loads a turn's context. A long history is read only from where the session's last turn left it.
    pub async fn load(engine: &Engine, claim: &TurnClaim) -> TurnResult<Self> {
        let wanted = claim.clone();
        let known = engine.history_cache.take_history(&claim.session);
        let from = known.as_ref().map(|known| (known.session_id.clone(), known.through, known.last_ticket()));
        let read = move |tx: &mut Tx<'_>| match sessions::get_snapshot(tx, &wanted.session)? {
            Some(snapshot) => read_rows(tx, &wanted, snapshot, from.as_ref()).map(Some),
            None => Ok(None),
        };
        let rows = engine.db().read(read).await.map_err(|e| TurnAbort::Lost(e.into()))?;
        let Some(mut rows) = rows else {
            return Err(TurnAbort::Lost(crate::error::Error::UnknownSession(claim.session.to_string())));
        };
        if let Some(known) = known.filter(|_| rows.is_continuation) {
            let new = std::mem::replace(&mut rows.lines, known.lines);
            rows.lines.extend(new);
        }
        Self::from_rows(engine, claim, rows)
    }

    /// Loads a context for inspection from outside, while a turn of the session may be running.
    pub async fn load_for_inspection(engine: &Engine, claim: &TurnClaim) -> TurnResult<Self> {
        let wanted = claim.clone();
        let look = move |tx: &mut Tx<'_>| match sessions::get_snapshot(tx, &wanted.session)? {
            Some(snapshot) => read_rows(tx, &wanted, snapshot, None).map(Some),
            None => Ok(None),
        };
        let rows = engine.db().read(look).await.map_err(|e| TurnAbort::Lost(e.into()))?;
        let unknown = || TurnAbort::Lost(crate::error::Error::UnknownSession(claim.session.to_string()));
        Self::from_rows(engine, claim, rows.ok_or_else(unknown)?)
    }

    pub fn from_rows(engine: &Engine, claim: &TurnClaim, rows: TurnRows) -> TurnResult<Self> {
        // A turn whose agent was deleted must still end and report its failure.
        let agent_is_gone = rows.spec.is_none();
        let spec = rows.spec.unwrap_or_else(|| AgentSpec::with_id(claim.agent.clone()));
        let settings = engine.settings();
        let waiting = rows.waiters.iter().flat_map(|waiters| &waiters.addresses);
        let asked_by: Vec<&ChatAddress> = input_addresses(&rows.stored, &rows.resumed_messages)
            .chain(&rows.team_people)
            .chain(waiting)
            .collect();
        let scope = tool_scope(engine, &rows.session, &spec, &asked_by);
        let asked: Vec<&SessionMessage> = rows.stored.iter().chain(&rows.resumed_messages).collect();
        let mut senders = collect_senders(&asked, rows.run.as_ref());
        senders.extend(rows.team_authority.sender_mark());
        let client_tools = client_tools(&rows.stored);
        let briefing = engine.read_briefing(&spec, &scope.workspace, rows.session.spawn_depth > 0);
        let nonce = engine.ports.ids.fresh_nonce();
        let rules = prompt::frame_rules(&rows.lines, &nonce);
        let mut context = Self {
            agent_is_gone,
            candidates: model_candidates(&settings, &rows.session, &spec),
            tools: Vec::new(),
            client_tools,
            system: String::new(),
            bootstrap: briefing.bootstrap.clone(),
            face: polyclaw_domain::briefing::resolve_identity(&spec, &briefing.identity).face(),
            session: rows.session,
            session_id: rows.session_id,
            spec,
            scope,
            compaction: rows.compaction,
            lines: rows.lines,
            images: ImageMap::default(),
            stored: rows.stored,
            steered: rows.steered,
            usage: TokenUsage::ZERO,
            model_used: None,
            truncated: false,
            cost: 0,
            resumed_tasks: rows.resumed_tasks,
            resumed_messages: rows.resumed_messages,
            nonce,
            recalled: None,
            earlier_replies: None,
            window: None,
            is_shortened: false,
            team_prompt: TeamPromptContext::default(),
            in_config: rows.in_config,
            run: rows.run.map(|run| run.id),
            mirror: rows.mirror,
            team_people: rows.team_people,
            awaits_plan: rows.awaits_plan,
            waiters: rows.waiters,
            senders,
        };
        context.scope.authority = context.authority();
        context.tools = context.offered_tools(engine, &settings);
        let files = briefing.render_for_tools(context.tools.iter().map(|tool| tool.spec.name.as_str()));
        context.system = system_prompt(&context.spec, &files, &rules, caller_instructions(&context.stored));
        Ok(context)
    }

    /// Returns the stored steps in the form the turn machine takes.
    pub fn steps(&self) -> Vec<TurnStep> {
        self.stored.iter().filter_map(to_machine_step).collect()
    }

    pub fn resumed_turns(&self) -> Vec<TurnId> {
        self.resumed_tasks.iter().map(|row| row.task.token.turn_id.clone()).collect()
    }

    /// Returns the backlog entries to store when this turn yields: one for every message it answers and every task it
    /// had resumed.
    pub fn resume_tokens(&self, turn: &TurnId) -> Vec<ResumeToken> {
        let again = self.resumed_tasks.iter().map(|row| ResumeToken {
            message_id: row.task.token.message_id.clone(),
            turn_id: turn.clone(),
            steer_count: row.task.token.steer_count + 1,
        });
        let own = self.inputs().map(|message| ResumeToken {
            message_id: message.id.clone(),
            turn_id: turn.clone(),
            steer_count: 1,
        });
        again.chain(own).collect()
    }

    /// Returns the inputs of this turn: messages, and results of tools that the caller ran. The `[Backlog]` line is not
    /// one.
    fn inputs(&self) -> impl DoubleEndedIterator<Item = &SessionMessage> {
        self.stored.iter().filter(|message| message.address.is_some())
    }

    /// Returns every conversation that waits for this turn, each address once, and whether it wants the reply
    /// delivered.
    pub fn waiting_addresses(&self) -> Vec<(ChatAddress, bool)> {
        let mut addresses: Vec<(ChatAddress, bool)> = Vec::new();
        let mut add = |address: &ChatAddress, wanted: bool| match addresses
            .iter_mut()
            .find(|(known, _)| known == address)
        {
            Some((_, known)) => *known |= wanted,
            None => addresses.push((address.clone(), wanted)),
        };
        for message in self.resumed_messages.iter().chain(self.inputs()) {
            if let Some(address) = &message.address {
                add(address, message.deliver);
            }
            // Addresses waiting for the run that an announce reports on.
            let waiting = message.meta.as_ref().map(run::reply_addresses).unwrap_or_default();
            waiting.iter().for_each(|address| add(address, true));
        }
        addresses
    }

    /// Returns the conversation of an owner who asked for this turn, if a question can be sent there.
    pub fn owner_address(&self) -> Option<ChatAddress> {
        let mut asked =
            self.resumed_messages.iter().chain(self.inputs()).filter(|message| message.origin.is_person());
        let owned =
            asked.find(|message| message.deliver && message_authority(message) == Some(Authority::Owner))?;
        owned.address.clone().filter(|address| !address.is_pull_channel())
    }

    /// Whether every input of this turn was redelivered from a turn that failed.
    pub fn is_retry(&self) -> bool {
        let mut inputs = self.inputs();
        self.resumed_messages.is_empty()
            && inputs.all(|message| message.meta.as_ref().is_some_and(run::is_redelivered))
    }

    /// Whether a person wrote to this child session from `address`. A child's reply is delivered only to people who
    /// asked it directly.
    pub fn is_child_asked_from(&self, address: &ChatAddress) -> bool {
        let mut asked =
            self.resumed_messages.iter().chain(self.inputs()).filter(|message| message.origin.is_person());
        self.session.owner.is_some()
            && asked.any(|message| message.deliver && message.address.as_ref() == Some(address))
    }

    /// Returns the sessions from which people addressed this child with a command.
    pub fn shown_in(&self) -> Vec<SessionKey> {
        let asked =
            self.resumed_messages.iter().chain(self.inputs()).filter(|message| message.origin.is_person());
        let mut sessions: Vec<SessionKey> =
            asked.filter_map(|message| message.meta.as_ref().and_then(run::reply_session)).collect();
        sessions.dedup();
        sessions
    }

    /// Returns the addresses that may see the answer while it streams.
    pub fn watching_addresses(&self) -> Vec<ChatAddress> {
        if let Some(listeners) = &self.mirror {
            let policy = listeners.policy();
            let open = policy.session_delivers && policy.session_sends;
            return listeners.addresses().iter().filter(|_| open).cloned().collect();
        }
        let open = self.session.delivers && self.session.sends;
        let waiting = self.waiting_addresses().into_iter().filter(|(_, wanted)| *wanted && open);
        waiting.map(|(address, _)| address).collect()
    }

    /// Returns the text of the user messages of this turn and of the tasks it resumes.
    pub fn input_text(&self) -> String {
        let line = self
            .resumed_messages
            .iter()
            .chain(self.inputs())
            .filter(|message| message.role == MessageRole::User);
        line.map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    pub fn build_prompt(&self) -> Prompt {
        let mut messages = prompt::render_history(
            self.compaction.summary.as_deref(),
            &self.lines,
            &self.images,
            &self.nonce,
        );
        if let Some(recall) = &self.recalled {
            prompt::insert_turn_context(&mut messages, "memory", &recall.text, &self.nonce);
        }
        if let Some(text) = &self.earlier_replies {
            prompt::insert_turn_context(&mut messages, "agents", text, &self.nonce);
        }
        for state in &self.team_prompt.state {
            prompt::insert_turn_context(&mut messages, "team", state, &self.nonce);
        }
        if let Some(mail) = self.team_prompt.mail_text() {
            prompt::append_turn_context(&mut messages, "teammates", &mail, &self.nonce);
        }
        Prompt {
            system: self.system.clone(),
            messages,
            tools: self.tools.iter().map(|tool| &tool.spec).chain(&self.client_tools).cloned().collect(),
            temperature: self.spec.defaults.temperature,
            max_tokens: [self.spec.defaults.max_tokens, max_answer_tokens(&self.stored)]
                .into_iter()
                .flatten()
                .min(),
            reasoning_effort: self.session.thinking.or(self.spec.defaults.reasoning_effort),
        }
    }

    /// Whether the caller of this turn runs this tool itself and the arguments are valid.
    pub fn is_for_client(&self, call: &ToolCall) -> bool {
        self.client_tools.iter().any(|tool| tool.name == call.name) && !has_invalid_arguments(call)
    }

    /// Returns the newest step of the model.
    pub fn last_step(&self) -> Option<&SessionMessage> {
        self.stored.iter().rev().find(|message| message.role == MessageRole::Assistant)
    }

    /// Whether another session waits for this one and a tool has returned something worth reporting.
    pub fn has_result_for_owner(&self) -> bool {
        self.session.owner.is_some() && self.stored.iter().any(is_meaningful_result)
    }

    /// Returns how many model answers of this turn are stored.
    pub fn answer_count(&self) -> usize {
        self.stored.iter().filter(|message| message.role == MessageRole::Assistant).count()
    }

    pub fn push_step(&mut self, step: SessionMessage) {
        let step = drop_image_bytes(step);
        self.lines.push(TranscriptLine {
            position: step.position,
            role: step.role,
            origin: step.origin.clone(),
            text: step.text.clone(),
            parts: step.parts.clone(),
            author: step.meta.as_ref().and_then(MessageAuthor::from_shared_meta),
        });
        self.stored.push(step);
    }

    /// Completes the bootstrap after the turn that included it succeeded.
    pub fn mark_bootstrap_shown(&self, engine: &Engine) {
        if let Some(bootstrap) = &self.bootstrap {
            engine.ports.briefings.complete_bootstrap(bootstrap);
        }
    }

    /// Keeps a long history in memory, so that the next turn need not read it again.
    pub fn cache_history(mut self, engine: &Engine, session: &SessionKey, reply: Option<SessionMessage>) {
        // The commit that ends the turn stores team messages as a line of it, so these lines do not have them.
        let is_worth_it = self.lines.len() >= MIN_CACHED_LINES
            && !self.is_shortened
            && self.team_prompt.messages.is_empty();
        let Some(reply) = reply.filter(|_| is_worth_it) else { return };
        self.push_step(reply);
        let history = CachedHistory {
            session_id: self.session_id,
            through: self.compaction.through,
            lines: self.lines,
        };
        engine.history_cache.insert(session.clone(), history);
    }

    pub fn add_usage(&mut self, spent: &UnstoredModelCall) {
        self.usage = self.usage.plus(spent.usage);
        self.cost += spent.cost.unwrap_or(0);
        self.model_used = Some(spent.model.clone());
    }

    /// Loads the usage of model calls stored by earlier attempts of this turn.
    pub async fn load_spent_usage(&mut self, engine: &Engine, claim: &TurnClaim) -> TurnResult<()> {
        let turn = claim.turn.clone();
        let spent = engine.db().read(move |tx| usage::sum_by_turn(tx, &turn)).await;
        let spent = spent.map_err(|error| TurnAbort::Lost(error.into()))?;
        (self.usage, self.cost, self.model_used) = (spent.usage, spent.cost_nanos, spent.model);
        Ok(())
    }
}

/// Returns a message as it would be read back, without image bytes. A prompt loads them when it shows them; otherwise a
/// turn would hold every image it has seen until it ends.
fn drop_image_bytes(message: SessionMessage) -> SessionMessage {
    SessionMessage { parts: to_stored_parts(&message.parts), ..message }
}

fn to_machine_step(message: &SessionMessage) -> Option<TurnStep> {
    match message.role {
        MessageRole::User => None,
        MessageRole::Assistant => {
            let calls: Vec<_> = tool_calls(&message.parts).cloned().collect();
            (!calls.is_empty()).then_some(TurnStep::Called(calls))
        }
        MessageRole::Tool => message.parts.iter().find_map(|part| match part {
            MessagePart::ToolResult { call_id, is_error, .. } => Some(TurnStep::Resulted {
                call_id: call_id.clone(),
                outcome: ToolOutcome { is_error: *is_error, ..ToolOutcome::ok(message.text.clone()) },
            }),
            _ => None,
        }),
    }
}

/// Returns the models to try in order. A model that a person picked has no fallbacks: it is never silently replaced.
fn model_candidates(settings: &EngineSettings, session: &Session, spec: &AgentSpec) -> Vec<ModelRef> {
    if let Some(model) = &session.model_override {
        return vec![model.clone()];
    }
    let first = spec.defaults.model.clone().or_else(|| settings.default_model.clone());
    first.into_iter().chain(spec.defaults.fallbacks.iter().cloned()).collect()
}

/// Builds the start of every prompt of an agent, for models that can process it before the first message.
pub fn build_opening_prompt(spec: &AgentSpec, files: &str, tools: Vec<Arc<ToolSpec>>, nonce: &str) -> Prompt {
    let system = system_prompt(spec, files, &prompt::frame_rules(&[], nonce), None);
    Prompt { system, tools, ..Prompt::default() }
}

/// Returns the system message of a caller of the OpenAI-compatible API. It follows the agent's own prompt, lasts for
/// this turn and is never part of the history.
fn caller_instructions(stored: &[SessionMessage]) -> Option<&str> {
    stored.iter().rev().find_map(|message| message.meta.as_ref()?.get("instructions")?.as_str())
}

/// Returns the limit that a caller of the OpenAI-compatible API set for each answer of this turn.
fn max_answer_tokens(stored: &[SessionMessage]) -> Option<u32> {
    let stated = stored.iter().rev().find_map(|message| message.meta.as_ref()?.get("max_tokens")?.as_u64());
    stated.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX))
}

/// Builds the system prompt. Parts that do not change between turns come first, so that providers can cache them.
fn system_prompt(spec: &AgentSpec, files: &str, rules: &str, caller: Option<&str>) -> String {
    let own = spec.defaults.system_prompt.clone().unwrap_or_else(|| {
        format!(
            "You are {}, an assistant. Answer helpfully and briefly. Use tools when they help.",
            spec.name
        )
    });
    let caller = caller
        .map(|caller| format!("Additional instructions of the caller for this conversation:\n{caller}"));
    let parts = [Some(own.as_str()), Some(files), Some(rules), caller.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}
