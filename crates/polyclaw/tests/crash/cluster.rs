//! Two daemons on one PostgreSQL database are one gateway.

use std::time::Duration;

use futures_util::future::join_all;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use polyclaw_testkit::postgres::PostgresCluster;
use serde_json::Value;

use crate::daemon::{Daemon, Home, PATIENCE};

fn config(model: &str, database: &str) -> String {
    format!(
        "[store]\nurl = \"{database}\"\n[turns]\nlease_seconds = 2\n\
         [providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{model}\"\nmodels = [\"m\"]\n\
         [agents.defaults]\nmodel = \"scripted/m\"\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turn_of_killed_daemon_is_finished_by_other_node() {
    let database = PostgresCluster::for_process().fresh_database().unwrap();
    let model = ModelServer::start();
    model.answer_with(|request| {
        ReplyScript::new().chunks(&format!("re: {}", request.last_user_text()), 4, Duration::from_millis(200))
    });
    let folder = tempfile::tempdir().unwrap();
    let config = config(&model.url(), &database);
    let homes = [Home::new(&folder.path().join("a"), &config), Home::new(&folder.path().join("b"), &config)];
    let mut first = homes[0].start(None).await;
    let accepted = first.say("agent:main:web:dm:x", "hello", 0).await.unwrap();
    assert_eq!(accepted["duplicate"], false);
    model.wait_for_requests(1).await;
    first.kill();
    let second = homes[1].start(None).await;
    let reply = second.say("agent:main:web:dm:x", "hello", 30).await.unwrap();
    assert_eq!(
        (&reply["duplicate"], &reply["reply"]["text"]),
        (&true.into(), &"re: hello".into()),
        "{reply}"
    );
    let transcript = second.get("/api/v1/sessions/agent%3Amain%3Aweb%3Adm%3Ax/transcript").await;
    assert_eq!(transcript["messages"].as_array().unwrap().len(), 2, "{transcript:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_daemons_never_run_two_turns_of_a_session() {
    let database = PostgresCluster::for_process().fresh_database().unwrap();
    let model = ModelServer::start();
    model.answer_with(|request| {
        ReplyScript::reply(format!("re: {}", request.last_user_text())).wait(Duration::from_millis(20))
    });
    let folder = tempfile::tempdir().unwrap();
    let config = config(&model.url(), &database);
    let homes = [Home::new(&folder.path().join("a"), &config), Home::new(&folder.path().join("b"), &config)];
    let daemons = [homes[0].start(None).await, homes[1].start(None).await];
    let mut asked = Vec::new();
    for session in 0..8 {
        for n in 0..5 {
            // Consecutive messages of one session go to different nodes.
            let daemon = &daemons[n % 2];
            asked.push(daemon.say_later(format!("agent:main:web:dm:s{session}"), format!("m{session}-{n}")));
        }
    }
    for task in asked {
        let reply = task.await.unwrap().unwrap();
        assert!(reply["reply"]["text"].as_str().is_some_and(|text| text.starts_with("re: ")), "{reply}");
    }
    for session in 0..8 {
        assert_no_turns_overlap(&daemons[0], &format!("agent:main:web:dm:s{session}")).await;
    }
}

async fn assert_no_turns_overlap(daemon: &Daemon, session: &str) {
    let path = format!("/api/v1/turns?session={}&limit=100", session.replace(':', "%3A"));
    let turns = daemon.get(&path).await;
    let span = |turn: &Value| (turn["started_at"].to_string(), turn["ended_at"].to_string());
    let mut spans: Vec<(String, String)> = turns["turns"].as_array().unwrap().iter().map(span).collect();
    assert!(!spans.is_empty(), "{turns}");
    spans.sort();
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "turns overlap: {spans:?}");
}

/// Kill points within a turn.
const POINTS: [KillPoint; 7] = [
    KillPoint::IngressCommitted,
    KillPoint::TurnClaimed,
    KillPoint::PromptBuilt,
    KillPoint::MidStream,
    KillPoint::ReplyReceived,
    KillPoint::FinishBefore,
    KillPoint::FinishCommitted,
];
const SESSIONS: usize = 6;
const MESSAGES: usize = 4;

/// A client that alternates between the nodes, and retries at the other node if one does not respond.
async fn send_to_alternating_nodes(session: &str, daemons: [&Daemon; 2]) {
    for n in 0..MESSAGES {
        let text = format!("m{n} of {session}");
        let mut answer = daemons[n % 2].say(session, &text, 50).await;
        if answer.is_err() {
            answer = daemons[(n + 1) % 2].say(session, &text, 50).await;
        }
        let reply = answer.unwrap();
        assert_eq!(reply["reply"]["text"], format!("re: {text}"), "{reply}");
    }
}

/// Asserts that each message is stored once, followed by its answer, once.
async fn assert_each_message_answered_once(daemon: &Daemon, session: &str) {
    let path = format!("/api/v1/sessions/{}/transcript", session.replace(':', "%3A"));
    let transcript = daemon.get(&path).await;
    let lines = transcript["messages"].as_array().unwrap().iter();
    let replies: Vec<&str> = lines.filter_map(|line| line["text"].as_str()).collect();
    let texts = (0..MESSAGES).map(|n| format!("m{n} of {session}"));
    let wanted: Vec<String> = texts.flat_map(|text| [text.clone(), format!("re: {text}")]).collect();
    assert_eq!(replies, wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_one_of_two_daemons_answers_each_message_once() {
    let database = PostgresCluster::for_process().fresh_database().unwrap();
    let model = ModelServer::start();
    model.answer_with(|request| {
        ReplyScript::new().chunks(&format!("re: {}", request.last_user_text()), 3, Duration::from_millis(20))
    });
    let folder = tempfile::tempdir().unwrap();
    let config = config(&model.url(), &database);
    let homes = [Home::new(&folder.path().join("a"), &config), Home::new(&folder.path().join("b"), &config)];
    let daemon = homes[1].start(None).await;
    for (round, point) in POINTS.into_iter().enumerate() {
        let mut dies = homes[0].start(Some(&format!("{}:3", point.as_str()))).await;
        let names: Vec<String> = (0..SESSIONS).map(|n| format!("agent:main:web:dm:r{round}s{n}")).collect();
        join_all(names.iter().map(|name| send_to_alternating_nodes(name, [&dies, &daemon]))).await;
        assert!(dies.dies(PATIENCE).await, "{point:?} was never reached");
        for name in &names {
            assert_each_message_answered_once(&daemon, name).await;
            assert_no_turns_overlap(&daemon, name).await;
        }
    }
}
