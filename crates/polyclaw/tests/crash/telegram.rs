//! SIGKILL of a process that talks to a chat platform: commands, messages that several agents answer, and what is sent.

use std::time::Duration;

use polyclaw_domain::fault::KillPoint;
use polyclaw_testkit::model_server::{ModelServer, Request, Script};
use polyclaw_testkit::platform::telegram::Telegram;

use crate::daemon::{Daemon, Home};

const TOKEN: &str = "1:bot";
const GROUP: i64 = -100;
const OWNER: i64 = 5;
const KILLS: usize = 3;

/// Where the way of a letter differs from that of other messages, and where something is sent.
const POINTS: [KillPoint; 7] = [
    KillPoint::ReceiptBefore,
    KillPoint::ReceiptCommitted,
    KillPoint::RoundStored,
    KillPoint::SeatTaken,
    KillPoint::OutboxSending,
    KillPoint::OutboxAccepted,
    KillPoint::OutboxRecorded,
];

fn answer(request: &Request) -> Script {
    let asked = request.last_user_text();
    let id = asked.rsplit("task ").next().unwrap_or_default().split_whitespace().next().unwrap_or_default();
    Script::reply(format!("done {id}"))
}

fn config(model: &ModelServer, telegram: &Telegram) -> String {
    format!(
        "[providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [agents]\ndefault = \"main\"\n[agents.defaults]\nmodel = \"scripted/m\"\n\
         [[agents.list]]\nid = \"main\"\nname = \"Main\"\n[[agents.list]]\nid = \"second\"\nname = \"Second\"\n\
         [broadcast]\n\"{GROUP}\" = [\"main\", \"second\"]\n\
         [channels.telegram.default]\nbot_token = \"{TOKEN}\"\napi_url = \"{}\"\n\
         dm_policy = \"allowlist\"\nallow_from = [\"{OWNER}\"]\nowners = [\"{OWNER}\"]\n\
         group_policy = \"open\"\nrequire_mention = false\n",
        model.url(),
        telegram.api_url()
    )
}

/// Waits until the platform has nothing left to deliver, and the outbox nothing to send.
async fn settled(daemon: &Daemon, telegram: &Telegram) {
    for _ in 0..2_000 {
        let status = daemon.get("/api/v1/status").await;
        let pending = daemon.get("/api/v1/outbox?state=pending").await;
        let sending = daemon.get("/api/v1/outbox?state=sending").await;
        let is_empty = |list: &serde_json::Value| list["outbox"].as_array().is_some_and(Vec::is_empty);
        let idle = status["running"] == 0 && status["waiting"] == 0;
        if telegram.unconfirmed(TOKEN) == 0 && idle && is_empty(&pending) && is_empty(&sending) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never comes to rest: {}", daemon.get("/api/v1/status").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_on_a_chat_platform_nothing_is_lost_and_nothing_shown_twice() {
    let (model, telegram) = (ModelServer::start(), Telegram::start());
    model.answer(answer);
    telegram.bot(TOKEN, 1, "polly_bot");
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&folder.path().join("home"), &config(&model, &telegram));
    for point in POINTS {
        let mut deaths = 0;
        for n in 0..KILLS {
            let id = format!("{}{n}", point.as_str().replace('.', ""));
            let mut daemon = home.start(Some(&format!("{}:1", point.as_str()))).await;
            telegram.say_in(TOKEN, GROUP, None, &format!("task {id}"));
            telegram.say(TOKEN, OWNER, "/whoami");
            deaths += usize::from(daemon.dies(Duration::from_secs(10)).await);
            drop(daemon);
            let daemon = home.start(None).await;
            telegram.until("all is confirmed", |telegram| telegram.unconfirmed(TOKEN) == 0).await;
            for name in ["Main", "Second"] {
                once(&daemon, &telegram, &format!("{name}: done {id}"), point).await;
            }
            settled(&daemon, &telegram).await;
        }
        assert!(deaths > 0, "{point:?} was never reached");
    }
    let answers = telegram.visible().iter().filter(|shown| shown.chat == OWNER.to_string()).count();
    let all = POINTS.len() * KILLS;
    assert!(answers <= all && answers + 3 * KILLS >= all, "{answers} of {all} commands were answered");
}

/// Shown once; or, where the process died while it was sent, at most once and held for a person.
async fn once(daemon: &Daemon, telegram: &Telegram, text: &str, point: KillPoint) {
    let shown = || telegram.visible().iter().filter(|shown| shown.text == text).count();
    for _ in 0..2_000 {
        let unknown = daemon.get("/api/v1/outbox?state=unknown").await.to_string().contains(text);
        match (shown(), unknown) {
            (1, _) | (0, true) => return,
            (0, false) => tokio::time::sleep(Duration::from_millis(10)).await,
            (count, _) => panic!("{point:?}: '{text}' is shown {count} times"),
        }
    }
    panic!("{point:?}: '{text}' is lost");
}
