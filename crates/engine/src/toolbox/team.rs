//! Tools of teams. Each is listed under one name; its plain name means the same (`domain/team/tools.rs`).

mod mail;
mod people;
mod tasks;

use std::sync::{Arc, Weak};

use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::Pending;
use polyclaw_domain::team::{TeamRole, tools};
use polyclaw_domain::tool::{
    Effect, Progress, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox, arguments,
};
use schemars::JsonSchema;

use super::Done;
use crate::core::{Engine, Inner};
use crate::team::Actor;

pub(crate) struct TeamTools {
    /// The engine owns its tools, so they must not own it.
    engine: Weak<Inner>,
    tools: Vec<(Kind, Arc<ToolSpec>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Create,
    Spawn,
    Shutdown,
    Status,
    TaskCreate,
    TaskList,
    TaskClaim,
    TaskUpdate,
    TaskComplete,
    Send,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Create,
        Self::Spawn,
        Self::Shutdown,
        Self::Status,
        Self::TaskCreate,
        Self::TaskList,
        Self::TaskClaim,
        Self::TaskUpdate,
        Self::TaskComplete,
        Self::Send,
    ];

    fn spec(self) -> ToolSpec {
        match self {
            Self::Create => changing::<people::Create>(
                tools::TEAM_CREATE,
                "Makes a team that you lead, with a list of tasks and mailboxes. Use it for work that several agents do side \
                 by side.",
            ),
            Self::Spawn => changing::<people::Spawn>(
                tools::TEAMMATE_SPAWN,
                "Adds a member to your team: a session of its own that works on tasks and gets mail. With the name of one that \
                 is lost, it replaces it and gets its tasks.",
            ),
            Self::Shutdown => changing::<people::Shutdown>(
                tools::TEAM_SHUTDOWN,
                "Ends your team: every member is asked and may object. force stops all at once, where a person asked you to.",
            ),
            Self::Status => arguments::spec::<people::Status>(
                tools::TEAM_STATUS,
                "Shows the team: members and what they do, tasks by state, progress.",
            ),
            Self::TaskCreate => changing::<tasks::Create>(
                tools::TASK_CREATE,
                "Adds a task to the team's list. It can be claimed once everything in dependsOn is completed. verify is checked \
                 by the runtime before it counts as completed.",
            ),
            Self::TaskList => arguments::spec::<tasks::List>(
                tools::TASK_LIST,
                "Lists tasks, the newest first, with who has them and what they wait for.",
            ),
            Self::TaskClaim => changing::<tasks::Claim>(
                tools::TASK_CLAIM,
                "Takes a task for yourself; without task_id the oldest that is free. Nobody else can take it while you work.",
            ),
            Self::TaskUpdate => changing::<tasks::Update>(
                tools::TASK_UPDATE,
                "Says that you began a task (in_progress), gives it back (released), or leaves a note.",
            ),
            Self::TaskComplete => changing::<tasks::Complete>(
                tools::TASK_COMPLETE,
                "Ends a task you hold, as completed or failed. The lead is told; what waited for it is free.",
            ),
            Self::Send => changing::<mail::Send>(
                tools::SEND_MESSAGE,
                "Writes to a teammate, or to all (broadcast). Nobody in the team sees anything else you say. Also answers \
                 requests to stop (shutdown_response).",
            ),
        }
    }

    fn is_offered(self, role: Option<TeamRole>) -> bool {
        match self {
            Self::Create => role != Some(TeamRole::Member),
            Self::Spawn | Self::Shutdown => role == Some(TeamRole::Lead),
            _ => role.is_some(),
        }
    }
}

/// The same call made again after a crash changes nothing more.
fn changing<A: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec { effect: Effect::Idempotent, ..arguments::spec::<A>(name, description) }
}

impl TeamTools {
    pub fn new(engine: Weak<Inner>) -> Self {
        Self { engine, tools: Kind::ALL.map(|kind| (kind, Arc::new(kind.spec()))).into() }
    }

    fn find(&self, call: &ToolCall) -> Option<(Kind, Engine)> {
        let (kind, _) = self.tools.iter().find(|(_, spec)| spec.name == call.name)?;
        Some((*kind, Engine::from(self.engine.upgrade()?)))
    }
}

/// Who asks, in which turn, by which call.
struct Asked<'a> {
    scope: &'a ToolScope,
    turn: &'a TurnId,
    actor: Actor,
}

async fn perform(engine: &Engine, kind: Kind, asked: &Asked<'_>, call: &ToolCall) -> Done {
    let given = &call.arguments;
    match kind {
        Kind::Create => people::create(engine, asked, arguments::read(given)?).await,
        Kind::Spawn => people::spawn(engine, asked, arguments::read(given)?).await,
        Kind::Shutdown => people::shutdown(engine, asked, arguments::read(given)?).await,
        Kind::Status => people::status(engine, asked, arguments::read(given)?).await,
        Kind::TaskCreate => tasks::create(engine, asked, arguments::read(given)?).await,
        Kind::TaskList => tasks::list(engine, asked, arguments::read(given)?).await,
        Kind::TaskClaim => tasks::claim(engine, asked, arguments::read(given)?).await,
        Kind::TaskUpdate => tasks::update(engine, asked, arguments::read(given)?).await,
        Kind::TaskComplete => tasks::complete(engine, asked, arguments::read(given)?).await,
        Kind::Send => mail::send(engine, asked, arguments::read(given)?).await,
    }
}

impl Toolbox for TeamTools {
    fn list(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let offered = self.tools.iter().filter(|(kind, _)| kind.is_offered(scope.team_role));
        offered.map(|(_, spec)| Arc::clone(spec)).collect()
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        _: Progress<'a>,
    ) -> Pending<'a, ToolOutcome> {
        Box::pin(async move {
            let Some((kind, engine)) = self.find(call) else {
                return ToolOutcome::error("The engine has ended.");
            };
            let act = format!("{turn}-{}", call.id);
            let actor = Actor::Session { key: scope.session.clone(), turn: turn.clone(), call: act };
            perform(&engine, kind, &Asked { scope, turn, actor }, call)
                .await
                .map_or_else(ToolOutcome::from, ToolOutcome::ok)
        })
    }
}
