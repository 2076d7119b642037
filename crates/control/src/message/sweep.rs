//! Background work on messages: expires leases and times to live, starts recipients and deletes old idempotency keys.

use std::collections::HashMap;
use std::time::Duration;

use polyclaw_domain::backoff::BackoffPolicy;
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
/// The batch size for each kind, so that other writers get their turn.
const SWEEP_BATCH_SIZE: usize = 500;
const KEY_CLEANUP_INTERVAL: Duration = Duration::from_secs(600);
const START_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(60));

/// Failed starts by instance, with the time of the next attempt.
type StartAttempts = HashMap<InstanceId, (u32, Instant)>;

impl Control {
    /// Runs until dropped. The next server continues unfinished work.
    pub async fn run_message_sweeper(&self) {
        let (mut tried, mut forget_at) = (StartAttempts::new(), Instant::now());
        loop {
            if let Err(error) = self.sweep_messages(&mut tried, &mut forget_at).await {
                tracing::error!(%error, "could not sweep messages between instances; retrying at the next interval");
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

    /// Starts a stopped instance. Crashed instances are left to the supervisor with its backoff and breaker.
    async fn start_recipient(&self, id: &InstanceId, tried: &mut StartAttempts) -> Result<()> {
        let Ok(one) = self.find_active(id.as_str()).await else { return Ok(()) };
        // The attempts stay recorded, because a start in progress that will fail looks like a running instance.
        if !self.is_stopped(&one) {
            return Ok(());
        }
        let (times, at) = tried.get(id).copied().unwrap_or((0, Instant::now()));
        if Instant::now() < at {
            return Ok(());
        }
        let pause = START_BACKOFF.delay(times + 1, id.as_str());
        tried.insert(id.clone(), (times + 1, Instant::now() + pause));
        let control = self.clone();
        tokio::spawn(async move {
            tracing::info!(instance = %one.name, "starting instance for a waiting message");
            if let Err(error) = control.start_instance(&ControlCaller::supervisor(), one.id.as_str()).await {
                tracing::warn!(instance = %one.name, %error, "could not start instance for a message; will retry");
                let why = format!("its recipient could not be started: {error}");
                let noted = control.db.write(move |tx| envelopes::record_start_failure(tx, &one.id, &why));
                if let Err(error) = noted.await {
                    tracing::error!(%error, "could not record why a message waits");
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
