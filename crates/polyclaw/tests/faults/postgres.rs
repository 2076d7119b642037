//! PostgreSQL behind a proxy that cuts connections, drops responses and disappears.

use std::time::{Duration, Instant};

use polyclaw_testkit::chaos::{ChaosProxy, ProxyMode};
use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyGate, ReplyScript};
use polyclaw_testkit::postgres::PostgresCluster;
use serde_json::json;

use crate::daemon::{Daemon, PATIENCE, config};

/// A daemon whose database is a fresh one behind a proxy.
async fn start(model: &ModelServer) -> (Daemon, ChaosProxy, String) {
    let database = PostgresCluster::for_process().fresh_database().unwrap();
    let (chaos, url) = ChaosProxy::in_front_of_url(&database);
    let rest = format!("[store]\nurl = \"{url}\"\n[turns]\nlease_seconds = 5");
    (Daemon::start(&config(model, &rest)).await, chaos, database)
}

/// Repeats with the same key until there is a response, like a careful client.
async fn insist(daemon: &Daemon, who: &str, text: &str) -> String {
    let began = Instant::now();
    loop {
        let last = match daemon.say(who, text, 10).await {
            Ok(answer) if answer.body["reply"].is_object() => return answer.reply().to_owned(),
            Ok(answer) => {
                let known = ["", "store_unavailable", "store_read_only"].contains(&answer.code());
                assert!(known, "{who} {text}: {answer:?}\n{}", daemon.log());
                format!("{answer:?}")
            }
            Err(error) => error.to_string(),
        };
        assert!(began.elapsed() < PATIENCE, "{who} {text}: {last}\n{}", daemon.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_and_lost_commits_answer_each_message_once() {
    let model = ModelServer::start();
    model.answer_with(|request| {
        ReplyScript::reply(format!("re: {}", request.last_user_text())).wait(Duration::from_millis(5))
    });
    let (mut daemon, chaos, _) = start(&model).await;
    chaos.lose_answers(b"COMMIT", 7, 60);
    let people = async {
        let talk = |person: usize| {
            let daemon = &daemon;
            async move {
                for n in 0..6 {
                    let text = format!("p{person}-{n}");
                    assert_eq!(insist(daemon, &format!("p{person}"), &text).await, format!("re: {text}"));
                }
            }
        };
        futures_util::future::join_all((0..6).map(talk)).await
    };
    let cutter = async {
        loop {
            tokio::time::sleep(Duration::from_millis(170)).await;
            chaos.cut_connections();
        }
    };
    tokio::select! {
        _ = people => {}
        () = cutter => {}
    }
    assert!(chaos.lost_count() > 5, "only {} answers were lost", chaos.lost_count());
    for person in 0..6 {
        for n in 0..6 {
            let text = format!("p{person}-{n}");
            daemon.assert_answered_once(&format!("p{person}"), &text, &format!("re: {text}")).await;
        }
    }
    daemon.assert_alive();
}

/// Writes a file, then changes it with a tool that must not run twice, then returns that tool's result.
fn edit(request: &ReceivedRequest) -> ReplyScript {
    let asked = request.last_user_text().to_owned();
    let file = format!("{asked}.txt");
    let results: Vec<_> = request.messages().iter().filter(|message| message["role"] == "tool").collect();
    match results.len() {
        0 => ReplyScript::new().call("w", "write_file", json!({ "path": file, "content": "start" })),
        1 => ReplyScript::new().call(
            "e",
            "edit_file",
            json!({ "path": file, "old_text": "start", "new_text": "start+1" }),
        ),
        _ => ReplyScript::reply(format!("{asked}: {}", results[1]["content"])),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_response_to_any_commit_of_a_turn_changes_nothing() {
    let model = ModelServer::start();
    model.answer_with(edit);
    let (daemon, chaos, _) = start(&model).await;
    let whole = insist(&daemon, "n0", "n0").await;
    let done = whole.strip_prefix("n0: ").unwrap().replace("n0", "?");
    for n in 1..=12 {
        let name = format!("n{n}");
        chaos.lose_answers(b"COMMIT", n, 1);
        let reply = insist(&daemon, &name, &name).await;
        assert_eq!(reply.replace(&name, "?"), format!("?: {done}"), "commit {n}\n{}", daemon.log());
        let file = daemon.home.join("workspace").join(format!("{name}.txt"));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "start+1", "commit {n}");
        let roles: Vec<_> = daemon.transcript(&name).await.into_iter().map(|(role, _)| role).collect();
        let expected = ["user", "assistant", "tool", "assistant", "tool", "assistant"];
        assert_eq!(roles, expected, "commit {n}");
    }
    assert!(chaos.lost_count() >= 8, "a turn has that many commits: {}", chaos.lost_count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turn_survives_ten_second_database_outage() {
    let model = ModelServer::start();
    let gate = ReplyGate::new();
    model.push(ReplyScript::new().gate(&gate).text("re: early"));
    model.answer_with(|request| ReplyScript::reply(format!("re: {}", request.last_user_text())));
    let (mut daemon, chaos, _) = start(&model).await;
    assert_eq!(daemon.say("early", "early", 0).await.unwrap().status, 202);
    model.wait_for_requests(1).await;
    let (gone, waiting) = (Instant::now(), daemon.say("early", "early", 25));
    let outage = async {
        // A client that waits for a pending answer gets no failure.
        tokio::time::sleep(Duration::from_millis(300)).await;
        chaos.set_mode(ProxyMode::Gone);
        gate.open();
        while daemon.ready().await == 200 {
            assert!(gone.elapsed() < Duration::from_secs(20), "ready without a database");
        }
        while gone.elapsed() < Duration::from_secs(10) {
            let refused = daemon.say("late", "late", 0).await.unwrap();
            assert_eq!((refused.status, refused.code()), (503, "store_unavailable"), "{refused:?}");
            assert_eq!(daemon.ready().await, 503);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        chaos.set_mode(ProxyMode::Fair);
    };
    let (waited, ()) = tokio::join!(waiting, outage);
    let waited = waited.unwrap();
    assert_eq!(waited.reply(), "re: early", "{waited:?}\n{}", daemon.log());
    daemon.wait_ready().await;
    assert_eq!(insist(&daemon, "late", "late").await, "re: late");
    daemon.assert_answered_once("early", "early", "re: early").await;
    daemon.assert_answered_once("late", "late", "re: late").await;
    assert_eq!(model.request_count(), 2, "the model was called again for a stored answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_database_is_reported_not_ready() {
    let model = ModelServer::start();
    let (mut daemon, chaos, _) = start(&model).await;
    chaos.set_mode(ProxyMode::Silent);
    chaos.cut_connections();
    assert_eq!(daemon.ready().await, 503);
    let saying = daemon.say("me", "hello", 20);
    let healing = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        chaos.set_mode(ProxyMode::Fair);
    };
    let (answer, ()) = tokio::join!(saying, healing);
    assert_eq!(answer.unwrap().reply(), "echo: hello", "{}", daemon.log());
    daemon.wait_ready().await;
    chaos.set_mode(ProxyMode::Slow(Duration::from_millis(5)));
    assert_eq!(insist(&daemon, "me", "slowly").await, "echo: slowly");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turn_survives_read_only_database() {
    let model = ModelServer::start();
    let gate = ReplyGate::new();
    model.push(ReplyScript::new().gate(&gate).text("re: early"));
    let (mut daemon, chaos, database) = start(&model).await;
    assert_eq!(daemon.say("early", "early", 0).await.unwrap().status, 202);
    model.wait_for_requests(1).await;
    let name = database.rsplit_once('/').unwrap().1;
    let read_only = |word: &str| {
        let statement = format!("ALTER DATABASE {name} {word} default_transaction_read_only");
        let statement = if word == "SET" { statement + " = on" } else { statement };
        PostgresCluster::for_process().run_sql(&statement).unwrap();
        chaos.cut_connections();
    };
    read_only("SET");
    gate.open();
    for _ in 0..5 {
        let refused = daemon.say("late", "late", 0).await.unwrap();
        assert_eq!((refused.status, refused.code()), (503, "store_read_only"), "{refused:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    read_only("RESET");
    assert_eq!(insist(&daemon, "early", "early").await, "re: early");
    assert_eq!(insist(&daemon, "late", "late").await, "echo: late");
    daemon.assert_answered_once("early", "early", "re: early").await;
    assert_eq!(model.request_count(), 2);
    daemon.assert_alive();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_waits_for_unavailable_database_and_reports_it() {
    let model = ModelServer::start();
    model.answer_with(|_| ReplyScript::reply("here"));
    let database = PostgresCluster::for_process().fresh_database().unwrap();
    let (chaos, url) = ChaosProxy::in_front_of_url(&database);
    chaos.set_mode(ProxyMode::Gone);
    let mut daemon =
        Daemon::spawn(&config(&model, &format!("[store]\nurl = \"{url}\"")), |program, _| program);
    let began = Instant::now();
    while daemon.ready().await != 503 {
        daemon.assert_alive();
        assert!(began.elapsed() < PATIENCE, "no response: {}", daemon.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(daemon.get("/ready").await["error"]["code"], "store_unavailable");
    let refused = daemon.say("me", "hi", 1).await.unwrap();
    assert_eq!((refused.status, refused.code()), (503, "store_unavailable"));
    chaos.set_mode(ProxyMode::Fair);
    daemon.wait_ready().await;
    assert_eq!(insist(&daemon, "me", "hi").await, "here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_gives_up_on_database_after_wait_seconds() {
    let model = ModelServer::start();
    let database = PostgresCluster::for_process().fresh_database().unwrap();
    let (chaos, url) = ChaosProxy::in_front_of_url(&database);
    chaos.set_mode(ProxyMode::Gone);
    let rest = format!("[store]\nurl = \"{url}\"\nwait_seconds = 1");
    let mut daemon = Daemon::spawn(&config(&model, &rest), |program, _| program);
    assert!(daemon.ends_within(PATIENCE).await, "it waits on: {}", daemon.log());
    assert!(daemon.stderr().contains("store_unavailable"), "{}", daemon.stderr());
}
