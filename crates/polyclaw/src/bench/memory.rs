//! Measures recall from a full memory store: keywords and vectors of 100,000 memories, queried as a turn does.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclaw_domain::agent::{ContextPolicy, MemoryScope};
use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::id::{AgentId, MemoryId};
use polyclaw_domain::memory::{MemoryEntry, MemoryViewer};
use polyclaw_domain::port::{BoxFuture, WallClock};
use polyclaw_domain::provider::ProviderError;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::memory::{MemoryLocation, MemoryStore, VectorIndex};
use polyclaw_provider::embedded::LocalEmbeddings;
use polyclaw_store::{Db, memory};

use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes};
use crate::clock::SystemClock;
use crate::home::Home;
use crate::ids::SortableIds;
use crate::weights::{EMBEDDING_WEIGHTS, ModelDir};

const MEMORY_COUNT: u64 = 100_000;
const EMBEDDING_DIM: usize = 384;
/// Number of distinct words in all memories.
const VOCABULARY_SIZE: u64 = 20_000;
const INSERT_BATCH_SIZE: u64 = 1_000;

pub async fn run(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("brain.db");
    let before = resident_mb()?;
    let db = tokio::task::spawn_blocking({
        let path = path.clone();
        move || Db::open_memory_db(&path)
    })
    .await??;
    let began = Instant::now();
    insert_memories(&db, 0..MEMORY_COUNT).await?;
    report.add("memories stored and indexed per second", calls_per_second(began.elapsed()), "/s", None);
    let clock: Arc<dyn WallClock> = Arc::new(SystemClock);
    let memories = MemoryStore::new(
        MemoryLocation::Open(db),
        Arc::clone(&clock),
        Arc::new(SortableIds::new(clock)),
        bench_vectors(),
    );
    memories.set_embedder(Some(Arc::new(HashedEmbedder)));
    let began = Instant::now();
    memories.recall_memories(&bench_viewer(), &make_question(0), 800).await?;
    report.add("first recall, which reads all vectors", began.elapsed().as_secs_f64() * 1000.0, "ms", None);
    // Loading the vectors continues after the recall's deadline.
    tokio::time::sleep(Duration::from_secs(1)).await;
    measure_recalls(report, &memories, seconds, "recall, 100,000 memories", Some(20.0)).await?;
    #[expect(clippy::cast_precision_loss, reason = "sizes of files are small")]
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    report.add("brain.db", megabytes(std::fs::metadata(&path)?.len()), "MB", None);
    report.add("vectors in memory", megabytes(memories.status().await?.cached_bytes as u64), "MB", None);
    report.add("process, grown by", resident_mb()? - before, "MB", None);
    measure_with_model(report, &memories, seconds).await
}

/// Returns the median recall time in milliseconds for each count. Each count includes the memories of the previous
/// one.
pub(super) async fn measure_growth(counts: &[u64], seconds: Duration) -> anyhow::Result<Vec<f64>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("brain.db");
    let db = tokio::task::spawn_blocking(move || Db::open_memory_db(&path)).await??;
    let (mut before, mut medians) = (0, Vec::new());
    for &count in counts {
        insert_memories(&db, before..count).await?;
        before = count;
        let clock: Arc<dyn WallClock> = Arc::new(SystemClock);
        let ids = Arc::new(SortableIds::new(Arc::clone(&clock)));
        let memories = MemoryStore::new(MemoryLocation::Open(db.clone()), clock, ids, bench_vectors());
        memories.set_embedder(Some(Arc::new(HashedEmbedder)));
        memories.recall_memories(&bench_viewer(), &make_question(0), 800).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        medians.push(time_recalls(&memories, seconds).await?.0.percentile(0.5));
    }
    Ok(medians)
}

/// Measures recall including the embedding of each question, if the weights are present.
async fn measure_with_model(
    report: &mut BenchmarkReport,
    memories: &MemoryStore,
    seconds: Duration,
) -> anyhow::Result<()> {
    let models = ModelDir::for_home(&Home::locate()?);
    if !models.is_present(&EMBEDDING_WEIGHTS) {
        report.add(
            "embedding of a question: not measured, no weights (model pull all-minilm-l6-v2)",
            0.0,
            "",
            None,
        );
        return Ok(());
    }
    let model = Arc::new(RealEmbedder(LocalEmbeddings::new(models.weights_path(&EMBEDDING_WEIGHTS))));
    let mut times = OperationTimes::default();
    for n in 0..50 {
        let began = Instant::now();
        model.embed_texts(&[make_question(n)]).await.map_err(|error| anyhow::anyhow!("{error}"))?;
        times.push(began.elapsed());
    }
    report.add("embedding of a question p50", times.percentile(0.5), "ms", None);
    memories.set_embedder(Some(model));
    measure_recalls(report, memories, seconds, "recall with the embedding of its question", None).await
}

async fn measure_recalls(
    report: &mut BenchmarkReport,
    memories: &MemoryStore,
    seconds: Duration,
    name: &str,
    bar: Option<f64>,
) -> anyhow::Result<()> {
    let (mut times, partial) = time_recalls(memories, seconds).await?;
    report.add(format!("{name}, p50"), times.percentile(0.5), "ms", None);
    report.add(format!("{name}, p95"), times.percentile(0.95), "ms", bar.map(FigureTarget::AtMost));
    report.add(format!("{name}, p99"), times.percentile(0.99), "ms", None);
    report.add("  of these by keyword only", f64::from(partial), "", Some(FigureTarget::AtMost(0.0)));
    Ok(())
}

/// Times recalls for a duration. Also returns how many of them used keywords only.
async fn time_recalls(memories: &MemoryStore, seconds: Duration) -> anyhow::Result<(OperationTimes, u32)> {
    let (mut times, mut partial, began, viewer) =
        (OperationTimes::default(), 0_u32, Instant::now(), bench_viewer());
    while began.elapsed() < seconds {
        let asked = make_question(times.len() as u64 * 7 + 1);
        let start = Instant::now();
        let recalled = memories.recall_memories(&viewer, &asked, 800).await?;
        times.push(start.elapsed());
        partial += u32::from(recalled.words_only.is_some());
    }
    Ok((times, partial))
}

async fn insert_memories(db: &Db, memories: Range<u64>) -> polyclaw_store::Result<()> {
    for batch in memories.start / INSERT_BATCH_SIZE..memories.end / INSERT_BATCH_SIZE {
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            for n in batch * INSERT_BATCH_SIZE..(batch + 1) * INSERT_BATCH_SIZE {
                memory::upsert(tx, &make_memory(n))?;
            }
            for waiting in memory::list_pending_embeddings(tx, usize::MAX)? {
                let vector = memory::quantize_vector(&hash_direction(&waiting.content));
                memory::store_vector(tx, &waiting, BENCH_MODEL, &vector)?;
            }
            Ok(())
        };
        db.write(write).await?;
    }
    Ok(())
}

fn bench_viewer() -> MemoryViewer {
    let agent = AgentId::main();
    let session = SessionKey::main(&agent);
    let policy = ContextPolicy { scope: MemoryScope::Shared, ..ContextPolicy::default() };
    MemoryViewer::for_session(&agent, &session, &policy)
}

/// Builds a memory. Half belong to the agent that asks, a third is shared by other agents, the rest belongs to a
/// hundred sessions.
fn make_memory(n: u64) -> MemoryEntry {
    let agents = ["main", "ops", "research"];
    let (agent, scope) = match n % 6 {
        0..=2 => ("main", MemoryScope::Agent),
        3 | 4 => (agents[usize::from(n.is_multiple_of(2)) + 1], MemoryScope::Shared),
        _ => ("main", MemoryScope::Session),
    };
    let agent = AgentId::parse(agent).unwrap_or_else(|_| AgentId::main());
    let at = SystemClock.now().minus(i64::try_from(n).unwrap_or(0) * 60_000);
    MemoryEntry {
        id: MemoryId::new(format!("m{n}")),
        session: SessionKey::for_direct(&agent, "chat", &(n % 100).to_string()),
        agent,
        scope,
        key: format!("k{n}"),
        kind: "fact".to_owned(),
        content: make_text(n, 8 + n % 20),
        metadata: serde_json::Map::new(),
        created_at: at,
        updated_at: at,
    }
}

/// Builds a question: some words of one memory and some unrelated words.
fn make_question(n: u64) -> String {
    format!("{} {}", make_text(n * 7919 % MEMORY_COUNT, 5), make_text(n + 1_000_000, 4))
}

/// Builds text with a natural word distribution: a few words are frequent, most are rare.
fn make_text(seed: u64, words: u64) -> String {
    let word = |at: u64| {
        let chance = mix_bits(seed * 131 + at) % 1_000_000;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a small number"
        )]
        let rank = ((VOCABULARY_SIZE as f64).powf(chance as f64 / 1e6)) as u64;
        spell_word(rank)
    };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

fn spell_word(rank: u64) -> String {
    const SYLLABLES: [&str; 16] =
        ["ka", "mo", "ri", "te", "lu", "sa", "no", "vi", "pe", "du", "ga", "fi", "zo", "he", "ba", "ju"];
    let mut left = mix_bits(rank);
    let mut word = String::new();
    for _ in 0..4 {
        word.push_str(SYLLABLES[usize::try_from(left % 16).unwrap_or(0)]);
        left /= 16;
    }
    word
}

fn mix_bits(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 29)
}

fn calls_per_second(time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a round number")]
    let count = MEMORY_COUNT as f64;
    count / time.as_secs_f64()
}

const BENCH_MODEL: &str = "bench/hashed";

fn bench_vectors() -> VectorIndex {
    VectorIndex::new(128 << 20, polyclaw_provider::embedded::byte_dot_product)
}

/// An embedder that costs nothing, so that only the search is measured. A text's words determine its direction.
struct HashedEmbedder;

fn hash_direction(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; EMBEDDING_DIM];
    for word in text.split(' ') {
        let seed = word.bytes().fold(7_u64, |hash, byte| mix_bits(hash ^ u64::from(byte)));
        for (at, value) in (0_u64..).zip(vector.iter_mut()) {
            *value += if mix_bits(seed ^ at).is_multiple_of(2) { 1.0 } else { -1.0 };
        }
    }
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(1.0);
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

impl Embedder for HashedEmbedder {
    fn model_id(&self) -> &str {
        BENCH_MODEL
    }

    fn dimensions(&self) -> usize {
        EMBEDDING_DIM
    }

    fn batch_size(&self) -> usize {
        64
    }

    fn embed_texts<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ProviderError>> {
        Box::pin(std::future::ready(Ok(texts.iter().map(|text| hash_direction(text)).collect())))
    }
}

/// The real model under the model ID of the stored vectors, so that its time is measured.
struct RealEmbedder(LocalEmbeddings);

impl Embedder for RealEmbedder {
    fn model_id(&self) -> &str {
        BENCH_MODEL
    }

    fn dimensions(&self) -> usize {
        EMBEDDING_DIM
    }

    fn batch_size(&self) -> usize {
        self.0.batch_size()
    }

    fn embed_texts<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ProviderError>> {
        self.0.embed_texts(texts)
    }
}

fn resident_mb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: f64 = line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").parse()?;
    Ok(kilobytes / 1024.0)
}
