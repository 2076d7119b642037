//! An approval request survives SIGKILL of the real process, and its answer runs the call once.

use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use polyclaw_testkit::platform::telegram::TelegramEmulator;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, PATIENCE};

/// Runs one command that leaves a mark each time, then reports its result.
fn answer(request: &ReceivedRequest) -> ReplyScript {
    let last = request.messages().last().cloned().unwrap_or_default();
    match last["role"] == "tool" {
        true => ReplyScript::reply(format!("done: {}", last["content"].as_str().unwrap_or_default())),
        false => ReplyScript::new().call("c", "shell", json!({ "command": "echo mark >> marks.txt" })),
    }
}

const TOKEN: &str = "1:bot";
/// The owner of the bot.
const ANN: i64 = 5;
/// An approved sender who is not an owner.
const BOB: i64 = 6;

struct Stage {
    home: Home,
    telegram: TelegramEmulator,
    _model: ModelServer,
    _folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let (model, telegram) = (ModelServer::start(), TelegramEmulator::start());
        model.answer_with(answer);
        telegram.add_bot(TOKEN, 1, "polly_bot");
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "[providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
             [agents.defaults]\nmodel = \"scripted/m\"\n[tools]\napprovals = {{ shell = \"always\" }}\n\
             [channels.telegram.default]\nbot_token = \"{TOKEN}\"\napi_url = \"{}\"\n\
             owners = [\"{ANN}\"]\nallow_from = [\"{BOB}\"]\n",
            model.url(),
            telegram.api_url()
        );
        let home = Home::new(&folder.path().join("home"), &config);
        Self { home, telegram, _model: model, _folder: folder }
    }

    fn marks(&self) -> usize {
        let text = std::fs::read_to_string(self.home.0.join("workspace/marks.txt")).unwrap_or_default();
        text.lines().count()
    }

    /// Waits for a message on the platform that contains this text.
    async fn shown(&self, words: &str) -> String {
        let found = |telegram: &TelegramEmulator| {
            telegram.visible_messages().into_iter().map(|one| one.text).find(|text| text.contains(words))
        };
        self.telegram.wait_until(words, |telegram| found(telegram).is_some()).await;
        found(&self.telegram).unwrap()
    }

    async fn asks(&self) -> String {
        self.telegram.send_dm(TOKEN, ANN, "make a mark");
        self.shown("/approve").await
    }

    async fn answered(&self, whose: i64, id: &str, words: &str) {
        self.telegram.send_dm(TOKEN, whose, &format!("/approve {id}"));
        self.shown(words).await;
    }
}

async fn pending(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/v1/approvals").await["approvals"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_survives_repeated_sigkill_and_runs_call_once() {
    let stage = Stage::new();
    let mut daemon = stage.home.start(None).await;
    let text = stage.asks().await;
    assert!(text.contains("echo mark >> marks.txt"), "{text}");
    let asked = pending(&daemon).await.remove(0);
    let id = asked["id"].as_str().unwrap().to_owned();
    // More often than a turn may be interrupted.
    for _ in 0..5 {
        daemon.kill();
        daemon = stage.home.start(None).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(pending(&daemon).await, std::slice::from_ref(&asked), "the same question");
    }
    assert_eq!(stage.marks(), 0, "nothing ran without a decision");
    stage.answered(BOB, &id, "did not work").await;
    stage.answered(ANN, &id, "Approved. It runs now.").await;
    stage.shown("done: ").await;
    stage.answered(ANN, &id, "already approved").await;
    daemon.kill();
    let daemon = stage.home.start(None).await;
    let late =
        daemon.post(&format!("/api/v1/approvals/{id}"), &json!({ "decision": "approve" })).await.unwrap();
    assert_eq!(late["error"]["code"], "invalid_state");
    assert_eq!(stage.marks(), 1, "once");
    assert!(pending(&daemon).await.is_empty());
}

/// The approval is stored and the process dies before it runs the call: the next process runs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_approval_is_executed_after_restart() {
    for point in ["intent.stored", "tool.ran", "result.stored"] {
        let stage = Stage::new();
        let mut daemon = stage.home.start(Some(&format!("{point}:1"))).await;
        stage.asks().await;
        let id = pending(&daemon).await[0]["id"].as_str().unwrap().to_owned();
        stage.telegram.send_dm(TOKEN, ANN, &format!("/approve {id}"));
        assert!(daemon.dies(PATIENCE).await, "{point}");
        let daemon = stage.home.start(None).await;
        stage.shown("done: ").await;
        assert!(stage.marks() <= 1, "{point}: a command is not run twice");
        assert!(pending(&daemon).await.is_empty());
        let approval = daemon.get(&format!("/api/v1/approvals/{id}")).await;
        assert_eq!(
            (&approval["state"], &approval["decided_by"]),
            (&json!("approved"), &json!("telegram:default:5"))
        );
    }
}

/// Drained, not killed: a turn that waits for approval does not delay the shutdown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_approval_does_not_delay_shutdown() {
    let stage = Stage::new();
    let mut daemon = stage.home.start(None).await;
    stage.asks().await;
    let asked = pending(&daemon).await;
    daemon.terminate();
    assert!(daemon.dies(Duration::from_secs(8)).await, "it ends immediately");
    let daemon = stage.home.start(None).await;
    assert_eq!(pending(&daemon).await, asked);
}
