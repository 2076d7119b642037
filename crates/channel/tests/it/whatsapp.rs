use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use polyclaw_channel::whatsapp::{CHANNEL_NAME, WhatsappAdapter};
use polyclaw_domain::channel::{ChannelAdapter, MenuItem, WebhookRequest};
use polyclaw_domain::config::{self, Secret};
use polyclaw_domain::port::WallClock;
use polyclaw_testkit::platform::whatsapp::{WhatsappEmulator as Platform, message_call, signed_call};
use polyclaw_testkit::{PIXEL, SimClock};
use serde_json::{Value, json};

use crate::chunks::{PATIENT, Stage};
use crate::fixture::{FATES, PACE, PlatformFixture, attachments, open, outgoing_to, shown, word};

const SECRET: &str = "app-s3cret";

fn account(platform: &Platform, number: &str) -> config::WhatsappConfig {
    config::WhatsappConfig {
        access_token: Secret::new(format!("EAA-{number}")),
        phone_number_id: number.to_owned(),
        app_secret: Secret::new(SECRET),
        verify_token: Secret::new("v3rify"),
        api_url: Some(platform.api_url()),
        access: open(),
    }
}

fn whatsapp(accounts: impl IntoIterator<Item = (&'static str, config::WhatsappConfig)>) -> WhatsappAdapter {
    let accounts: BTreeMap<_, _> = accounts.into_iter().map(|(name, one)| (name.to_owned(), one)).collect();
    WhatsappAdapter::with_retry_timing(&accounts, SimClock::start(), PACE).unwrap()
}

fn one(platform: &Platform) -> WhatsappAdapter {
    whatsapp([("shop", account(platform, "100"))])
}

pub fn alone() -> (Platform, WhatsappAdapter) {
    let platform = Platform::start();
    let whatsapp = one(&platform);
    (platform, whatsapp)
}

/// What Meta posts when this was written.
pub fn written(message: &Value) -> WebhookRequest {
    message_call(SECRET, "100", std::slice::from_ref(message))
}

/// Seconds since 1970 by the clock of these tests.
pub fn now() -> i64 {
    SimClock::start().now().0 / 1000
}

fn text(id: &str, body: &str) -> Value {
    let at = now().to_string();
    json!({ "from": "49151", "id": id, "timestamp": at, "type": "text", "text": { "body": body } })
}

#[tokio::test]
async fn repeated_messages_are_accepted_once_in_order() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let whatsapp = one(&platform);
    let call = message_call(SECRET, "100", &[text("wamid.1", "one"), text("wamid.2", "two")]);
    for _ in 0..2 {
        assert_eq!(whatsapp.handle_webhook("shop", call.clone(), inbox.as_ref()).await.status, 200);
    }
    assert_eq!(inbox.texts(), ["one", "two"]);
    assert_eq!(inbox.letters()[0].sender_name.as_deref(), Some("Ann"));
}

#[tokio::test]
async fn unaccepted_messages_must_be_redelivered() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let whatsapp = one(&platform);
    inbox.later.store(1, Ordering::SeqCst);
    let call = message_call(SECRET, "100", &[text("wamid.1", "one"), text("wamid.2", "two")]);
    assert_eq!(whatsapp.handle_webhook("shop", call.clone(), inbox.as_ref()).await.status, 503);
    assert!(inbox.letters().is_empty(), "what comes after is not taken before");
    assert_eq!(whatsapp.handle_webhook("shop", call, inbox.as_ref()).await.status, 200);
    assert_eq!(inbox.texts(), ["one", "two"]);
}

#[tokio::test]
async fn only_requests_signed_by_meta_are_accepted() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let whatsapp = one(&platform);
    let good = message_call(SECRET, "100", &[text("wamid.1", "hi")]);
    let change = |change: &dyn Fn(&mut WebhookRequest)| {
        let mut call = good.clone();
        change(&mut call);
        call
    };
    for (what, call, status) in [
        ("another secret", message_call("other", "100", &[text("wamid.1", "hi")]), 401),
        ("no signature", change(&|call| call.headers.clear()), 401),
        ("another body", change(&|call| call.body.push(b' ')), 401),
        ("a short signature", change(&|call| "sha256=".clone_into(&mut call.headers[0].1)), 401),
        (
            "no kind of signature",
            change(&|call| call.headers[0].1 = call.headers[0].1.replace("sha256=", "")),
            401,
        ),
        ("another way to ask", change(&|call| "PUT".clone_into(&mut call.method)), 405),
    ] {
        let answer = whatsapp.handle_webhook("shop", call, inbox.as_ref()).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, ""), "{what}");
    }
    assert_eq!(whatsapp.handle_webhook("nobody", good.clone(), inbox.as_ref()).await.status, 404);
    let mut old = text("wamid.0", "from last month");
    old["timestamp"] = json!((now() - 8 * 24 * 3600).to_string());
    assert_eq!(
        whatsapp.handle_webhook("shop", message_call(SECRET, "100", &[old]), inbox.as_ref()).await.status,
        200
    );
    assert!(inbox.letters().is_empty());
    for odd in ["", "{", "[]", "{\"entry\":7}", "{\"entry\":[{\"changes\":[{\"field\":\"messages\"}]}]}"] {
        assert_eq!(
            whatsapp.handle_webhook("shop", signed_call(SECRET, odd), inbox.as_ref()).await.status,
            200,
            "{odd}"
        );
    }
    assert_eq!(whatsapp.handle_webhook("shop", good, inbox.as_ref()).await.status, 200);
    assert_eq!(inbox.texts(), ["hi"]);
}

#[tokio::test]
async fn webhook_setup_requires_the_verify_token() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let whatsapp = one(&platform);
    let long = "c".repeat(300);
    for (query, status, body) in [
        ("hub.mode=subscribe&hub.verify_token=v3rify&hub.challenge=1158", 200, "1158"),
        ("hub.mode=subscribe&hub.verify_token=wrong&hub.challenge=1158", 403, ""),
        ("hub.mode=subscribe&hub.challenge=1158", 403, ""),
        ("hub.mode=other&hub.verify_token=v3rify&hub.challenge=1158", 403, ""),
        ("hub.mode=subscribe&hub.verify_token=v3rify", 403, ""),
        (&format!("hub.mode=subscribe&hub.verify_token=v3rify&hub.challenge={long}"), 403, ""),
        ("", 403, ""),
    ] {
        let call =
            WebhookRequest { method: "GET".into(), query: query.into(), headers: vec![], body: vec![] };
        let answer = whatsapp.handle_webhook("shop", call, inbox.as_ref()).await;
        assert_eq!(
            (answer.status, answer.body.as_str(), answer.media_type),
            (status, body, "text/plain"),
            "{query}"
        );
    }
}

#[tokio::test]
async fn each_phone_number_receives_its_own_messages() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let foreign =
        config::WhatsappConfig { app_secret: Secret::new("of another app"), ..account(&platform, "300") };
    let whatsapp = whatsapp([
        ("foreign", foreign),
        ("shop", account(&platform, "100")),
        ("support", account(&platform, "200")),
    ]);
    for number in ["100", "200", "300", "400"] {
        let call = message_call(SECRET, number, &[text(&format!("wamid.{number}"), number)]);
        assert_eq!(whatsapp.handle_webhook("shop", call, inbox.as_ref()).await.status, 200);
    }
    let taken: Vec<_> = inbox.letters().into_iter().map(|l| (l.address.account, l.text)).collect();
    assert_eq!(taken, [("shop".into(), "100".into()), ("support".into(), "200".into())]);
    for account in ["shop", "support", "nobody"] {
        whatsapp.send("k", &outgoing_to(CHANNEL_NAME, account, "49151", None, "hello")).await;
    }
    let texts: Vec<_> = platform.visible_messages().into_iter().map(|message| message.bot).collect();
    assert_eq!(texts, ["EAA-100", "EAA-200"]);
}

#[tokio::test]
async fn reply_is_sent_to_person_or_group() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let whatsapp = one(&platform);
    let mut grouped = text("wamid.2", "hi all");
    grouped["group_id"] = json!("Y2FwaV9ncm91cDox");
    let call = message_call(SECRET, "100", &[text("wamid.1", "hi"), grouped]);
    whatsapp.handle_webhook("shop", call, inbox.as_ref()).await;
    for message in inbox.letters() {
        let outgoing = outgoing_to(CHANNEL_NAME, "shop", &message.address.peer, None, "<b>*hello*</b>");
        assert_eq!(word(&whatsapp.send("k", &outgoing).await), "accepted");
        whatsapp.send_typing(&message.address).await;
    }
    let peers: Vec<_> = platform.visible_messages().into_iter().map(|line| (line.chat, line.text)).collect();
    let hello = || "<b>*hello*</b>".to_owned();
    assert_eq!(peers, [("49151".to_owned(), hello()), ("Y2FwaV9ncm91cDox".to_owned(), hello())]);
    let writes = platform.calls("messages").into_iter().filter(|called| called.body["status"] == "read");
    let under: Vec<_> = writes.map(|called| called.body["message_id"].clone()).collect();
    assert_eq!(under, ["wamid.1", "wamid.2"]);
}

#[tokio::test]
async fn command_menu_is_cut_to_platform_limits() {
    let platform = Platform::start();
    let whatsapp = one(&platform);
    let item = |n: usize| MenuItem { command: format!("agent_{n}"), description: "long ".repeat(100) };
    let items: Vec<_> = (0..40).map(item).collect();
    assert_eq!(whatsapp.set_command_menu("shop", &items).await, Ok(()));
    let menu = &platform.calls("conversational_automation")[0].body["commands"];
    assert_eq!((menu.as_array().unwrap().len(), &menu[0]["command_name"]), (30, &json!("agent_0")));
    assert!(menu[0]["command_description"].as_str().unwrap().len() <= 256);
    assert!(whatsapp.set_command_menu("nobody", &items).await.is_err());
    let wrong = config::WhatsappConfig { access_token: Secret::new("wrong"), ..account(&platform, "100") };
    assert!(self::whatsapp([("shop", wrong)]).set_command_menu("shop", &items).await.is_err());
}

#[tokio::test]
async fn send_is_retried_only_if_surely_not_delivered() {
    let platform = Platform::start();
    let whatsapp = one(&platform);
    let send = |peer: &'static str| {
        let whatsapp = &whatsapp;
        async move { word(&whatsapp.send("k", &outgoing_to(CHANNEL_NAME, "shop", peer, None, "x")).await) }
    };
    for (outcome, expected, _) in FATES {
        platform.push("messages", outcome);
        assert_eq!(send("49151").await, expected, "{outcome:?}");
    }
    assert_eq!(send("130429").await, "retry");
    assert_eq!(send("131047").await, "rejected");
    let away = config::WhatsappConfig {
        api_url: Some("http://127.0.0.1:1".to_owned()),
        ..account(&platform, "100")
    };
    let sent =
        self::whatsapp([("shop", away)]).send("k", &outgoing_to(CHANNEL_NAME, "shop", "1", None, "x")).await;
    assert_eq!(word(&sent), "retry");
    assert!(!whatsapp.capabilities("shop").idempotent_send && !whatsapp.capabilities("shop").edits);
}

#[tokio::test]
async fn ten_thousand_chunkings_show_the_stored_text() {
    let platform = Platform::start();
    let numbers = BTreeMap::from([("shop".to_owned(), account(&platform, "100"))]);
    let stage = Stage {
        platform: &platform,
        channel: &WhatsappAdapter::with_retry_timing(&numbers, SimClock::start(), PATIENT).unwrap(),
        address: outgoing_to(CHANNEL_NAME, "shop", "49151", None, "x").address().clone(),
        calls: ["messages", "none: nothing can be changed here"],
        read: str::to_owned,
    };
    stage.play().await;
}

#[tokio::test]
async fn small_text_file_is_fetched_without_exposing_token() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let whatsapp = one(&platform);
    let document = |id: &str, mime_type: &str| {
        let mut message = text(&format!("wamid.{id}"), "");
        message["type"] = json!("document");
        message["document"] =
            json!({ "id": id, "mime_type": mime_type, "filename": "notes.txt", "caption": "see" });
        message
    };
    let messages = [
        document("m1", "text/plain"),
        document("m2", "text/plain"),
        document("m1", "application/pdf"),
        document("gone", "text/plain"),
    ];
    whatsapp.handle_webhook("shop", message_call(SECRET, "100", &messages), inbox.as_ref()).await;
    let inbound_messages = inbox.letters();
    // They are there only now: nothing was fetched before it was asked for.
    platform.add_file("m1", b"remember the milk");
    platform.add_file("m2", &vec![b'x'; 1 << 20]);
    let found = attachments(&whatsapp, &inbound_messages).await;
    let texts: Vec<_> = found.iter().map(|one| one.text.as_deref()).collect();
    assert_eq!(texts, [Some("remember the milk"), None, None]);
    assert_eq!(inbound_messages[0].text, "see");
    assert!(!format!("{inbound_messages:?}").contains("EAA"));
}

#[tokio::test]
async fn photo_is_fetched_without_exposing_token() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let whatsapp = one(&platform);
    platform.add_file("m1", PIXEL);
    platform.add_file("m2", b"no image at all");
    let photo = |id: &str| {
        let mut message = text(&format!("wamid.{id}"), "");
        message["type"] = json!("image");
        message["image"] = json!({ "id": id, "mime_type": "image/jpeg", "caption": "see" });
        message
    };
    let call = message_call(SECRET, "100", &[photo("m1"), photo("m2")]);
    whatsapp.handle_webhook("shop", call, inbox.as_ref()).await;
    let messages = inbox.letters();
    assert_eq!(shown(&whatsapp, &messages).await, [Some(PIXEL.to_vec()), None]);
    let found = attachments(&whatsapp, &messages).await;
    assert_eq!(found[0].media_type, "image/png", "its own bytes say what it is");
    assert!(!format!("{messages:?}").contains("EAA"));
}

#[tokio::test]
async fn secrets_are_not_shown_in_debug_output() {
    let platform = Platform::start();
    let account = config::WhatsappConfig {
        api_url: Some("http://127.0.0.1:1/T0K3N".to_owned()),
        access_token: Secret::new("T0K3N"),
        ..account(&platform, "100")
    };
    let whatsapp = whatsapp([("shop", account)]);
    let sent = whatsapp.send("k", &outgoing_to(CHANNEL_NAME, "shop", "1", None, "x")).await;
    assert!(!format!("{whatsapp:?} {sent:?}").contains("T0K3N"));
}
