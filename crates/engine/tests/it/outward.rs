//! Tools that act outside the conversation: `message` and `cron_*`.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::channel::{ChatAddress, IngestOutcome};
use polyclaw_domain::config::{CatchUp, CronJobConfig};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::policy::ToolPolicy;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_store::cron_jobs::CronJobCreator;
use polyclaw_store::sessions;
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider, inbound_dm, last_user_text};
use serde_json::{Value, json};

use crate::reception::cast;

/// A model that makes the call in `call <tool> <arguments>` and answers with its result.
fn model() -> Arc<ScriptedProvider> {
    ScriptedProvider::new(|prompt| {
        if let Some(PromptMessage::ToolResult { content, .. }) = prompt.messages.last() {
            return vec![ScriptStep::Say(content.clone())];
        }
        let asked = last_user_text(prompt);
        match called(asked) {
            Some((tool, given)) => {
                vec![ScriptStep::Call(tool.to_owned(), serde_json::from_str(given).unwrap_or_default())]
            }
            None => vec![ScriptStep::Say(format!("heard {asked}"))],
        }
    })
}

/// The call in a text. Text from cron jobs is framed by marks.
fn called(asked: &str) -> Option<(&str, &str)> {
    asked.lines().find_map(|line| line.strip_prefix("call "))?.split_once(' ')
}

async fn ground(grants: &[&str]) -> (DurableWorld, Arc<ScriptedProvider>) {
    let model = model();
    let mut ground = World::with_provider(model.clone()).await.kill().await;
    let account = "[session]\ndm_scope = \"per-channel-peer\"\n[channels.telegram.default]\nbot_token = \"1:t\"\n\
                   dm_policy = \"open\"\nowners = [\"ann\"]\n";
    ground.configure(&format!("{}\n{account}", cast(&["main", "ops"]))).await;
    ground.settings.message_to = grants.iter().map(|&grant| grant.to_owned()).collect();
    (ground, model)
}

async fn call(world: &World, tool: &str, given: &Value) -> String {
    world.send_and_wait(&format!("call {tool} {given}")).await.text
}

fn has(prompt: &Prompt, tool: &str) -> bool {
    prompt.tools.iter().any(|one| one.name == tool)
}

#[tokio::test(start_paused = true)]
async fn message_tool_sends_only_to_granted_conversations() {
    let (ground, _) = ground(&["telegram:default:5", "telegram:*:-7"]).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let to = |peer: &str, text: &str| json!({ "channel": "telegram", "peer": peer, "text": text });
    let sent = call(&world, "message", &to("5", "the build is red")).await;
    assert_eq!(sent, "The message to telegram:default:5 is queued for delivery.");
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.texts_at("5", None), ["the build is red"]);
    let topic = json!({ "channel": "telegram", "peer": "-7", "thread": "4", "text": "in a topic" });
    call(&world, "message", &topic).await;
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.texts_at("-7", Some("4")), ["in a topic"]);
    for (given, why) in [
        (to("6", "psst"), "tools.message_to"),
        (
            json!({ "channel": "telegram", "account": "other", "peer": "5", "text": "x" }),
            "has no account other",
        ),
        (json!({ "channel": "internal", "peer": "5", "text": "x" }), "has no account"),
        (to("5", " "), "The message was not sent: silence"),
        (to("5", "NO_REPLY"), "The message was not sent: silence"),
    ] {
        let refused = call(&world, "message", &given).await;
        assert!(refused.contains(why), "{given}: {refused}");
    }
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.texts_at("5", None).len(), 1);
    assert!(world.ground.fake_channel.texts_at("6", None).is_empty());
}

#[tokio::test(start_paused = true)]
async fn message_tool_is_hidden_without_grants() {
    let (ground, model) = ground(&[]).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("hello").await;
    let prompt = model.prompts().pop().unwrap();
    assert!(!has(&prompt, "message") && has(&prompt, "cron_add"));
}

#[tokio::test(start_paused = true)]
async fn agent_adds_runs_and_removes_its_own_cron_jobs() {
    let (ground, _) = ground(&[]).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let job = json!({ "id": "mail", "schedule": "every 10m", "message": "look at the mail" });
    assert!(call(&world, "cron_add", &job).await.contains("\"session_key\":\"cron:mail\""));
    assert!(call(&world, "cron_add", &job).await.contains("cron_job_exists"));
    let never = json!({ "id": "late", "schedule": "now and then", "message": "x" });
    assert!(call(&world, "cron_add", &never).await.contains("schedule:"));
    tokio::time::sleep(Duration::from_secs(10 * 60 + 1)).await;
    let notice = world.engine.load_session(&SessionKey::for_cron_job("mail")).await.unwrap();
    assert_eq!(notice.agent, AgentId::main());
    let listed: Value = serde_json::from_str(&call(&world, "cron_list", &json!({})).await).unwrap();
    assert_eq!((&listed["jobs"][0]["id"], &listed["jobs"][0]["yours"]), (&json!("mail"), &json!(true)));
    assert!(call(&world, "cron_run", &json!({ "id": "mail" })).await.contains("\"turn_id\""));
    assert_eq!(call(&world, "cron_remove", &json!({ "id": "mail" })).await, "Cron job mail removed.");
    assert!(call(&world, "cron_run", &json!({ "id": "mail" })).await.contains("unknown_cron_job"));
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn cron_jobs_of_other_agents_are_hidden_and_protected() {
    let (ground, _) = ground(&[]).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let ops = AgentId::parse("ops").unwrap();
    let job = CronJobConfig {
        id: "theirs".into(),
        schedule: "every 12h".into(),
        agent: Some(ops.clone()),
        message: "a word of ops".into(),
        deliver_to: None,
        timezone: None,
        catch_up: CatchUp::Skip,
        enabled: true,
    };
    let maker = CronJobCreator { agent: ops, on_behalf_of: Vec::new() };
    world.engine.add_cron_job(job, Some(maker)).await.unwrap();
    assert!(!call(&world, "cron_list", &json!({})).await.contains("theirs"));
    for tool in ["cron_run", "cron_remove"] {
        assert!(call(&world, tool, &json!({ "id": "theirs" })).await.contains("unknown_cron_job"), "{tool}");
    }
    assert_eq!(world.engine.list_cron_jobs().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cron_job_reply_goes_to_chat_where_job_was_created() {
    let (ground, _) = ground(&[]).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let outlet = &world.ground.fake_channel;
    let given = json!({ "id": "tick", "schedule": "every 10m", "message": "tick", "deliver_here": true });
    assert_eq!(
        outlet.deliver_inbound(inbound_dm("ann", &format!("call cron_add {given}"))).await,
        IngestOutcome::Done
    );
    world.wait_settled().await;
    let before = outlet.texts_at("ann", None).len();
    tokio::time::sleep(Duration::from_secs(10 * 60 + 1)).await;
    world.wait_settled().await;
    let read = outlet.texts_at("ann", None).split_off(before);
    assert!(read.len() == 1 && read[0].contains("tick"), "{read:?}");
    let elsewhere = json!({ "id": "x", "schedule": "every 10m", "message": "x",
        "deliver_to": { "channel": "telegram", "peer": "6" } });
    assert!(
        call(&world, "cron_add", &elsewhere).await.contains("tools.message_to"),
        "a grant is needed for that"
    );
    let job =
        json!({ "id": "chain", "schedule": "every 10m", "message": format!("call cron_add {elsewhere}") });
    call(&world, "cron_add", &job).await;
    tokio::time::sleep(Duration::from_secs(10 * 60 + 1)).await;
    world.wait_settled().await;
    let ids: Vec<String> =
        world.engine.list_cron_jobs().await.unwrap().into_iter().map(|one| one.job.id).collect();
    assert_eq!(ids, ["chain", "tick"], "an errand makes no errands");
    let all = world.engine.db().read(|tx| sessions::get(tx, &SessionKey::for_cron_job("x"))).await.unwrap();
    assert!(all.is_none());
}

/// Otherwise a cron job could do what its requester is not allowed to do.
#[tokio::test(start_paused = true)]
async fn cron_runs_follow_tool_rules_of_their_requester() {
    let (mut ground, model) = ground(&[]).await;
    ground.tools.add_tool("wire", ToolEffect::Pure, ToolConsent::NotNeeded, |_| {
        Box::pin(std::future::ready(ToolOutcome::ok("sent")))
    });
    let rule = ToolPolicy { deny: vec!["wire".into()], ..ToolPolicy::default() };
    ground.settings.tools.senders.insert("telegram:*".to_owned(), rule);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let had = |text: &str| {
        let is_run = |prompt: &&Prompt| last_user_text(prompt).lines().any(|line| line == text);
        model.prompts().iter().filter(is_run).map(|prompt| has(prompt, "wire")).collect::<Vec<_>>()
    };
    let job = |id: &str| json!({ "id": id, "schedule": "every 10m", "message": format!("run of {id}") });
    call(&world, "cron_add", &job("trusted")).await;
    let asked = format!("call cron_add {}", job("theirs"));
    assert_eq!(
        world.ground.fake_channel.deliver_inbound(inbound_dm("ann", &asked)).await,
        IngestOutcome::Done
    );
    world.wait_settled().await;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(10 * 60 + 1)).await;
    world.wait_settled().await;
    assert_eq!((had("run of trusted"), had("run of theirs")), (vec![true], vec![false]));
    let now = format!("call cron_run {}", json!({ "id": "trusted" }));
    assert_eq!(world.ground.fake_channel.deliver_inbound(inbound_dm("ann", &now)).await, IngestOutcome::Done);
    world.wait_settled().await;
    assert_eq!(had("run of trusted"), [true, false], "what runs at somebody's word is done for them");
}

#[tokio::test(start_paused = true)]
async fn cron_job_reports_to_requesting_chat_not_session_origin() {
    let (mut ground, _) = ground(&[]).await;
    let account =
        "[channels.telegram.default]\nbot_token = \"1:t\"\ndm_policy = \"allowlist\"\nowners = [\"ann\"]\n";
    ground.configure(&format!("{}\n{account}", cast(&["main"]))).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let page =
        ChatAddress { channel: "web".into(), account: "default".into(), peer: "me".into(), thread: None };
    let key = SessionKey::main(&AgentId::main());
    let first = IngressMessage::from_person(key.clone(), AgentId::main(), page, "hello");
    let accepted = world.engine.accept_message(first).await.unwrap();
    world.wait_answer(&accepted).await;
    let given = json!({ "id": "tick", "schedule": "every 10m", "message": "tick", "deliver_here": true });
    assert_eq!(
        world.ground.fake_channel.deliver_inbound(inbound_dm("ann", &format!("call cron_add {given}"))).await,
        IngestOutcome::Done
    );
    world.wait_settled().await;
    assert_eq!(world.engine.load_session(&key).await.unwrap().address.unwrap().channel, "web");
    let made = world.engine.find_cron_job("tick").await.unwrap().job;
    assert_eq!(made.address.map(|address| address.sender_key()).as_deref(), Some("telegram:default:ann"));
}

#[tokio::test(start_paused = true)]
async fn cron_jobs_cannot_run_each_other() {
    let (ground, model) = ground(&[]).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    for (id, other) in [("a", "b"), ("b", "a")] {
        let message = format!("call cron_run {}", json!({ "id": other }));
        call(&world, "cron_add", &json!({ "id": id, "schedule": "every 12h", "message": message })).await;
    }
    let before = model.prompts().len();
    call(&world, "cron_run", &json!({ "id": "a" })).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    assert_eq!(model.prompts().len() - before, 4, "the call and what came of it, and the same in the errand");
}
