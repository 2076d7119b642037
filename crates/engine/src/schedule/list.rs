//! Which errands there are: those of the config, and those made while the instance runs.

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
use crate::settings::Settings;

/// An errand, who wrote it, and where its schedule stands.
#[derive(Clone, Debug)]
pub struct Standing {
    pub errand: CronJob,
    pub source: AgentSource,
    /// The agent that made it; none where a person did.
    pub made_by: Option<AgentId>,
    /// The last due time that was run or left out; none where it was never looked after.
    pub last: Option<Millis>,
    /// None where it never comes again, or not by itself.
    pub next: Option<Millis>,
}

impl Standing {
    fn new(errand: CronJob, source: AgentSource, made_by: Option<AgentId>) -> Self {
        Self { errand, source, made_by, last: None, next: None }
    }

    fn at(mut self, looked_after: Option<Millis>, now: Millis) -> Self {
        let schedule = &self.errand.schedule;
        // Where it was begun is no due time.
        self.last = looked_after.filter(|at| schedule.next(at.minus(1)) == Some(*at));
        self.next = self.errand.next_due(looked_after, now).filter(|_| self.errand.enabled);
        self
    }
}

impl Engine {
    /// Every errand: those of the config in its order, then the others by name.
    pub async fn errands(&self) -> Result<Vec<Standing>> {
        let (known, now) = (self.known_errands().await?, self.now());
        let ids: Vec<String> = known.iter().map(|one| one.errand.id.clone()).collect();
        let read = move |tx: &mut polyclaw_store::Tx<'_>| {
            ids.iter().map(|id| cron_jobs::find_last_due(tx, id)).collect::<polyclaw_store::Result<Vec<_>>>()
        };
        let last = self.db().read(read).await?;
        Ok(known.into_iter().zip(last).map(|(one, last)| one.at(last, now)).collect())
    }

    pub async fn errand(&self, id: &str) -> Result<Standing> {
        let all = self.errands().await?;
        all.into_iter().find(|one| one.errand.id == id).ok_or_else(|| unknown(id))
    }

    /// Every errand, wherever its schedule stands. One of the config hides one of its name that was made elsewhere.
    pub(super) async fn known_errands(&self) -> Result<Vec<Standing>> {
        let settings = self.settings();
        let stored = self.db().read(cron_jobs::list).await?;
        let ours =
            settings.errands.iter().cloned().map(|errand| Standing::new(errand, AgentSource::Config, None));
        let made = stored.into_iter().filter(|one| !is_configured(&settings, &one.job.id));
        let made = made.filter_map(|one| standing(&settings, one));
        Ok(ours.chain(made).collect())
    }
}

pub(super) fn unknown(id: &str) -> Error {
    Error::UnknownErrand(quote_safely(id))
}

pub(super) fn is_configured(settings: &Settings, id: &str) -> bool {
    settings.errands.iter().any(|errand| errand.id == id)
}

/// Where its answer goes nowhere any more, since the account is gone, it stays in the conversation.
pub(super) fn errand_of(
    settings: &Settings,
    job: &CronJobConfig,
) -> std::result::Result<CronJob, InvalidSchedule> {
    let address = job.deliver_to.as_ref().and_then(|to| settings.reception.address(to));
    CronJob::from_config(job, &settings.default_agent, address)
}

fn standing(
    settings: &Settings,
    StoredCronJob { job, created_by: made_by, .. }: StoredCronJob,
) -> Option<Standing> {
    let (agent, asked_by) = made_by.map(|by| (by.agent, by.on_behalf_of)).unzip();
    let asked_by = asked_by.unwrap_or_default();
    match errand_of(settings, &job) {
        Ok(errand) => {
            Some(Standing::new(CronJob { requested_by: asked_by, ..errand }, AgentSource::Api, agent))
        }
        Err(error) => {
            tracing::error!(schedule = job.id, %error, "a stored errand has no schedule any more");
            None
        }
    }
}
