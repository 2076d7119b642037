//! The five platforms, and the scenario on each.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_domain::channel::WebhookRequest;
use polyclaw_domain::port::BoxFuture;
use polyclaw_testkit::platform::discord::DiscordEmulator;
use polyclaw_testkit::platform::matrix::MatrixEmulator;
use polyclaw_testkit::platform::slack::SlackEmulator;
use polyclaw_testkit::platform::telegram::{TelegramEmulator, VisibleMessage};
use polyclaw_testkit::platform::whatsapp::{WhatsappEmulator, message_call};
use serde_json::json;

use super::{Chat, killed_anywhere};
use crate::daemon::Daemon;

const TOKEN: &str = "1:bot";

impl Chat for TelegramEmulator {
    fn account(&self) -> String {
        format!("[channels.telegram.default]\nbot_token = \"{TOKEN}\"\napi_url = \"{}\"", self.api_url())
    }

    fn people(&self) -> [&'static str; 2] {
        ["5", "-100"]
    }

    fn say_in_group(&self, text: &str) {
        self.send_in_group(TOKEN, -100, None, text);
    }

    fn say_alone(&self, text: &str) -> &'static str {
        self.send_dm(TOKEN, 5, text);
        "5"
    }

    fn visible(&self) -> Vec<VisibleMessage> {
        TelegramEmulator::visible_messages(self)
    }

    fn is_heard(&self) -> bool {
        self.unconfirmed_count(TOKEN) == 0
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telegram_kills_lose_and_repeat_no_message() {
    let telegram = TelegramEmulator::start();
    telegram.add_bot(TOKEN, 1, "polly_bot");
    killed_anywhere(&telegram).await;
}

impl Chat for DiscordEmulator {
    fn account(&self) -> String {
        format!("[channels.discord.default]\nbot_token = \"{TOKEN}\"\napi_url = \"{}\"", self.api_url())
    }

    fn recognises(&self) -> bool {
        true
    }

    fn people(&self) -> [&'static str; 2] {
        ["5", "100"]
    }

    fn say_in_group(&self, text: &str) {
        self.send_in_channel(TOKEN, "100", text, json!({}));
    }

    fn say_alone(&self, text: &str) -> &'static str {
        self.send_dm(TOKEN, "5", text);
        "95"
    }

    fn visible(&self) -> Vec<VisibleMessage> {
        DiscordEmulator::visible_messages(self)
    }

    /// It does not check whether a message was received.
    fn is_heard(&self) -> bool {
        true
    }

    /// Messages of unknown senders are lost while no process listens.
    fn is_met(&self) -> bool {
        self.opening_counts(TOKEN).0 > 0
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discord_kills_lose_and_repeat_no_message() {
    let discord = DiscordEmulator::start(40_000);
    discord.add_bot(TOKEN, "1");
    discord.add_channel("100", "g1", None);
    killed_anywhere(&discord).await;
}

/// Slack, and the number of messages on it.
struct Workspace {
    slack: SlackEmulator,
    said: AtomicUsize,
}

impl Workspace {
    fn deliver(&self, kind: &str, channel: &str, text: &str) {
        let ts = format!("{}.0", self.said.fetch_add(1, Ordering::Relaxed) + 1);
        let event = json!({ "type": "message", "channel_type": kind, "channel": channel, "user": "U5", "ts": ts,
            "text": text });
        self.slack.deliver_event("work", &event);
    }
}

impl Chat for Workspace {
    fn account(&self) -> String {
        let url = self.slack.api_url();
        format!(
            "[channels.slack.default]\nbot_token = \"xoxb-work\"\napp_token = \"xapp-work\"\napi_url = \"{url}\""
        )
    }

    fn people(&self) -> [&'static str; 2] {
        ["U5", "C1"]
    }

    fn say_in_group(&self, text: &str) {
        self.deliver("channel", "C1", text);
    }

    fn say_alone(&self, text: &str) -> &'static str {
        self.deliver("im", "D1", text);
        "D1"
    }

    fn visible(&self) -> Vec<VisibleMessage> {
        self.slack.visible_messages()
    }

    fn is_heard(&self) -> bool {
        self.slack.acknowledged_count() == self.said.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slack_kills_lose_and_repeat_no_message() {
    killed_anywhere(&Workspace { slack: SlackEmulator::start(), said: AtomicUsize::new(0) }).await;
}

/// WhatsApp, and the messages that Meta redelivers until they are acknowledged.
struct Meta {
    whatsapp: WhatsappEmulator,
    waiting: Mutex<Vec<WebhookRequest>>,
    said: AtomicUsize,
}

const NUMBER: &str = "100";
const SECRET: &str = "app-s3cret";
const GROUP: &str = "Y2FwaV9ncm91cDox";

impl Meta {
    fn write(&self, text: &str, group: Option<&str>) {
        let id = format!("wamid.{}", self.said.fetch_add(1, Ordering::Relaxed));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().to_string();
        let mut message =
            json!({ "from": "49151", "id": id, "timestamp": now, "type": "text", "text": { "body": text } });
        if let Some(group) = group {
            message["group_id"] = json!(group);
        }
        self.waiting.lock().unwrap().push(message_call(SECRET, NUMBER, &[message]));
    }
}

impl Chat for Meta {
    fn account(&self) -> String {
        let url = self.whatsapp.api_url();
        format!(
            "[channels.whatsapp.default]\naccess_token = \"EAA-{NUMBER}\"\nphone_number_id = \"{NUMBER}\"\n\
             app_secret = \"{SECRET}\"\nverify_token = \"v\"\napi_url = \"{url}\""
        )
    }

    fn people(&self) -> [&'static str; 2] {
        ["49151", GROUP]
    }

    fn say_in_group(&self, text: &str) {
        self.write(text, Some(GROUP));
    }

    fn say_alone(&self, text: &str) -> &'static str {
        self.write(text, None);
        "49151"
    }

    fn visible(&self) -> Vec<VisibleMessage> {
        self.whatsapp.visible_messages()
    }

    fn is_heard(&self) -> bool {
        self.waiting.lock().unwrap().is_empty()
    }

    fn call<'a>(&'a self, daemon: &'a Daemon) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
            for call in waiting {
                if !daemon.called("whatsapp", &call).await {
                    self.waiting.lock().unwrap().push(call);
                }
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatsapp_kills_lose_and_repeat_no_message() {
    let (waiting, text) = (Mutex::default(), AtomicUsize::new(0));
    killed_anywhere(&Meta { whatsapp: WhatsappEmulator::start(), waiting, said: text }).await;
}

const CLAW: &str = "@claw:hs";
const ANN: &str = "@ann:hs";

impl Chat for MatrixEmulator {
    fn account(&self) -> String {
        format!(
            "[channels.matrix.default]\nhomeserver = \"{}\"\nuser_id = \"{CLAW}\"\npassword = \"pw-claw\"",
            self.url()
        )
    }

    fn recognises(&self) -> bool {
        true
    }

    fn people(&self) -> [&'static str; 2] {
        [ANN, "!group:hs"]
    }

    fn say_in_group(&self, text: &str) {
        self.send_text("!group:hs", ANN, text);
    }

    fn say_alone(&self, text: &str) -> &'static str {
        self.send_text("!alone:hs", ANN, text);
        "!alone:hs"
    }

    fn visible(&self) -> Vec<VisibleMessage> {
        MatrixEmulator::visible_messages(self)
    }

    /// It does not report how far its stream was read.
    fn is_heard(&self) -> bool {
        true
    }

    /// Messages before the first start are not answered.
    fn is_met(&self) -> bool {
        self.stored_count() > 0
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matrix_kills_lose_and_repeat_no_message() {
    let matrix = MatrixEmulator::start();
    matrix.add_room("!group:hs", &[ANN, "@bob:hs", CLAW]);
    matrix.add_room("!alone:hs", &[ANN, CLAW]);
    killed_anywhere(&matrix).await;
}
