//! Errands made, changed and removed while the instance runs. Those of the config file belong to that file.

use polyclaw_domain::config::CronJobConfig;
use polyclaw_domain::schedule::InvalidSchedule;
use polyclaw_store::cron_jobs::{self, CronJobCreator, StoredCronJob};

use super::list::{Standing, errand_of, is_configured, unknown};
use crate::core::Engine;
use crate::error::{Error, Result};

/// Each is looked at whenever one is due.
const MOST: usize = 500;

impl Engine {
    /// Makes an errand; `by` is the agent that wants it, none where a person does.
    pub async fn add_errand(&self, mut job: CronJobConfig, by: Option<CronJobCreator>) -> Result<Standing> {
        self.reviewed(&mut job).await?;
        if is_configured(&self.settings(), &job.id) {
            return Err(Error::ErrandExists(job.id));
        }
        let (id, now) = (job.id.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| match cron_jobs::count(tx)? {
            count if count >= MOST => Ok(None),
            _ => cron_jobs::insert(tx, &job, by.as_ref(), now).map(Some),
        };
        match self.db().write(write).await? {
            Some(true) => self.rescheduled(&id).await,
            Some(false) => Err(Error::ErrandExists(id)),
            None => Err(Error::InvalidErrand(format!("there are {MOST} already"))),
        }
    }

    /// Replaces the errand of its name. With another schedule it begins anew.
    pub async fn change_errand(&self, mut job: CronJobConfig) -> Result<Standing> {
        self.own_errand(&job.id).await?;
        self.reviewed(&mut job).await?;
        let (id, now) = (job.id.clone(), self.now());
        match self.db().write(move |tx| cron_jobs::update(tx, &job, now)).await? {
            true => self.rescheduled(&id).await,
            false => Err(unknown(&id)),
        }
    }

    /// Its conversation stays readable.
    pub async fn remove_errand(&self, id: &str) -> Result<()> {
        self.own_errand(id).await?;
        let wanted = id.to_owned();
        self.db().write(move |tx| cron_jobs::remove(tx, &wanted)).await?;
        self.time_wake.notify_one();
        Ok(())
    }

    /// The errand as it was made, if it is not the config file's.
    pub async fn own_errand(&self, id: &str) -> Result<StoredCronJob> {
        if is_configured(&self.settings(), id) {
            return Err(Error::ErrandInConfig(id.to_owned()));
        }
        let wanted = id.to_owned();
        self.db().read(move |tx| cron_jobs::get(tx, &wanted)).await?.ok_or_else(|| unknown(id))
    }

    async fn rescheduled(&self, id: &str) -> Result<Standing> {
        self.time_wake.notify_one();
        self.errand(id).await
    }

    /// Holds a job against what this instance has. Everything that is wrong is said at once.
    async fn reviewed(&self, job: &mut CronJobConfig) -> Result<()> {
        let redactor = self.redactor();
        if redactor.contains_secret(&job.id) {
            return Err(Error::SecretInKey);
        }
        redactor.redact_in_place(&mut job.message);
        let mut problems = self.problems(job);
        if let Some(agent) = &job.agent
            && let Err(Error::UnknownAgent(id)) = self.agent(agent).await
        {
            problems.push(format!("agent: there is no agent '{id}'"));
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::InvalidErrand(problems.join(". "))),
        }
    }

    fn problems(&self, job: &CronJobConfig) -> Vec<String> {
        let mut problems = Vec::new();
        if !CronJobConfig::is_job_name(&job.id) {
            problems.push(format!("id: {:?} is no name; use up to 64 of a-z, 0-9, '_' and '-'", job.id));
        }
        if job.message.trim().is_empty() {
            problems.push("message: there is nothing to tell the agent".to_owned());
        }
        let settings = self.settings();
        match errand_of(&settings, job) {
            Ok(errand) if job.enabled && errand.schedule.next(self.now()).is_none() => {
                problems.push(format!("schedule: the time of {:?} has passed", job.schedule));
            }
            Ok(_) => {}
            Err(error @ InvalidSchedule::Zone(_)) => problems.push(format!("timezone: {error}")),
            Err(error) => problems.push(format!("schedule: {error}")),
        }
        if let Some(to) = &job.deliver_to
            && settings.reception.address(to).is_none()
        {
            let account = to.account.as_deref().unwrap_or("its default one");
            problems.push(format!("deliver_to: there is no account {account} of channel {:?}", to.channel));
        }
        problems
    }
}
