//! Sub-agents under faults: a thousand children that are all announced although everything around them breaks, and a tree
//! that is stopped with all its programs.

use polyclaw_testkit::wait_until;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use crate::daemon::{Daemon, Home, PATIENCE};

const PARENT: &str = "agent:main:webhook:chat:dm:parent";
/// The maximum number of running children per session.
const BATCH: usize = 20;
const CHILDREN: usize = 1_000;

fn config(model: &ModelServer, rest: &str) -> String {
    format!(
        "[providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [models.\"scripted/m\"]\ncontext_window = 10000000\n\
         [agents.defaults]\nmodel = \"scripted/m\"\n\
         [agents.defaults.subagents]\nmax_children_per_agent = {BATCH}\nmax_concurrent = {BATCH}\n\
         [turns]\nautomatic_budget = 1000000\nattempts = 100\nlease_seconds = 3\n{rest}",
        model.url()
    )
}

/// The number after a word in the model's newest input.
fn number(text: &str, word: &str) -> Option<usize> {
    let rest = &text[text.rfind(word)? + word.len()..];
    rest.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// The model's input since its last output or tool result, if any.
fn news(request: &ReceivedRequest) -> Option<String> {
    let fresh = request.messages().iter().rev().take_while(|message| message["role"] == "user");
    let texts: Vec<&str> = fresh.filter_map(|message| message["content"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Of each hundred children some fail, some return nothing, some never answer, and one breaks in mid-stream.
fn child(n: usize) -> ReplyScript {
    match n % 100 {
        7 | 57 => ReplyScript::error(500, json!({ "error": { "message": "it broke" } })),
        13 => ReplyScript::empty(),
        14 => ReplyScript::reply(""),
        21 => ReplyScript::new().text("half of it").cut(),
        33 => ReplyScript::new().hang(),
        _ => ReplyScript::reply(format!("part {n} is done")),
    }
}

fn answer(request: &ReceivedRequest) -> ReplyScript {
    let Some(news) = news(request) else { return ReplyScript::reply("begun") };
    if let Some(n) = number(&news, "do part ").filter(|_| !news.contains("[Context:")) {
        return child(n);
    }
    let Some(batch) = number(&news, "batch ") else { return ReplyScript::reply("heard") };
    let started = begun(request);
    let parts = (batch * BATCH..(batch + 1) * BATCH).filter(|n| !started.contains(&format!("c{n}")));
    let calls = parts.map(|n| {
        let task = json!({ "task": format!("do part {n}"), "timeout_seconds": 2 });
        (format!("c{n}"), task)
    });
    let calls: Vec<_> = calls.collect();
    if calls.is_empty() {
        return ReplyScript::reply("heard");
    }
    calls.into_iter().fold(ReplyScript::new(), |script, (id, task)| script.call(&id, "sessions_spawn", task))
}

/// The calls that started a child. A batch may be interrupted before it has started all children; the rest is started
/// when it resumes.
fn begun(request: &ReceivedRequest) -> HashSet<String> {
    let results = request.messages().iter().filter(|message| message["role"] == "tool");
    let started =
        results.filter(|message| message["content"].as_str().is_some_and(|text| text.contains("run_id")));
    started.filter_map(|message| message["tool_call_id"].as_str().map(str::to_owned)).collect()
}

fn open(home: &Home) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(home.0.join("memory/sessions.db"), flags).unwrap()
}

fn count(database: &Connection, sql: &str) -> usize {
    database
        .query_row(sql, [], |row| row.get::<_, i64>(0))
        .map(|count| usize::try_from(count).unwrap())
        .unwrap()
}

/// The last messages of the parent's conversation, for failure messages.
fn last_words(database: &Connection) -> String {
    let sql = "SELECT position, role, substr(text, 1, 300) FROM messages WHERE session_key = ?1 ORDER BY position DESC LIMIT 12";
    let mut query = database.prepare(sql).unwrap();
    let lines = query.query_map([PARENT], |row| {
        Ok(format!("{} {} {}", row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    });
    lines.unwrap().map(Result::unwrap).collect::<Vec<_>>().join("\n")
}

const BEGUN: &str = "SELECT COUNT(*) FROM runs";
const AT_WORK: &str = "SELECT COUNT(*) FROM runs WHERE status = 'running'";
const ANNOUNCED: &str = "SELECT COUNT(*) FROM messages WHERE idempotency_key LIKE 'announce:%'";
const ANNOUNCED_ONCE: &str =
    "SELECT COUNT(DISTINCT idempotency_key) FROM messages WHERE idempotency_key LIKE 'announce:%'";

/// The daemon, which is killed from time to time.
struct Fire<'a> {
    home: &'a Home,
    daemon: Daemon,
    random: fastrand::Rng,
    kills: usize,
    /// Remaining kills during this batch: a slow machine needs time for progress in between.
    left: usize,
}

impl Fire<'_> {
    async fn maybe_kill(&mut self) {
        if self.left > 0 && self.random.u8(..) < 3 {
            self.daemon.kill();
            self.kills += 1;
            self.left -= 1;
            self.daemon = self.home.start(None).await;
        }
    }

    /// Repeated until it is accepted: the key makes it the same message.
    async fn begin(&mut self, batch: usize) {
        let text = format!("batch {batch}");
        let is_taken = async || {
            let reply = self.daemon.say(PARENT, &text, 0).await;
            reply.is_ok_and(|reply| reply["turn_id"].is_string())
        };
        wait_until("it is accepted", is_taken).await;
    }

    async fn wait_until_started_and_ended(&mut self, children: usize) {
        self.left = 5;
        let database = open(self.home);
        let began = Instant::now();
        while count(&database, BEGUN) < children || count(&database, AT_WORK) > 0 {
            assert!(
                began.elapsed() < Duration::from_secs(300),
                "{} started, {} running; {}",
                count(&database, BEGUN),
                count(&database, AT_WORK),
                last_words(&database)
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.maybe_kill().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_subagents_under_kills_are_announced_once() {
    let model = ModelServer::start();
    model.answer_with(answer);
    model.retain_requests(0);
    let folder = tempfile::tempdir().unwrap();
    // The parent's chat platform is unavailable all the time.
    let rest = "[channels.webhook.chat]\nsecret = \"s\"\nreply_url = \"http://127.0.0.1:9/\"\n";
    let home = Home::new(&folder.path().join("home"), &config(&model, rest));
    let daemon = home.start(None).await;
    let mut fire = Fire { home: &home, daemon, random: fastrand::Rng::with_seed(4711), kills: 0, left: 0 };
    for batch in 0..CHILDREN / BATCH {
        fire.begin(batch).await;
        fire.wait_until_started_and_ended((batch + 1) * BATCH).await;
    }
    let database = open(&home);
    let began = Instant::now();
    while count(&database, "SELECT COUNT(*) FROM jobs WHERE state IN ('queued', 'running')") > 0 {
        assert!(began.elapsed() < Duration::from_secs(300), "the parent does not become idle");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((count(&database, BEGUN), count(&database, AT_WORK)), (CHILDREN, 0));
    assert_eq!((count(&database, ANNOUNCED), count(&database, ANNOUNCED_ONCE)), (CHILDREN, CHILDREN));
    let in_parent = format!("{ANNOUNCED} AND session_key = '{PARENT}'");
    assert_eq!(count(&database, &in_parent), CHILDREN);
    let held = "SELECT COUNT(*) FROM events WHERE kind = 'announce.held'";
    assert_eq!(
        (count(&database, held), count(&database, "SELECT COUNT(*) FROM runs WHERE is_announced = 0")),
        (0, 0)
    );
    let failed = count(&database, "SELECT COUNT(*) FROM runs WHERE status <> 'ok'");
    assert!((40..300).contains(&failed) && fire.kills >= 5, "{failed} failed, {} kills", fire.kills);
    drop(fire);
    assert_no_context_block_stored(&home);
}

/// Every text of every row of both databases.
fn assert_no_context_block_stored(home: &Home) {
    for file in ["memory/sessions.db", "memory/brain.db"] {
        let path = home.0.join(file);
        if path.exists() {
            scan(&path);
        }
    }
}

fn scan(path: &Path) {
    let database = Connection::open(path).unwrap();
    let mut tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(!tables.is_empty());
    for table in tables.iter().filter(|table| !table.starts_with("sqlite_")) {
        let mut rows = database.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = row.get_ref(column).unwrap() else {
                    continue;
                };
                let text = String::from_utf8_lossy(bytes);
                assert!(!text.contains("[Context: "), "{table}: {text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn announce_payload_is_once_in_the_prompt_and_never_stored() {
    let model = ModelServer::start();
    model.answer_with(answer);
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&folder.path().join("home"), &config(&model, ""));
    let daemon = home.start(None).await;
    let parent = "agent:main:web:dm:parent";
    daemon.say(parent, "batch 0", 30).await.unwrap();
    let database = open(&home);
    let began = Instant::now();
    let busy = "SELECT COUNT(*) FROM jobs WHERE state IN ('queued', 'running')";
    while count(&database, AT_WORK) > 0 || count(&database, busy) > 0 {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut query = database.prepare("SELECT run_id FROM runs").unwrap();
    let runs: HashSet<String> = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(runs.len(), BATCH);
    let prompts: Vec<String> =
        model.requests().iter().map(|request| request.body()["messages"].to_string()).collect();
    for run in &runs {
        let alone = format!("Run: {run},");
        let most = prompts.iter().map(|prompt| prompt.matches(&alone).count()).max();
        assert_eq!(most, Some(1), "{run}");
    }
    drop(daemon);
    assert_no_context_block_stored(&home);
}

/// Marks the programs of this test.
const SLEEP: &str = "86399";
const BRANCHES: usize = 4;
const LEAVES: usize = 9;

/// A root with four branches of nine leaves each; of the leaves a third waits for its model, a third runs a program here,
/// a third in a worker process.
fn tree(request: &ReceivedRequest) -> ReplyScript {
    let asked = request.last_user_text();
    let results = request.messages().iter().any(|message| message["role"] == "tool");
    let spawn = |script: ReplyScript, n: usize, agent: &str, task: String| {
        script.call(&format!("s{n}"), "sessions_spawn", json!({ "agent_id": agent, "task": task }))
    };
    let rest = ReplyScript::new().call("y", "sessions_yield", json!({}));
    if asked.contains("[Context:") {
        return ReplyScript::reply("heard");
    }
    if let Some(n) = number(&asked, "leaf ") {
        return match n % 3 {
            0 => ReplyScript::new().hang(),
            _ => ReplyScript::new().call(
                "p",
                "shell",
                json!({ "command": format!("sleep {SLEEP}"), "timeout_seconds": 600 }),
            ),
        };
    }
    match (asked.contains("branch "), results) {
        (_, true) => rest,
        (true, false) => (0..LEAVES).fold(ReplyScript::new(), |script, n| {
            spawn(script, n, if n % 3 == 2 { "apart" } else { "main" }, format!("leaf {n}"))
        }),
        (false, false) => (0..BRANCHES)
            .fold(ReplyScript::new(), |script, n| spawn(script, n, "main", format!("branch {n}"))),
    }
}

/// Programs of this test that run now.
fn count_sleep_programs() -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(b"sleep\0") && String::from_utf8_lossy(line).contains(SLEEP)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_a_tree_of_forty_subagents_leaves_no_process() {
    let model = ModelServer::start();
    model.answer_with(tree);
    let folder = tempfile::tempdir().unwrap();
    let rest = "[lanes]\nsubagent = 64\n[workers]\nmax = 16\n[agents.defaults.sandbox]\nmode = \"off\"\n\
        [tools]\napprovals = { shell = \"never\" }\n\
        [[agents.list]]\nid = \"main\"\ndefault = true\ntools = { allow = [\"*\", \"shell\"] }\nsubagents = { allow_agents = [\"*\"], max_children_per_agent = 20, max_concurrent = 100 }\n\
        [[agents.list]]\nid = \"apart\"\nisolation = \"process\"\ntools = { allow = [\"*\", \"shell\"] }\n";
    let home = Home::new(&folder.path().join("home"), &config(&model, rest));
    let daemon = home.start(None).await;
    let root = "agent:main:web:dm:root";
    daemon.say(root, "grow", 0).await.unwrap();
    let programs = BRANCHES * LEAVES * 2 / 3;
    let began = Instant::now();
    while count_sleep_programs() < programs {
        assert!(began.elapsed() < PATIENCE, "{} programs run", count_sleep_programs());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let database = open(&home);
    assert_eq!(count(&database, AT_WORK), BRANCHES * (LEAVES + 1), "the whole tree is running");
    let key = root.replace(':', "%3A");
    daemon.post(&format!("/api/v1/sessions/{key}/stop"), &json!({})).await.unwrap();
    let (stopped, answered) = (Instant::now(), now_ms());
    let busy = "SELECT COUNT(*) FROM jobs WHERE state = 'running'";
    while count(&database, AT_WORK) > 0 || count(&database, busy) > 0 || count_sleep_programs() > 0 {
        let left = (count(&database, AT_WORK), count(&database, busy), count_sleep_programs());
        assert!(stopped.elapsed() < PATIENCE, "after {PATIENCE:?} there are {left:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let statuses = "SELECT COUNT(*) FROM runs WHERE status = 'cancelled'";
    assert_eq!(count(&database, statuses), BRANCHES * (LEAVES + 1));
    // By the daemon's clock, so that a late check does not count as slow.
    let last = "SELECT MAX(ended_at) FROM (SELECT ended_at FROM runs UNION ALL SELECT ended_at FROM jobs)";
    let took = i64::try_from(count(&database, last)).unwrap() - answered;
    let longest = if is_loaded() { PATIENCE } else { Duration::from_secs(5) };
    assert!(took < i64::try_from(longest.as_millis()).unwrap(), "it took {took} ms to stop all of it");
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// With more load than cores, other processes would be measured.
fn is_loaded() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(f64::MAX);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    load > 2.0 * cores as f64
}
