//! Recall quality with the real embedding model: questions and the memories that answer them.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::agent::ContextPolicy;
use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::memory::{MemoryEntry, MemoryViewer};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::memory::MemorySearch;
use polyclaw_provider::embedded::{LocalEmbeddings, convert_model};
use polyclaw_store::{Db, memory};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptedProvider};

const SHOWN: usize = 5;

fn pairs() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("../golden/memories.tsv").lines();
    lines.map(|line| line.split_once('\t').expect("a memory and a question")).collect()
}

/// The model's file, built from the published weights.
pub fn weights() -> Vec<u8> {
    let file = |name: &str| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.tools/model").join(name);
        assert!(path.exists(), "{} is missing: `scripts/need.sh weights` fetches it", path.display());
        path
    };
    let vocabulary = std::fs::read_to_string(file("minilm.vocab.txt")).unwrap();
    convert_model(File::open(file("minilm.safetensors")).unwrap(), &vocabulary).unwrap()
}

fn viewer() -> MemoryViewer {
    let agent = AgentId::main();
    let session = SessionKey::main(&agent);
    MemoryViewer::for_session(&agent, &session, &ContextPolicy::default())
}

async fn remembered(embedder: Arc<dyn Embedder>, contents: &[&str]) -> World {
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::echo()).await;
    ground.embedder = Some(embedder);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let memories = world.engine.memory_store();
    let scope = polyclaw_domain::agent::MemoryScope::Agent;
    let draft = |(n, content): (usize, &&str)| MemoryEntry {
        key: format!("m{n}"),
        ..memories.new_memory(&viewer(), scope, (*content).to_owned())
    };
    memories.put_memories(contents.iter().enumerate().map(draft).collect()).await.unwrap();
    for _ in 0..1_200 {
        if memories.status().await.unwrap().pending == 0 {
            return world;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the embeddings were not computed within two minutes");
}

/// The number of questions whose memory is among the first five.
fn hits(found: &[Vec<String>]) -> usize {
    found
        .iter()
        .enumerate()
        .filter(|(n, keys)| keys.iter().take(SHOWN).any(|key| *key == format!("m{n}")))
        .count()
}

async fn by_words(world: &World, question: &'static str) -> Vec<String> {
    let read = move |tx: &mut polyclaw_store::Tx<'_>| {
        let owners = memory::list_visible_owners(tx, &viewer())?;
        let seqs = memory::search_by_words(tx, &owners, question, SHOWN)?;
        let rows: HashMap<_, _> = memory::fetch_visible(tx, &viewer(), &seqs)?.into_iter().collect();
        Ok(seqs.iter().map(|seq| rows[seq].key.clone()).collect())
    };
    world.ground.memories.read(read).await.unwrap()
}

fn by_meaning(question: &[f32], memories: &[Vec<f32>]) -> Vec<String> {
    let near = |memory: &Vec<f32>| question.iter().zip(memory).map(|(a, b)| a * b).sum::<f32>();
    let mut ranked: Vec<(usize, f32)> = memories.iter().map(near).enumerate().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.into_iter().take(SHOWN).map(|(n, _)| format!("m{n}")).collect()
}

async fn search_by_words_and_vectors(world: &World, question: &str) -> Vec<String> {
    let filter = viewer();
    let search = MemorySearch { viewer: Some(&filter), text: question, limit: SHOWN };
    let (found, words_only) = world.engine.memory_store().search(&search).await.unwrap();
    // Some questions use scripts that the model cannot read; a timeout would distort the result.
    assert!(
        matches!(words_only, None | Some("the embedding model does not know these words")),
        "{words_only:?}"
    );
    found.into_iter().map(|(memory, _)| memory.key).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn hybrid_memory_search_beats_word_and_vector_search() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("minilm.embed");
    std::fs::write(&file, weights()).unwrap();
    let embedder: Arc<dyn Embedder> = Arc::new(LocalEmbeddings::new(&file));
    let pairs = pairs();
    assert!(pairs.len() >= 200);
    let contents: Vec<&str> = pairs.iter().map(|(memory, _)| *memory).collect();
    let world = remembered(Arc::clone(&embedder), &contents).await;
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let memories = embedder.embed_texts(&owned(contents.clone())).await.unwrap();
    let questions = embedder.embed_texts(&owned(pairs.iter().map(|(_, q)| *q).collect())).await.unwrap();
    let (mut words, mut both) = (Vec::new(), Vec::new());
    for (_, question) in &pairs {
        words.push(by_words(&world, question).await);
        both.push(search_by_words_and_vectors(&world, question).await);
    }
    let meaning: Vec<_> = questions.iter().map(|question| by_meaning(question, &memories)).collect();
    let (words, meaning, found) = (hits(&words), hits(&meaning), hits(&both));
    println!("recall@{SHOWN} of {}: words {words}, meaning {meaning}, both {found}", pairs.len());
    for (n, (memory, question)) in pairs.iter().enumerate() {
        if !both[n].contains(&format!("m{n}")) {
            println!("missed: {question} -> {memory}");
        }
    }
    assert!(found > words && found > meaning, "words {words}, meaning {meaning}, both {found}");
    assert!(found * 100 >= pairs.len() * 90, "{found} of {}", pairs.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_in_unknown_script_is_found_by_words_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("minilm.embed");
    std::fs::write(&file, weights()).unwrap();
    let facts = ["我的猫叫小白", "明天上午开会讨论预算", "奶奶住在成都", "他对花生过敏"];
    let world = remembered(Arc::new(LocalEmbeddings::new(&file)), &facts).await;
    let filter = viewer();
    for (question, expected) in
        [("我的猫叫什么名字？", &["m0"][..]), ("汽车是什么颜色？", &[]), ("🎉🍰", &[])]
    {
        let search = MemorySearch { viewer: Some(&filter), text: question, limit: SHOWN };
        let (found, words_only) = world.engine.memory_store().search(&search).await.unwrap();
        let keys: Vec<&str> = found.iter().map(|(memory, _)| memory.key.as_str()).collect();
        assert_eq!((keys.as_slice(), words_only.is_some()), (expected, true), "{question}");
    }
}
