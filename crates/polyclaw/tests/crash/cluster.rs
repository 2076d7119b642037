//! Two daemons on one PostgreSQL database are one gateway.

use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, Script};
use polyclaw_testkit::postgres::Cluster;

use crate::daemon::Home;

fn config(model: &str, database: &str) -> String {
    format!(
        "[store]\nurl = \"{database}\"\n[turns]\nlease_seconds = 2\n\
         [providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{model}\"\nmodels = [\"m\"]\n\
         [agents.defaults]\nmodel = \"scripted/m\"\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_daemons_turn_is_finished_by_the_other() {
    let database = Cluster::of_process().fresh_database().unwrap();
    let model = ModelServer::start();
    model.answer(|request| {
        Script::new().chunks(&format!("re: {}", request.last_user_text()), 4, Duration::from_millis(200))
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
async fn two_daemons_share_the_work_and_no_session_has_two_turns() {
    let database = Cluster::of_process().fresh_database().unwrap();
    let model = ModelServer::start();
    model.answer(|request| {
        Script::reply(format!("re: {}", request.last_user_text())).wait(Duration::from_millis(20))
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
        let path = format!("/api/v1/turns?session=agent%3Amain%3Aweb%3Adm%3As{session}&limit=100");
        let turns = daemons[0].get(&path).await;
        let mut spans: Vec<(String, String)> = turns["turns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|turn| (turn["started_at"].to_string(), turn["ended_at"].to_string()))
            .collect();
        spans.sort();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "turns overlap: {spans:?}");
    }
}
