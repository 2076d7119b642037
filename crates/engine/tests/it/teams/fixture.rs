//! A hall: an engine whose lead is the session `me`, and a model that does what each person's script says.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyclaw_domain::id::TurnId;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::TaskNo;
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_engine::team::{
    NewMember, NewTeam, NewTeamTask, OutgoingTeamMessage, SpawnedTeammate, TeamActor,
};
use polyclaw_engine::{EngineSettings, Error, Result};
use polyclaw_store::{Db, DbTarget, TeamDatabases};
use polyclaw_testkit::postgres::PostgresCluster;
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider};
use serde_json::Value;
use tempfile::TempDir;

use crate::windows::{refuses, size};

type Scripts = Arc<Mutex<HashMap<String, VecDeque<ModelScript>>>>;

pub struct Hall {
    pub world: World,
    pub model: Arc<ScriptedProvider>,
    pub folder: TempDir,
    scripts: Scripts,
    window: Arc<AtomicUsize>,
}

pub const TEAM: &str = "web";
/// Tasks that a team may have open.
pub const OPEN: u32 = 40;

/// Whom a prompt is for: the block of the team says so.
pub fn who(prompt: &Prompt) -> String {
    let text = said(prompt);
    match text.split("You are the member '").nth(1) {
        Some(rest) => rest.split('\'').next().unwrap_or_default().to_owned(),
        None => "lead".to_owned(),
    }
}

pub fn said(prompt: &Prompt) -> String {
    let text = |message: &PromptMessage| match message {
        PromptMessage::User { text, .. } => format!("user {text}\n"),
        PromptMessage::Assistant { text, .. } => format!("assistant {text}\n"),
        PromptMessage::ToolResult { content, .. } => format!("result {content}\n"),
    };
    prompt.messages.iter().map(text).collect()
}

/// Refuses what is longer than its window.
fn scripted(scripts: &Scripts, window: &Arc<AtomicUsize>) -> Arc<ScriptedProvider> {
    let (scripts, window) = (Arc::clone(scripts), Arc::clone(window));
    ScriptedProvider::new(move |prompt| {
        if size(prompt) > window.load(Ordering::Relaxed) {
            return vec![refuses(size(prompt))];
        }
        let mut all = scripts.lock().unwrap();
        let next = all.get_mut(&who(prompt)).and_then(VecDeque::pop_front);
        next.unwrap_or_else(|| vec![ScriptStep::Say("noted".to_owned())])
    })
}

pub fn drive<F: Future<Output = ()>>(check: F) {
    drive_within(Duration::from_secs(60), check);
}

/// For checks that do a great deal.
pub fn drive_within<F: Future<Output = ()>>(limit: Duration, check: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(limit, check).await.expect("a check ends in time");
    });
}

pub fn on_sqlite<F: Future<Output = ()>>(check: impl FnOnce(Hall) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&DbTarget::Sqlite(folder.path().join("sessions.db"))).unwrap();
    drive(async { check(Hall::on(db, folder).await).await });
}

pub fn long_on_sqlite<F: Future<Output = ()>>(check: impl FnOnce(Hall) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&DbTarget::Sqlite(folder.path().join("sessions.db"))).unwrap();
    drive_within(LONG, async { check(Hall::on(db, folder).await).await });
}

pub fn long_on_postgres<F: Future<Output = ()>>(check: impl FnOnce(Hall) -> F) {
    let url = PostgresCluster::for_process().fresh_database().unwrap();
    let db = Db::open(&DbTarget::Postgres { url, connections: 4 }).unwrap();
    drive_within(LONG, async { check(Hall::on(db, tempfile::tempdir().unwrap()).await).await });
}

const LONG: Duration = Duration::from_secs(600);

pub fn on_postgres<F: Future<Output = ()>>(check: impl FnOnce(Hall) -> F) {
    let url = PostgresCluster::for_process().fresh_database().unwrap();
    let db = Db::open(&DbTarget::Postgres { url, connections: 4 }).unwrap();
    drive(async { check(Hall::on(db, tempfile::tempdir().unwrap()).await).await });
}

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Somebody in a session, in an act of its own.
pub fn actor(key: &SessionKey) -> TeamActor {
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    TeamActor::Session { key: key.clone(), turn: TurnId::new("none"), call: format!("act{n}") }
}

pub fn lead() -> TeamActor {
    actor(&World::session_key("me"))
}

impl Hall {
    async fn on(db: Db, folder: TempDir) -> Self {
        let scripts = Scripts::default();
        let window = Arc::new(AtomicUsize::new(usize::MAX));
        let model = scripted(&scripts, &window);
        let mut ground = DurableWorld::from_db(db.clone(), Arc::clone(&model) as _).await;
        ground.ledgers = Arc::new(TeamDatabases::for_db(&db, folder.path().join("teams")));
        ground.settings.teams_folder = Some(folder.path().join("teams"));
        ground.settings.teams.shutdown_seconds = 3;
        ground.settings.teams.max_open_tasks = OPEN;
        let world = ground.start_engine(KillPointFaults::no_kill());
        let hall = Self { world, model, folder, scripts, window };
        hall.world.send_and_wait("hello").await;
        hall
    }

    /// One whose lead has a team already.
    pub async fn with_team(self) -> Self {
        self.create(TEAM).await.unwrap();
        self
    }

    pub async fn create(&self, name: &str) -> Result<polyclaw_domain::team::Team> {
        let new = NewTeam {
            name: name.to_owned(),
            description: "to build a page".to_owned(),
            agent_type: "researcher".to_owned(),
            lead: World::session_key("me"),
            turn: None,
        };
        self.world.engine.create_team(&lead(), new).await
    }

    pub async fn join(&self, name: &str) -> SpawnedTeammate {
        self.try_join(NewMember { name: name.to_owned(), ..NewMember::default() }).await.unwrap()
    }

    pub async fn try_join(&self, new: NewMember) -> Result<SpawnedTeammate> {
        self.world.engine.spawn_teammate(&lead(), TEAM, new).await
    }

    pub async fn task(&self, subject: &str, needs: &[i64]) -> TaskNo {
        let needs = needs.iter().copied().map(TaskNo).collect();
        self.try_task(NewTeamTask { subject: subject.to_owned(), needs, ..NewTeamTask::default() })
            .await
            .unwrap()
    }

    pub async fn try_task(&self, new: NewTeamTask) -> Result<TaskNo> {
        self.world.engine.create_task(&lead(), TEAM, new).await
    }

    /// What somebody does at the next calls of its model, one after the other.
    pub fn script(&self, name: &str, scripts: Vec<ModelScript>) {
        self.scripts.lock().unwrap().entry(name.to_owned()).or_default().extend(scripts);
    }

    /// How many calls of somebody's script have not been made.
    pub fn left(&self, name: &str) -> usize {
        self.scripts.lock().unwrap().get(name).map_or(0, VecDeque::len)
    }

    pub async fn send(
        &self,
        from: &TeamActor,
        to: &str,
        content: &str,
    ) -> Result<polyclaw_engine::team::TeamMessageReceipt> {
        let outgoing =
            OutgoingTeamMessage { to: Some(to.to_owned()), ..letter(TeamMessageKind::Message, content) };
        self.world.engine.send_team_message(from, TEAM, outgoing).await
    }

    /// Waits until nothing is left to do, and the keeper has had its say.
    pub async fn rest(&self) {
        for _ in 0..3 {
            self.world.wait_settled().await;
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        self.world.wait_settled().await;
    }

    pub async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        for _ in 0..3_000 {
            if is_so().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it never came: {what}");
    }

    /// The engine dies, and another goes on, which is told how many tokens its model takes.
    pub async fn lives_on(self, count: usize) -> Self {
        let mut ground = self.world.kill().await;
        ground.settings.default_context_window = count;
        Self { world: ground.start_engine(KillPointFaults::no_kill()), ..self }
    }

    /// The engine is started anew with other settings.
    pub async fn reconfigured(self, change: impl FnOnce(&mut EngineSettings)) -> Self {
        let mut ground = self.world.kill().await;
        change(&mut ground.settings);
        Self { world: ground.start_engine(KillPointFaults::no_kill()), ..self }
    }

    /// From now on the model takes no more tokens than these, and nobody is told.
    pub fn narrows(&self, tokens: usize) {
        self.window.store(tokens, Ordering::Relaxed);
    }

    /// Everything that prompts of one person held.
    pub fn shown(&self, name: &str) -> Vec<String> {
        self.model.prompts().iter().filter(|prompt| who(prompt) == name).map(said).collect()
    }

    /// How many prompts of a person held a text.
    pub fn times(&self, name: &str, text: &str) -> usize {
        self.shown(name).iter().filter(|prompt| prompt.contains(text)).count()
    }

    pub fn path(&self, below: &str) -> std::path::PathBuf {
        self.folder.path().join("teams").join(below)
    }

    pub fn json(&self, below: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path(below)).unwrap()).unwrap()
    }

    pub fn inbox(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(&format!("{TEAM}/inbox/{name}/messages.jsonl")));
        text.unwrap_or_default().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub fn letter(kind: TeamMessageKind, content: &str) -> OutgoingTeamMessage {
    OutgoingTeamMessage {
        kind,
        to: None,
        content: content.to_owned(),
        summary: None,
        request_id: None,
        approve: None,
        reason: None,
    }
}

pub fn code<T>(outcome: &std::result::Result<T, Error>) -> &'static str {
    outcome.as_ref().map_or_else(Error::code, |_| "ok")
}

pub fn call(name: &str, arguments: Value) -> ModelScript {
    vec![ScriptStep::Call(name.to_owned(), arguments)]
}

pub fn say(text: &str) -> ModelScript {
    vec![ScriptStep::Say(text.to_owned())]
}
