//! Tools by which an agent writes to another instance, for agents that the config names.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::envelope::HANDOFF_KIND;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::tool::{
    ProgressSink, ToolCall, ToolEffect, ToolOutcome, ToolRisk, ToolScope, ToolSpec, Toolbox, arguments,
};
use polyclaw_store::{Tx, jobs};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::waiters::News;
use super::{Exchange, task};

const SEND: &str = "instance_send";
const DELEGATE: &str = "delegate_to_instance";
pub const NAMES: [&str; 2] = [SEND, DELEGATE];
/// The field of a result that names the message it was made of.
pub const ANSWER: &str = "answer_id";

const USUAL_MS: u64 = 120_000;
/// Nothing else shows that a call which waits is alive.
const SIGN_EVERY: Duration = Duration::from_secs(15);
/// What a message is that says nothing else.
const PLAIN: &str = "message";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// The other instance, by its name.
    instance: String,
    message: String,
    /// The agent there that is to get it; its default one if left out.
    agent: Option<String>,
    /// What kind of message it is, such as "note"; "message" if left out.
    r#type: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Delegate {
    /// The other instance, by its name.
    instance: String,
    /// What it is to do, with everything it needs to know.
    task: String,
    /// The agent there that is to do it; its default one if left out.
    agent: Option<String>,
    /// "sync" waits for the result; "async" tells you later.
    #[serde(default)]
    mode: When,
    /// How long a sync task may take, from 1000 to 900000; 120000 if left out.
    timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum When {
    #[default]
    Sync,
    Async,
}

/// Made again it is the same message: the control plane knows its key.
pub fn specs() -> Vec<Arc<ToolSpec>> {
    let risky = |spec: ToolSpec| {
        Arc::new(ToolSpec { effect: ToolEffect::Idempotent, risk: ToolRisk::High, confined: false, ..spec })
    };
    vec![
        risky(arguments::build_tool_spec::<Send>(
            SEND,
            "Writes to an agent of another instance and returns at once. An answer is told to you later.",
        )),
        risky(arguments::build_tool_spec::<Delegate>(
            DELEGATE,
            "Gives a task to an agent of another instance. sync waits for the result; async tells you later.",
        )),
    ]
}

/// Whether a call waits for its answer.
pub fn waits(call: &ToolCall) -> bool {
    call.name == DELEGATE && call.arguments["mode"] != "async"
}

type Done = Result<String, String>;

impl Exchange {
    async fn perform(
        &self,
        scope: &ToolScope,
        turn: &TurnId,
        call: &ToolCall,
        sign: ProgressSink<'_>,
    ) -> Done {
        let unfit = |error: serde_json::Error| format!("The arguments do not fit: {error}");
        match call.name.as_str() {
            SEND => {
                let given: Send = arguments::parse_arguments(&call.arguments).map_err(unfit)?;
                let kind = given.r#type.as_deref().unwrap_or(PLAIN);
                let says = json!({ "text": given.message, "to_agent": given.agent });
                self.write((scope, turn, call), (&given.instance, kind), says).await
            }
            _ => {
                let given: Delegate = arguments::parse_arguments(&call.arguments).map_err(unfit)?;
                let says = json!({ "task": given.task, "to_agent": given.agent });
                // Listened for before it is asked: an answer may be there at once.
                let correlation = task::correlation(turn, call);
                let news = (given.mode == When::Sync).then(|| self.waiters.wait(&correlation));
                let sent = self.write((scope, turn, call), (&given.instance, HANDOFF_KIND), says).await?;
                let Some(mut news) = news else { return Ok(sent) };
                let limit = Duration::from_millis(given.timeout_ms.unwrap_or(USUAL_MS).clamp(1_000, 900_000));
                let mut has_begun = false;
                let answer = tokio::time::timeout(limit, hear(&mut news, sign, &mut has_begun)).await;
                self.waiters.leave(&correlation);
                let told = match answer.ok().flatten() {
                    Some(answer) => answered(&answer),
                    None => unanswered(has_begun),
                };
                Ok(with_names(told, &given.instance, &correlation).to_string())
            }
        }
    }

    async fn write(
        &self,
        (scope, turn, call): (&ToolScope, &TurnId, &ToolCall),
        (instance, kind): (&str, &str),
        mut says: Value,
    ) -> Done {
        let (wanted, correlation) = (turn.clone(), task::correlation(turn, call));
        let job = self.db.read(move |tx: &mut Tx<'_>| jobs::get(tx, &wanted)).await;
        let job = job.map_err(|error| error.to_string())?;
        let hop = job.as_ref().map_or(0, |job| job.hop + 1);
        says["agent"] = scope.agent.as_str().into();
        let message = json!({
            "to": instance,
            "type": kind,
            "correlation_id": correlation,
            "idempotency_key": correlation,
            "hop_count": hop,
            "trace_id": job.map(|job| job.trace),
            "payload": says,
        });
        let receipt = self.send(&message).await.map_err(|failure| {
            let hint = failure.hint.map(|hint| format!(": {hint}")).unwrap_or_default();
            format!("{} ({}){hint}", failure.message, failure.code)
        })?;
        let told = json!({
            "status": "accepted",
            "message_id": receipt["id"],
            "correlation_id": correlation,
            "instance": instance,
            "redacted": receipt["redacted"],
        });
        Ok(told.to_string())
    }
}

/// `has_begun`: whether the other instance has said that it works on the task.
async fn hear(
    news: &mut tokio::sync::mpsc::UnboundedReceiver<News>,
    sign: ProgressSink<'_>,
    has_begun: &mut bool,
) -> Option<Box<super::letter::Letter>> {
    loop {
        match tokio::time::timeout(SIGN_EVERY, news.recv()).await {
            Ok(Some(News::Answer(letter))) => return Some(letter),
            Ok(Some(News::Progress)) => {
                *has_begun = true;
                sign("");
            }
            Err(_) => sign(""),
            Ok(None) => return None,
        }
    }
}

fn answered(letter: &super::letter::Letter) -> Value {
    json!({
        "status": if letter.error().is_some() { "failed" } else { "completed" },
        "error": letter.error(),
        "response": letter.text(),
        ANSWER: letter.id,
    })
}

fn unanswered(has_begun: bool) -> Value {
    let message = if has_begun {
        "The other instance is still working on the task. Its result arrives later as a message."
    } else {
        "The other instance has not started the task: it may be stopped or busy. The task waits in its queue until it \
         expires. If it is started before then, its result arrives later as a message."
    };
    json!({ "status": "timeout", "started": has_begun, "message": message })
}

fn with_names(mut told: Value, instance: &str, correlation: &str) -> Value {
    told["instance"] = instance.into();
    told["correlation_id"] = correlation.into();
    told
}

impl Toolbox for Exchange {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        if self.is_granted(&scope.agent) { self.tools.clone() } else { Vec::new() }
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            self.perform(scope, turn, call, progress).await.map_or_else(ToolOutcome::error, ToolOutcome::ok)
        })
    }
}
