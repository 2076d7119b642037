//! Looks after messages nobody speaks of: leases that end, times to live that are over, recipients that have to be
//! started, keys that are remembered long enough.

use std::collections::HashMap;
use std::time::Duration;

use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::{DesiredState, ProcessState};
use polyclaw_store::registry::InstanceRecord;
use polyclaw_store::registry::envelopes;
use tokio::time::Instant;

use crate::access::ControlCaller;
use crate::control::Control;
use crate::error::Result;
use crate::view::InstanceProcess;

const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Of each kind at a time: others want to write too.
const SWEEP_BATCH_SIZE: usize = 500;
const KEY_CLEANUP_INTERVAL: Duration = Duration::from_secs(600);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Starts that did not help, and when the next is tried.
type StartAttempts = HashMap<InstanceId, (u32, Instant)>;

impl Control {
    /// Runs until it is dropped. What it has not come to is done by the next server.
    pub async fn run_message_sweeper(&self) {
        let (mut tried, mut forget_at) = (StartAttempts::new(), Instant::now());
        loop {
            if let Err(error) = self.sweep_messages(&mut tried, &mut forget_at).await {
                tracing::error!(%error, "messages between instances could not be looked after");
            }
            tokio::select! {
                () = self.broker.wake.notified() => {}
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            }
        }
    }

    async fn sweep_messages(&self, tried: &mut StartAttempts, forget_at: &mut Instant) -> Result<()> {
        let now = self.now();
        let events = self.db.write(move |tx| envelopes::sweep_expired(tx, now, SWEEP_BATCH_SIZE)).await?;
        self.broker.publish_events(events);
        if *forget_at <= Instant::now() {
            self.db.write(move |tx| envelopes::delete_expired_keys(tx, now)).await?;
            *forget_at = Instant::now() + KEY_CLEANUP_INTERVAL;
        }
        let waited_for = self.db.read(envelopes::list_recipients_to_start).await?;
        tried.retain(|id, _| waited_for.contains(id));
        for id in waited_for {
            self.start_recipient(&id, tried).await?;
        }
        Ok(())
    }

    /// Starts an instance that was stopped. One that crashed is the supervisor's, with its pauses and its breaker.
    async fn start_recipient(&self, id: &InstanceId, tried: &mut StartAttempts) -> Result<()> {
        let Ok(one) = self.find_active(id.as_str()).await else { return Ok(()) };
        // What was tried is not forgotten here: a start under way that fails looks like one that runs.
        if !self.is_stopped(&one) {
            return Ok(());
        }
        let (times, at) = tried.get(id).copied().unwrap_or((0, Instant::now()));
        if Instant::now() < at {
            return Ok(());
        }
        let pause = Duration::from_secs(1 << times.min(6)).min(MAX_BACKOFF);
        tried.insert(id.clone(), (times + 1, Instant::now() + pause));
        let control = self.clone();
        tokio::spawn(async move {
            tracing::info!(instance = %one.name, "it is started for a message");
            if let Err(error) = control.start_instance(&ControlCaller::supervisor(), one.id.as_str()).await {
                tracing::warn!(instance = %one.name, %error, "it did not start for a message");
                let why = format!("its recipient could not be started: {error}");
                let noted = control.db.write(move |tx| envelopes::record_start_failure(tx, &one.id, &why));
                if let Err(error) = noted.await {
                    tracing::error!(%error, "why a message waits could not be noted");
                }
            }
        });
        Ok(())
    }

    fn is_stopped(&self, one: &InstanceRecord) -> bool {
        let live = InstanceProcess::for_instance(one, &self.instance_paths(one));
        one.desired_state == DesiredState::Stopped && matches!(live.process, ProcessState::Gone)
    }
}
