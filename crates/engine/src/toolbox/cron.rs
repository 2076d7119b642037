//! `cron_*`: an agent's own cron jobs. It can see and change only the jobs that run it or that it created.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::config::{CatchUp, CronJobConfig, DeliverTo};
use polyclaw_domain::cron_job::CronJobKind;
use polyclaw_domain::sanitize;
use polyclaw_domain::tool::{ToolEffect, ToolRisk, ToolScope, ToolSpec, arguments};
use polyclaw_store::cron_jobs::CronJobCreator;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::engine_tool::{EngineTool, ToolInvocation};
use super::message::resolve_granted_address;
use super::{ToolCallResult, ToolRefusal};
use crate::core::Engine;
use crate::cron::CronJobStatus;
use crate::error::Error;
use crate::subagents;

/// Characters of a job's message shown in the list.
const MAX_SHOWN_MESSAGE_CHARS: usize = 200;

#[derive(Clone, Copy)]
pub(crate) enum CronTool {
    List,
    Add,
    Remove,
    Run,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CronListArguments {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CronAddArguments {
    /// Job id: up to 64 of a-z, 0-9, '_' and '-'.
    id: String,
    /// `30 8 * * 1-5`, `every 10m` or `at 2026-12-01 09:00`.
    schedule: String,
    /// Time zone of the schedule, such as `Europe/Berlin`. Defaults to UTC.
    timezone: Option<String>,
    /// The message you get at each run.
    message: String,
    /// Deliver your answers to this conversation. Otherwise they are only stored.
    #[serde(default)]
    deliver_here: bool,
    /// Deliver your answers to another conversation that you may write to.
    deliver_to: Option<DeliverTo>,
    /// Run once for runs that were missed.
    #[serde(default)]
    catch_up: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CronJobIdArguments {
    /// Job id from cron_list.
    id: String,
}

impl EngineTool for CronTool {
    const ALL: &'static [Self] = &[Self::List, Self::Add, Self::Remove, Self::Run];

    fn spec(self) -> ToolSpec {
        let changing = |effect, spec| ToolSpec { effect, risk: ToolRisk::High, ..spec };
        match self {
            Self::List => arguments::build_tool_spec::<CronListArguments>(
                "cron_list",
                "Lists your cron jobs: schedule, message and where your answers are delivered.",
            ),
            Self::Add => changing(
                ToolEffect::Effect,
                arguments::build_tool_spec::<CronAddArguments>(
                    "cron_add",
                    "Creates a cron job: at the scheduled times, you receive a message in a separate session.",
                ),
            ),
            Self::Remove => changing(
                ToolEffect::Idempotent,
                arguments::build_tool_spec::<CronJobIdArguments>(
                    "cron_remove",
                    "Removes a cron job that you created.",
                ),
            ),
            Self::Run => changing(
                ToolEffect::Effect,
                arguments::build_tool_spec::<CronJobIdArguments>(
                    "cron_run",
                    "Runs one of your cron jobs once, immediately.",
                ),
            ),
        }
    }

    async fn perform(self, engine: &Engine, asked: ToolInvocation<'_>) -> ToolCallResult {
        let (scope, given) = (asked.scope, &asked.call.arguments);
        match self {
            Self::List => {
                let CronListArguments {} = arguments::parse_arguments(given)?;
                list(engine, scope).await
            }
            Self::Add => add_job(engine, asked, arguments::parse_arguments(given)?).await,
            Self::Remove => remove_job(engine, scope, arguments::parse_arguments(given)?).await,
            Self::Run => run_job(engine, asked, arguments::parse_arguments(given)?).await,
        }
    }
}

fn is_own_job(scope: &ToolScope, one: &CronJobStatus) -> bool {
    one.job.agent == scope.agent || one.created_by.as_ref() == Some(&scope.agent)
}

async fn list(engine: &Engine, scope: &ToolScope) -> ToolCallResult {
    let all = engine.list_cron_jobs().await?;
    let row = |one: &CronJobStatus| {
        let job = &one.job;
        let reply = match &job.kind {
            CronJobKind::Message(text) => sanitize::to_single_line(text, MAX_SHOWN_MESSAGE_CHARS),
            CronJobKind::Heartbeat => "check HEARTBEAT.md".to_owned(),
        };
        json!({
            "id": job.id, "schedule": job.written, "timezone": job.timezone, "message": reply,
            "enabled": job.enabled, "next": one.next_due.map(|at| at.to_string()),
            "deliver_to": job.address.as_ref().map(ChatAddress::sender_key),
            "yours": one.created_by.as_ref() == Some(&scope.agent),
        })
    };
    let rows: Vec<_> = all.iter().filter(|one| is_own_job(scope, one)).map(row).collect();
    Ok(json!({ "jobs": rows }).to_string())
}

/// Rejects a call made in a cron job's own run, which could otherwise create or run jobs endlessly without a person.
fn refuse_in_cron_job(scope: &ToolScope, done: &str) -> std::result::Result<(), ToolRefusal> {
    match scope.session.agent_id() {
        Some(_) => Ok(()),
        None => Err(ToolRefusal(format!(
            "Cron jobs can be {done} only in a conversation with a person, not in the run \
                                     of a cron job."
        ))),
    }
}

/// Returns everyone the turn works for.
async fn turn_requesters(
    engine: &Engine,
    asked: ToolInvocation<'_>,
) -> std::result::Result<Vec<String>, ToolRefusal> {
    let (session, turn) = (asked.scope.session.clone(), asked.turn.clone());
    let read = engine.db().read(move |tx| subagents::requesters_of_turn(tx, &session, &turn));
    Ok(read.await.map_err(Error::from)?)
}

async fn add_job(engine: &Engine, asked: ToolInvocation<'_>, given: CronAddArguments) -> ToolCallResult {
    let scope = asked.scope;
    refuse_in_cron_job(scope, "created")?;
    let deliver_to = match &given.deliver_to {
        Some(to) => {
            resolve_granted_address(&engine.settings(), to)?;
            Some(to.clone())
        }
        None if given.deliver_here => Some(reply_conversation(engine, asked).await?),
        None => None,
    };
    let job = CronJobConfig {
        id: given.id,
        schedule: given.schedule,
        agent: Some(scope.agent.clone()),
        message: given.message,
        deliver_to,
        timezone: given.timezone,
        catch_up: if given.catch_up { CatchUp::Once } else { CatchUp::Skip },
        enabled: true,
    };
    let maker =
        CronJobCreator { agent: scope.agent.clone(), on_behalf_of: turn_requesters(engine, asked).await? };
    let made = engine.add_cron_job(job, Some(maker)).await?;
    let next = made.next_due.map(|at| at.to_string());
    Ok(json!({ "id": made.job.id, "next": next, "session_key": made.job.session }).to_string())
}

/// Returns the conversation that the turn answers, if messages can be sent to it. The session may have started in
/// another one.
async fn reply_conversation(
    engine: &Engine,
    asked: ToolInvocation<'_>,
) -> std::result::Result<DeliverTo, ToolRefusal> {
    let address = engine.reply_address(asked.turn).await?.filter(|address| !address.is_pull_channel());
    let nowhere = || {
        ToolRefusal(
            "No message can be sent to this conversation. Without deliver_here, your answers are stored in \
                     the cron job's session."
                .into(),
        )
    };
    let ChatAddress { channel, account, peer, thread } = address.ok_or_else(nowhere)?;
    Ok(DeliverTo { channel, account: Some(account), peer, thread })
}

async fn remove_job(
    engine: &Engine,
    scope: &ToolScope,
    CronJobIdArguments { id }: CronJobIdArguments,
) -> ToolCallResult {
    let made = engine.find_runtime_cron_job(&id).await?;
    if made.created_by.is_none_or(|by| by.agent != scope.agent) {
        return Err(Error::UnknownCronJob(id).into());
    }
    engine.remove_cron_job(&id).await?;
    Ok(format!("Cron job {id} removed."))
}

async fn run_job(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    CronJobIdArguments { id }: CronJobIdArguments,
) -> ToolCallResult {
    refuse_in_cron_job(asked.scope, "run")?;
    let found = engine.find_cron_job(&id).await?;
    if !is_own_job(asked.scope, &found) {
        return Err(Error::UnknownCronJob(id).into());
    }
    // A heartbeat runs in the agent's own session.
    if found.job.session == asked.scope.session {
        return Err(ToolRefusal("This cron job is running now, in this session.".to_owned()));
    }
    match engine.run_cron_job_for(&id, turn_requesters(engine, asked).await?).await? {
        Some(accepted) => {
            Ok(json!({ "session_key": accepted.session_key, "turn_id": accepted.turn_id }).to_string())
        }
        None => Ok("The cron job had nothing to do.".to_owned()),
    }
}
