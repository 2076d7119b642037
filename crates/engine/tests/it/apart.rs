//! Nobody is shown what somebody else wrote: fifty people with a secret each, everywhere at once.

use std::sync::Arc;

use polyclaw_domain::arrival::{Thread, ThreadKind};
use polyclaw_domain::channel::{Address, Letter, Taken};
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{Faulty, Line, Scripted, group_letter, letter};

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

/// The same for people who know that they share one conversation.
fn mixed() -> String {
    config("main").replace("dm_scope", "allow_shared_dm = true\ndm_scope")
}

/// Says every secret it was shown, so that a leak is seen in what is sent, too.
fn parrot() -> Arc<Scripted> {
    Scripted::new(|prompt| {
        let mut known = canaries(&shown(prompt));
        known.sort();
        known.dedup();
        vec![Line::Say(format!("I know {} .", known.join(" ")))]
    })
}

fn shown(prompt: &Prompt) -> String {
    let text = |message: &PromptMessage| match message {
        PromptMessage::User(text) | PromptMessage::Assistant { text, .. } => text.clone(),
        PromptMessage::ToolResult { content, .. } => content.clone(),
    };
    prompt.system.clone() + &prompt.messages.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Every place a person writes in: their own conversations with two accounts, a group, and a topic of that group. Each
/// conversation has a secret of its own, which those who are in it may know and nobody else.
fn places(scope: &str, n: usize) -> [(String, Letter); 4] {
    let (who, group) = (format!("person{n}"), format!("-{}", n % GROUPS));
    let mut topic = group_letter(&group, &who, "");
    topic.arrival.thread = Some(Thread { kind: ThreadKind::Topic, id: format!("{}", n % 10) });
    topic.address.thread = Some(format!("{}", n % 10));
    let mut biz = letter(&who, "");
    biz.arrival.account = "biz".to_owned();
    biz.address = Address { account: "biz".to_owned(), peer: format!("biz-{who}"), ..biz.address };
    let alone = |account: &str| match scope {
        "main" => "canary-dm-".to_owned(),
        "per-account-channel-peer" => format!("canary-dm-{n}-{account}-"),
        _ => format!("canary-dm-{n}-"),
    };
    [
        (alone("default"), letter(&who, "")),
        (alone("biz"), biz),
        (format!("canary-group{group}-"), group_letter(&group, &who, "")),
        (format!("canary-topic{group}-{}-", n % 10), topic),
    ]
}

fn canaries(text: &str) -> Vec<String> {
    let found = text.match_indices("canary-").map(|(at, _)| &text[at..]);
    let ends = |c: char| c.is_whitespace() || c == '.';
    found.map(|rest| rest.split(ends).next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn fifty_people_know_nothing_of_each_other_in_any_scope() {
    for scope in ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"] {
        let model = parrot();
        let mut ground = World::with(model.clone()).await.killed().await;
        ground.configure(&if scope == "main" { mixed() } else { config(scope) }).await;
        let world = ground.wake(Faulty::never());
        // Those who share one conversation wait for each other in it.
        let people = if scope == "main" { 12 } else { PEOPLE };
        for round in 0..2 {
            let letters =
                (0..people).flat_map(|n| places(scope, n)).enumerate().map(|(at, (secret, letter))| Letter {
                    text: format!("{secret} is my secret."),
                    platform_id: format!("{round}/{at}"),
                    ..letter
                });
            let delivered = letters.map(|letter| world.ground.outlet.deliver(letter));
            let taken = futures_util::future::join_all(delivered).await;
            assert!(taken.iter().all(|taken| *taken == Taken::Done));
            world.settled().await;
        }
        let prompts = model.prompts();
        assert!(prompts.len() > people, "{}", prompts.len());
        for prompt in &prompts {
            let known = canaries(&shown(prompt));
            assert!(!known.is_empty() && known.iter().all(|one| *one == known[0]), "{scope}: {known:?}");
        }
        for n in 0..people {
            for (secret, letter) in places(scope, n) {
                let read =
                    world.ground.outlet.read_at(&letter.address.peer, letter.address.thread.as_deref());
                assert!(!read.is_empty());
                let foreign = read.iter().flat_map(|text| canaries(text)).find(|one| *one != secret);
                assert_eq!(
                    foreign, None,
                    "{scope}: read by {} at {:?}",
                    letter.arrival.sender, letter.address
                );
            }
        }
    }
}

/// The scope in which all of them would know everything is refused before anything starts.
#[test]
fn the_scope_that_mixes_them_is_refused() {
    let lookup = |_: polyclaw_domain::config::Source<'_>| Err("no lookup".to_owned());
    let refused = polyclaw_domain::config::load(&config("main"), "config.toml", &lookup).unwrap_err();
    assert!(refused.to_string().contains("would share one conversation"), "{refused}");
}
