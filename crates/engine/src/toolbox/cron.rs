//! `cron_*`: an agent's own errands. It sees and touches those that are told to it or that it made, and no others.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::config::{CatchUp, CronJobConfig, DeliverTo};
use polyclaw_domain::cron_job::CronJobKind;
use polyclaw_domain::sanitize;
use polyclaw_domain::tool::{ToolEffect, ToolRisk, ToolScope, ToolSpec, arguments};
use polyclaw_store::cron_jobs::CronJobCreator;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::message::granted;
use super::own::{Asked, OwnTool};
use super::{Done, Refused};
use crate::core::Engine;
use crate::error::Error;
use crate::family;
use crate::schedule::Standing;

/// How much of what an errand says is shown in the list.
const SHOWN: usize = 200;

#[derive(Clone, Copy)]
pub(crate) enum CronTool {
    List,
    Add,
    Remove,
    Run,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// Its name: up to 64 of a-z, 0-9, '_' and '-'.
    id: String,
    /// `30 8 * * 1-5`, `every 10m` or `at 2026-12-01 09:00`.
    schedule: String,
    /// The time zone of the schedule, such as `Europe/Berlin`; UTC if left out.
    timezone: Option<String>,
    /// What you are told each time.
    message: String,
    /// What you answer then goes to this conversation; otherwise it is only kept.
    #[serde(default)]
    deliver_here: bool,
    /// Or it goes to another one, which you may write to.
    deliver_to: Option<DeliverTo>,
    /// A run that was missed is made up for once.
    #[serde(default)]
    catch_up: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    /// As cron_list shows it.
    id: String,
}

impl OwnTool for CronTool {
    const ALL: &'static [Self] = &[Self::List, Self::Add, Self::Remove, Self::Run];

    fn spec(self) -> ToolSpec {
        let changing = |effect, spec| ToolSpec { effect, risk: ToolRisk::High, ..spec };
        match self {
            Self::List => arguments::build_tool_spec::<List>(
                "cron_list",
                "Lists your errands: what you are told, when, and where your answer goes.",
            ),
            Self::Add => changing(
                ToolEffect::Effect,
                arguments::build_tool_spec::<Add>(
                    "cron_add",
                    "Makes an errand: you are told something at set times, in a conversation of its own.",
                ),
            ),
            Self::Remove => changing(
                ToolEffect::Idempotent,
                arguments::build_tool_spec::<Named>("cron_remove", "Removes an errand that you made."),
            ),
            Self::Run => changing(
                ToolEffect::Effect,
                arguments::build_tool_spec::<Named>("cron_run", "Runs one of your errands once, now."),
            ),
        }
    }

    async fn perform(self, engine: &Engine, asked: Asked<'_>) -> Done {
        let (scope, given) = (asked.scope, &asked.call.arguments);
        match self {
            Self::List => {
                let List {} = arguments::parse_arguments(given)?;
                list(engine, scope).await
            }
            Self::Add => add(engine, asked, arguments::parse_arguments(given)?).await,
            Self::Remove => remove(engine, scope, arguments::parse_arguments(given)?).await,
            Self::Run => run(engine, asked, arguments::parse_arguments(given)?).await,
        }
    }
}

fn is_own(scope: &ToolScope, one: &Standing) -> bool {
    one.errand.agent == scope.agent || one.made_by.as_ref() == Some(&scope.agent)
}

async fn list(engine: &Engine, scope: &ToolScope) -> Done {
    let all = engine.errands().await?;
    let row = |one: &Standing| {
        let errand = &one.errand;
        let told = match &errand.kind {
            CronJobKind::Message(text) => sanitize::to_single_line(text, SHOWN),
            CronJobKind::Heartbeat => "look at HEARTBEAT.md".to_owned(),
        };
        json!({
            "id": errand.id, "schedule": errand.written, "timezone": errand.timezone, "message": told,
            "enabled": errand.enabled, "next": one.next.map(|at| at.to_string()),
            "deliver_to": errand.address.as_ref().map(ChatAddress::sender_key),
            "yours": one.made_by.as_ref() == Some(&scope.agent),
        })
    };
    let rows: Vec<_> = all.iter().filter(|one| is_own(scope, one)).map(row).collect();
    Ok(json!({ "errands": rows }).to_string())
}

/// An errand makes no errands and runs none: a turn nobody asked for could begin others without end.
fn refuse_in_errand(scope: &ToolScope, done: &str) -> std::result::Result<(), Refused> {
    match scope.session.agent_id() {
        Some(_) => Ok(()),
        None => Err(Refused(format!("Errands are {done} where a person talks to you, not by an errand."))),
    }
}

/// For whom the turn works.
async fn asked_by(engine: &Engine, asked: Asked<'_>) -> std::result::Result<Vec<String>, Refused> {
    let (session, turn) = (asked.scope.session.clone(), asked.turn.clone());
    let read = engine.db().read(move |tx| family::asked_by(tx, &session, &turn));
    Ok(read.await.map_err(Error::from)?)
}

async fn add(engine: &Engine, asked: Asked<'_>, given: Add) -> Done {
    let scope = asked.scope;
    refuse_in_errand(scope, "made")?;
    let deliver_to = match &given.deliver_to {
        Some(to) => {
            granted(&engine.settings(), to)?;
            Some(to.clone())
        }
        None if given.deliver_here => Some(here(engine, asked).await?),
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
    let maker = CronJobCreator { agent: scope.agent.clone(), on_behalf_of: asked_by(engine, asked).await? };
    let made = engine.add_errand(job, Some(maker)).await?;
    let next = made.next.map(|at| at.to_string());
    Ok(json!({ "id": made.errand.id, "next": next, "session_key": made.errand.session }).to_string())
}

/// The conversation that the turn answers, where something can be sent to it. Its session may have begun in another.
async fn here(engine: &Engine, asked: Asked<'_>) -> std::result::Result<DeliverTo, Refused> {
    let address = engine.answers_at(asked.turn).await?.filter(|address| !address.is_pull_channel());
    let nowhere =
        || Refused("Nothing can be sent here: what you answer is kept in the errand's conversation.".into());
    let ChatAddress { channel, account, peer, thread } = address.ok_or_else(nowhere)?;
    Ok(DeliverTo { channel, account: Some(account), peer, thread })
}

async fn remove(engine: &Engine, scope: &ToolScope, Named { id }: Named) -> Done {
    let made = engine.own_errand(&id).await?;
    if made.created_by.is_none_or(|by| by.agent != scope.agent) {
        return Err(Error::UnknownErrand(id).into());
    }
    engine.remove_errand(&id).await?;
    Ok(format!("{id} is removed."))
}

async fn run(engine: &Engine, asked: Asked<'_>, Named { id }: Named) -> Done {
    refuse_in_errand(asked.scope, "run")?;
    let found = engine.errand(&id).await?;
    if !is_own(asked.scope, &found) {
        return Err(Error::UnknownErrand(id).into());
    }
    // A check-in has the agent's own session.
    if found.errand.session == asked.scope.session {
        return Err(Refused("This is the errand that runs now.".to_owned()));
    }
    match engine.run_errand_for(&id, asked_by(engine, asked).await?).await? {
        Some(accepted) => {
            Ok(json!({ "session_key": accepted.session_key, "turn_id": accepted.turn_id }).to_string())
        }
        None => Ok("There was nothing to do.".to_owned()),
    }
}
