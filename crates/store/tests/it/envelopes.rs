//! Messages between instances, in the registry.

use polyclaw_domain::envelope::{
    ENVELOPE_LEASE_MS, EnvelopeEventKind, EnvelopeKindPattern, EnvelopeState, IDEMPOTENCY_KEY_TTL_MS,
};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::{
    self, Draft, Envelope, Filter, Payload, Poll, Reader, Refused, Replayed, Settled, Verdict,
};
use polyclaw_store::registry::rules::{self, Rule};
use polyclaw_store::registry::{self};
use polyclaw_store::{Result, Tx};

use crate::registry::{instance, on_registry};
use crate::rows::NOW;

fn rule(id: &str, from: &str, to: &str, kind: &str) -> Rule {
    Rule {
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

fn draft(id: &str, from: &str, to: &str) -> Draft {
    Draft {
        id: EnvelopeId::new(id),
        from: from.to_owned(),
        to: to.to_owned(),
        kind: "task.handoff".to_owned(),
        payload: Payload::Clean { json: "{}".to_owned(), redacted: false },
        correlation: None,
        key: None,
        hop: 0,
        trace: None,
        now: NOW,
    }
}

/// Two instances that may write tasks to each other.
fn two(tx: &mut Tx<'_>) -> Result<()> {
    registry::add(tx, &instance("1", "a", 1001))?;
    registry::add(tx, &instance("2", "b", 1002))?;
    rules::add(tx, &rule("r1", "1", "2", "task.*"))?;
    rules::add(tx, &rule("r2", "2", "1", "task.*")).map(drop)
}

fn send(tx: &mut Tx<'_>, draft: &Draft) -> Result<()> {
    assert!(matches!(envelopes::accept(tx, draft)?, Verdict::Accepted(..)), "{draft:?}");
    Ok(())
}

fn poll(tx: &mut Tx<'_>, to: &str, lease: &str, now: Millis) -> Result<Vec<Envelope>> {
    let (to, lease) = (InstanceId::new(to), lease.to_owned());
    let poll =
        Poll { to, life: Some(lease.clone()), lease, asks_again: false, only_answers: false, limit: 10, now };
    envelopes::lease(tx, &poll).map(|(taken, _)| taken)
}

fn state(tx: &mut Tx<'_>, id: &str) -> Result<EnvelopeState> {
    Ok(envelopes::get(tx, &EnvelopeId::new(id))?.unwrap().state)
}

fn history(tx: &mut Tx<'_>, id: &str) -> Result<Vec<EnvelopeEventKind>> {
    let one = envelopes::get(tx, &EnvelopeId::new(id))?.unwrap();
    Ok(envelopes::history(tx, &one)?.into_iter().map(|event| event.kind).collect())
}

#[test]
fn what_is_wrong_with_a_message_is_said_in_one_order() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            registry::add(tx, &instance("3", "gone", 1003))?;
            registry::archive(tx, &InstanceId::new("3"), NOW)?;
            let large = || Payload::TooLarge(70_000);
            let no_rule = Refused::NoRule { from: "a".into(), to: "b".into(), kind: "note".into() };
            for (wrong, expected) in [
                (
                    Draft { to: "nobody".into(), payload: large(), hop: 8, ..draft("m", "1", "2") },
                    Refused::Unknown("nobody".into()),
                ),
                (draft("m", "nobody", "2"), Refused::Unknown("nobody".into())),
                (draft("m", "1", "gone"), Refused::Archived("gone".into())),
                (
                    Draft { payload: large(), hop: 8, kind: "note".into(), ..draft("m", "a", "b") },
                    Refused::TooLarge(70_000),
                ),
                (Draft { hop: 8, kind: "note".into(), ..draft("m", "a", "b") }, Refused::TooManyHops(8)),
                (Draft { kind: "note".into(), ..draft("m", "a", "b") }, no_rule),
            ] {
                match envelopes::accept(tx, &wrong)? {
                    Verdict::Refused(refused) => assert_eq!(refused, expected),
                    other => panic!("{other:?}"),
                }
            }
            assert!(envelopes::search(tx, &Filter::default(), 10)?.is_empty());
            Ok(())
        })
        .await
    });
}

#[test]
fn the_closest_rule_counts_and_there_is_one_for_each_pair_and_type() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            assert!(!rules::add(tx, &rule("r3", "1", "2", "task.*"))?, "there is one already");
            let exact = Rule { max_retries: 9, ttl_secs: 7, ..rule("r4", "1", "2", "task.handoff") };
            assert!(rules::add(tx, &exact)?);
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
fn a_key_stands_for_one_message_of_its_sender_for_a_day() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            let keyed = |id: &str, from: &str, to: &str, now| Draft {
                key: Some("k".to_owned()),
                now,
                ..draft(id, from, to)
            };
            send(tx, &keyed("m1", "1", "2", NOW))?;
            match envelopes::accept(tx, &keyed("m2", "1", "2", NOW.plus(IDEMPOTENCY_KEY_TTL_MS - 1)))? {
                Verdict::Repeated(id, state) => {
                    assert_eq!((id.as_str(), state), ("m1", EnvelopeState::Queued))
                }
                other => panic!("{other:?}"),
            }
            send(tx, &keyed("m3", "2", "1", NOW))?;
            send(tx, &keyed("m4", "1", "2", NOW.plus(IDEMPOTENCY_KEY_TTL_MS)))?;
            envelopes::forget_keys(tx, NOW.plus(3 * IDEMPOTENCY_KEY_TTL_MS))?;
            send(tx, &keyed("m5", "1", "2", NOW.plus(IDEMPOTENCY_KEY_TTL_MS + 1)))?;
            assert_eq!(envelopes::search(tx, &Filter::default(), 10)?.len(), 4);
            Ok(())
        })
        .await
    });
}

#[test]
fn an_answer_is_one_hop_further_than_what_it_answers_whatever_it_says() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            for n in 0..8_u32 {
                let (from, to) = if n % 2 == 0 { ("1", "2") } else { ("2", "1") };
                let named = if n == 1 { "m0" } else { "c" };
                let sent = Draft { correlation: Some(named.to_owned()), ..draft(&format!("m{n}"), from, to) };
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
                let again = Draft { correlation: Some("c".into()), ..draft(&format!("s{n}"), "2", "1") };
                send(tx, &again)?;
                assert_eq!(envelopes::get(tx, &again.id)?.unwrap().hop, 5, "news of one task are no loop");
            }
            Ok(())
        })
        .await
    });
}

#[test]
fn a_message_is_handed_to_one_and_acknowledged_once() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            send(tx, &draft("m", "1", "2"))?;
            assert_eq!(poll(tx, "2", "l1", NOW)?.len(), 1);
            assert!(poll(tx, "2", "l2", NOW)?.is_empty() && poll(tx, "1", "l3", NOW)?.is_empty());
            let id = EnvelopeId::new("m");
            let again = Poll {
                to: InstanceId::new("2"),
                lease: "l1".to_owned(),
                asks_again: true,
                only_answers: true,
                life: None,
                limit: 10,
                now: NOW,
            };
            let (held, told) = envelopes::lease(tx, &again)?;
            assert_eq!(
                (held[0].attempts, told.len()),
                (1, 0),
                "who asks again under their lease gets the same"
            );
            assert!(matches!(envelopes::acknowledge(tx, &id, "l2", NOW)?, Settled::Lost));
            assert!(matches!(envelopes::fail(tx, &id, "l2", "x", NOW)?, Settled::Lost));
            assert_eq!(envelopes::renew(tx, &id, "l2", NOW)?, None);
            assert_eq!(envelopes::renew(tx, &id, "l1", NOW.plus(5))?, Some(NOW.plus(5 + ENVELOPE_LEASE_MS)));
            assert!(matches!(envelopes::acknowledge(tx, &id, "l1", NOW)?, Settled::Done(..)));
            assert!(matches!(envelopes::acknowledge(tx, &id, "l1", NOW)?, Settled::Before(_)));
            assert!(matches!(
                envelopes::acknowledge(tx, &EnvelopeId::new("x"), "l1", NOW)?,
                Settled::Unknown
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
            assert!(envelopes::sweep(tx, NOW.plus(IDEMPOTENCY_KEY_TTL_MS), 10)?.is_empty(), "it is over");
            Ok(())
        })
        .await
    });
}

#[test]
fn what_fails_comes_back_later_and_is_given_up_after_its_attempts() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            send(tx, &draft("m", "1", "2"))?;
            let id = EnvelopeId::new("m");
            poll(tx, "2", "l1", NOW)?;
            assert!(matches!(envelopes::fail(tx, &id, "l1", "busy", NOW)?, Settled::Done(..)));
            assert_eq!(state(tx, "m")?, EnvelopeState::Failed);
            assert!(poll(tx, "2", "l2", NOW)?.is_empty(), "not at once");
            let due = envelopes::next_due(tx, &InstanceId::new("2"))?.unwrap();
            assert!((750..=1_000).contains(&due.since(NOW)));
            assert_eq!(poll(tx, "2", "l2", due)?.len(), 1);
            assert!(envelopes::sweep(tx, due.plus(ENVELOPE_LEASE_MS - 1), 10)?.is_empty());
            envelopes::sweep(tx, due.plus(ENVELOPE_LEASE_MS), 10)?;
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
            assert!(matches!(envelopes::replay(tx, &id, late)?, Replayed::Done(..)));
            assert!(matches!(envelopes::replay(tx, &id, late)?, Replayed::NotDead(EnvelopeState::Queued)));
            let one = envelopes::get(tx, &id)?.unwrap();
            assert_eq!((one.attempts, one.error, one.expires_at), (0, None, late.plus(3_600_000)));
            assert_eq!(poll(tx, "2", "l3", late)?.len(), 1);
            Ok(())
        })
        .await
    });
}

#[test]
fn nobody_is_handed_what_is_too_old_and_an_earlier_life_holds_nothing() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            send(tx, &draft("old", "1", "2"))?;
            let late = NOW.plus(3_600_000);
            assert!(poll(tx, "2", "l1", late)?.is_empty());
            envelopes::sweep(tx, late, 10)?;
            assert_eq!(state(tx, "old")?, EnvelopeState::DeadLetter);
            send(tx, &draft("new", "1", "2"))?;
            poll(tx, "2", "first life", NOW)?;
            let to = InstanceId::new("2");
            assert!(envelopes::take_over(tx, &to, "first life", NOW)?.is_empty());
            assert_eq!(envelopes::take_over(tx, &to, "second life", NOW)?.len(), 1);
            assert_eq!(poll(tx, "2", "second life", NOW)?.len(), 1, "at once");
            Ok(())
        })
        .await
    });
}

#[test]
fn messages_are_found_by_what_is_known_of_them() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            for n in 0..4 {
                let (from, to) = if n % 2 == 0 { ("1", "2") } else { ("2", "1") };
                let together = (n < 3).then(|| "c".to_owned());
                let now = NOW.plus(n);
                send(tx, &Draft { correlation: together, now, ..draft(&format!("m{n}"), from, to) })?;
            }
            let ids = |tx: &mut Tx<'_>, filter: Filter| -> Result<Vec<String>> {
                Ok(envelopes::search(tx, &filter, 2)?.into_iter().map(|one| one.id.to_string()).collect())
            };
            let one = || Some(InstanceId::new("1"));
            let of = Filter::default;
            assert_eq!(ids(tx, of())?, ["m3", "m2"], "the newest first");
            assert_eq!(ids(tx, Filter { place: Some(3), ..of() })?, ["m1", "m0"]);
            assert_eq!(ids(tx, Filter { correlation: Some("c".into()), ..of() })?, ["m0", "m1"], "in order");
            send(tx, &Draft { correlation: Some("m3".into()), ..draft("answer", "1", "2") })?;
            let chain = ids(tx, Filter { correlation: Some("m3".into()), ..of() })?;
            assert_eq!(chain, ["m3", "answer"], "with the message it began with");
            assert_eq!(ids(tx, Filter { to: one(), ..of() })?, ["m3", "m1"]);
            assert_eq!(ids(tx, Filter { of: one(), ..of() })?, ["answer", "m3"], "from it or to it");
            assert!(ids(tx, Filter { of: Some(InstanceId::new("3")), ..of() })?.is_empty());
            assert_eq!(ids(tx, Filter { from: one(), hop: Some(0), ..of() })?, ["m0"]);
            assert_eq!(ids(tx, Filter { after: Some(NOW), before: Some(NOW.plus(2)), ..of() })?, ["m1"]);
            assert!(ids(tx, Filter { state: Some(EnvelopeState::DeadLetter), ..of() })?.is_empty());
            assert!(ids(tx, Filter { kind: Some("note".into()), ..of() })?.is_empty());
            let reader = Reader { instance: one(), correlation: Some("c".into()) };
            let told = envelopes::recent(tx, &reader, 3)?;
            assert_eq!(
                told.last().map(|event| event.about.id.as_str()),
                Some("m2"),
                "the last is the newest"
            );
            assert!(told.len() == 3 && told.iter().all(|event| reader.wants(event)));
            Ok(())
        })
        .await
    });
}

#[test]
fn events_are_only_added_to() {
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
fn what_is_asked_for_often_is_found_by_an_index() {
    on_registry(|db| async move {
        db.write(|tx| {
            two(tx)?;
            let to = InstanceId::new("2");
            let plans = tx.explained(|tx| {
                poll(tx, "2", "l", NOW)?;
                envelopes::next_due(tx, &to)?;
                envelopes::sweep(tx, NOW, 10)?;
                envelopes::take_over(tx, &to, "life", NOW)?;
                envelopes::waking(tx)?;
                envelopes::search(tx, &Filter { correlation: Some("c".into()), ..Filter::default() }, 10)?;
                send(
                    tx,
                    &Draft { correlation: Some("c".into()), key: Some("k".into()), ..draft("m", "1", "2") },
                )
            })?;
            let scans: Vec<_> = plans.iter().filter(|plan| plan.contains("SCAN messages\n")).collect();
            assert!(scans.is_empty(), "{scans:#?}");
            Ok(())
        })
        .await
    });
}
