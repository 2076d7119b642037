//! Tools with which an agent writes to other instances. Only agents that the config names have them.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_api::control::messages::NewEnvelopeBody;
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

use super::waiters::WaiterUpdate;
use super::{BrokerClient, task};

const INSTANCE_SEND: &str = "instance_send";
const DELEGATE_TO_INSTANCE: &str = "delegate_to_instance";
pub const TOOL_NAMES: [&str; 2] = [INSTANCE_SEND, DELEGATE_TO_INSTANCE];
/// The result field that names the answer it was made from.
pub const ANSWER_ID_FIELD: &str = "answer_id";

const DEFAULT_ANSWER_TIMEOUT_MS: u64 = 120_000;
/// Interval of progress signs, without which a waiting call would look stalled.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);
/// Type of a message without an explicit type.
const DEFAULT_MESSAGE_TYPE: &str = "message";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InstanceSendArguments {
    /// Name of the other instance.
    instance: String,
    message: String,
    /// Agent there that receives the message. Defaults to that instance's default agent.
    agent: Option<String>,
    /// Type of the message, such as "note". Defaults to "message".
    r#type: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DelegateToInstanceArguments {
    /// Name of the other instance.
    instance: String,
    /// The task, with everything the other agent needs to know.
    task: String,
    /// Agent there that does the task. Defaults to that instance's default agent.
    agent: Option<String>,
    /// "sync" waits for the result; "async" delivers it later as a message.
    #[serde(default)]
    mode: DelegateMode,
    /// Timeout of a sync task in milliseconds, from 1000 to 900000. Defaults to 120000.
    timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum DelegateMode {
    #[default]
    Sync,
    Async,
}

/// Returns the tool specs. The tools are idempotent, because the control plane knows the key of a repeated call.
pub fn tool_specs() -> Vec<Arc<ToolSpec>> {
    let risky = |spec: ToolSpec| {
        Arc::new(ToolSpec { effect: ToolEffect::Idempotent, risk: ToolRisk::High, confined: false, ..spec })
    };
    vec![
        risky(arguments::build_tool_spec::<InstanceSendArguments>(
            INSTANCE_SEND,
            "Sends a message to an agent of another instance and returns immediately. The answer arrives later as a \
             message.",
        )),
        risky(arguments::build_tool_spec::<DelegateToInstanceArguments>(
            DELEGATE_TO_INSTANCE,
            "Gives a task to an agent of another instance. sync waits for the result; async delivers it later as a \
             message.",
        )),
    ]
}

/// Returns whether a call waits for its answer.
pub fn waits_for_answer(call: &ToolCall) -> bool {
    call.name == DELEGATE_TO_INSTANCE && call.arguments["mode"] != "async"
}

type BrokerToolResult = Result<String, String>;

impl BrokerClient {
    async fn perform_call(
        &self,
        scope: &ToolScope,
        turn: &TurnId,
        call: &ToolCall,
        sign: ProgressSink<'_>,
    ) -> BrokerToolResult {
        let unfit = |error: serde_json::Error| format!("Invalid arguments: {error}");
        match call.name.as_str() {
            INSTANCE_SEND => {
                let given: InstanceSendArguments =
                    arguments::parse_arguments(&call.arguments).map_err(unfit)?;
                let kind = given.r#type.as_deref().unwrap_or(DEFAULT_MESSAGE_TYPE);
                let says = json!({ "text": given.message, "to_agent": given.agent });
                self.write_message((scope, turn, call), (&given.instance, kind), says).await
            }
            _ => {
                let given: DelegateToInstanceArguments =
                    arguments::parse_arguments(&call.arguments).map_err(unfit)?;
                let says = json!({ "task": given.task, "to_agent": given.agent });
                // Registered before the request is sent, because an answer may arrive immediately.
                let correlation = task::correlation_id(turn, call);
                let news =
                    (given.mode == DelegateMode::Sync).then(|| self.waiters.register_waiter(&correlation));
                let sent =
                    self.write_message((scope, turn, call), (&given.instance, HANDOFF_KIND), says).await?;
                let Some(mut news) = news else { return Ok(sent) };
                let limit = Duration::from_millis(
                    given.timeout_ms.unwrap_or(DEFAULT_ANSWER_TIMEOUT_MS).clamp(1_000, 900_000),
                );
                let mut has_started = false;
                let answer =
                    tokio::time::timeout(limit, await_answer(&mut news, sign, &mut has_started)).await;
                self.waiters.remove_waiter(&correlation);
                let body = match answer.ok().flatten() {
                    Some(answer) => answer_result(&answer),
                    None => timeout_result(has_started),
                };
                Ok(with_instance_and_correlation(body, &given.instance, &correlation).to_string())
            }
        }
    }

    async fn write_message(
        &self,
        (scope, turn, call): (&ToolScope, &TurnId, &ToolCall),
        (instance, kind): (&str, &str),
        mut says: Value,
    ) -> BrokerToolResult {
        let (wanted, correlation) = (turn.clone(), task::correlation_id(turn, call));
        let job = self.db.read(move |tx: &mut Tx<'_>| jobs::get(tx, &wanted)).await;
        let job = job.map_err(|error| error.to_string())?;
        let hop = job.as_ref().map_or(0, |job| job.hop + 1);
        says["agent"] = scope.agent.as_str().into();
        let message = NewEnvelopeBody {
            from: None,
            to: instance.to_owned(),
            r#type: kind.to_owned(),
            payload: says,
            correlation_id: Some(correlation.clone()),
            idempotency_key: Some(correlation.clone()),
            hop_count: hop,
            trace_id: job.map(|job| job.trace.into()),
        };
        let receipt = self.send_message(message).await.map_err(|failure| {
            let hint = failure.hint.map(|hint| format!(": {hint}")).unwrap_or_default();
            format!("{} ({}){hint}", failure.message, failure.code)
        })?;
        let body = json!({
            "status": "accepted",
            "message_id": receipt.id,
            "correlation_id": correlation,
            "instance": instance,
            "redacted": receipt.redacted,
        });
        Ok(body.to_string())
    }
}

/// Waits for the answer. Sets `has_started` once the other instance reports that it works on the task.
async fn await_answer(
    news: &mut tokio::sync::mpsc::UnboundedReceiver<WaiterUpdate>,
    sign: ProgressSink<'_>,
    has_started: &mut bool,
) -> Option<Box<super::envelope::LeasedEnvelope>> {
    loop {
        match tokio::time::timeout(PROGRESS_INTERVAL, news.recv()).await {
            Ok(Some(WaiterUpdate::Answer(envelope))) => return Some(envelope),
            Ok(Some(WaiterUpdate::Progress)) => {
                *has_started = true;
                sign("");
            }
            Err(_) => sign(""),
            Ok(None) => return None,
        }
    }
}

fn answer_result(envelope: &super::envelope::LeasedEnvelope) -> Value {
    json!({
        "status": if envelope.error().is_some() { "failed" } else { "completed" },
        "error": envelope.error(),
        "response": envelope.text(),
        ANSWER_ID_FIELD: envelope.id,
    })
}

fn timeout_result(has_started: bool) -> Value {
    let message = if has_started {
        "The other instance is still working on the task. Its result arrives later as a message."
    } else {
        "The other instance has not started the task: it may be stopped or busy. The task waits in its queue until it \
         expires. If it is started before then, its result arrives later as a message."
    };
    json!({ "status": "timeout", "started": has_started, "message": message })
}

fn with_instance_and_correlation(mut body: Value, instance: &str, correlation: &str) -> Value {
    body["instance"] = instance.into();
    body["correlation_id"] = correlation.into();
    body
}

impl Toolbox for BrokerClient {
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
            self.perform_call(scope, turn, call, progress)
                .await
                .map_or_else(ToolOutcome::error, ToolOutcome::ok)
        })
    }
}
