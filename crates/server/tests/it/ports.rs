//! The world around the engine: a model that does what the message says, two tools, a channel that loses track.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_domain::agent::AgentIdentity;
use polyclaw_domain::briefing::{BootstrapVersion, Briefing, BriefingReader, BriefingSource};
use polyclaw_domain::channel::{
    ChannelAdapter, ChannelCapabilities, InboundSink, SendOutcome, WebhookRequest, WebhookResponse,
};
use polyclaw_domain::delivery::OutgoingMessage;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::kill_points::{FaultInjector, KillPoint};
use polyclaw_domain::mcp::{McpServerRegistry, McpServerState, McpServerStatus};
use polyclaw_domain::port::{BoxFuture, IdGenerator, WallClock};
use polyclaw_domain::provider::{
    DeltaSink, ErrorClass, ModelInfo, ModelProvider, ModelRef, ModelReply, ModelStatus, Prompt,
    PromptMessage, ProviderError, StreamDelta, TokenUsage,
};
use polyclaw_domain::skill::{Skill, SkillLocation};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{
    ProgressSink, ToolCall, ToolConsent, ToolEffect, ToolOutcome, ToolRisk, ToolScope, ToolSpec, Toolbox,
};
use serde_json::json;
use tokio::sync::Semaphore;

pub const MODEL: &str = "test/scripted";

/// Does what the last message says; see `act`.
pub struct Model {
    /// What `hold` waits for after its first words.
    pub gate: Arc<Semaphore>,
}

impl ModelProvider for Model {
    fn stream_reply<'a>(
        &'a self,
        _: &'a [ModelRef],
        prompt: &'a Prompt,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move { self.act(prompt, sink).await })
    }

    fn list_models(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
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
    async fn act(&self, prompt: &Prompt, sink: DeltaSink<'_>) -> Result<ModelReply, ProviderError> {
        let last = prompt.messages.last().cloned().unwrap_or(PromptMessage::user_text(String::new()));
        let text = match last {
            PromptMessage::ToolResult { content, .. } => {
                return Ok(said(sink, &format!("It said: {content}")));
            }
            PromptMessage::User { text, .. } | PromptMessage::Assistant { text, .. } => text,
        };
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match word {
            "call" => Ok(ModelReply { calls: vec![call(rest)], ..quiet("") }),
            "look-and-call" => {
                sink(StreamDelta::Text("Looking.".to_owned()));
                Ok(ModelReply { calls: vec![call(rest)], ..quiet("Looking.") })
            }
            "both" => Ok(ModelReply { calls: vec![call("weather"), call("clock")], ..quiet("") }),
            "fail" => Err(ProviderError {
                class: ErrorClass::Overload,
                model: MODEL.to_owned(),
                message: "too busy".to_owned(),
                retry_after_ms: None,
            }),
            "hold" => {
                sink(StreamDelta::Text("first ".to_owned()));
                self.gate.acquire().await.unwrap().forget();
                sink(StreamDelta::Text("second".to_owned()));
                Ok(quiet("first second"))
            }
            "consult" => Ok(ModelReply { calls: vec![consult()], ..quiet("") }),
            _ if text.contains("what the expert knows") => {
                sink(StreamDelta::Text("It is ".to_owned()));
                self.gate.acquire().await.unwrap().forget();
                sink(StreamDelta::Text("42".to_owned()));
                Ok(quiet("It is 42"))
            }
            "flood" => {
                let words: u32 = rest.parse().unwrap();
                (0..words).for_each(|_| sink(StreamDelta::Text("x".repeat(2_000))));
                Ok(quiet("flooded"))
            }
            "unknown-usage" => Ok(ModelReply { usage: TokenUsage::default(), ..said(sink, "done") }),
            "cut" => Ok(ModelReply { truncated: true, ..said(sink, "and then the") }),
            "silence" => Ok(said(sink, "NO_REPLY")),
            "limit" => Ok(said(sink, &format!("{:?}", prompt.max_tokens))),
            "system" => Ok(said(sink, &prompt.system)),
            "prompt" => Ok(said(sink, &format!("{:?}", prompt.messages))),
            // What no person typed comes in a frame.
            _ if text.contains("call danger") => Ok(ModelReply { calls: vec![call("danger")], ..quiet("") }),
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

fn quiet(text: &str) -> ModelReply {
    ModelReply {
        text: text.to_owned(),
        calls: Vec::new(),
        usage: TokenUsage { input_tokens: Some(7), output_tokens: Some(3), cached_tokens: None },
        model: ModelRef::parse(MODEL).unwrap(),
        truncated: false,
    }
}

fn said(sink: DeltaSink<'_>, text: &str) -> ModelReply {
    for word in text.split_inclusive(' ') {
        sink(StreamDelta::Text(word.to_owned()));
    }
    quiet(text)
}

/// `clock` runs at once, `danger` asks a person first, `wait` waits for the gate.
pub struct Tools {
    pub gate: Arc<Semaphore>,
}

impl Toolbox for Tools {
    fn list_tools(&self, _: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let tool = |name: &str, consent| {
            Arc::new(ToolSpec {
                name: name.to_owned(),
                description: format!("the tool {name}"),
                parameters: json!({ "type": "object" }),
                effect: ToolEffect::Pure,
                risk: ToolRisk::Low,
                consent,
                confined: false,
            })
        };
        vec![
            tool("clock", ToolConsent::NotNeeded),
            tool("danger", ToolConsent::AskPerson),
            tool("wait", ToolConsent::NotNeeded),
        ]
    }

    fn run<'a>(
        &'a self,
        _: &'a ToolScope,
        _: &'a TurnId,
        call: &'a ToolCall,
        progress: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
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

impl BriefingSource for Paper {
    fn load_briefing(&self, reader: &BriefingReader<'_>) -> Briefing {
        let skill = |name: &str| Skill {
            name: name.to_owned(),
            description: format!("about {name}"),
            place: SkillLocation::Shared,
            base: reader.workspace.to_owned(),
            folder: reader.workspace.join(name),
        };
        let identity = AgentIdentity { emoji: Some("🦀".to_owned()), ..AgentIdentity::default() };
        Briefing { skills: [skill("tides"), skill("weather")].into(), identity, ..Briefing::default() }
    }

    fn complete_bootstrap(&self, _: &BootstrapVersion) {}
}

/// Takes up every config but for the second it is asked about.
#[derive(Default)]
pub struct Reloads(std::sync::atomic::AtomicU32);

impl polyclaw_server::ConfigReloader for Reloads {
    fn reload_config(&self) -> BoxFuture<'_, Result<polyclaw_server::RestartSections, String>> {
        let before = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let outcome =
            if before == 1 { Err("there is no such agent".to_owned()) } else { Ok(vec!["gateway"]) };
        Box::pin(async move { outcome })
    }
}

/// One MCP server that is well and one that is not.
pub struct Rack;

impl McpServerRegistry for Rack {
    fn server_statuses(&self) -> Vec<McpServerStatus> {
        let server = |name: &str, state, error: Option<&str>| McpServerStatus {
            name: name.to_owned(),
            transport: "stdio",
            sandbox: Some("confined"),
            state,
            version: None,
            tools: vec![format!("mcp_{name}_echo")],
            restarts: 0,
            error: error.map(str::to_owned),
        };
        vec![
            server("up", McpServerState::Ready, None),
            server("down", McpServerState::Down, Some("it ended")),
        ]
    }
}

/// Never knows whether what it sent arrived. It says what it was called with.
pub struct Forgetful;

impl ChannelAdapter for Forgetful {
    fn capabilities(&self, _: &str) -> ChannelCapabilities {
        ChannelCapabilities { idempotent_send: false, max_chars: 4_000, edits: false, acknowledges: true }
    }

    fn send<'a>(&'a self, _: &'a str, _: &'a OutgoingMessage) -> BoxFuture<'a, SendOutcome> {
        Box::pin(async { SendOutcome::Unknown { reason: "no answer".to_owned() } })
    }

    fn handle_webhook<'a>(
        &'a self,
        account: &'a str,
        call: WebhookRequest,
        _: &'a dyn InboundSink,
    ) -> BoxFuture<'a, WebhookResponse> {
        Box::pin(async move {
            let signature = call.headers.iter().find(|(name, _)| name == "x-signature");
            let signature = signature.map_or("", |(_, value)| value.as_str());
            let (method, query, bytes) = (call.method, call.query, call.body.len());
            let body = format!("{account} {method} {query} {signature} {bytes}");
            WebhookResponse { status: 201, media_type: "text/plain", body }
        })
    }
}

pub struct Now;

impl WallClock for Now {
    fn now(&self) -> Millis {
        Millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap())
    }
}

#[derive(Default)]
pub struct Count(AtomicU64);

impl IdGenerator for Count {
    fn next_id(&self) -> String {
        format!("id{:08}", self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn fresh_nonce(&self) -> String {
        self.next_id()
    }
}

pub struct Calm;

impl FaultInjector for Calm {
    fn hit_kill_point(&self, _: KillPoint) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
