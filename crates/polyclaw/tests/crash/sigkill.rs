//! SIGKILL at every kill point of the real process, with a platform that redelivers unacknowledged messages.

use std::time::Duration;

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use polyclaw_testkit::platform::{PlatformPost, WebhookPlatform, WebhookSender};
use serde_json::json;

use crate::daemon::{Daemon, Home};

/// Kills per point; with 16 points, more than 200 in all.
const KILLS: usize = 13;

const RECEPTION: [KillPoint; 4] = [
    KillPoint::ReplyOnceBefore,
    KillPoint::ReplyOnceCommitted,
    KillPoint::BroadcastStored,
    KillPoint::BroadcastTargetAccepted,
];

/// Works on `work <id>` with three tools, the last of which must not run twice, and answers `quick <id>` at once.
fn answer(request: &ReceivedRequest) -> ReplyScript {
    let asked = request.last_user_text();
    let word = |after: &str| {
        let at = asked.rfind(after)? + after.len();
        Some(asked[at..].split(|c: char| !c.is_ascii_alphanumeric()).next()?.to_owned())
    };
    if let Some(id) = word("quick ").filter(|_| !asked.contains("[Backlog]")) {
        return ReplyScript::reply(format!("done quick-{id}"));
    }
    let id = word("work ").unwrap_or_default();
    let done = request.messages().iter().filter(|message| {
        let content = message["content"].as_str().unwrap_or_default();
        message["role"] == "tool" && !content.starts_with("Skipped") && !content.starts_with("Not run")
    });
    let file = format!("{id}.txt");
    match done.count() {
        0 => ReplyScript::new().wait(Duration::from_millis(60)).call("a", "list_dir", json!({})),
        1 => ReplyScript::new().call("b", "write_file", json!({ "path": file, "content": "start" })),
        2 => ReplyScript::new().call(
            "c",
            "edit_file",
            json!({ "path": file, "old_text": "start", "new_text": "start+1" }),
        ),
        _ => ReplyScript::new().chunks(&format!("done work-{id}"), 2, Duration::from_millis(10)),
    }
}

struct Stage {
    home: Home,
    platform: WebhookPlatform,
    idempotent: bool,
    model: ModelServer,
    _folder: tempfile::TempDir,
}

impl Stage {
    fn new(idempotent: bool) -> Self {
        let (model, platform) = (ModelServer::start(), WebhookPlatform::start());
        model.answer_with(answer);
        if idempotent {
            platform.dedupe_repeats();
        }
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "[providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
             [agents.defaults]\nmodel = \"scripted/m\"\n\
             [channels.webhook.chat]\nsecret = \"s\"\nreply_url = \"{}\"\nidempotent = {idempotent}\n",
            model.url(),
            platform.reply_url()
        );
        let home = Home::new(&folder.path().join("home"), &config);
        Self { home, platform, idempotent, model, _folder: folder }
    }

    /// One message from the platform and one from a person in the same session, with a kill somewhere between.
    async fn act(&self, point: KillPoint, id: &str) -> bool {
        let mut daemon = self.home.start(Some(&format!("{}:1", point.as_str()))).await;
        let post = PlatformPost::new(&format!("p-{id}"), id, &format!("work {id}"));
        let session = format!("agent:main:webhook:chat:dm:{id}");
        let before = self.model.request_count();
        let delivered = deliver(&daemon, &post).await;
        if delivered && self.is_asked(&mut daemon, before).await {
            // Whether this arrives depends on the kill point; it is repeated below.
            let _ = daemon.say(&session, &format!("quick {id}"), 0).await;
        }
        let died = daemon.dies(Duration::from_secs(10)).await;
        drop(daemon);
        let before = self.model.request_count();
        let mut daemon = self.home.start(None).await;
        if !delivered {
            assert!(deliver(&daemon, &post).await, "redelivery");
            self.is_asked(&mut daemon, before).await;
        }
        let quick = daemon.say(&session, &format!("quick {id}"), 30).await.unwrap();
        assert_eq!(quick["reply"]["text"], format!("done quick-{id}"), "{point:?} {quick}");
        self.check(&daemon, point, id, &session).await;
        died
    }

    /// Waits until the model is working on the first message, so that a second one does not join its turn.
    async fn is_asked(&self, daemon: &mut Daemon, before: usize) -> bool {
        for _ in 0..400 {
            if self.model.request_count() > before {
                return true;
            }
            if daemon.dies(Duration::from_millis(5)).await {
                return false;
            }
        }
        false
    }

    async fn check(&self, daemon: &Daemon, point: KillPoint, id: &str, session: &str) {
        let key = session.replace(':', "%3A");
        let text = format!("done work-{id}");
        for _ in 0..2_000 {
            let status = daemon.get(&format!("/api/v1/sessions/{key}")).await;
            let pending = daemon.get("/api/v1/outbox?state=pending").await;
            let sending = daemon.get("/api/v1/outbox?state=sending").await;
            let idle = status["running_turn_id"].is_null() && status["queued"] == 0;
            let sent = [&pending, &sending].iter().all(|o| o["outbox"].as_array().is_some_and(Vec::is_empty));
            if idle && sent {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let transcript = daemon.get(&format!("/api/v1/sessions/{key}/transcript?limit=200")).await;
        let text_of = |wanted: &str| {
            let messages = transcript["messages"].as_array().unwrap().iter();
            messages.filter(|m| m["role"] == "assistant" && m["text"] == wanted).count()
        };
        assert_eq!(text_of(&text), 1, "{point:?} {id}: {transcript:#}");
        assert_eq!(text_of(&format!("done quick-{id}")), 1, "{point:?} {id}: {transcript:#}");
        let shown = self.platform.visible_texts().iter().filter(|shown| **shown == text).count();
        let unknown = daemon.get("/api/v1/outbox?state=unknown").await.to_string().contains(&text);
        match self.idempotent {
            true => assert_eq!((shown, unknown), (1, false), "{point:?} {id}"),
            false => assert!(
                shown == 1 || shown == 0 && unknown,
                "{point:?} {id}: shown {shown}, unknown {unknown}"
            ),
        }
        let file = self.home.0.join("workspace").join(format!("{id}.txt"));
        let content = std::fs::read_to_string(file).unwrap();
        assert!(content == "start" || content == "start+1", "the effect ran twice: {content}");
    }
}

async fn deliver(daemon: &Daemon, post: &PlatformPost) -> bool {
    let hook = WebhookSender::new(&daemon.url, "chat", "s");
    hook.deliver_post(post).await.is_ok_and(|answer| answer.status < 300)
}

async fn kill_at_all_points(idempotent: bool) {
    let stage = Stage::new(idempotent);
    let mut kills = 0;
    // A webhook is not a chat platform: `telegram.rs` covers their kill points. No agent here is in a team.
    let points = KillPoint::ALL.iter().filter(|point| !RECEPTION.contains(point) && !point.is_team_point());
    for point in points {
        let mut here = 0;
        for n in 0..KILLS.div_ceil(2) {
            let id = format!("{}{n}", point.as_str().replace('.', ""));
            here += usize::from(stage.act(*point, &id).await);
        }
        assert!(here > 0, "{point:?} was never reached");
        kills += here;
    }
    assert!(kills >= 100, "only {kills} kills");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigkill_with_idempotent_platform_shows_everything_once() {
    kill_at_all_points(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigkill_without_idempotent_platform_shows_nothing_twice() {
    kill_at_all_points(false).await;
}
