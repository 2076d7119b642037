use std::collections::BTreeSet;

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::backlog::ResumeToken;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{AgentId, MessageId, SessionId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::locale::{ConversationLanguage, LanguageSetting, Locale};
use polyclaw_domain::policy::InheritedTools;
use polyclaw_domain::provider::{ModelRef, ReasoningEffort};
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::time::Millis;
use polyclaw_store::sessions::{self, CompactionPoint, SessionCounts, SessionCursor, SessionFilter};
use polyclaw_store::{Db, Result, backlog, events, jobs, messages, outbox};

use crate::rows::{NOW, agent, job, key, message, parcel, session, turn, with_sessions};

on_every_engine!(
    session_is_created_once_and_round_trips,
    positions_are_allocated_in_order_and_never_twice,
    session_list_applies_its_filters,
    session_pages_stay_stable_while_sessions_change,
    session_counts_include_running_and_waiting_work,
    active_agent_and_model_override_are_set_and_cleared,
    language_choice_and_detected_language_are_stored_independently,
    renewed_session_id_excludes_old_history,
    deleted_session_removes_its_rows_and_keeps_events,
    only_idle_sessions_are_listed_as_unused,
    session_used_again_is_not_deleted_as_unused,
    sessions_of_an_account_are_listed_by_last_use
);

async fn sessions_of_an_account_are_listed_by_last_use(db: Db) -> Result<()> {
    let at = |account: &str| Some(ChatAddress { account: account.into(), ..crate::rows::address() });
    for (n, (peer, address)) in
        [("a", at("one")), ("b", at("two")), ("c", at("one")), ("d", None)].into_iter().enumerate()
    {
        let updated_at = NOW.plus(i64::try_from(n).unwrap_or_default());
        let stored = Session { address, updated_at, ..session(peer) };
        db.write(move |tx| sessions::ensure(tx, &stored)).await?;
    }
    let channel = crate::rows::address().channel;
    let of = async |account: &'static str, limit| {
        let channel = channel.clone();
        let found = db.read(move |tx| sessions::list_by_account(tx, &channel, account, limit)).await?;
        Ok::<_, polyclaw_store::Error>(found.into_iter().map(|session| session.key).collect::<Vec<_>>())
    };
    assert_eq!(of("one", 9).await?, [key("c"), key("a")]);
    assert_eq!(of("one", 1).await?, [key("c")]);
    assert_eq!(of("three", 9).await?, []);
    Ok(())
}

async fn session_is_created_once_and_round_trips(db: Db) -> Result<()> {
    let whole = Session {
        language: ConversationLanguage {
            chosen: Some(LanguageSetting::Auto),
            detected: Some(Locale::Chinese),
        },
        owner: Some(key("owner")),
        lane: JobLane::Subagent,
        spawn_depth: 2,
        delegation_depth: 3,
        delivers: false,
        sends: false,
        address: Some(ChatAddress { thread: Some("7".into()), ..crate::rows::address() }),
        title: Some("Grüße, 世界 🦀".into()),
        model_override: Some(ModelRef::parse("lab/big/one").unwrap()),
        team_role: Some(TeamRole::Member),
        thinking: Some(ReasoningEffort::Low),
        inherited: Some(InheritedTools {
            tools: ["read_file".to_owned(), "shell".to_owned()].into(),
            asks: ["shell".to_owned()].into(),
            sandbox: SandboxMode::Strict,
            authority: None,
        }),
        ..session("p")
    };
    let first = whole.clone();
    assert_eq!(db.write(move |tx| sessions::ensure(tx, &first)).await?, whole);
    let second = Session { id: SessionId::new("another"), ..session("p") };
    assert_eq!(db.write(move |tx| sessions::ensure(tx, &second)).await?, whole);
    assert_eq!(db.read(|tx| sessions::get(tx, &key("p"))).await?, Some(whole));
    assert_eq!(db.read(|tx| sessions::get(tx, &key("nobody"))).await?, None);
    assert_eq!(db.read(sessions::get_counts).await?.sessions, 1);
    Ok(())
}

async fn positions_are_allocated_in_order_and_never_twice(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    let take = |peer: &'static str, count| {
        let db = db.clone();
        async move { db.write(move |tx| sessions::allocate_positions(tx, &key(peer), count, NOW)).await }
    };
    assert_eq!(take("p", 1).await?, Some(1));
    assert_eq!(take("p", 3).await?, Some(2));
    assert_eq!(take("q", 1).await?, Some(1), "a session has its own");
    assert_eq!(take("nobody", 1).await?, None);
    let all: Vec<_> = (0..32).map(|_| tokio::spawn(take("p", 2))).collect();
    let mut firsts = BTreeSet::new();
    for one in all {
        firsts.insert(one.await.unwrap()?.unwrap());
    }
    assert_eq!(firsts, (0..32).map(|n| 5 + 2 * n).collect());
    Ok(())
}

async fn session_list_applies_its_filters(db: Db) -> Result<()> {
    with_sessions(&db, &["a", "z"]).await?;
    db.write(move |tx| {
        let ops = agent("ops");
        let archived = Session {
            key: SessionKey::main(&ops),
            agent: ops.clone(),
            active_agent: ops,
            status: SessionStatus::Archived,
            owner: Some(key("z")),
            ..session("x")
        };
        sessions::ensure(tx, &archived).map(drop)
    })
    .await?;
    let all = SessionFilter { limit: 100, ..SessionFilter::default() };
    assert_eq!(keys(&db, all.clone()).await?.len(), 3);
    let only = vec!["agent:ops:main".to_owned()];
    assert_eq!(keys(&db, SessionFilter { agent: Some(agent("ops")), ..all.clone() }).await?, only);
    assert_eq!(
        keys(&db, SessionFilter { status: Some(SessionStatus::Archived), ..all.clone() }).await?,
        only
    );
    assert_eq!(keys(&db, SessionFilter { owner: Some(key("z")), ..all.clone() }).await?, only);
    let none = SessionFilter { agent: Some(AgentId::main()), status: Some(SessionStatus::Archived), ..all };
    assert!(keys(&db, none).await?.is_empty());
    Ok(())
}

async fn session_pages_stay_stable_while_sessions_change(db: Db) -> Result<()> {
    // Three of one moment, told apart by the bytes of their keys, and an older one.
    let peers = [("a_b", 5), ("ab", 5), ("a-b", 5), ("é", 1)];
    for (peer, at) in peers {
        let made = Session { updated_at: NOW.plus(at), ..session(peer) };
        db.write(move |tx| sessions::ensure(tx, &made)).await?;
    }
    let mut expected: Vec<_> = ["a_b", "ab", "a-b"].map(|peer| key(peer).to_string()).to_vec();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    expected.push(key("é").to_string());
    let first = SessionFilter { limit: 2, ..SessionFilter::default() };
    let page = db.read({
        let first = first.clone();
        move |tx| sessions::list(tx, &first)
    });
    let page = page.await?;
    let after = page.last().map(SessionCursor::from_session);
    db.write(|tx| {
        sessions::ensure(tx, &Session { updated_at: NOW.plus(9), ..session("came in between") })?;
        sessions::allocate_positions(tx, &key("ab"), 1, NOW.plus(9))
    })
    .await?;
    let mut seen: Vec<_> = page.iter().map(|session| session.key.to_string()).collect();
    seen.extend(keys(&db, SessionFilter { after, ..first.clone() }).await?);
    assert_eq!(seen, expected, "none twice, none left out");
    assert_eq!(keys(&db, first).await?, [key("came in between").to_string(), key("ab").to_string()]);
    Ok(())
}

async fn session_counts_include_running_and_waiting_work(db: Db) -> Result<()> {
    assert_eq!(db.read(sessions::get_counts).await?, SessionCounts::default());
    with_sessions(&db, &["p", "q"]).await?;
    db.write(|tx| {
        jobs::insert(tx, &job("1", "p"))?;
        let token = ResumeToken { message_id: MessageId::new("m"), turn_id: turn("1"), steer_count: 1 };
        backlog::push(tx, &key("q"), &token, NOW)
    })
    .await?;
    assert_eq!(db.read(sessions::get_counts).await?, SessionCounts { sessions: 2, running: 0, waiting: 2 });
    Ok(())
}

async fn keys(db: &Db, filter: SessionFilter) -> Result<Vec<String>> {
    let found = db.read(move |tx| sessions::list(tx, &filter)).await?;
    Ok(found.into_iter().map(|session| session.key.to_string()).collect())
}

async fn active_agent_and_model_override_are_set_and_cleared(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let model = ModelRef { provider: "openai".into(), model: "gpt-5-mini".into() };
    let picked = model.clone();
    let now = NOW.plus(5);
    let set = db.write(move |tx| {
        Ok(sessions::set_agent(tx, &key("p"), &agent("ops"), now)?
            && sessions::set_model(tx, &key("p"), Some(&picked), now)?)
    });
    assert!(set.await?);
    let stored = db.read(|tx| sessions::get(tx, &key("p"))).await?.unwrap();
    assert_eq!((stored.active_agent, stored.agent), (agent("ops"), AgentId::main()));
    assert_eq!((stored.model_override, stored.updated_at), (Some(model), now));
    assert!(db.write(|tx| sessions::set_model(tx, &key("p"), None, NOW)).await?);
    assert_eq!(db.read(|tx| sessions::get(tx, &key("p"))).await?.unwrap().model_override, None);
    assert!(!db.write(|tx| sessions::set_model(tx, &key("nobody"), None, NOW)).await?);
    Ok(())
}

async fn renewed_session_id_excludes_old_history(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let summary = CompactionPoint { summary: Some("so far".into()), through: 3 };
    let stored = summary.clone();
    db.write(move |tx| {
        sessions::allocate_positions(tx, &key("p"), 7, NOW)?;
        sessions::set_compaction(tx, &key("p"), &SessionId::new("another"), &CompactionPoint::default())?;
        sessions::set_compaction(tx, &key("p"), &session("p").id, &stored)
    })
    .await?;
    let stands = |tx: &mut polyclaw_store::Tx<'_>| Ok(sessions::get_snapshot(tx, &key("p"))?.unwrap());
    let folded = db.read(stands).await?;
    assert_eq!((folded.uncompacted_tickets(), folded.compaction), (5, summary));
    assert!(db.write(|tx| sessions::renew_session_id(tx, &key("p"), &SessionId::new("p-2"), NOW)).await?);
    let fresh = db.read(stands).await?;
    assert_eq!(
        (fresh.uncompacted_tickets(), fresh.compaction),
        (1, CompactionPoint { summary: None, through: 7 })
    );
    assert_eq!(db.read(|tx| sessions::get(tx, &key("p"))).await?.unwrap().id, SessionId::new("p-2"));
    assert!(db.read(|tx| sessions::get_snapshot(tx, &key("nobody"))).await?.is_none());
    let entered = db.write(|tx| sessions::allocate_and_get_snapshot(tx, &key("p"), 2, NOW)).await?.unwrap();
    assert_eq!((entered.next_ticket, entered.session.id.as_str()), (10, "p-2"));
    assert!(db.write(|tx| sessions::allocate_and_get_snapshot(tx, &key("nobody"), 2, NOW)).await?.is_none());
    Ok(())
}

async fn deleted_session_removes_its_rows_and_keeps_events(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    db.write(|tx| {
        for peer in ["p", "q"] {
            messages::insert(tx, &message(&format!("m-{peer}"), peer, 1, peer))?;
            jobs::insert(tx, &job(peer, peer))?;
            let token = ResumeToken {
                message_id: MessageId::new(format!("m-{peer}")),
                turn_id: turn(peer),
                steer_count: 1,
            };
            backlog::push(tx, &key(peer), &token, NOW)?;
            outbox::push(tx, &parcel(peer, peer))?;
        }
        let event = NewEvent {
            kind: EventKind::TurnFailed,
            session: Some(key("p")),
            turn: None,
            agent: None,
            trace: None,
            data: serde_json::Value::Null,
        };
        events::record(tx, &event, NOW)
    })
    .await?;
    assert!(db.write(|tx| sessions::delete(tx, &key("p"))).await?);
    assert!(!db.write(|tx| sessions::delete(tx, &key("p"))).await?);
    db.read(|tx| {
        assert!(messages::get(tx, &MessageId::new("m-p"))?.is_none());
        assert!(jobs::get(tx, &turn("p"))?.is_none());
        assert!(!backlog::has_waiting(tx, &key("p"))?);
        assert_eq!(outbox::list(tx, None, "", 9)?.len(), 2);
        assert_eq!(events::list(tx, 0, None, Some(&key("p")), 9)?.len(), 1);
        assert!(messages::get(tx, &MessageId::new("m-q"))?.is_some());
        assert!(backlog::has_waiting(tx, &key("q"))?);
        Ok(())
    })
    .await
}

async fn unused(db: &Db, before: i64, kept: usize) -> Result<Vec<String>> {
    let found = db.read(move |tx| sessions::list_unused(tx, Millis(before), kept, 100)).await?;
    Ok(found.into_iter().map(|one| one.key.parts().pop().unwrap_or_default()).collect())
}

async fn only_idle_sessions_are_listed_as_unused(db: Db) -> Result<()> {
    for name in ["old", "queued", "waiting", "sending", "parent", "new"] {
        let updated_at = Millis(if name == "new" { 2_000 } else { 100 });
        let made = Session { updated_at, ..session(name) };
        db.write(move |tx| sessions::ensure(tx, &made)).await?;
    }
    let child = Session { owner: Some(key("parent")), updated_at: Millis(2_000), ..session("child") };
    db.write(move |tx| sessions::ensure(tx, &child)).await?;
    for (id, name) in [("t1", "queued"), ("t2", "child")] {
        db.write(move |tx| jobs::insert(tx, &job(id, name))).await?;
    }
    db.write(|tx| {
        let token = ResumeToken { message_id: MessageId::new("m"), turn_id: turn("t"), steer_count: 1 };
        backlog::push(tx, &key("waiting"), &token, Millis(1))?;
        outbox::push(tx, &parcel("o1", "sending"))
    })
    .await?;
    assert_eq!(unused(&db, 1_000, 100).await?, ["old"]);
    assert_eq!(unused(&db, 0, 100).await?, [] as [&str; 0]);
    assert_eq!(unused(&db, 0, 1).await?, ["old"], "one is kept");
    assert_eq!(unused(&db, 0, 0).await?, ["old", "new"], "none is");
    Ok(())
}

async fn session_used_again_is_not_deleted_as_unused(db: Db) -> Result<()> {
    db.write(|tx| sessions::ensure(tx, &session("p"))).await?;
    let seen = db.read(|tx| sessions::list_unused(tx, NOW.plus(1), 100, 100)).await?.remove(0);
    db.write(|tx| sessions::allocate_positions(tx, &key("p"), 1, NOW.plus(5))).await?;
    let again = seen.clone();
    assert!(!db.write(move |tx| sessions::delete_unused(tx, &again)).await?, "something was said meanwhile");
    let seen = sessions::UnusedSession { updated_at: NOW.plus(5), ..seen };
    db.write(|tx| jobs::insert(tx, &job("t", "p"))).await?;
    let again = seen.clone();
    assert!(!db.write(move |tx| sessions::delete_unused(tx, &again)).await?, "something waits there");
    db.write(|tx| tx.execute("DELETE FROM jobs", &[])).await?;
    assert!(db.write(move |tx| sessions::delete_unused(tx, &seen)).await?);
    Ok(())
}

async fn language_choice_and_detected_language_are_stored_independently(db: Db) -> Result<()> {
    let stored = db.write(|tx| sessions::ensure(tx, &session("a"))).await?;
    assert_eq!(stored.language, ConversationLanguage::default());
    db.write(|tx| sessions::set_detected_language(tx, &key("a"), Locale::Chinese)).await?;
    let changed =
        db.write(|tx| sessions::set_language(tx, &key("a"), LanguageSetting::English, NOW.plus(1))).await?;
    assert!(changed);
    let found = db.read(|tx| sessions::get(tx, &key("a"))).await?.unwrap();
    let expected =
        ConversationLanguage { chosen: Some(LanguageSetting::English), detected: Some(Locale::Chinese) };
    assert_eq!(found.language, expected);
    let snapshot = db.read(|tx| sessions::get_snapshot(tx, &key("a"))).await?.unwrap();
    assert_eq!((snapshot.session.language, snapshot.next_ticket), (expected, 1));
    Ok(())
}
