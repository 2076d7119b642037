//! Two daemons on one PostgreSQL database with one chat account: one of them holds its lease at a time.

use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use polyclaw_testkit::platform::telegram::TelegramEmulator;
use polyclaw_testkit::postgres::PostgresCluster;
use tempfile::TempDir;

use crate::daemon::{Daemon, Home, PATIENCE};

const TOKEN: &str = "1:bot";

/// A bot and two daemons that could both serve it, each with its own slow model.
struct Stage {
    telegram: TelegramEmulator,
    models: [ModelServer; 2],
    daemons: Vec<Daemon>,
    _folder: TempDir,
}

impl Stage {
    /// `slots` is the number of concurrent turns of the daemon that starts first.
    async fn set(lease_seconds: u32, slots: usize) -> Self {
        let database = PostgresCluster::for_process().fresh_database().unwrap();
        let (telegram, models) = (TelegramEmulator::start(), [model(), model()]);
        telegram.add_bot(TOKEN, 1, "polly_bot");
        let folder = tempfile::tempdir().unwrap();
        let mut daemons = Vec::new();
        for (name, slots, model) in [("a", slots, &models[0]), ("b", 8, &models[1])] {
            let config = format!(
                "[store]\nurl = \"{database}\"\n[turns]\nlease_seconds = {lease_seconds}\n\
                 [lanes]\nmain = {slots}\n[session]\ndm_scope = \"per-channel-peer\"\n\
                 [providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
                 [agents.defaults]\nmodel = \"scripted/m\"\n\
                 [channels.telegram.default]\nbot_token = \"{TOKEN}\"\napi_url = \"{}\"\n\
                 dm_policy = \"open\"\n",
                model.url(),
                telegram.api_url()
            );
            let daemon = Home::new(&folder.path().join(name), &config).start(None).await;
            while daemons.is_empty() && state(&daemon).await.0 != "connected" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            daemons.push(daemon);
        }
        Self { telegram, models, daemons, _folder: folder }
    }

    /// Removes the daemon that holds the account, once the other reports it.
    async fn holder(&mut self) -> Daemon {
        let began = std::time::Instant::now();
        while state(&self.daemons[1]).await.0 != "on_other_node" {
            assert!(began.elapsed() < PATIENCE, "it does not report that the other has the account");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.daemons.remove(0)
    }

    /// Asserts that every message got one answer.
    async fn is_answered(&self, asked: &[&str]) {
        let began = std::time::Instant::now();
        let count = |text: &str| {
            let answer = format!("re: {text}");
            self.telegram.visible_messages().iter().filter(|shown| shown.text == answer).count()
        };
        while asked.iter().any(|text| count(text) == 0) {
            assert!(
                began.elapsed() < PATIENCE,
                "not all is answered: {:?}",
                self.telegram.visible_messages()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for text in asked {
            assert_eq!(count(text), 1, "{text}");
        }
        assert_eq!(
            self.telegram.visible_messages().len(),
            asked.len(),
            "{:?}",
            self.telegram.visible_messages()
        );
    }
}

fn model() -> ModelServer {
    let model = ModelServer::start();
    model.answer_with(|request| {
        let answer = format!("re: {}", request.last_user_text());
        ReplyScript::new().wait(Duration::from_millis(200)).text(answer)
    });
    model
}

/// The account's state at a daemon, and the node that holds it.
async fn state(daemon: &Daemon) -> (String, Option<String>) {
    let channels = daemon.get("/api/v1/channels").await;
    let account = &channels["channels"][0];
    let text = |key: &str| account[key].as_str().map(str::to_owned);
    (text("state").unwrap_or_default(), text("node"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn account_lease_of_killed_node_moves_to_other_node() {
    let mut stage = Stage::set(2, 8).await;
    let mut holder = stage.holder().await;
    let (_, node) = state(&stage.daemons[0]).await;
    assert!(node.is_some_and(|node| node.starts_with("node-")), "it reports the holder");
    for (person, text) in [(5, "one"), (6, "two"), (7, "three")] {
        stage.telegram.send_dm(TOKEN, person, text);
    }
    stage.is_answered(&["one", "two", "three"]).await;
    let requests = stage.models[0].request_count();
    stage.telegram.send_dm(TOKEN, 5, "four");
    stage.models[0].wait_for_requests(requests + 1).await;
    holder.kill();
    stage.telegram.send_dm(TOKEN, 6, "five");
    stage.is_answered(&["one", "two", "three", "four", "five"]).await;
    assert_eq!(state(&stage.daemons[0]).await, ("connected".to_owned(), None));
    assert_eq!(stage.telegram.unconfirmed_count(TOKEN), 0);
    assert_eq!(stage.telegram.max_concurrent_polls(TOKEN), 1, "two nodes never polled concurrently");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_node_releases_its_account_lease() {
    let mut stage = Stage::set(600, 8).await;
    let mut holder = stage.holder().await;
    holder.terminate();
    assert!(holder.dies(PATIENCE).await);
    stage.telegram.send_dm(TOKEN, 5, "hello");
    stage.is_answered(&["hello"]).await;
}

/// The node that holds the account sends, whichever node ran the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_of_one_node_is_sent_by_account_lease_holder() {
    let mut stage = Stage::set(600, 1).await;
    let _holder = stage.holder().await;
    let asked: Vec<String> = (0..6).map(|n| format!("question {n}")).collect();
    for (person, text) in (5..).zip(&asked) {
        stage.telegram.send_dm(TOKEN, person, text);
    }
    stage.is_answered(&asked.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert!(stage.models[1].request_count() > 0, "the other node has helped");
}
