mod outgoing;
mod sessions;

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclaw_channel::discord::{CHANNEL_NAME, DiscordAdapter};
use polyclaw_domain::channel::{ChannelAdapter, ChatAddress};
use polyclaw_domain::config;
use polyclaw_domain::inbound::{ChatPeer, ChatThread, PeerKind, ThreadKind};
use polyclaw_testkit::PIXEL;
use polyclaw_testkit::platform::discord::DiscordEmulator as Platform;
use serde_json::json;

use crate::fixture::{ChannelFixture, PACE, PlatformFixture, attachments, outgoing, shown, word};

pub const TOKEN: &str = "T0K3N.x.y";
/// Long enough not to matter.
pub const CALM_MS: u64 = 40_000;

fn config(platform: &Platform, token: &str) -> config::DiscordConfig {
    serde_json::from_value(json!({ "bot_token": token, "api_url": platform.api_url() })).unwrap()
}

fn adapter(bots: &[(&str, config::DiscordConfig)]) -> Arc<DiscordAdapter> {
    let bots: BTreeMap<_, _> = bots.iter().map(|(name, bot)| ((*name).to_owned(), bot.clone())).collect();
    Arc::new(DiscordAdapter::with_retry_timing(&bots, PACE).unwrap())
}

/// A platform with one bot in the server `g1`, and the adapter of it.
pub fn one(heartbeat_ms: u64) -> (Platform, Arc<DiscordAdapter>) {
    let platform = Platform::start(heartbeat_ms);
    platform.add_bot(TOKEN, "1");
    platform.add_channel("100", "g1", None);
    let discord = adapter(&[("main", config(&platform, TOKEN))]);
    (platform, discord)
}

async fn connected(platform: &Platform, token: &str) {
    platform.wait_until("the bot is connected", |platform| platform.opening_counts(token).0 > 0).await;
}

fn to(channel: &str) -> ChatAddress {
    ChatAddress {
        channel: CHANNEL_NAME.to_owned(),
        account: "main".to_owned(),
        peer: channel.to_owned(),
        thread: None,
    }
}

#[tokio::test]
async fn reply_is_sent_to_the_asking_conversation() {
    let (platform, discord) = one(CALM_MS);
    platform.add_channel("101", "g1", Some("100"));
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    platform.send_dm(TOKEN, "7", "alone");
    platform.send_in_channel(TOKEN, "100", "in a channel", json!({}));
    platform.send_in_channel(TOKEN, "101", "in a thread", json!({}));
    let messages = fixture.wait_for(3).await;
    for inbound in &messages {
        let sent = discord.send(&inbound.platform_id, &outgoing(&inbound.address, &inbound.text)).await;
        assert_eq!(word(&sent), "accepted");
    }
    let seen: Vec<_> =
        platform.visible_messages().into_iter().map(|message| (message.chat, message.text)).collect();
    let expected = [("97", "alone"), ("100", "in a channel"), ("101", "in a thread")];
    assert_eq!(seen, expected.map(|(chat, text)| (chat.to_owned(), text.to_owned())));
    assert_eq!(messages[0].context.peer, ChatPeer { kind: PeerKind::Dm, id: "7".to_owned() });
    assert_eq!(messages[1].context.guild.as_deref(), Some("g1"));
    assert_eq!(messages[1].context.roles, ["role-of-5"]);
    assert_eq!(
        messages[2].context.thread,
        Some(ChatThread { kind: ThreadKind::Thread, id: "101".to_owned() })
    );
    assert_eq!(messages[2].context.parent.as_ref().map(|parent| parent.id.as_str()), Some("100"));
}

/// A thread that was opened meanwhile, and whose opening was not told.
#[tokio::test]
async fn unknown_thread_is_looked_up_once() {
    let (platform, discord) = one(CALM_MS);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    platform.add_channel("555", "g1", Some("100"));
    platform.send_in_channel(TOKEN, "555", "one", json!({}));
    platform.send_in_channel(TOKEN, "555", "two", json!({}));
    for message in fixture.wait_for(2).await {
        assert_eq!(message.context.parent.map(|parent| parent.id).as_deref(), Some("100"));
    }
    assert_eq!(platform.calls("GET channels").len(), 1);
}

#[tokio::test]
async fn accounts_and_bad_token_do_not_block_each_other() {
    let platform = Platform::start(CALM_MS);
    platform.add_bot(TOKEN, "1");
    platform.add_bot("other", "2");
    let off = serde_json::from_value(json!({ "bot_token": "x", "enabled": false })).unwrap();
    let discord = adapter(&[
        ("bad", config(&platform, "wrong")),
        ("biz", config(&platform, "other")),
        ("main", config(&platform, TOKEN)),
        ("off", off),
    ]);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    connected(&platform, "other").await;
    platform.send_dm(TOKEN, "7", "to main");
    fixture.wait_for(1).await;
    platform.send_dm("other", "7", "to biz");
    let messages = fixture.wait_for(2).await;
    let accounts: Vec<_> = messages.iter().map(|inbound| inbound.context.account.as_str()).collect();
    assert_eq!(accounts, ["main", "biz"]);
    for inbound in &messages {
        discord.send("k", &outgoing(&inbound.address, "answer")).await;
    }
    let bots: Vec<_> = platform.visible_messages().into_iter().map(|message| message.bot).collect();
    assert_eq!(bots, [TOKEN, "other"]);
    let off = ChatAddress { account: "off".to_owned(), ..to("100") };
    assert_eq!(word(&discord.send("k", &outgoing(&off, "x")).await), "rejected");
}

#[tokio::test]
async fn token_refused_by_gateway_is_retried_slowly() {
    let platform = Platform::start(CALM_MS);
    platform.add_bot(TOKEN, "1");
    let gateway = format!("{}/gateway", platform.api_url().replace("http", "ws").replace("/api/v10", ""));
    let wrong = json!({ "bot_token": "wrong", "api_url": platform.api_url(), "gateway_url": gateway });
    let discord = adapter(&[("main", serde_json::from_value(wrong).unwrap())]);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    tokio::time::sleep(PACE.max_backoff * 3).await;
    assert_eq!(platform.opening_counts("wrong"), (0, 0));
    assert!(fixture.letters().is_empty());
}

#[tokio::test]
async fn menu_command_is_acknowledged_and_becomes_inbound_message() {
    let (platform, discord) = one(CALM_MS);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    let data = json!({ "name": "code", "options": [{ "name": "text", "type": 3, "value": "fix it" }] });
    let member = json!({ "user": { "id": "7", "username": "ann" }, "roles": ["r1"] });
    let interaction = json!({
        "id": "777", "application_id": "1", "type": 2, "token": "once", "channel_id": "100", "guild_id": "g1",
        "member": member, "data": data,
    });
    platform.dispatch_event(TOKEN, "INTERACTION_CREATE", interaction.clone());
    let message = &fixture.wait_for(1).await[0];
    assert_eq!((message.text.as_str(), message.mentioned), ("/code fix it", true));
    assert_eq!((message.context.sender.as_str(), &message.context.roles[..]), ("7", &["r1".to_owned()][..]));
    assert_eq!(message.address, to("100"));
    platform.wait_until("it is confirmed", |platform| platform.calls("PATCH @original").len() == 1).await;
    assert_eq!(platform.calls("POST callback")[0].body["type"], 5);
    assert_eq!(platform.calls("PATCH @original")[0].body["content"], "/code fix it");
    // The same one again, as after a resumed session, is the same letter.
    platform.dispatch_event(TOKEN, "INTERACTION_CREATE", interaction);
    fixture.until(|| fixture.handed() == 2).await;
    assert_eq!(fixture.letters().len(), 1);
}

#[tokio::test]
async fn short_text_files_are_fetched_only_from_platform() {
    let (platform, discord) = one(CALM_MS);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    let elsewhere = Platform::start(CALM_MS);
    let [root, foreign] = [&platform, &elsewhere].map(|platform| platform.api_url().replace("/api/v10", ""));
    let file = |name: &str, url: String| json!({ "filename": name, "content_type": "text/plain", "size": 5, "url": url });
    let attached = json!({ "attachments": [
        file("a.txt", format!("{root}/files/hello")),
        file("b.txt", format!("{foreign}/files/secret")),
        { "filename": "c.png", "content_type": "image/png", "size": 9, "url": "https://cdn.discordapp.com/c.png" },
    ] });
    platform.send_in_channel(TOKEN, "100", "", attached);
    let message = &fixture.wait_for(1).await[0];
    let found = attachments(&*discord, [message]).await;
    assert_eq!(found[0].text.as_deref(), Some("hello"));
    assert_eq!(found[1].text, None);
    assert_eq!(found[2].url.as_deref(), Some("https://cdn.discordapp.com/c.png"));
}

#[tokio::test]
async fn images_are_fetched_only_from_platform() {
    let (platform, discord) = one(CALM_MS);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    let elsewhere = Platform::start(CALM_MS);
    let [root, foreign] = [&platform, &elsewhere].map(|platform| platform.api_url().replace("/api/v10", ""));
    let image =
        |url: String| json!({ "filename": "a.png", "content_type": "image/png", "size": 69, "url": url });
    let attached = json!({ "attachments": [
        image(format!("{root}/files/pixel.png")),
        image(format!("{foreign}/files/pixel.png")),
        image(format!("{root}/files/hello")),
    ] });
    platform.send_in_channel(TOKEN, "100", "", attached);
    let message = &fixture.wait_for(1).await[0];
    assert_eq!(shown(&*discord, [message]).await, [Some(PIXEL.to_vec()), None, None]);
}

#[tokio::test]
async fn malformed_events_are_ignored() {
    let (platform, discord) = one(CALM_MS);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    for (kind, data) in [
        ("MESSAGE_CREATE", json!({ "id": 5 })),
        ("MESSAGE_CREATE", json!(null)),
        ("MESSAGE_UPDATE", json!({ "id": "1", "content": "edited" })),
        ("INTERACTION_CREATE", json!({ "id": "1", "application_id": "1", "type": 3, "token": "t" })),
        ("GUILD_CREATE", json!([])),
        ("SOMETHING_NEW", json!({})),
    ] {
        platform.dispatch_event(TOKEN, kind, data);
    }
    let emoji = "😀".repeat(10_000);
    for text in ["\u{202e}\0 <@everyone>", emoji.as_str()] {
        platform.send_dm(TOKEN, "7", text);
    }
    fixture.wait_for(2).await;
    assert_eq!(fixture.texts(), ["\u{202e}\0 <@everyone>", emoji.as_str()]);
}

#[test]
fn invalid_configured_urls_are_refused() {
    for (setting, url) in [("api_url", "discord.example"), ("gateway_url", "https://discord.example")] {
        let bot: config::DiscordConfig =
            serde_json::from_value(json!({ "bot_token": TOKEN, setting: url })).unwrap();
        let error = DiscordAdapter::from_config(&BTreeMap::from([("main".to_owned(), bot)])).unwrap_err();
        assert_eq!(error.code(), "channel_url");
        assert!(error.to_string().contains(setting));
    }
}
