//! Cron jobs and heartbeats: those in the config, and jobs created at runtime.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::config::{CatchUp, CronJobConfig as Job};
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::schema::schema_of;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct CronJobList {
    /// All cron jobs.
    pub cron: Vec<CronJobView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct CronJobView {
    /// The name of the job.
    pub id: String,
    /// When the job runs: a cron expression, `every 10m` or `at 2026-12-01 09:00`.
    pub schedule: String,
    /// The time zone of the schedule, such as `Europe/Berlin`. Null means UTC.
    pub timezone: Option<String>,
    /// The agent that the job runs for.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// The session that the job runs in.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The message the agent gets. Null for a heartbeat.
    pub message: Option<String>,
    /// The conversation that the answer is sent to. Null if it only stays in the session.
    #[schema(value_type = Option<Object>)]
    pub deliver_to: Option<ChatAddress>,
    /// How missed runs are handled: `skip` drops them, `once` makes up for all of them with one run.
    #[schema(value_type = String)]
    pub catch_up: CatchUp,
    /// Whether the job runs on its schedule.
    pub enabled: bool,
    /// Where the job is defined. `config`: the config file, where it must also be changed. `api`: the database.
    pub source: String,
    /// The agent that created the job. Null if a person did.
    #[schema(value_type = Option<String>)]
    pub created_by: Option<AgentId>,
    /// The last scheduled time that was run or skipped. Null if there was none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_due: Option<Millis>,
    /// The next scheduled time. Null if there is none or the job is disabled.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_due: Option<Millis>,
}

/// A job as in `[[cron]]`. Its schema is that of the domain type.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct CronJobBody(pub Job);

impl PartialSchema for CronJobBody {
    fn schema() -> RefOr<Schema> {
        schema_of::<Job>()
    }
}

impl ToSchema for CronJobBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "Job".into()
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct CronRunResult {
    /// The session of the started turn. Null if there was nothing to do, as for a heartbeat of an agent that has no
    /// task or is busy.
    #[schema(value_type = Option<String>)]
    pub session_key: Option<SessionKey>,
    /// The started turn. Null if there was nothing to do.
    #[schema(value_type = Option<String>)]
    pub turn_id: Option<TurnId>,
}
