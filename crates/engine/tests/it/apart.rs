//! Isolation of conversations: fifty people with one secret each, in all kinds of conversations at once.

use std::sync::Arc;

use polyclaw_domain::channel::{ChatAddress, InboundMessage, IngestOutcome};
use polyclaw_domain::inbound::{ChatThread, ThreadKind};
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider, inbound_dm, inbound_group};

const PEOPLE: usize = 50;
const GROUPS: usize = 5;

fn config(scope: &str) -> String {
    let groups: Vec<String> = (0..GROUPS).map(|n| format!("\"-{n}\"")).collect();
    format!(
        "[session]\ndm_scope = \"{scope}\"\n\
         [channels.telegram.biz]\nbot_token = \"u\"\ndm_policy = \"open\"\n\
         [channels.telegram.default]\nbot_token = \"t\"\ndm_policy = \"open\"\ngroups = [{}]\n",
        groups.join(", ")
    )
}

/// The same config for people who knowingly share one conversation.
fn mixed() -> String {
    config("main").replace("dm_scope", "allow_shared_dm = true\ndm_scope")
}

/// A model that repeats every secret in its prompt, so that leaks also show in what is sent.
fn parrot() -> Arc<ScriptedProvider> {
    ScriptedProvider::new(|prompt| {
        let mut known = canaries(&shown(prompt));
        known.sort();
        known.dedup();
        vec![ScriptStep::Say(format!("I know {} .", known.join(" ")))]
    })
}

fn shown(prompt: &Prompt) -> String {
    let text = |message: &PromptMessage| match message {
        PromptMessage::User { text, .. } | PromptMessage::Assistant { text, .. } => text.clone(),
        PromptMessage::ToolResult { content, .. } => content.clone(),
    };
    prompt.system.clone() + &prompt.messages.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// All conversations of a person: direct messages on two accounts, a group, and a topic of that group. Each has a
/// secret that only its participants may know.
fn places(scope: &str, n: usize) -> [(String, InboundMessage); 4] {
    let (who, group) = (format!("person{n}"), format!("-{}", n % GROUPS));
    let mut topic = inbound_group(&group, &who, "");
    topic.context.thread = Some(ChatThread { kind: ThreadKind::Topic, id: format!("{}", n % 10) });
    topic.address.thread = Some(format!("{}", n % 10));
    let mut biz = inbound_dm(&who, "");
    biz.context.account = "biz".to_owned();
    biz.address = ChatAddress { account: "biz".to_owned(), peer: format!("biz-{who}"), ..biz.address };
    let alone = |account: &str| match scope {
        "main" => format!("canary-dm-{n}-"),
        "per-account-channel-peer" => format!("canary-dm-{n}-{account}-"),
        _ => format!("canary-dm-{n}-"),
    };
    [
        (alone("default"), inbound_dm(&who, "")),
        (alone("biz"), biz),
        (format!("canary-group{group}-"), inbound_group(&group, &who, "")),
        (format!("canary-topic{group}-{}-", n % 10), topic),
    ]
}

fn canaries(text: &str) -> Vec<String> {
    let found = text.match_indices("canary-").map(|(at, _)| &text[at..]);
    let ends = |c: char| c.is_whitespace() || c == '.';
    found.map(|rest| rest.split(ends).next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn no_dm_scope_leaks_secrets_across_conversations() {
    for scope in ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"] {
        let model = parrot();
        let mut ground = World::with_provider(model.clone()).await.kill().await;
        ground.configure(&if scope == "main" { mixed() } else { config(scope) }).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        // One conversation has a limited backlog, so people come in small batches there.
        let at_once = if scope == "main" { 10 } else { PEOPLE };
        for round in 0..2 {
            for first in (0..PEOPLE).step_by(at_once) {
                write_all(&world, scope, (first..first + at_once, round)).await;
            }
        }
        let prompts = model.prompts();
        assert!(prompts.len() > PEOPLE, "{}", prompts.len());
        let known: Vec<Vec<String>> = prompts.iter().map(|prompt| canaries(&shown(prompt))).collect();
        for known in &known {
            assert!(
                !known.is_empty() && known.iter().all(|one| may_know_secret(scope, &known[0], one)),
                "{scope}: {known:?}"
            );
        }
        // The scan finds secrets where people share a conversation, so it would find a leak elsewhere as well.
        let is_mixed = known.iter().any(|known| known.iter().any(|one| *one != known[0]));
        assert_eq!(is_mixed, scope == "main");
        for (secret, message) in (0..PEOPLE).flat_map(|n| places(scope, n)) {
            let read =
                world.ground.fake_channel.texts_at(&message.address.peer, message.address.thread.as_deref());
            assert!(!read.is_empty());
            let foreign =
                read.iter().flat_map(|text| canaries(text)).find(|one| !may_know_secret(scope, &secret, one));
            assert_eq!(foreign, None, "{scope}: read by {} at {:?}", message.context.sender, message.address);
        }
    }
}

/// Whether participants of one secret's conversation may know another secret. In a shared conversation people know all
/// direct secrets, but none of a group.
fn may_know_secret(scope: &str, own: &str, other: &str) -> bool {
    let is_direct = |secret: &str| secret.starts_with("canary-dm-");
    own == other || scope == "main" && is_direct(own) && is_direct(other)
}

async fn write_all(world: &World, scope: &str, (people, round): (std::ops::Range<usize>, usize)) {
    let messages =
        people.flat_map(|n| places(scope, n).into_iter().enumerate().map(move |(at, place)| (n, at, place)));
    let messages = messages.map(|(n, at, (secret, message))| InboundMessage {
        text: format!("{secret} is my secret."),
        platform_id: format!("{round}/{n}/{at}"),
        ..message
    });
    let delivered = messages.map(|message| world.ground.fake_channel.deliver_inbound(message));
    let taken = futures_util::future::join_all(delivered).await;
    assert!(taken.iter().all(|taken| *taken == IngestOutcome::Done));
    world.wait_settled().await;
}

/// The scope in which everyone would see everything is refused at startup.
#[test]
fn shared_dm_scope_is_refused_at_startup() {
    let lookup = |_: polyclaw_domain::config::ExternalReference<'_>| Err("no lookup".to_owned());
    let refused = polyclaw_domain::config::load(&config("main"), "config.toml", &lookup).unwrap_err();
    assert!(refused.to_string().contains("would share one conversation"), "{refused}");
}
