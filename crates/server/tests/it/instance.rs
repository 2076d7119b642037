//! One served instance, on a port of its own.

use polyclaw_testkit::wait_until;
use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::config::WebhookMapping;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::port::{IdGenerator, WallClock};
use polyclaw_domain::provider::ModelRef;
use polyclaw_engine::memory::{MemoryLocation, MemoryStore, VectorIndex};
use polyclaw_engine::{BackgroundTask, Engine, EnginePorts, EngineSettings};
use polyclaw_server::{AppSetup, AppState, AuthMode, LoginCodes, SignedHook, instance_router, serve};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::{Db, DbTarget};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::ports::{Calm, Count, Forgetful, MODEL, Model, Now, Paper, Tools};

pub const TOKEN: &str = "correct horse";
pub const SECRET: &str = "hook secret";
/// `agent:main:web:dm:one`, as it is written in a path.
pub const ONE: &str = "agent%3Amain%3Aweb%3Adm%3Aone";
pub const ONE_KEY: &str = "agent:main:web:dm:one";

pub struct Instance {
    pub url: String,
    pub http: reqwest::Client,
    pub engine: Engine,
    /// A permit lets one held answer go on.
    pub gate: Arc<Semaphore>,
    pub stop: Option<oneshot::Sender<()>>,
    pub server: JoinHandle<std::io::Result<()>>,
    _loops: JoinSet<()>,
    _home: tempfile::TempDir,
}

impl Instance {
    pub async fn start() -> Self {
        Self::with(AuthMode::Token(TOKEN.to_owned())).await
    }

    pub async fn with(auth: AuthMode) -> Self {
        let home = tempfile::tempdir().unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let engine = engine(home.path(), Arc::clone(&gate)).await;
        let mut loops = JoinSet::new();
        for task in [
            BackgroundTask::Work,
            BackgroundTask::Deliver,
            BackgroundTask::RenewLeases,
            BackgroundTask::Sweep,
        ] {
            let engine = engine.clone();
            loops.spawn(async move { engine.run_task(task).await });
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}");
        let (stop, stopped) = oneshot::channel::<()>();
        let router = instance_router(AppState::new(setup(engine.clone(), auth, port)));
        let server = tokio::spawn(serve(listener, router, async move {
            let _ = stopped.await;
        }));
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let http = http.build().unwrap();
        Self { url, http, engine, gate, stop: Some(stop), server, _loops: loops, _home: home }
    }

    /// A request without the token.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(TOKEN)
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::PATCH, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path)).await
    }

    /// Says something in session one and waits for the answer.
    pub async fn say(&self, text: &str) -> Answer {
        let path = format!("/api/v1/sessions/{ONE}/messages?wait=10");
        let answer = self.post(&path, serde_json::json!({ "text": text })).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer
    }

    /// Where a browser gets in, once.
    pub async fn login(&self) -> String {
        self.post("/api/v1/logins", Value::Null).await.ok()["path"].as_str().unwrap().to_owned()
    }

    /// A turn of session one that runs until the gate lets it end.
    pub async fn hold(&self) {
        let path = format!("/api/v1/sessions/{ONE}");
        self.post(&format!("{path}/messages"), serde_json::json!({ "text": "hold" })).await.ok();
        wait_until("the turn runs", async || !self.get(&path).await.ok()["running_turn_id"].is_null()).await;
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
    /// Null if it is not JSON.
    pub body: Value,
}

impl Answer {
    pub async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self { status, headers, text, body }
    }

    /// The status, the code, and that the shape is ours.
    #[track_caller]
    pub fn refuses(&self, status: u16, code: &str) {
        let error = &self.body["error"];
        assert_eq!((self.status.as_u16(), error["code"].as_str()), (status, Some(code)), "{}", self.text);
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{}", self.text);
    }

    #[track_caller]
    pub fn ok(&self) -> &Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        &self.body
    }
}

async fn engine(home: &std::path::Path, gate: Arc<Semaphore>) -> Engine {
    let (clock, ids): (Arc<dyn WallClock>, Arc<dyn IdGenerator>) =
        (Arc::new(Now), Arc::new(Count::default()));
    let place = MemoryLocation::File(home.join("brain.db"));
    let vectors = VectorIndex::new(1 << 20, polyclaw_domain::embedding::dot_product);
    let memories = Arc::new(MemoryStore::new(place, Arc::clone(&clock), Arc::clone(&ids), vectors));
    let ports = EnginePorts {
        memory_store: memories,
        db: Db::open(&DbTarget::Sqlite(home.join("sessions.db"))).unwrap(),
        provider: Arc::new(Model { gate: Arc::clone(&gate) }),
        tools: Arc::new(Tools { gate }),
        briefings: Arc::new(Paper),
        channels: HashMap::from([("webhook".to_owned(), Arc::new(Forgetful) as _)]),
        clock,
        ids,
        faults: Arc::new(Calm),
        ledgers: Arc::new(polyclaw_store::TeamDatabases::in_memory()),
    };
    let mut settings = EngineSettings::with_workspace(home.to_path_buf());
    settings.default_model = Some(ModelRef::parse(MODEL).unwrap());
    settings.mcp_servers = vec!["up".to_owned(), "down".to_owned()];
    settings.a2a.expose = vec!["main".to_owned()];
    let engine = Engine::new(ports, settings, "test");
    let now = engine.now();
    let main = AgentSpec::with_id(AgentId::main());
    engine.db().write(move |tx| agents::upsert(tx, &main, AgentSource::Config, now)).await.unwrap();
    engine
}

fn setup(engine: Engine, auth: AuthMode, port: u16) -> AppSetup {
    let hook = SignedHook {
        secret: SECRET.to_owned(),
        agent: Some(AgentId::main()),
        map: WebhookMapping::default(),
    };
    let map = json!({ "text": "{sender.login} {action} {issue.title}", "id": "delivery",
        "peer": "repository.full_name", "thread": "issue.number" });
    let mapped = SignedHook { agent: None, map: serde_json::from_value(map).unwrap(), ..hook.clone() };
    let open = SignedHook { agent: None, ..hook.clone() };
    AppSetup {
        started: engine.now(),
        engine,
        auth,
        allowed_hosts: vec!["chat.example.com".to_owned()],
        allowed_origins: vec!["https://chat.example.com".to_owned()],
        hooks: HashMap::from([
            ("issues".to_owned(), mapped),
            ("build".to_owned(), hook),
            ("open".to_owned(), open),
        ]),
        version: "1.2.3".to_owned(),
        port,
        logins: LoginCodes::default(),
        mcp: Arc::new(crate::ports::Rack),
        reload: Arc::new(crate::ports::Reloads::default()),
    }
}
