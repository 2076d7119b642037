//! The world around the engine: a model that does what the message says, two tools, a channel that loses track.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_domain::agent::Identity;
use polyclaw_domain::briefing::{Bootstrap, Briefing, Briefings, Reader};
use polyclaw_domain::channel::{Call, CallAnswer, Capabilities, Channel, Inbox, Sent};
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::fault::{Faults, KillPoint};
use polyclaw_domain::id::TurnId;
use polyclaw_domain::mcp::{ServerState, Servers, Standing};
use polyclaw_domain::port::{Clock, Ids, Pending};
use polyclaw_domain::provider::{
    Delta, ErrorClass, ModelInfo, ModelRef, ModelStatus, Prompt, PromptMessage, Provider, ProviderError,
    Reply, Sink, Usage,
};
use polyclaw_domain::skill::{Place, Skill};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{
    Consent, Effect, Progress, Risk, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox,
};
use serde_json::json;
use tokio::sync::Semaphore;

pub const MODEL: &str = "test/scripted";

/// Does what the last message says; see `act`.
pub struct Model {
    /// What `hold` waits for after its first words.
    pub gate: Arc<Semaphore>,
}

impl Provider for Model {
    fn stream<'a>(
        &'a self,
        _: &'a [ModelRef],
        prompt: &'a Prompt,
        sink: Sink<'a>,
    ) -> Pending<'a, Result<Reply, ProviderError>> {
        Box::pin(async move { self.act(prompt, sink).await })
    }

    fn models(&self) -> Pending<'_, Vec<ModelInfo>> {
        let info = ModelInfo {
            model: ModelRef::parse(MODEL).unwrap(),
            context_window: None,
            status: ModelStatus::Ready,
            demo: false,
        };
        Box::pin(async move { vec![info] })
    }
}

impl Model {
    async fn act(&self, prompt: &Prompt, sink: Sink<'_>) -> Result<Reply, ProviderError> {
        let last = prompt.messages.last().cloned().unwrap_or(PromptMessage::user(String::new()));
        let text = match last {
            PromptMessage::ToolResult { content, .. } => {
                return Ok(said(sink, &format!("It said: {content}")));
            }
            PromptMessage::User { text, .. } | PromptMessage::Assistant { text, .. } => text,
        };
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match word {
            "call" => Ok(Reply { calls: vec![call(rest)], ..quiet("") }),
            "look-and-call" => {
                sink(Delta::Text("Looking.".to_owned()));
                Ok(Reply { calls: vec![call(rest)], ..quiet("Looking.") })
            }
            "both" => Ok(Reply { calls: vec![call("weather"), call("clock")], ..quiet("") }),
            "fail" => Err(ProviderError {
                class: ErrorClass::Overload,
                model: MODEL.to_owned(),
                message: "too busy".to_owned(),
                retry_after_ms: None,
            }),
            "hold" => {
                sink(Delta::Text("first ".to_owned()));
                self.gate.acquire().await.unwrap().forget();
                sink(Delta::Text("second".to_owned()));
                Ok(quiet("first second"))
            }
            "consult" => Ok(Reply { calls: vec![consult()], ..quiet("") }),
            _ if text.contains("what the expert knows") => {
                sink(Delta::Text("It is ".to_owned()));
                self.gate.acquire().await.unwrap().forget();
                sink(Delta::Text("42".to_owned()));
                Ok(quiet("It is 42"))
            }
            "flood" => {
                let words: u32 = rest.parse().unwrap();
                (0..words).for_each(|_| sink(Delta::Text("x".repeat(2_000))));
                Ok(quiet("flooded"))
            }
            "unknown-usage" => Ok(Reply { usage: Usage::default(), ..said(sink, "done") }),
            "cut" => Ok(Reply { truncated: true, ..said(sink, "and then the") }),
            "silence" => Ok(said(sink, "NO_REPLY")),
            "limit" => Ok(said(sink, &format!("{:?}", prompt.max_tokens))),
            "system" => Ok(said(sink, &prompt.system)),
            "prompt" => Ok(said(sink, &format!("{:?}", prompt.messages))),
            // What no person typed comes in a frame.
            _ if text.contains("call danger") => Ok(Reply { calls: vec![call("danger")], ..quiet("") }),
            _ => Ok(said(sink, &format!("You said: {text}"))),
        }
    }
}

fn call(name: &str) -> ToolCall {
    ToolCall { id: format!("call_{name}"), name: name.to_owned(), arguments: json!({ "city": "Bern" }) }
}

fn consult() -> ToolCall {
    let asked = json!({ "agent_id": "expert", "task": "what the expert knows", "stream": true });
    ToolCall { id: "call_consult".to_owned(), name: "delegate_to_agent".to_owned(), arguments: asked }
}

fn quiet(text: &str) -> Reply {
    Reply {
        text: text.to_owned(),
        calls: Vec::new(),
        usage: Usage { input_tokens: Some(7), output_tokens: Some(3), cached_tokens: None },
        model: ModelRef::parse(MODEL).unwrap(),
        truncated: false,
    }
}

fn said(sink: Sink<'_>, text: &str) -> Reply {
    for word in text.split_inclusive(' ') {
        sink(Delta::Text(word.to_owned()));
    }
    quiet(text)
}

/// `clock` runs at once, `danger` asks a person first, `wait` waits for the gate.
pub struct Tools {
    pub gate: Arc<Semaphore>,
}

impl Toolbox for Tools {
    fn list(&self, _: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let tool = |name: &str, consent| {
            Arc::new(ToolSpec {
                name: name.to_owned(),
                description: format!("the tool {name}"),
                parameters: json!({ "type": "object" }),
                effect: Effect::Pure,
                risk: Risk::Low,
                consent,
                confined: false,
            })
        };
        vec![
            tool("clock", Consent::NotNeeded),
            tool("danger", Consent::AskPerson),
            tool("wait", Consent::NotNeeded),
        ]
    }

    fn run<'a>(
        &'a self,
        _: &'a ToolScope,
        _: &'a TurnId,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> Pending<'a, ToolOutcome> {
        Box::pin(async move {
            progress("tick");
            if call.name == "wait" {
                self.gate.acquire().await.unwrap().forget();
            }
            ToolOutcome::ok(format!("{} ran", call.name))
        })
    }
}

/// One skill for everybody, and a face for whoever has none.
pub struct Paper;

impl Briefings for Paper {
    fn brief(&self, reader: &Reader<'_>) -> Briefing {
        let skill = |name: &str| Skill {
            name: name.to_owned(),
            description: format!("about {name}"),
            place: Place::Shared,
            folder: reader.workspace.join(name),
        };
        let identity = Identity { emoji: Some("🦀".to_owned()), ..Identity::default() };
        Briefing { skills: [skill("tides"), skill("weather")].into(), identity, ..Briefing::default() }
    }

    fn shown(&self, _: &Bootstrap) {}
}

/// Takes up every config but for the second it is asked about.
#[derive(Default)]
pub struct Reloads(std::sync::atomic::AtomicU32);

impl polyclaw_server::Reload for Reloads {
    fn reload(&self) -> Pending<'_, Result<polyclaw_server::Later, String>> {
        let before = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let outcome =
            if before == 1 { Err("there is no such agent".to_owned()) } else { Ok(vec!["gateway"]) };
        Box::pin(async move { outcome })
    }
}

/// One MCP server that is well and one that is not.
pub struct Rack;

impl Servers for Rack {
    fn states(&self) -> Vec<ServerState> {
        let server = |name: &str, standing, error: Option<&str>| ServerState {
            name: name.to_owned(),
            transport: "stdio",
            sandbox: Some("confined"),
            standing,
            version: None,
            tools: vec![format!("mcp_{name}_echo")],
            restarts: 0,
            error: error.map(str::to_owned),
        };
        vec![server("up", Standing::Ready, None), server("down", Standing::Down, Some("it ended"))]
    }
}

/// Never knows whether what it sent arrived. It says what it was called with.
pub struct Forgetful;

impl Channel for Forgetful {
    fn capabilities(&self, _: &str) -> Capabilities {
        Capabilities { idempotent_send: false, max_chars: 4_000, edits: false, acknowledges: true }
    }

    fn send<'a>(&'a self, _: &'a str, _: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(async { Sent::Unknown { reason: "no answer".to_owned() } })
    }

    fn called<'a>(&'a self, account: &'a str, call: Call, _: &'a dyn Inbox) -> Pending<'a, CallAnswer> {
        Box::pin(async move {
            let signature = call.headers.iter().find(|(name, _)| name == "x-signature");
            let signature = signature.map_or("", |(_, value)| value.as_str());
            let (method, query, bytes) = (call.method, call.query, call.body.len());
            let body = format!("{account} {method} {query} {signature} {bytes}");
            CallAnswer { status: 201, media_type: "text/plain", body }
        })
    }
}

pub struct Now;

impl Clock for Now {
    fn now(&self) -> Millis {
        Millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap())
    }
}

#[derive(Default)]
pub struct Count(AtomicU64);

impl Ids for Count {
    fn next(&self) -> String {
        format!("id{:08}", self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn nonce(&self) -> String {
        self.next()
    }
}

pub struct Calm;

impl Faults for Calm {
    fn reach(&self, _: KillPoint) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
