//! The registry of a control plane, which is SQLite always.

use polyclaw_domain::audit::{AuditChain, AuditEntry};
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::{DesiredState, InstanceName, RestartPolicy, TokenAccess};
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::idempotency::{IdempotencyState, IdempotentCall};
use polyclaw_store::registry::imports::{self, ImportCompletion, ImportState};
use polyclaw_store::registry::tokens::AccessToken;
use polyclaw_store::registry::{
    self, InstanceConflict, InstanceRecord, ProcessId, audit, idempotency, tokens,
};
use polyclaw_store::{Db, Result, Tx};

use crate::engines::drive;
use crate::rows::NOW;

pub fn on_registry<F: Future<Output = Result<()>>>(check: impl FnOnce(Db) -> F) {
    let folder = tempfile::tempdir().unwrap();
    drive(check(Db::open_registry(&folder.path().join("registry.db")).unwrap()));
}

pub fn instance(id: &str, name: &str, port: u16) -> InstanceRecord {
    InstanceRecord {
        id: InstanceId::new(id),
        name: InstanceName::parse(name).unwrap(),
        folder: format!("cp/instances/{id}"),
        port,
        desired_state: DesiredState::Stopped,
        restart: RestartPolicy::OnFailure,
        broken: None,
        pid: None,
        archived_at: None,
        created_at: NOW,
        restarting: false,
    }
}

#[test]
fn names_and_ports_are_unique_among_active_instances() {
    on_registry(|db| async move {
        db.write(|tx| {
            let one = instance("1", "a", 1001);
            assert_eq!(registry::insert(tx, &one)?, None);
            assert_eq!(registry::insert(tx, &instance("2", "a", 1002))?, Some(InstanceConflict::Name));
            assert_eq!(registry::insert(tx, &instance("2", "b", 1001))?, Some(InstanceConflict::Port));
            registry::archive(tx, &one.id, NOW)?;
            assert_eq!(
                registry::insert(tx, &instance("2", "a", 1001))?,
                None,
                "an archived one gives both up"
            );
            assert_eq!(registry::unarchive(tx, &one)?, Some(InstanceConflict::Name));
            let ids = |rows: Vec<InstanceRecord>| {
                rows.into_iter().map(|one| one.id.to_string()).collect::<Vec<_>>()
            };
            assert_eq!(ids(registry::list(tx)?), ["2", "1"], "active ones first");
            let found = |tx: &mut Tx<'_>, word: &str| {
                registry::find_by_id_or_name(tx, word).map(|one| one.map(|one| one.id))
            };
            assert_eq!(found(tx, "a")?, Some(InstanceId::new("2")), "a name means the active one");
            assert_eq!(found(tx, "1")?, Some(InstanceId::new("1")));
            assert!(!registry::set_port(tx, &InstanceId::new("3"), 1001)?);
            Ok(())
        })
        .await
    });
}

#[test]
fn setting_desired_state_closes_breaker_and_clears_crashes() {
    on_registry(|db| async move {
        db.write(|tx| {
            let one = instance("1", "a", 1001);
            registry::insert(tx, &one)?;
            let old = NOW.minus(1000);
            assert_eq!(registry::record_crash(tx, &one.id, "old", old, old)?, [old]);
            assert_eq!(
                registry::record_crash(tx, &one.id, "new", NOW, NOW.minus(1))?,
                [NOW],
                "old ones are forgotten"
            );
            assert_eq!(registry::find_last_crash(tx, &one.id)?, Some((NOW, "new".to_owned())));
            registry::open_breaker(tx, &one.id, "too often")?;
            registry::set_pid(tx, &one.id, Some(ProcessId { number: 7, started: 8 }))?;
            let row = registry::get(tx, &one.id)?.unwrap();
            assert_eq!(
                (row.broken.as_deref(), row.pid),
                (Some("too often"), Some(ProcessId { number: 7, started: 8 }))
            );
            registry::set_desired_state(tx, &one.id, DesiredState::Running)?;
            let row = registry::get(tx, &one.id)?.unwrap();
            assert_eq!((row.broken, row.desired_state), (None, DesiredState::Running));
            assert!(registry::list_crashes(tx, &one.id)?.is_empty());
            Ok(())
        })
        .await
    });
}

#[test]
fn revoked_token_is_not_found_and_instance_has_one_token() {
    on_registry(|db| async move {
        db.write(|tx| {
            let one = instance("1", "a", 1001);
            registry::insert(tx, &one)?;
            let token = |id: &str, instance: Option<&InstanceId>| AccessToken {
                id: id.to_owned(),
                name: "x".to_owned(),
                access: TokenAccess::Operate,
                instance: instance.cloned(),
                created_at: NOW,
                revoked_at: None,
            };
            tokens::insert_or_replace(tx, &token("t", None), "h1")?;
            tokens::insert_or_replace(tx, &token("i1", Some(&one.id)), "h2")?;
            tokens::insert_or_replace(tx, &token("i2", Some(&one.id)), "h3")?;
            assert_eq!(tokens::find_by_hash(tx, "h2")?, None, "the next takes its place");
            assert_eq!(
                tokens::find_by_hash(tx, "h3")?.and_then(|token| token.instance),
                Some(one.id.clone())
            );
            assert_eq!(tokens::list(tx, None, 9)?, [token("t", None)], "instances' own are not listed");
            let behind = Some((NOW, "t".to_owned()));
            assert_eq!(tokens::list(tx, behind, 9)?, [], "nor what comes before");
            assert!(
                tokens::revoke(tx, "t", NOW)?.is_some()
                    && tokens::revoke(tx, "t", NOW)?.is_none()
                    && tokens::revoke(tx, "i2", NOW)?.is_none()
            );
            assert_eq!(tokens::find_by_hash(tx, "h1")?, None);
            registry::remove(tx, &one.id)?;
            assert_eq!(tokens::find_by_hash(tx, "h3")?, None, "they go with their instance");
            Ok(())
        })
        .await
    });
}

#[test]
fn idempotency_key_returns_first_response_until_it_expires() {
    on_registry(|db| async move {
        db.write(|tx| {
            let call = |request: &str| IdempotentCall {
                caller: "c".into(),
                key: "k".into(),
                request: request.into(),
            };
            let begin = |tx: &mut Tx<'_>, request: &str, oldest: Millis| {
                idempotency::begin_call(tx, &call(request), NOW, oldest)
            };
            let old = NOW.minus(1);
            assert_eq!(begin(tx, "r", old)?, IdempotencyState::Started);
            assert_eq!(begin(tx, "r", old)?, IdempotencyState::UnderWay);
            idempotency::record_response(tx, &call("r"), 201, "{}")?;
            assert_eq!(begin(tx, "r", old)?, IdempotencyState::Answered { status: 201, body: "{}".into() });
            assert_eq!(begin(tx, "other", old)?, IdempotencyState::Other);
            assert_eq!(
                begin(tx, "other", NOW.plus(1))?,
                IdempotencyState::Started,
                "what is too old is forgotten"
            );
            idempotency::delete_unfinished(tx)?;
            assert_eq!(begin(tx, "r", old)?, IdempotencyState::Started, "a server that died answers no more");
            idempotency::delete_call(tx, &call("r"))?;
            assert_eq!(begin(tx, "r", old)?, IdempotencyState::Started);
            Ok(())
        })
        .await
    });
}

#[test]
fn audit_entries_form_a_verifiable_chain() {
    on_registry(|db| async move {
        db.write(|tx| {
            for n in 0..5 {
                let entry = AuditEntry {
                    who: "operator".into(),
                    action: "instance.start".into(),
                    target: n.to_string(),
                    before: None,
                    after: None,
                    detail: String::new(),
                    at: NOW,
                };
                audit::append(tx, &entry)?;
            }
            let mut chain = AuditChain::default();
            let links = audit::list_after(tx, 0, 10)?;
            assert!(links.iter().try_for_each(|link| chain.verify_next(link)).is_ok() && chain.len() == 5);
            let latest: Vec<i64> = audit::list_latest(tx, 5, 2)?.iter().map(|link| link.seq).collect();
            assert_eq!(latest, [4, 3]);
            Ok(())
        })
        .await
    });
}

#[test]
fn finished_import_is_found_and_unfinished_one_rolled_back() {
    on_registry(|db| async move {
        db.write(|tx| {
            imports::insert_running(tx, "1", ("/x/openclaw.json", "d"), NOW)?;
            assert_eq!(imports::find_last_done(tx, "/x/openclaw.json", "d")?, None, "it is not done");
            assert_eq!(registry::insert(tx, &instance("i", "a", 1001))?, None);
            let done = ImportCompletion {
                id: "1".into(),
                instance: InstanceId::new("i"),
                report: "{}".into(),
                now: NOW,
            };
            imports::finish_run(tx, &done)?;
            let found = imports::find_last_done(tx, "/x/openclaw.json", "d")?.unwrap();
            assert_eq!((found.state, found.instance), (ImportState::Done, Some(InstanceId::new("i"))));
            assert_eq!(imports::find_last_done(tx, "/x/openclaw.json", "other")?, None, "another config");
            imports::insert_running(tx, "2", ("/y", "d"), NOW)?;
            imports::roll_back_unfinished(tx, NOW)?;
            imports::roll_back(tx, "1", NOW)?;
            let states: Vec<ImportState> =
                imports::list(tx, None, 10)?.into_iter().map(|run| run.state).collect();
            assert_eq!(states, [ImportState::RolledBack, ImportState::Done], "what is done stays done");
            let behind = Some((NOW, "2".to_owned()));
            let rest: Vec<String> = imports::list(tx, behind, 10)?.into_iter().map(|run| run.id).collect();
            assert_eq!(rest, ["1"], "page by page");
            registry::archive(tx, &InstanceId::new("i"), NOW)?;
            registry::remove(tx, &InstanceId::new("i"))?;
            assert_eq!(imports::find_last_done(tx, "/x/openclaw.json", "d")?, None, "its instance is gone");
            Ok(())
        })
        .await
    });
}
