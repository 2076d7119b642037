//! Background loops of a node: renewing leases, receiving signals of other nodes, deleting old rows.

use std::sync::PoisonError;
use std::time::Duration;

use polyclaw_domain::id::TurnId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::jobs::{self, ClaimRenewal, TurnClaim};
use polyclaw_store::{CONNECTED_SIGNAL, account_leases, broadcasts, cron_jobs, ingress, pairings, teams};
use tokio::time::Instant;

use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;

/// Which other names are this node's own; `None` where no other node can be.
pub(crate) fn shared_node_name(engine: &Engine) -> Option<String> {
    engine.db().is_shared().then(|| engine.node_name.clone())
}

/// Renews the leases of running turns and ends runs that exceeded their deadline. A stalled turn is ended by its own
/// watchdog before its lease expires.
pub(crate) async fn run_lease_loop(engine: &Engine) -> Result<()> {
    let mut renewed = Instant::now();
    loop {
        let settings = engine.settings();
        let pace = Duration::from_millis(settings.lease_ms.unsigned_abs() / 3);
        engine.wait_for_deadline(pace.saturating_sub(renewed.elapsed())).await?;
        engine.kill_overdue_runs().await?;
        if renewed.elapsed() < pace {
            continue;
        }
        renewed = Instant::now();
        let running: Vec<_> =
            engine.running.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        match running.is_empty() {
            true if engine.is_draining() => return Ok(()),
            true => continue,
            false => {}
        }
        let claims: Vec<TurnClaim> = running.iter().map(|running| running.claim.clone()).collect();
        let (now, lease_ms) = (engine.now(), settings.lease_ms);
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            let mut stopped = Vec::new();
            for claim in &claims {
                if jobs::renew_claim(tx, claim, now, lease_ms)? == ClaimRenewal::Stop {
                    stopped.push(claim.turn.clone());
                }
            }
            Ok(stopped)
        };
        let stopped = engine.db().write(write).await?;
        running
            .iter()
            .filter(|running| stopped.contains(&running.claim.turn))
            .for_each(|running| running.stop());
    }
}

/// Receives signals of other nodes: new jobs, changed sessions and others.
pub(crate) async fn listen_for_signals(engine: &Engine) -> Result<()> {
    let Some(mut signals) = engine.db().subscribe_signals() else { return Ok(()) };
    while let Some(signal) = signals.recv().await {
        match signal.0.split_once(' ') {
            Some(("session", key)) => {
                if let Ok(key) = SessionKey::parse(key) {
                    engine.hub.publish(&key, FrameKind::Changed);
                }
            }
            Some(("stop", turn)) => engine.stop_local_turn(&TurnId::new(turn)),
            _ if signal.0 == "outbox" => engine.outbox_wake.notify_one(),
            _ if signal.0 == account_leases::ACCOUNTS_SIGNAL => engine.account_leases.request_poll(),
            _ if signal.0 == cron_jobs::CRON_JOBS_SIGNAL => engine.cron_wake.notify_one(),
            _ if signal.0 == teams::TEAMS_SIGNAL => engine.wake_reconciler(),
            // Signals may have been missed while this node was not listening.
            _ if signal.0 == CONNECTED_SIGNAL => {
                engine.wake_reconciler();
                engine.lanes.wake_all();
            }
            _ => engine.lanes.wake_all(),
        }
    }
    Ok(())
}

/// How long a closed broadcast is kept: as long as its message can be redelivered.
const BROADCAST_RETENTION_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Deletes old platform ids, pairing codes and broadcasts, removes closed subscribers, and cleans up sessions of ended
/// runs.
pub(crate) async fn run_sweep_loop(engine: &Engine) -> Result<()> {
    while !engine.is_draining() {
        tokio::time::sleep(Duration::from_secs(60)).await;
        engine.hub.remove_closed_subscribers();
        let now = engine.now();
        let forget = move |tx: &mut polyclaw_store::Tx<'_>| {
            pairings::delete_expired(tx, now)?;
            broadcasts::delete_closed_before(tx, now.minus(BROADCAST_RETENTION_MS))?;
            ingress::delete_expired(tx, now)
        };
        engine.db().write(forget).await?;
        engine.clean_up_finished_runs().await?;
    }
    Ok(())
}
