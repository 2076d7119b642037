//! Telegram through a Bot API that nobody here wrote: `telegram-test-api`. It does not wait when it is asked for
//! updates, and gives each of them once.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use polyclaw_channel::telegram::TelegramAdapter;
use polyclaw_domain::channel::{ChannelAdapter, SendOutcome};
use serde_json::{Value, json};

use crate::fixture::{ChannelFixture, PACE, PlatformFixture, letters_of, outgoing};

const TOKEN: &str = "123:emulated";

/// Ends with its standard input, so with this process at the latest.
struct Emulator {
    child: Child,
    url: String,
    client: reqwest::Client,
}

impl Emulator {
    fn start() -> Self {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/telegram/emulator.mjs");
        let mut node = Command::new("node");
        let node = node.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().expect("node is missing: run `scripts/need.sh rust`");
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "the emulator is missing: run `scripts/need.sh rust`");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { child, url: url.trim().to_owned(), client }
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}/{path}", self.url)).json(body);
        request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    }

    async fn say(&self, person: i64, text: &str) {
        let from = json!({ "id": person, "first_name": "Ann", "username": "ann", "is_bot": false });
        let chat = json!({ "id": person, "type": "private", "title": "Ann" });
        let message = json!({ "botToken": TOKEN, "from": from, "chat": chat, "date": 1, "text": text });
        self.post("sendMessage", &message).await;
    }

    /// What a person sees of the bot that they have not seen yet.
    async fn seen(&self, person: i64) -> Vec<String> {
        let answer = self.post("getUpdates", &json!({ "token": TOKEN, "chatId": person })).await;
        let messages = answer["result"].as_array().unwrap().iter();
        messages.map(|update| update["message"]["text"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn messages_pass_through_third_party_bot_api() {
    let emulator = Emulator::start();
    let bot = serde_json::from_value(json!({ "bot_token": TOKEN, "api_url": emulator.url })).unwrap();
    let telegram = Arc::new(
        TelegramAdapter::with_retry_timing(&BTreeMap::from([("main".to_owned(), bot)]), PACE).unwrap(),
    );
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    emulator.say(7, "hello").await;
    emulator.say(8, "/new@TestNameBot now").await;
    emulator.say(7, "grüße 😀").await;
    let messages = fixture.wait_for(3).await;
    assert_eq!(fixture.texts(), ["hello", "/new now", "grüße 😀"]);
    let address = &messages[1].address;
    let sent = telegram.send("k", &outgoing(address, "wait")).await;
    let SendOutcome::Accepted { platform_id: Some(id) } = sent else { panic!("{sent:?}") };
    let edited = telegram.edit_message(&id, &outgoing(address, "done")).await;
    assert_eq!(edited, SendOutcome::Accepted { platform_id: Some(id) });
    assert_eq!(emulator.seen(8).await, ["done"]);
    let text = format!("begin {} end", "long text 😀 ".repeat(500));
    let address = &messages[0].address;
    for part in outgoing(address, &text).split_by_limit(telegram.capabilities("main").max_chars) {
        let outcome = telegram.send("k", &outgoing(address, "begun …")).await;
        let SendOutcome::Accepted { platform_id: Some(id) } = outcome else { panic!("{outcome:?}") };
        assert_eq!(telegram.edit_message(&id, &part).await, SendOutcome::Accepted { platform_id: Some(id) });
    }
    assert_eq!(letters_of(&emulator.seen(7).await.concat()), letters_of(&text));
}
