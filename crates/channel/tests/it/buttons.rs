//! Questions with buttons: what people press is the command, given by them, where the question is.

use std::sync::atomic::Ordering;

use polyclaw_domain::approval::{approval_buttons, format_question, question_key};
use polyclaw_domain::channel::{ChannelAdapter, ChatAddress, InboundMessage};
use polyclaw_domain::delivery::OutgoingMessage;
use polyclaw_domain::locale::Locale;

use crate::fixture::{ChannelFixture, PlatformFixture, outgoing, word};
use crate::{discord, slack, telegram, whatsapp};

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// A question as the engine sends it.
fn asked(address: &ChatAddress, what: &str) -> OutgoingMessage {
    let text = format_question(Locale::English, "Ops", ID, what);
    let buttons = approval_buttons(&format!("{}-0", question_key(ID)), &text);
    assert_eq!(buttons.len(), 2);
    outgoing(address, &text).with_buttons(buttons)
}

fn to(channel: &str, account: &str, peer: &str, thread: Option<&str>) -> ChatAddress {
    let thread = thread.map(str::to_owned);
    ChatAddress { channel: channel.to_owned(), account: account.to_owned(), peer: peer.to_owned(), thread }
}

/// The letter is the command, from where the question was sent; each press is a letter of its own.
fn assert_given(messages: &[InboundMessage], address: &ChatAddress, sender: &str) {
    let lines: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(lines, [format!("/approve {ID}"), format!("/deny {ID}")]);
    for message in messages {
        assert_eq!((&message.address, message.context.sender.as_str()), (address, sender));
        assert!(message.mentioned);
    }
    assert_ne!(messages[0].platform_id, messages[1].platform_id);
}

#[tokio::test]
async fn telegram_button_sends_command_in_question_chat() {
    let (platform, channel) = telegram::one();
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&channel, &fixture);
    for (n, address) in
        [to("telegram", "main", "7", None), to("telegram", "main", "-9", Some("4"))].iter().enumerate()
    {
        assert_eq!(word(&channel.send("k", &asked(address, "shell ls")).await), "accepted");
        let shown = platform.visible_messages().pop().unwrap();
        platform.press_button(&shown, 7, "Approve");
        platform.press_button(&shown, 7, "Deny");
        let messages = fixture.wait_for(2 * n + 2).await;
        assert_given(&messages[2 * n..], address, "7");
    }
    platform.wait_until("buttons are released", |all| all.calls("answerCallbackQuery").len() == 4).await;
    platform.wait_until("presses are confirmed", |all| all.unconfirmed_count(telegram::TOKEN) == 0).await;
}

/// A press that is delivered again was not let go of before it was taken.
#[tokio::test]
async fn telegram_press_is_accepted_before_button_is_released() {
    let (platform, channel) = telegram::one();
    let fixture = PlatformFixture::new();
    fixture.later.store(2, Ordering::SeqCst);
    let _fixture = ChannelFixture::start(&channel, &fixture);
    let address = to("telegram", "main", "7", None);
    assert_eq!(word(&channel.send("k", &asked(&address, "shell ls")).await), "accepted");
    platform.press_button(&platform.visible_messages().pop().unwrap(), 7, "Approve");
    fixture.wait_for(1).await;
    platform.wait_until("the press is confirmed", |all| all.unconfirmed_count(telegram::TOKEN) == 0).await;
    assert_eq!((fixture.handed(), platform.calls("answerCallbackQuery").len()), (3, 1));
}

#[tokio::test]
async fn discord_button_sends_command_in_question_chat() {
    let (platform, channel) = discord::one(discord::CALM_MS);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&channel, &fixture);
    platform.wait_until("it is connected", |all| all.opening_counts(discord::TOKEN).0 == 1).await;
    let address = to("discord", "main", "100", None);
    assert_eq!(word(&channel.send("k", &asked(&address, "shell ls")).await), "accepted");
    let shown = platform.visible_messages().pop().unwrap();
    platform.press_button(&shown, "5", "Approve");
    platform.press_button(&shown, "5", "Deny");
    assert_given(&fixture.wait_for(2).await, &address, "5");
    platform.wait_until("both are confirmed", |all| all.calls("PATCH @original").len() == 2).await;
}

#[tokio::test]
async fn slack_button_sends_command_by_socket_and_request() {
    let (platform, channel) = slack::both();
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&channel, &fixture);
    let address = to("slack", "work", "C1", Some("4.0"));
    let pressed = asked(&address, "shell echo '<b>' & \"x\"");
    assert_eq!(word(&channel.send("k", &pressed).await), "accepted");
    let shown = platform.visible_messages().pop().unwrap();
    platform.press_button("work", &shown, "U1", "Approve");
    platform.press_button("work", &shown, "U1", "Deny");
    assert_given(&fixture.wait_for(2).await, &address, "U1");
    platform.wait_until("both are acknowledged", |all| all.acknowledged_count() == 2).await;
    let events = to("slack", "events", "D1", None);
    assert_eq!(word(&channel.send("k", &asked(&events, "shell ls")).await), "accepted");
    let shown = platform.visible_messages().pop().unwrap();
    for label in ["Approve", "Deny"] {
        let call = slack::press(&platform.button_payload(&shown, "U1", label));
        assert_eq!(channel.handle_webhook("events", call, fixture.as_ref()).await.status, 200);
    }
    assert_given(&fixture.letters()[2..], &events, "U1");
    let mut foreign = platform.button_payload(&shown, "U1", "Deny");
    foreign["team"]["id"] = "T2".into();
    foreign["trigger_id"] = "elsewhere".into();
    assert_eq!(channel.handle_webhook("events", slack::press(&foreign), fixture.as_ref()).await.status, 200);
    assert_eq!(fixture.letters().len(), 4, "it was pressed in another workspace, which has the same app");
}

#[tokio::test]
async fn whatsapp_button_sends_command_of_the_presser() {
    let (platform, channel) = whatsapp::alone();
    let fixture = PlatformFixture::new();
    let address = to("whatsapp", "shop", "49151", None);
    assert_eq!(word(&channel.send("k", &asked(&address, "shell ls")).await), "accepted");
    let shown = platform.visible_messages().pop().unwrap();
    for (n, label) in ["Approve", "Deny"].iter().enumerate() {
        let message = platform.button_reply(&shown, &format!("wamid.{n}"), whatsapp::now(), label);
        let call = whatsapp::written(&message);
        assert_eq!(channel.handle_webhook("shop", call, fixture.as_ref()).await.status, 200);
    }
    assert_given(&fixture.letters(), &address, "49151");
    // Where buttons are not taken, the text with its commands is there all the same.
    for (peer, what) in [("49151", "x".repeat(1_400)), ("120363@g.us", "shell ls".to_owned())] {
        let long = asked(&to("whatsapp", "shop", peer, None), &what);
        assert_eq!(word(&channel.send("k2", &long).await), "accepted");
        let shown = platform.visible_messages().pop().unwrap();
        assert_eq!(shown.text, long.text());
        assert_eq!(platform.calls("messages").pop().unwrap().body["type"], "text");
    }
}
