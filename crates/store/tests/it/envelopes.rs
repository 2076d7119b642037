//! Messages between instances, in the registry.

use polyclaw_domain::envelope::{
    ENVELOPE_LEASE_MS, EnvelopeEventKind, EnvelopeKindPattern, EnvelopeState, IDEMPOTENCY_KEY_TTL_MS,
};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::{
    self, AckOutcome, EnvelopeDraft, EnvelopeEventFilter, EnvelopeFilter, EnvelopePayload, EnvelopePoll,
    EnvelopeRefusal, EnvelopeVerdict, ReplayOutcome, StoredEnvelope,
};
use polyclaw_store::registry::rules::{self, RoutingRule};
use polyclaw_store::registry::{self};
use polyclaw_store::{Result, Tx};

use crate::registry::{instance, on_registry};
use crate::rows::NOW;

fn rule(id: &str, from: &str, to: &str, kind: &str) -> RoutingRule {
    RoutingRule {
        seq: 0,
        id: id.to_owned(),
        from: InstanceId::new(from),
        to: InstanceId::new(to),
        from_name: None,
        to_name: None,
        pattern: EnvelopeKindPattern::parse(kind).unwrap(),
        max_retries: 2,
        ttl_secs: 3_600,
        auto_start: false,
        created_at: NOW,
    }
}

fn draft(id: &str, from: &str, to: &str) -> EnvelopeDraft {
    EnvelopeDraft {
        id: EnvelopeId::new(id),
        from: from.to_owned(),
        to: to.to_owned(),
        kind: "task.handoff".to_owned(),
        payload: EnvelopePayload::Clean { json: "{}".to_owned(), redacted: false },
        correlation: None,
        key: None,
        hop: 0,
        trace: None,
        now: NOW,
    }
}

/// Two instances that may write tasks to each other.
fn two(tx: &mut Tx<'_>) -> Result<()> {
    registry::insert(tx, &instance("1", "a", 1001))?;
    registry::insert(tx, &instance("2", "b", 1002))?;
    rules::insert(tx, &rule("r1", "1", "2", "task.*"))?;
    rules::insert(tx, &rule("r2", "2", "1", "task.*")).map(drop)
}

fn send(tx: &mut Tx<'_>, draft: &EnvelopeDraft) -> Result<()> {
    assert!(matches!(envelopes::accept_envelope(tx, draft)?, EnvelopeVerdict::Accepted(..)), "{draft:?}");
    Ok(())
}

fn poll(tx: &mut Tx<'_>, to: &str, lease: &str, now: Millis) -> Result<Vec<StoredEnvelope>> {
    let (to, lease) = (InstanceId::new(to), lease.to_owned());
    let poll = EnvelopePoll {
        to,
        process_epoch: Some(lease.clone()),
        lease,
        asks_again: false,
        only_answers: false,
        limit: 10,
        now,
    };
    envelopes::lease_due(tx, &poll).map(|(taken, _)| taken)
}

fn state(tx: &mut Tx<'_>, id: &str) -> Result<EnvelopeState> {
    Ok(envelopes::get(tx, &EnvelopeId::new(id))?.unwrap().state)
}

fn history(tx: &mut Tx<'_>, id: &str) -> Result<Vec<EnvelopeEventKind>> {
    let one = envelopes::get(tx, &EnvelopeId::new(id))?.unwrap();
    Ok(envelopes::list_events(tx, &one)?.into_iter().map(|event| event.kind).collect())
}

#[test]
fn envelope_refusals_are_checked_in_fixed_order() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            registry::insert(tx, &instance("3", "gone", 1003))?;
            registry::archive(tx, &InstanceId::new("3"), NOW)?;
            let large = || EnvelopePayload::TooLarge(70_000);
            let no_rule = EnvelopeRefusal::NoRule { from: "a".into(), to: "b".into(), kind: "note".into() };
            for (wrong, expected) in [
                (
                    EnvelopeDraft { to: "nobody".into(), payload: large(), hop: 8, ..draft("m", "1", "2") },
                    EnvelopeRefusal::Unknown("nobody".into()),
                ),
                (draft("m", "nobody", "2"), EnvelopeRefusal::Unknown("nobody".into())),
                (draft("m", "1", "gone"), EnvelopeRefusal::Archived("gone".into())),
                (
                    EnvelopeDraft { payload: large(), hop: 8, kind: "note".into(), ..draft("m", "a", "b") },
                    EnvelopeRefusal::TooLarge(70_000),
                ),
                (
                    EnvelopeDraft { hop: 8, kind: "note".into(), ..draft("m", "a", "b") },
                    EnvelopeRefusal::TooManyHops(8),
                ),
                (EnvelopeDraft { kind: "note".into(), ..draft("m", "a", "b") }, no_rule),
            ] {
                match envelopes::accept_envelope(tx, &wrong)? {
                    EnvelopeVerdict::Refused(refused) => assert_eq!(refused, expected),
                    other => panic!("{other:?}"),
                }
            }
            assert!(envelopes::search(tx, &EnvelopeFilter::default(), 10)?.is_empty());
            Ok(())
        })
        .await
    });
}

#[test]
fn most_specific_routing_rule_applies_and_duplicates_are_refused() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            assert!(!rules::insert(tx, &rule("r3", "1", "2", "task.*"))?, "there is one already");
            let exact = RoutingRule { max_retries: 9, ttl_secs: 7, ..rule("r4", "1", "2", "task.handoff") };
            assert!(rules::insert(tx, &exact)?);
            send(tx, &draft("m", "1", "2"))?;
            let one = envelopes::get(tx, &EnvelopeId::new("m"))?.unwrap();
            assert_eq!((one.max_retries, one.expires_at), (9, NOW.plus(7_000)));
            assert_eq!(rules::list(tx, 0, 10)?.len(), 3);
            assert!(rules::remove(tx, "r4")?.is_some() && rules::remove(tx, "r4")?.is_none());
            registry::remove(tx, &InstanceId::new("2"))?;
            assert!(rules::list(tx, 0, 10)?.is_empty(), "rules go with their instances");
            assert_eq!(state(tx, "m")?, EnvelopeState::Queued, "messages stay");
            Ok(())
        })
        .await
    });
}

#[test]
fn idempotency_key_of_a_sender_expires_after_a_day() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            let keyed = |id: &str, from: &str, to: &str, now| EnvelopeDraft {
                key: Some("k".to_owned()),
                now,
                ..draft(id, from, to)
            };
            send(tx, &keyed("m1", "1", "2", NOW))?;
            match envelopes::accept_envelope(
                tx,
                &keyed("m2", "1", "2", NOW.plus(IDEMPOTENCY_KEY_TTL_MS - 1)),
            )? {
                EnvelopeVerdict::Repeated(id, state) => {
                    assert_eq!((id.as_str(), state), ("m1", EnvelopeState::Queued));
                }
                other => panic!("{other:?}"),
            }
            send(tx, &keyed("m3", "2", "1", NOW))?;
            send(tx, &keyed("m4", "1", "2", NOW.plus(IDEMPOTENCY_KEY_TTL_MS)))?;
            envelopes::delete_expired_keys(tx, NOW.plus(3 * IDEMPOTENCY_KEY_TTL_MS))?;
            send(tx, &keyed("m5", "1", "2", NOW.plus(IDEMPOTENCY_KEY_TTL_MS + 1)))?;
            assert_eq!(envelopes::search(tx, &EnvelopeFilter::default(), 10)?.len(), 4);
            Ok(())
        })
        .await
    });
}

#[test]
fn hop_count_of_a_response_is_computed_from_its_correlation() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            for n in 0..8_u32 {
                let (from, to) = if n % 2 == 0 { ("1", "2") } else { ("2", "1") };
                let named = if n == 1 { "m0" } else { "c" };
                let sent = EnvelopeDraft {
                    correlation: Some(named.to_owned()),
                    ..draft(&format!("m{n}"), from, to)
                };
                send(tx, &sent)?;
                let hop = envelopes::get(tx, &sent.id)?.unwrap().hop;
                // A message is also answered by its own id.
                assert_eq!(
                    hop,
                    if n == 0 {
                        0
                    } else if n == 1 {
                        1
                    } else {
                        n - 2
                    },
                    "{n}"
                );
            }
            for n in 0..2 {
                let again =
                    EnvelopeDraft { correlation: Some("c".into()), ..draft(&format!("s{n}"), "2", "1") };
                send(tx, &again)?;
                assert_eq!(envelopes::get(tx, &again.id)?.unwrap().hop, 5, "news of one task are no loop");
            }
            Ok(())
        })
        .await
    });
}

#[test]
fn envelope_is_leased_once_and_acknowledged_once() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            send(tx, &draft("m", "1", "2"))?;
            assert_eq!(poll(tx, "2", "l1", NOW)?.len(), 1);
            assert!(poll(tx, "2", "l2", NOW)?.is_empty() && poll(tx, "1", "l3", NOW)?.is_empty());
            let id = EnvelopeId::new("m");
            let again = EnvelopePoll {
                to: InstanceId::new("2"),
                lease: "l1".to_owned(),
                asks_again: true,
                only_answers: true,
                process_epoch: None,
                limit: 10,
                now: NOW,
            };
            let (held, events) = envelopes::lease_due(tx, &again)?;
            assert_eq!(
                (held[0].attempts, events.len()),
                (1, 0),
                "who asks again under their lease gets the same"
            );
            assert!(matches!(envelopes::acknowledge(tx, &id, "l2", NOW)?, AckOutcome::Lost));
            assert!(matches!(envelopes::fail_delivery(tx, &id, "l2", "x", NOW)?, AckOutcome::Lost));
            assert_eq!(envelopes::renew_lease(tx, &id, "l2", NOW)?, None);
            assert_eq!(
                envelopes::renew_lease(tx, &id, "l1", NOW.plus(5))?,
                Some(NOW.plus(5 + ENVELOPE_LEASE_MS))
            );
            assert!(matches!(envelopes::acknowledge(tx, &id, "l1", NOW)?, AckOutcome::Done(..)));
            assert!(matches!(envelopes::acknowledge(tx, &id, "l1", NOW)?, AckOutcome::AlreadySettled(_)));
            assert!(matches!(
                envelopes::acknowledge(tx, &EnvelopeId::new("x"), "l1", NOW)?,
                AckOutcome::Unknown
            ));
            let happened = history(tx, "m")?;
            let expected = [
                EnvelopeEventKind::Created,
                EnvelopeEventKind::Queued,
                EnvelopeEventKind::DeliveryAttempted,
                EnvelopeEventKind::Delivered,
                EnvelopeEventKind::Acknowledged,
            ];
            assert_eq!(happened, expected);
            assert!(
                envelopes::sweep_expired(tx, NOW.plus(IDEMPOTENCY_KEY_TTL_MS), 10)?.is_empty(),
                "it is over"
            );
            Ok(())
        })
        .await
    });
}

#[test]
fn failed_envelope_is_retried_with_backoff_then_dead_lettered() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            send(tx, &draft("m", "1", "2"))?;
            let id = EnvelopeId::new("m");
            poll(tx, "2", "l1", NOW)?;
            assert!(matches!(envelopes::fail_delivery(tx, &id, "l1", "busy", NOW)?, AckOutcome::Done(..)));
            assert_eq!(state(tx, "m")?, EnvelopeState::Failed);
            assert!(poll(tx, "2", "l2", NOW)?.is_empty(), "not at once");
            let due = envelopes::next_due_at(tx, &InstanceId::new("2"))?.unwrap();
            assert!((750..=1_000).contains(&due.since(NOW)));
            assert_eq!(poll(tx, "2", "l2", due)?.len(), 1);
            assert!(envelopes::sweep_expired(tx, due.plus(ENVELOPE_LEASE_MS - 1), 10)?.is_empty());
            envelopes::sweep_expired(tx, due.plus(ENVELOPE_LEASE_MS), 10)?;
            assert_eq!(state(tx, "m")?, EnvelopeState::DeadLetter, "the second of two attempts");
            assert_eq!(
                history(tx, "m")?[4..],
                [
                    EnvelopeEventKind::Failed,
                    EnvelopeEventKind::DeliveryAttempted,
                    EnvelopeEventKind::Delivered,
                    EnvelopeEventKind::Failed,
                    EnvelopeEventKind::DeadLettered
                ]
            );
            let late = due.plus(2 * ENVELOPE_LEASE_MS);
            assert!(matches!(envelopes::replay_dead_letter(tx, &id, late)?, ReplayOutcome::Done(..)));
            assert!(matches!(
                envelopes::replay_dead_letter(tx, &id, late)?,
                ReplayOutcome::NotDead(EnvelopeState::Queued)
            ));
            let one = envelopes::get(tx, &id)?.unwrap();
            assert_eq!((one.attempts, one.error, one.expires_at), (0, None, late.plus(3_600_000)));
            assert_eq!(poll(tx, "2", "l3", late)?.len(), 1);
            Ok(())
        })
        .await
    });
}

#[test]
fn expired_envelope_is_not_leased_and_earlier_epochs_are_requeued() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            send(tx, &draft("old", "1", "2"))?;
            let late = NOW.plus(3_600_000);
            assert!(poll(tx, "2", "l1", late)?.is_empty());
            envelopes::sweep_expired(tx, late, 10)?;
            assert_eq!(state(tx, "old")?, EnvelopeState::DeadLetter);
            send(tx, &draft("new", "1", "2"))?;
            poll(tx, "2", "first life", NOW)?;
            let to = InstanceId::new("2");
            assert!(envelopes::requeue_earlier_epochs(tx, &to, "first life", NOW)?.is_empty());
            assert_eq!(envelopes::requeue_earlier_epochs(tx, &to, "second life", NOW)?.len(), 1);
            assert_eq!(poll(tx, "2", "second life", NOW)?.len(), 1, "at once");
            Ok(())
        })
        .await
    });
}

#[test]
fn envelopes_are_found_by_each_filter() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            for n in 0..4 {
                let (from, to) = if n % 2 == 0 { ("1", "2") } else { ("2", "1") };
                let together = (n < 3).then(|| "c".to_owned());
                let now = NOW.plus(n);
                send(tx, &EnvelopeDraft { correlation: together, now, ..draft(&format!("m{n}"), from, to) })?;
            }
            let ids = |tx: &mut Tx<'_>, filter: EnvelopeFilter| -> Result<Vec<String>> {
                Ok(envelopes::search(tx, &filter, 2)?.into_iter().map(|one| one.id.to_string()).collect())
            };
            let one = || Some(InstanceId::new("1"));
            let of = EnvelopeFilter::default;
            assert_eq!(ids(tx, of())?, ["m3", "m2"], "the newest first");
            assert_eq!(ids(tx, EnvelopeFilter { after_seq: Some(3), ..of() })?, ["m1", "m0"]);
            assert_eq!(
                ids(tx, EnvelopeFilter { correlation: Some("c".into()), ..of() })?,
                ["m0", "m1"],
                "in order"
            );
            send(tx, &EnvelopeDraft { correlation: Some("m3".into()), ..draft("answer", "1", "2") })?;
            let chain = ids(tx, EnvelopeFilter { correlation: Some("m3".into()), ..of() })?;
            assert_eq!(chain, ["m3", "answer"], "with the message it began with");
            assert_eq!(ids(tx, EnvelopeFilter { to: one(), ..of() })?, ["m3", "m1"]);
            assert_eq!(
                ids(tx, EnvelopeFilter { participant: one(), ..of() })?,
                ["answer", "m3"],
                "from it or to it"
            );
            assert!(ids(tx, EnvelopeFilter { participant: Some(InstanceId::new("3")), ..of() })?.is_empty());
            assert_eq!(ids(tx, EnvelopeFilter { from: one(), hop: Some(0), ..of() })?, ["m0"]);
            assert_eq!(
                ids(tx, EnvelopeFilter { after: Some(NOW), before: Some(NOW.plus(2)), ..of() })?,
                ["m1"]
            );
            assert!(ids(tx, EnvelopeFilter { state: Some(EnvelopeState::DeadLetter), ..of() })?.is_empty());
            assert!(ids(tx, EnvelopeFilter { kind: Some("note".into()), ..of() })?.is_empty());
            let reader = EnvelopeEventFilter { instance: one(), correlation: Some("c".into()) };
            let events = envelopes::list_recent_events(tx, &reader, 3)?;
            assert_eq!(
                events.last().map(|event| event.envelope.id.as_str()),
                Some("m2"),
                "the last is the newest"
            );
            assert!(events.len() == 3 && events.iter().all(|event| reader.matches_event(event)));
            Ok(())
        })
        .await
    });
}

#[test]
fn message_events_are_append_only() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            send(tx, &draft("m", "1", "2"))
        })
        .await?;
        for sql in ["UPDATE message_events SET detail = 'x'", "DELETE FROM message_events"] {
            let refused = db.write(move |tx| tx.execute(sql, &[]).map(drop)).await;
            assert!(refused.unwrap_err().to_string().contains("only added to"), "{sql}");
        }
        Ok(())
    });
}

#[test]
fn frequent_envelope_queries_use_indexes() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            let to = InstanceId::new("2");
            let plans = tx.explain_queries(|tx| {
                poll(tx, "2", "l", NOW)?;
                envelopes::next_due_at(tx, &to)?;
                envelopes::sweep_expired(tx, NOW, 10)?;
                envelopes::requeue_earlier_epochs(tx, &to, "life", NOW)?;
                envelopes::list_recipients_to_start(tx)?;
                envelopes::search(
                    tx,
                    &EnvelopeFilter { correlation: Some("c".into()), ..EnvelopeFilter::default() },
                    10,
                )?;
                send(
                    tx,
                    &EnvelopeDraft {
                        correlation: Some("c".into()),
                        key: Some("k".into()),
                        ..draft("m", "1", "2")
                    },
                )
            })?;
            let scans: Vec<_> = plans.iter().filter(|plan| plan.contains("SCAN messages\n")).collect();
            assert!(scans.is_empty(), "{scans:#?}");
            Ok(())
        })
        .await
    });
}
