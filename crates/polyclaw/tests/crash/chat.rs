//! SIGKILL of a process that talks to a chat platform: commands, messages that several agents answer, and what is sent.
//! The same scenario on five platforms.

mod platforms;

use std::time::Duration;

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::port::BoxFuture;
use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use polyclaw_testkit::platform::telegram::VisibleMessage;

use crate::daemon::{Daemon, Home, PATIENCE};

/// Kill points in which chat messages differ from others, and those of sending.
const POINTS: [KillPoint; 8] = [
    KillPoint::IngressCommitted,
    KillPoint::ReplyOnceBefore,
    KillPoint::ReplyOnceCommitted,
    KillPoint::BroadcastStored,
    KillPoint::BroadcastTargetAccepted,
    KillPoint::OutboxSending,
    KillPoint::OutboxAccepted,
    KillPoint::OutboxRecorded,
];

/// A platform with one account, its owner, and a group in which two agents answer.
trait Chat: Sync {
    /// The config section of the account.
    fn account(&self) -> String;
    /// The platform's own ids of the owner and of the group.
    fn people(&self) -> [&'static str; 2];
    /// A person writes in the group.
    fn say_in_group(&self, text: &str);
    /// The owner writes in the direct conversation with this id.
    fn say_alone(&self, text: &str) -> &'static str;
    /// The visible messages of the account.
    fn visible(&self) -> Vec<VisibleMessage>;
    /// Whether the platform has nothing left to deliver, as far as it knows.
    fn is_heard(&self) -> bool;
    /// Lets a webhook platform deliver now.
    fn call<'a>(&'a self, _daemon: &'a Daemon) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
    /// Whether the platform deduplicates by key, so that no message has to be held.
    fn recognises(&self) -> bool {
        false
    }
    /// Messages from now on are received, even by a process that starts later.
    fn is_met(&self) -> bool {
        true
    }
}

fn answer(request: &ReceivedRequest) -> ReplyScript {
    let asked = request.last_user_text();
    let id = asked.rsplit("task ").next().unwrap_or_default().split_whitespace().next().unwrap_or_default();
    ReplyScript::reply(format!("done {id}"))
}

fn config(model: &ModelServer, chat: &dyn Chat) -> String {
    let [owner, group] = chat.people();
    format!(
        "[providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [agents]\ndefault = \"main\"\n[agents.defaults]\nmodel = \"scripted/m\"\n\
         [[agents.list]]\nid = \"main\"\nname = \"Main\"\n[[agents.list]]\nid = \"second\"\nname = \"Second\"\n\
         [broadcast]\n\"{group}\" = [\"main\", \"second\"]\n{}\n\
         dm_policy = \"allowlist\"\nallow_from = [\"{owner}\"]\nowners = [\"{owner}\"]\n\
         group_policy = \"open\"\nrequire_mention = false\n",
        model.url(),
        chat.account()
    )
}

/// Polls with a time limit.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..2_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out waiting for: {what}");
}

/// Waits until the platform has nothing to deliver and the outbox nothing to send.
async fn is_settled(daemon: &Daemon, chat: &dyn Chat) -> bool {
    chat.call(daemon).await;
    let status = daemon.get("/api/v1/status").await;
    let mut left = 0;
    for state in ["pending", "sending"] {
        let list = daemon.get(&format!("/api/v1/outbox?state={state}")).await;
        left += list["outbox"].as_array().map_or(1, Vec::len);
    }
    chat.is_heard() && status["running"] == 0 && status["waiting"] == 0 && left == 0
}

async fn killed_anywhere(chat: &dyn Chat) {
    let model = ModelServer::start();
    model.answer_with(answer);
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&folder.path().join("home"), &config(&model, chat));
    let first = home.start(None).await;
    until("the platform knows the account", async || chat.is_met()).await;
    let place = chat.say_alone("task hello");
    chat.call(&first).await;
    until("the owner is known", async || is_shown_once(&first, chat, "done hello").await).await;
    until("it becomes idle", async || is_settled(&first, chat).await).await;
    drop(first);
    for point in POINTS {
        let id = point.as_str().replace('.', "");
        let mut daemon = home.start(Some(&format!("{}:1", point.as_str()))).await;
        chat.say_in_group(&format!("task {id}"));
        chat.say_alone("/whoami");
        chat.call(&daemon).await;
        assert!(daemon.dies(PATIENCE).await, "{point:?} was never reached");
        drop(daemon);
        let daemon = home.start(None).await;
        chat.call(&daemon).await;
        for name in ["Main", "Second"] {
            let text = format!("{name}: done {id}");
            until("it is answered", async || is_shown_once(&daemon, chat, &text).await).await;
        }
        until("it becomes idle", async || is_settled(&daemon, chat).await).await;
        for name in ["Main", "Second"] {
            assert!(is_shown_once(&daemon, chat, &format!("{name}: done {id}")).await, "{point:?}");
        }
    }
    // The process may die while it answers a command. The answer is held if a repeat would be shown twice.
    let answers = chat.visible().iter().filter(|shown| shown.chat == place).count() - 1;
    let held = if chat.recognises() { 0 } else { 3 };
    assert!((POINTS.len() - held..=POINTS.len()).contains(&answers), "{answers} commands were answered");
}

/// Or, if the process died while sending, not at all and held for a person.
async fn is_shown_once(daemon: &Daemon, chat: &dyn Chat, text: &str) -> bool {
    let held = daemon.get("/api/v1/outbox?state=unknown").await.to_string().contains(text);
    match chat.visible().iter().filter(|shown| shown.text == text).count() {
        0 => held && !chat.recognises(),
        1 => true,
        count => panic!("'{text}' is shown {count} times"),
    }
}
