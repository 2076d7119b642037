//! Ten real daemons that hand tasks to each other, while they and the server are killed with SIGKILL at random, in the
//! middle of turns. The broker's state of each message is compared with the daemon's database.

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::messages_kills::{SENDERS, Talker, send, stated};
use crate::plane::{Plane, processes_of, until};

const DAEMONS: usize = 10;
/// Maximum kills per daemon: more would open the breaker.
const DEATHS: usize = 2;
const KILLS: usize = 20;
/// The server is killed after this many kills of daemons.
const SERVER: usize = 5;
/// Long enough to be killed in the middle.
const TURN: Duration = Duration::from_millis(150);

/// The daemons; each may give tasks to the next and get its results.
fn ring(plane: &Plane, model: &ModelServer) -> Vec<Value> {
    let daemons: Vec<Value> = (0..DAEMONS).map(|n| plane.create(&format!("i{n}"))).collect();
    for daemon in &daemons {
        let path = plane.folder(daemon).join("config.toml");
        let provider = format!(
            "[providers.test]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
             [agents.defaults]\nmodel = \"test/m\"\n",
            model.url()
        );
        fs::write(&path, format!("{}\n{provider}", fs::read_to_string(&path).unwrap())).unwrap();
    }
    for n in 0..DAEMONS {
        let (one, next) = (format!("i{n}"), format!("i{}", (n + 1) % DAEMONS));
        for (from, to) in [(&one, &next), (&next, &one)] {
            let rule = json!({ "from": from, "to": to, "type": "task.*", "max_retries": 100 });
            plane.post("/routing-rules", rule).ok();
        }
    }
    std::thread::scope(|scope| {
        daemons.iter().for_each(|daemon| drop(scope.spawn(|| plane.start(daemon["name"].as_str().unwrap()))));
    });
    daemons
}

/// The committed state of the broker.
struct Registry(Connection);

impl Registry {
    fn of(plane: &Plane) -> Self {
        let registry = Connection::open(plane.home().join("cp/registry.db")).unwrap();
        registry.busy_timeout(Duration::from_secs(30)).unwrap();
        Self(registry)
    }

    fn count(&self, sql: &str) -> usize {
        let counted: i64 = self.0.query_row(sql, [], |row| row.get(0)).unwrap();
        usize::try_from(counted).unwrap()
    }

    fn done(&self, kind: &str) -> usize {
        self.count(&format!("SELECT COUNT(*) FROM messages WHERE state = 'acknowledged' AND type = '{kind}'"))
    }

    /// Unacknowledged messages with their recipient and state.
    fn open(&self) -> Vec<String> {
        const SQL: &str =
            "SELECT id || ' ' || type || ' to ' || recipient || ' ' || state || ', tried ' || attempts
            FROM messages WHERE state <> 'acknowledged' ORDER BY seq";
        let mut query = self.0.prepare(SQL).unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// The daemons that are working on a task.
    fn at_work(&self) -> Vec<String> {
        const SQL: &str = "SELECT DISTINCT recipient FROM messages
            WHERE state = 'delivered' AND type = 'task.handoff' ORDER BY recipient";
        let mut query = self.0.prepare(SQL).unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// When each task was acknowledged, with its recipient.
    fn acknowledged(&self) -> Vec<(String, String, i64)> {
        const SQL: &str = "SELECT m.id, m.recipient, e.created_at FROM messages m
            JOIN message_events e ON e.message = m.seq AND e.kind = 'acknowledged' WHERE m.type = 'task.handoff'";
        let mut query = self.0.prepare(SQL).unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

/// The turns of a daemon that processed messages, by message: state and end.
fn turns(plane: &Plane, daemon: &Value) -> HashMap<String, Vec<(String, Option<i64>)>> {
    const SQL: &str = "SELECT json_extract(m.meta_json, '$.message_id'), j.state, j.ended_at FROM messages m
        JOIN jobs j ON j.turn_id = m.turn_id WHERE m.role = 'user' AND m.channel = 'cp'";
    let database = Connection::open(plane.folder(daemon).join("memory/sessions.db")).unwrap();
    let mut query = database.prepare(SQL).unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).unwrap();
    let mut turns: HashMap<String, Vec<_>> = HashMap::new();
    for (id, turn) in rows.map(Result::<(String, _), _>::unwrap) {
        turns.entry(id).or_default().push(turn);
    }
    turns
}

/// Kills a working daemon each time a share of the tasks is done, and the server from time to time.
fn kill_at_random(plane: &mut Plane, registry: &Registry, total: usize) {
    let (mut random, mut deaths) = (fastrand::Rng::with_seed(11), HashMap::<String, usize>::new());
    for kill in 1..=KILLS {
        let share = total * kill / (KILLS + 1);
        let done = || registry.done("task.handoff");
        let status_of = || format!("{share} of {total} are done: {}", standing(plane, registry));
        until(&status_of, || done() >= share);
        if kill % SERVER == 0 {
            plane.kill();
            plane.serve();
            continue;
        }
        let mut victims = registry.at_work();
        victims.retain(|id| deaths.get(id).is_none_or(|times| *times < DEATHS));
        if let Some(id) = random.choice(victims) {
            *deaths.entry(id.clone()).or_default() += cut_off(plane, &id);
        }
    }
    assert!(deaths.values().sum::<usize>() >= KILLS / 3, "too few kills: {deaths:?}");
}

/// Describes the state if there is no progress.
fn standing(plane: &Plane, registry: &Registry) -> String {
    let daemons = plane.get("/instances").body["instances"].take();
    let log = fs::read_to_string(plane.dir.path().join("server.log")).unwrap_or_default();
    let (done, results, open) =
        (registry.done("task.handoff"), registry.done("task.result"), registry.open());
    format!("{done} are, {results} have their result, open: {open:?}; the daemons: {daemons}; the log: {log}")
}

/// Kills the processes of a daemon and returns their number: 0 while it is being restarted.
fn cut_off(plane: &Plane, id: &str) -> usize {
    let processes = processes_of(&plane.home().join("cp/instances").join(id));
    for pid in &processes {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
    }
    processes.len()
}

#[test]
fn killed_daemons_run_each_task_once_and_acknowledge_after_turn() {
    let total = stated("POLYCLAW_BROKER_HANDOFFS", 400);
    let (mut plane, model) = (Plane::new(), ModelServer::start());
    model.answer_with(|_| ReplyScript::reply("done").wait(TURN));
    let daemons = ring(&plane, &model);
    let (talker, registry) = (Talker::of(&plane), Registry::of(&plane));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let sending: Vec<_> =
        (0..SENDERS).map(|n| runtime.spawn(send(talker.clone(), n, (total, DAEMONS)))).collect();
    kill_at_random(&mut plane, &registry, total);
    sending.into_iter().for_each(|one| runtime.block_on(one).unwrap());
    until(&|| standing(&plane, &registry), || {
        (registry.done("task.result"), registry.open().len()) == (total, 0)
    });
    assert_eq!(registry.count("SELECT COUNT(*) FROM messages WHERE type = 'task.handoff'"), total);
    assert_eq!(
        registry.count("SELECT COUNT(*) FROM message_events WHERE kind = 'acknowledged'"),
        registry.count("SELECT COUNT(*) FROM messages"),
        "each acknowledged once"
    );
    assert_eq!(registry.count("SELECT COUNT(*) FROM message_events WHERE kind = 'dead_lettered'"), 0);
    let again = registry.count("SELECT COUNT(*) FROM messages WHERE type = 'task.handoff' AND attempts > 1");
    assert!(again > 0, "no kill came in the middle of a task");
    let turns: HashMap<&str, _> =
        daemons.iter().map(|daemon| (daemon["id"].as_str().unwrap(), turns(&plane, daemon))).collect();
    let acknowledged = registry.acknowledged();
    assert_eq!(acknowledged.len(), total);
    for (id, recipient, at) in acknowledged {
        match turns[recipient.as_str()].get(&id).map(Vec::as_slice) {
            Some([(state, Some(ended))]) => {
                assert_eq!(state, "done", "{id}");
                assert!(*ended <= at, "{id} was acknowledged {} ms before its turn ended", ended - at);
            }
            other => panic!("{id} was processed as {other:?}"),
        }
    }
}
