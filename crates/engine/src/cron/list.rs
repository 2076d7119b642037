//! Lists cron jobs: those of the config and those created at run time.

use polyclaw_domain::config::CronJobConfig;
use polyclaw_domain::cron_job::CronJob;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::schedule::InvalidSchedule;
use polyclaw_domain::time::Millis;
use polyclaw_store::agents::AgentSource;
use polyclaw_store::cron_jobs::{self, StoredCronJob};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::settings::EngineSettings;

/// A cron job with its source and the state of its schedule.
#[derive(Clone, Debug)]
pub struct CronJobStatus {
    pub job: CronJob,
    pub source: AgentSource,
    /// The agent that created it; `None` if a person did.
    pub created_by: Option<AgentId>,
    /// Last due time that was run or skipped; `None` if there was none yet.
    pub last_due: Option<Millis>,
    /// `None` if it is disabled or never due again.
    pub next_due: Option<Millis>,
}

impl CronJobStatus {
    fn new(job: CronJob, source: AgentSource, created_by: Option<AgentId>) -> Self {
        Self { job, source, created_by, last_due: None, next_due: None }
    }

    fn with_last_handled(mut self, looked_after: Option<Millis>, now: Millis) -> Self {
        let schedule = &self.job.schedule;
        // The time when the schedule was first seen is not a due time.
        self.last_due = looked_after.filter(|at| schedule.next(at.minus(1)) == Some(*at));
        self.next_due = self.job.next_due(looked_after, now).filter(|_| self.job.enabled);
        self
    }
}

impl Engine {
    /// All cron jobs: those of the config in their order, then the others by name.
    pub async fn list_cron_jobs(&self) -> Result<Vec<CronJobStatus>> {
        let (known, now) = (self.load_cron_jobs().await?, self.now());
        let ids: Vec<String> = known.iter().map(|one| one.job.id.clone()).collect();
        let read = move |tx: &mut polyclaw_store::Tx<'_>| {
            ids.iter().map(|id| cron_jobs::find_last_due(tx, id)).collect::<polyclaw_store::Result<Vec<_>>>()
        };
        let last = self.db().read(read).await?;
        Ok(known.into_iter().zip(last).map(|(one, last)| one.with_last_handled(last, now)).collect())
    }

    pub async fn find_cron_job(&self, id: &str) -> Result<CronJobStatus> {
        let all = self.list_cron_jobs().await?;
        all.into_iter().find(|one| one.job.id == id).ok_or_else(|| unknown_cron_job(id))
    }

    /// Loads all cron jobs without schedule state. A config job hides a created one of the same name.
    pub(super) async fn load_cron_jobs(&self) -> Result<Vec<CronJobStatus>> {
        let settings = self.settings();
        let stored = self.db().read(cron_jobs::list).await?;
        let ours =
            settings.cron_jobs.iter().cloned().map(|job| CronJobStatus::new(job, AgentSource::Config, None));
        let made = stored.into_iter().filter(|one| !is_config_cron_job(&settings, &one.job.id));
        let made = made.filter_map(|one| stored_cron_job_status(&settings, one));
        Ok(ours.chain(made).collect())
    }
}

pub(super) fn unknown_cron_job(id: &str) -> Error {
    Error::UnknownCronJob(quote_safely(id))
}

pub(super) fn is_config_cron_job(settings: &EngineSettings, id: &str) -> bool {
    settings.cron_jobs.iter().any(|job| job.id == id)
}

/// Builds a job. If the account of its delivery address is gone, the answer stays in the session.
pub(super) fn build_cron_job(
    settings: &EngineSettings,
    job: &CronJobConfig,
) -> std::result::Result<CronJob, InvalidSchedule> {
    let address = job.deliver_to.as_ref().and_then(|to| settings.inbound.resolve_address(to));
    CronJob::from_config(job, &settings.default_agent, address)
}

fn stored_cron_job_status(
    settings: &EngineSettings,
    StoredCronJob { job, created_by: made_by, .. }: StoredCronJob,
) -> Option<CronJobStatus> {
    let (agent, asked_by) = made_by.map(|by| (by.agent, by.on_behalf_of)).unzip();
    let asked_by = asked_by.unwrap_or_default();
    match build_cron_job(settings, &job) {
        Ok(cron_job) => {
            Some(CronJobStatus::new(CronJob { requested_by: asked_by, ..cron_job }, AgentSource::Api, agent))
        }
        Err(error) => {
            tracing::error!(schedule = job.id, %error, "stored cron job has an invalid schedule; ignoring it");
            None
        }
    }
}
