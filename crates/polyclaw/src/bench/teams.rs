//! Measures how fast tasks are claimed: many claimers in several processes share one task database, like those of
//! several nodes.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use polyclaw_domain::id::{AgentId, TeamId};
use polyclaw_domain::port::WallClock as _;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{TaskMember, TaskRefusal, TeamTask};
use polyclaw_domain::team::LEAD_NAME;
use polyclaw_store::tasks::{self, TaskClaimRequest, TaskInsert};
use polyclaw_store::{Db, DbTarget, Tx};
use serde::{Deserialize, Serialize};

use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes, per_second};
use crate::clock::SystemClock;

const PROCESS_COUNT: usize = 4;
/// Claimers of each process: 64 in total.
const CLAIMERS_PER_PROCESS: usize = 16;
const CLAIM_LEASE_MS: i64 = 600_000;
/// Tasks created in one transaction.
const TASK_BATCH_SIZE: usize = 500;
/// Names a PostgreSQL database to use instead of a file.
pub const DATABASE_ENV: &str = "POLYCLAW_BENCH_DATABASE";

#[derive(clap::Args)]
pub struct Args {
    /// Number of tasks to claim.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
}

impl Default for Args {
    fn default() -> Self {
        Self { tasks: 10_000 }
    }
}

/// Setup sent to a process before it starts.
#[derive(Serialize, Deserialize)]
struct ClaimerSetup {
    process: usize,
    file: Option<PathBuf>,
    database: Option<String>,
}

/// Result of a process once no task is left.
#[derive(Default, Serialize, Deserialize)]
struct ClaimTimes {
    tasks: Vec<i64>,
    micros: Vec<u64>,
}

fn bench_team_id() -> TeamId {
    TeamId::new("bench")
}

pub async fn run(report: &mut BenchmarkReport, args: &Args) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let database = std::env::var(DATABASE_ENV).ok();
    let file = database.is_none().then(|| folder.path().join("ledger.db"));
    let db = open_task_db(file.clone(), database.clone()).await?;
    let tasks = usize::try_from(args.tasks)?;
    create_tasks(&db, tasks).await?;
    let mut processes = Vec::new();
    for process in 0..PROCESS_COUNT {
        processes.push(ClaimerProcess::start(&ClaimerSetup {
            process,
            file: file.clone(),
            database: database.clone(),
        })?);
    }
    let began = Instant::now();
    processes.iter_mut().try_for_each(ClaimerProcess::begin_claiming)?;
    let claims =
        processes.into_iter().map(ClaimerProcess::collect_claims).collect::<anyhow::Result<Vec<_>>>()?;
    let took = began.elapsed();
    let owners: HashSet<i64> = claims.iter().flat_map(|one| &one.tasks).copied().collect();
    let taken: usize = claims.iter().map(|one| one.tasks.len()).sum();
    ensure!(taken == tasks && owners.len() == tasks, "{taken} claims of {} tasks, of {tasks}", owners.len());
    let mut times = OperationTimes::default();
    claims.iter().flat_map(|one| &one.micros).for_each(|micros| times.push(Duration::from_micros(*micros)));
    #[expect(clippy::cast_precision_loss, reason = "counts of tasks are small")]
    report.add("tasks that have one owner", owners.len() as f64, "", None);
    report.add("claims of 64 claimers in 4 processes", per_second(taken, took), "/s", None);
    report.add("a claim, p50", times.percentile(0.5), "ms", None);
    report.add("a claim, p99", times.percentile(0.99), "ms", Some(FigureTarget::AtMost(10.0)));
    Ok(())
}

/// Returns the median time of one claim in milliseconds, among this many tasks.
pub(super) async fn median_claim_ms(tasks: usize) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let db = open_task_db(Some(folder.path().join("ledger.db")), None).await?;
    create_tasks(&db, tasks).await?;
    let claims = claim_tasks(db, "alone".to_owned(), tasks.min(CLAIMS_PER_SAMPLE)).await?;
    let mut times = OperationTimes::default();
    claims.micros.iter().for_each(|micros| times.push(Duration::from_micros(*micros)));
    Ok(times.percentile(0.5))
}

/// Claims per median.
const CLAIMS_PER_SAMPLE: usize = 100;

/// Opens the task database on a blocking thread.
async fn open_task_db(file: Option<PathBuf>, database: Option<String>) -> anyhow::Result<Db> {
    let open = move || match (file, database) {
        (_, Some(url)) => Ok(Db::open(&DbTarget::Postgres { url, connections: 4 })?),
        (Some(file), None) => Ok(Db::open_ledger(&file)?),
        (None, None) => anyhow::bail!("neither a file nor a database is given"),
    };
    tokio::task::spawn_blocking(open).await?
}

async fn create_tasks(db: &Db, tasks: usize) -> anyhow::Result<()> {
    let now = SystemClock.now();
    for first in (0..tasks).step_by(TASK_BATCH_SIZE) {
        let count = TASK_BATCH_SIZE.min(tasks - first);
        let write = move |tx: &mut Tx<'_>| {
            for n in first..first + count {
                let task = TeamTask::new_pending(bench_team_id(), format!("task {n}"), LEAD_NAME, now);
                let new = TaskInsert { task, key: None, max_open: usize::MAX };
                if let Err(refusal) = tasks::create(tx, &new)? {
                    return Ok(Err(refusal));
                }
            }
            Ok(Ok(()))
        };
        db.write(write).await??;
    }
    Ok(())
}

/// A process of this program that claims tasks.
struct ClaimerProcess {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl ClaimerProcess {
    /// Starts the process. Returns when it has opened the task database.
    fn start(order: &ClaimerSetup) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "claims"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let text = BufReader::new(child.stdout.take().context("no output")?);
        let mut claimer = Self { child, stdout: text };
        claimer.write_line(&serde_json::to_string(order)?)?;
        let mut line = String::new();
        claimer.stdout.read_line(&mut line)?;
        ensure!(line.trim() == READY_LINE, "a process did not start");
        Ok(claimer)
    }

    fn write_line(&mut self, line: &str) -> anyhow::Result<()> {
        let mut input = self.child.stdin.as_ref().context("no input")?;
        Ok(writeln!(input, "{line}")?)
    }

    fn begin_claiming(&mut self) -> anyhow::Result<()> {
        self.write_line("go")
    }

    fn collect_claims(mut self) -> anyhow::Result<ClaimTimes> {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text)?;
        ensure!(self.child.wait()?.success(), "a process failed");
        Ok(serde_json::from_str(&text)?)
    }
}

impl Drop for ClaimerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const READY_LINE: &str = "ready";

/// Runs a claimer process: waits for the start signal, then claims until no task is free.
pub async fn run_claimer_process() -> anyhow::Result<()> {
    let mut lines = std::io::stdin().lines();
    let order: ClaimerSetup = serde_json::from_str(&lines.next().context("no setup received")??)?;
    let db = open_task_db(order.file, order.database).await?;
    let mut output = std::io::stdout();
    writeln!(output, "{READY_LINE}")?;
    lines.next().context("no start signal received")??;
    let mut claimers = tokio::task::JoinSet::new();
    for n in 0..CLAIMERS_PER_PROCESS {
        claimers.spawn(claim_tasks(db.clone(), format!("p{}c{n}", order.process), usize::MAX));
    }
    let mut all = ClaimTimes::default();
    while let Some(claims) = claimers.join_next().await {
        let claims = claims??;
        all.tasks.extend(claims.tasks);
        all.micros.extend(claims.micros);
    }
    Ok(writeln!(output, "{}", serde_json::to_string(&all)?)?)
}

/// Claims tasks until none is free or `most` are claimed.
async fn claim_tasks(db: Db, name: String, most: usize) -> anyhow::Result<ClaimTimes> {
    let session = SessionKey::from_parts(&AgentId::main(), &["teammate", &name]);
    let worker = TaskMember { name: name.clone(), session, capabilities: Vec::new(), is_lead: false };
    let mut claims = ClaimTimes::default();
    while claims.tasks.len() < most {
        let (worker, key) = (worker.clone(), format!("{name}-{}", claims.tasks.len()));
        let began = Instant::now();
        let now = SystemClock.now();
        let claim = TaskClaimRequest { team: bench_team_id(), key, worker, now, lease_ms: CLAIM_LEASE_MS };
        match db.claim_oldest_task(claim).await? {
            Ok(task) => {
                claims.micros.push(u64::try_from(began.elapsed().as_micros())?);
                claims.tasks.push(task.no.0);
            }
            Err(TaskRefusal::NothingFree) => return Ok(claims),
            Err(refusal) => anyhow::bail!(refusal),
        }
    }
    Ok(claims)
}
