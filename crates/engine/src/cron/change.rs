//! Creates, changes and removes cron jobs at run time. Jobs defined in the config file can be changed only there.

use polyclaw_domain::config::CronJobConfig;
use polyclaw_domain::schedule::InvalidSchedule;
use polyclaw_store::cron_jobs::{self, CronJobCreator, StoredCronJob};

use super::list::{CronJobStatus, build_cron_job, is_config_cron_job, unknown_cron_job};
use crate::core::Engine;
use crate::error::{Error, Result};

/// Maximum number of created jobs. All are checked whenever one is due.
const MAX_CRON_JOBS: usize = 500;

impl Engine {
    /// Creates a cron job. `by`: the agent that creates it; `None` for a person.
    pub async fn add_cron_job(
        &self,
        mut job: CronJobConfig,
        by: Option<CronJobCreator>,
    ) -> Result<CronJobStatus> {
        self.validate_cron_job(&mut job).await?;
        if is_config_cron_job(&self.settings(), &job.id) {
            return Err(Error::CronJobExists(job.id));
        }
        let (id, now) = (job.id.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| match cron_jobs::count(tx)? {
            count if count >= MAX_CRON_JOBS => Ok(None),
            _ => cron_jobs::insert(tx, &job, by.as_ref(), now).map(Some),
        };
        match self.db().write(write).await? {
            Some(true) => self.wake_and_load_cron_job(&id).await,
            Some(false) => Err(Error::CronJobExists(id)),
            None => Err(Error::InvalidCronJob(format!("there are {MAX_CRON_JOBS} already"))),
        }
    }

    /// Replaces a cron job. A changed schedule starts from now.
    pub async fn update_cron_job(&self, mut job: CronJobConfig) -> Result<CronJobStatus> {
        self.find_runtime_cron_job(&job.id).await?;
        self.validate_cron_job(&mut job).await?;
        let (id, now) = (job.id.clone(), self.now());
        match self.db().write(move |tx| cron_jobs::update(tx, &job, now)).await? {
            true => self.wake_and_load_cron_job(&id).await,
            false => Err(unknown_cron_job(&id)),
        }
    }

    /// Removes a cron job. Its conversation stays readable.
    pub async fn remove_cron_job(&self, id: &str) -> Result<()> {
        self.find_runtime_cron_job(id).await?;
        let wanted = id.to_owned();
        self.db().write(move |tx| cron_jobs::remove(tx, &wanted)).await?;
        self.cron_wake.notify_one();
        Ok(())
    }

    /// Loads a stored cron job that is not defined in the config file.
    pub async fn find_runtime_cron_job(&self, id: &str) -> Result<StoredCronJob> {
        if is_config_cron_job(&self.settings(), id) {
            return Err(Error::CronJobInConfig(id.to_owned()));
        }
        let wanted = id.to_owned();
        self.db().read(move |tx| cron_jobs::get(tx, &wanted)).await?.ok_or_else(|| unknown_cron_job(id))
    }

    async fn wake_and_load_cron_job(&self, id: &str) -> Result<CronJobStatus> {
        self.cron_wake.notify_one();
        self.find_cron_job(id).await
    }

    /// Checks a job against this instance's agents and accounts. Reports all problems together.
    async fn validate_cron_job(&self, job: &mut CronJobConfig) -> Result<()> {
        let redactor = self.redactor();
        if redactor.contains_secret(&job.id) {
            return Err(Error::SecretInKey);
        }
        redactor.redact_in_place(&mut job.message);
        let mut problems = self.cron_job_problems(job);
        if let Some(agent) = &job.agent
            && let Err(Error::UnknownAgent(id)) = self.load_agent(agent).await
        {
            problems.push(format!("agent: there is no agent '{id}'"));
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::InvalidCronJob(problems.join(". "))),
        }
    }

    fn cron_job_problems(&self, job: &CronJobConfig) -> Vec<String> {
        let mut problems = Vec::new();
        if !CronJobConfig::is_job_name(&job.id) {
            problems.push(format!("id: {:?} is no name; use up to 64 of a-z, 0-9, '_' and '-'", job.id));
        }
        if job.message.trim().is_empty() {
            problems.push("message: there is nothing to tell the agent".to_owned());
        }
        let settings = self.settings();
        match build_cron_job(&settings, job) {
            Ok(cron_job) if job.enabled && cron_job.schedule.next(self.now()).is_none() => {
                problems.push(format!("schedule: the time of {:?} has passed", job.schedule));
            }
            Ok(_) => {}
            Err(error @ InvalidSchedule::Zone(_)) => problems.push(format!("timezone: {error}")),
            Err(error) => problems.push(format!("schedule: {error}")),
        }
        if let Some(to) = &job.deliver_to
            && settings.inbound.resolve_address(to).is_none()
        {
            let account = to.account.as_deref().unwrap_or("its default one");
            problems.push(format!("deliver_to: there is no account {account} of channel {:?}", to.channel));
        }
        problems
    }
}
