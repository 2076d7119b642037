//! The file of memories, which is SQLite always.

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::id::{AgentId, MemoryId};
use polyclaw_domain::memory::{MemoryEntry, MemoryViewer};
use polyclaw_domain::recall::MemorySeq;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::memory::{self, MemoryListFilter, QuantizedVector};
use polyclaw_store::{Db, Error, Result, Tx, integrity};
use proptest::prelude::*;

use crate::engines::drive;
use crate::rows::{NOW, agent};

fn on_brain<F: Future<Output = Result<()>>>(check: impl FnOnce(Db) -> F) {
    let folder = tempfile::tempdir().unwrap();
    drive(check(Db::open_memory_db(&folder.path().join("brain.db")).unwrap()));
}

fn memory(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry {
        id: MemoryId::new(id),
        agent: AgentId::main(),
        session: SessionKey::main(&AgentId::main()),
        scope: MemoryScope::Agent,
        key: id.to_owned(),
        kind: "fact".to_owned(),
        content: content.to_owned(),
        metadata: serde_json::Map::new(),
        created_at: NOW,
        updated_at: NOW,
    }
}

fn viewer() -> MemoryViewer {
    let agent = AgentId::main();
    let session = SessionKey::main(&agent);
    MemoryViewer { agent, session, scope: MemoryScope::Agent, kinds: vec![] }
}

async fn put(db: &Db, memory: MemoryEntry) -> Result<memory::MemoryUpsert> {
    db.write(move |tx| memory::upsert(tx, &memory)).await
}

/// What a viewer finds by words, through every gate.
fn found(tx: &mut Tx<'_>, viewer: &MemoryViewer, text: &str) -> Result<Vec<String>> {
    let owners = memory::list_visible_owners(tx, viewer)?;
    let seqs = memory::search_by_words(tx, &owners, text, 50)?;
    let mut rows = memory::fetch_visible(tx, viewer, &seqs)?;
    rows.sort_by_key(|(seq, _)| seqs.iter().position(|found| found == seq));
    Ok(rows.into_iter().map(|(_, memory)| memory.id.to_string()).collect())
}

async fn finds(db: &Db, text: &'static str) -> Result<Vec<String>> {
    db.read(move |tx| found(tx, &viewer(), text)).await
}

#[test]
fn word_index_follows_insert_update_and_delete() {
    on_brain(|db| async move {
        let first = put(&db, memory("tea", "She drinks green tea in the morning")).await?;
        put(&db, memory("dog", "The dog is called Rufus")).await?;
        assert_eq!(finds(&db, "what tea does she drink?").await?, ["tea"], "words are found by their stem");
        let later = MemoryEntry {
            id: MemoryId::new("other"),
            updated_at: NOW.plus(9),
            ..memory("x", "She drinks coffee now")
        };
        let again = put(&db, MemoryEntry { key: "tea".into(), ..later }).await?;
        assert_eq!((again.seq, again.id.as_str(), again.replaced), (first.seq, "tea", true));
        assert!(finds(&db, "green morning").await?.is_empty(), "the words of before are gone");
        assert_eq!(finds(&db, "coffee").await?, ["tea"]);
        let stored = db.read(|tx| memory::get(tx, &MemoryId::new("tea"))).await?.unwrap();
        assert_eq!((stored.created_at, stored.updated_at), (NOW, NOW.plus(9)));
        assert_eq!(db.write(|tx| memory::delete(tx, &MemoryId::new("tea"))).await?, Some(first.seq));
        assert!(finds(&db, "coffee").await?.is_empty());
        assert_eq!(db.write(|tx| memory::delete(tx, &MemoryId::new("tea"))).await?, None);
        assert_eq!(finds(&db, "Rufus").await?, ["dog"]);
        Ok(())
    });
}

#[test]
fn word_search_ignores_accents_and_handles_scripts_without_spaces() {
    on_brain(|db| async move {
        put(&db, memory("cafe", "Notre café préféré est à Besançon")).await?;
        put(&db, memory("beijing", "我住在北京朝阳区，养了一只猫")).await?;
        put(&db, memory("tokyo", "東京タワーの近くで働いています")).await?;
        put(&db, memory("seoul", "서울에서 김치를 만들어요")).await?;
        for (asked, wanted) in [
            ("cafe besancon", "cafe"),
            ("CAFÉ", "cafe"),
            ("你住在北京哪里？", "beijing"),
            ("猫", "beijing"),
            ("東京で働く", "tokyo"),
            ("タワー", "tokyo"),
            ("김치", "seoul"),
        ] {
            assert_eq!(db.read(move |tx| found(tx, &viewer(), asked)).await?, [wanted], "{asked}");
        }
        Ok(())
    });
}

#[test]
fn query_syntax_characters_do_not_break_word_search() {
    on_brain(|db| async move {
        put(&db, memory("a", "plain words")).await?;
        for asked in [
            "\"",
            "terms:",
            "AND OR NOT",
            "a* ^b -c",
            "NEAR(words plain)",
            "words\" OR owner:\"o1",
            "\u{0}",
            "(((",
            "猫*",
        ] {
            db.read(move |tx| found(tx, &viewer(), asked)).await?;
        }
        assert_eq!(finds(&db, "NEAR(words plain)").await?, ["a"]);
        Ok(())
    });
}

#[test]
fn memory_is_pending_until_its_current_text_has_a_vector() {
    on_brain(|db| async move {
        let first = put(&db, memory("a", "one")).await?;
        put(&db, memory("b", "two")).await?;
        let waiting = db.read(|tx| memory::list_pending_embeddings(tx, 10)).await?;
        assert_eq!(waiting.iter().map(|w| w.content.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        put(&db, MemoryEntry { updated_at: NOW.plus(1), ..memory("a", "one, changed") }).await?;
        let stale = waiting[0].clone();
        let vector = QuantizedVector { scale: 0.5, values: vec![1, -127, 0] };
        let kept = vector.clone();
        assert!(
            !db.write(move |tx| memory::store_vector(tx, &stale, "m1", &kept)).await?,
            "its text has changed"
        );
        for waiting in db.read(|tx| memory::list_pending_embeddings(tx, 10)).await? {
            let kept = vector.clone();
            assert!(db.write(move |tx| memory::store_vector(tx, &waiting, "m1", &kept)).await?);
        }
        assert!(db.read(|tx| memory::list_pending_embeddings(tx, 10)).await?.is_empty());
        let scanned = db.read(|tx| scanned(tx, "m1", 3)).await?;
        assert_eq!(scanned[1], (first.seq, first.owner, 0.5, vec![1, 129, 0]));
        assert_eq!(
            db.write(|tx| memory::requeue_other_models(tx, "m2")).await?,
            2,
            "another model: all are made again"
        );
        assert_eq!(db.read(|tx| memory::list_pending_embeddings(tx, 10)).await?.len(), 2);
        assert_eq!(db.read(|tx| scanned_count(tx, "m2", 3)).await?, 0);
        put(&db, MemoryEntry { updated_at: NOW.plus(2), ..memory("b", "two, changed") }).await?;
        assert_eq!(
            db.read(|tx| scanned_count(tx, "m1", 3)).await?,
            1,
            "a vector goes with the text it was made of"
        );
        let counts = db.read(|tx| memory::get_counts(tx, Some("m1"))).await?;
        assert_eq!((counts.memories, counts.pending, counts.embedded), (2, 2, 1));
        db.write(|tx| memory::delete(tx, &MemoryId::new("a"))).await?;
        assert_eq!(
            db.read(|tx| memory::get_counts(tx, Some("m1"))).await?,
            memory::MemoryCounts { memories: 1, pending: 1, embedded: 0 }
        );
        Ok(())
    });
}

type Scanned = (MemorySeq, i64, f32, Vec<u8>);

fn scanned(tx: &mut Tx<'_>, model: &str, dim: usize) -> Result<Vec<Scanned>> {
    let mut all = Vec::new();
    memory::scan_vectors(tx, model, dim, 100, |seq, owner, scale, bytes| {
        all.push((seq, owner, scale, bytes.to_vec()));
    })?;
    Ok(all)
}

fn scanned_count(tx: &mut Tx<'_>, model: &str, dim: usize) -> Result<usize> {
    scanned(tx, model, dim).map(|rows| rows.len())
}

#[test]
fn memory_list_is_paginated_and_filtered() {
    on_brain(|db| async move {
        for n in 0..7 {
            let at = NOW.plus(n % 3);
            put(
                &db,
                MemoryEntry { updated_at: at, kind: format!("k{}", n % 2), ..memory(&format!("m{n}"), "x") },
            )
            .await?;
        }
        let mut after = None;
        let mut seen = Vec::new();
        loop {
            let filter = MemoryListFilter { after: after.clone(), limit: 2, ..MemoryListFilter::default() };
            let page = db.read(move |tx| memory::list(tx, &filter)).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.updated_at, last.id.to_string()));
            seen.extend(page.iter().map(|memory| memory.id.to_string()));
        }
        assert_eq!(seen, ["m0", "m3", "m6", "m1", "m4", "m2", "m5"]);
        let odd = MemoryListFilter { kind: Some("k1".into()), limit: 9, ..MemoryListFilter::default() };
        assert_eq!(db.read(move |tx| memory::list(tx, &odd)).await?.len(), 3);
        let others =
            MemoryListFilter { agent: Some(agent("other")), limit: 9, ..MemoryListFilter::default() };
        assert!(db.read(move |tx| memory::list(tx, &others)).await?.is_empty());
        Ok(())
    });
}

#[test]
fn delete_all_without_a_filter_deletes_nothing() {
    on_brain(|db| async move {
        put(&db, memory("a", "x")).await?;
        assert!(db.write(|tx| memory::delete_all(tx, None, None, None)).await?.is_empty());
        let session = SessionKey::main(&AgentId::main());
        let wanted = session.clone();
        let scope = Some(MemoryScope::Session);
        assert!(db.write(move |tx| memory::delete_all(tx, None, Some(&wanted), scope)).await?.is_empty());
        assert_eq!(db.write(move |tx| memory::delete_all(tx, None, Some(&session), None)).await?.len(), 1);
        Ok(())
    });
}

#[test]
fn database_constraints_refuse_memory_without_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("brain.db");
    drop(Db::open_memory_db(&path).unwrap());
    assert!(integrity::check_memory_file(&path).unwrap().is_empty());
    assert!(integrity::check_main_file(&path).is_ok(), "an older schema number is not newer");
    drive(async {
        let db = Db::open_memory_db(&path)?;
        for bad in [
            "INSERT INTO owners (scope, agent_id, session_key) VALUES ('session', 'main', '')",
            "INSERT INTO owners (scope, agent_id, session_key) VALUES ('agent', '', '')",
            "INSERT INTO owners (scope, agent_id, session_key) VALUES ('everyone', 'main', '')",
            "INSERT INTO memories (id, owner, scope, agent_id, session_key, key, kind, content, metadata, created_at,
               updated_at) VALUES ('x', 99, 'agent', 'main', 's', 'k', 'fact', 'c', '{}', 1, 1)",
        ] {
            let refused = db.write(move |tx| tx.execute(bad, &[])).await;
            assert!(matches!(refused, Err(Error::Other(_))), "{bad}: {refused:?}");
        }
        Ok(())
    });
}

/// Many rows that share words: ranking stays bounded, and finds the rare word among them.
#[test]
fn rare_word_ranks_first_among_many_similar_memories() {
    on_brain(|db| async move {
        db.write(|tx| {
            for n in 0..4_000_i64 {
                let content = format!("the weekly report number {n} about sales");
                memory::upsert(
                    tx,
                    &MemoryEntry { updated_at: Millis(n), ..memory(&format!("m{n}"), &content) },
                )?;
            }
            memory::upsert(tx, &memory("rare", "the weekly report about zeppelins")).map(drop)
        })
        .await?;
        assert_eq!(finds(&db, "weekly report zeppelins").await?[0], "rare");
        let newest = finds(&db, "weekly report").await?;
        assert_eq!((newest.len(), newest[0].as_str()), (50, "rare"), "words that all have: newest first");
        assert!(finds(&db, "unheard").await?.is_empty());
        Ok(())
    });
}

#[derive(Clone, Debug)]
struct Planted(Vec<(usize, usize, usize, usize)>);

fn planted() -> impl Strategy<Value = Planted> {
    prop::collection::vec((0usize..3, 0usize..3, 0usize..3, 0usize..2), 1..40).prop_map(Planted)
}

const SCOPES: [MemoryScope; 3] = [MemoryScope::Shared, MemoryScope::Agent, MemoryScope::Session];

fn name(n: usize) -> AgentId {
    agent(["main", "ops", "spy"][n])
}

/// Sessions of all agents: one may be switched to another agent.
fn place(n: usize) -> SessionKey {
    SessionKey::for_direct(&AgentId::main(), "chat", ["ana", "bob", "eve"][n])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn viewer_finds_exactly_the_memories_it_may_see(Planted(rows) in planted(), who in 0usize..3, at in 0usize..3,
                                                       scope in 0usize..3, kind in 0usize..3) {
        let db = Db::memory_db_in_memory().unwrap();
        let kinds = if kind == 2 { vec![] } else { vec![format!("k{kind}")] };
        let viewer = MemoryViewer { agent: name(who), session: place(at), scope: SCOPES[scope], kinds };
        let memories: Vec<MemoryEntry> = rows.iter().enumerate().map(|(n, (agent, session, scope, kind))| MemoryEntry {
            agent: name(*agent), session: place(*session), scope: SCOPES[*scope], kind: format!("k{kind}"),
            ..memory(&format!("m{n}"), &format!("canary number {n}"))
        }).collect();
        drive(async {
            for memory in memories.clone() {
                put(&db, memory).await?;
            }
            let mut wanted: Vec<String> =
                memories.iter().filter(|memory| viewer.can_see(memory)).map(|memory| memory.id.to_string()).collect();
            let (eyes, all) = (viewer.clone(), viewer.clone());
            let mut got = db.read(move |tx| found(tx, &eyes, "canary")).await?;
            let seqs: Vec<MemorySeq> = (0..=100).collect();
            let gate = db.read(move |tx| memory::fetch_visible(tx, &all, &seqs)).await?;
            got.sort();
            wanted.sort();
            assert_eq!(got, wanted);
            assert_eq!(gate.len(), wanted.len(), "the last gate lets no other through, whoever asks for it");
            // Forgetting by key reaches no further than storing did.
            let (own, me) = (viewer.clone(), viewer.agent.clone());
            for memory in &memories {
                let (key, eyes) = (memory.key.clone(), own.clone());
                let gone = db.write(move |tx| memory::delete_by_author(tx, &eyes, &key)).await?;
                let may = memory.agent == me && MemoryViewer { kinds: vec![], ..own.clone() }.can_see(memory);
                assert_eq!(gone.len(), usize::from(may), "{memory:?}");
            }
            Ok(())
        });
    }
}
