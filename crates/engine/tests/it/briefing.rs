//! Briefing files in prompts, and when a bootstrap file counts as applied.

use std::path::PathBuf;
use std::sync::Arc;

use polyclaw_domain::briefing::{BootstrapVersion, Briefing};
use polyclaw_domain::id::{AgentId, SessionId};
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_domain::session::Session;
use polyclaw_domain::skill;
use polyclaw_domain::tool::{ToolCall, ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_store::sessions;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{ScriptStep, ScriptedProvider, last_user_text};

fn bootstrap() -> Briefing {
    let bootstrap = Some(BootstrapVersion { path: PathBuf::from("BOOTSTRAP.md"), stamp: 7 });
    Briefing { text: "Ask for a name.".into(), bootstrap, ..Briefing::default() }
}

#[tokio::test(start_paused = true)]
async fn briefing_is_in_prompt_but_not_in_history() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.ground.briefings.set_briefing(Briefing { text: "Be brief.".into(), ..Briefing::default() });
    world.send_and_wait("hi").await;
    let prompt = model.prompts().pop().unwrap();
    assert!(prompt.system.contains("\n\nBe brief.\n\n"), "{}", prompt.system);
    assert!(world.transcript("me").await.iter().all(|message| !message.text.contains("Be brief.")));
    assert_eq!(world.ground.briefings.last_reader(), Some((AgentId::main(), false)));
}

#[tokio::test(start_paused = true)]
async fn skill_list_is_shown_only_if_agent_can_read_skills() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let skill_list = "# Skills\n- weather: Says how it is.".into();
    world.ground.briefings.set_briefing(Briefing {
        text: "Be brief.".into(),
        skill_list,
        ..Briefing::default()
    });
    world.send_and_wait("hi").await;
    let text_of = |n: usize| model.prompts()[n].system.clone();
    assert!(text_of(0).contains("Be brief.") && !text_of(0).contains("# Skills"), "{}", text_of(0));
    let read = |_: &ToolCall| Box::pin(async { ToolOutcome::ok(String::new()) }) as _;
    world.ground.tools.add_tool(skill::READ_SKILL_TOOL, ToolEffect::Pure, ToolConsent::NotNeeded, read);
    world.send_and_wait("again").await;
    assert!(text_of(1).contains("Be brief.\n\n# Skills"), "{}", text_of(1));
}

#[tokio::test(start_paused = true)]
async fn bootstrap_is_applied_only_after_successful_turn() {
    let failing = |text: &str| ProviderError {
        class: ErrorClass::BadRequest,
        model: "scripted/model".to_owned(),
        message: text.to_owned(),
        retry_after_ms: None,
    };
    let model = ScriptedProvider::new(move |prompt| match last_user_text(prompt) {
        "fail" => vec![ScriptStep::Fail(failing("no"))],
        text => vec![ScriptStep::Say(format!("reply to {text}"))],
    });
    let world = World::with_provider(model).await;
    world.ground.briefings.set_briefing(bootstrap());
    world.send_and_wait("fail").await;
    assert!(world.ground.briefings.applied_bootstraps().is_empty());
    world.send_and_wait("hi").await;
    world.wait_settled().await;
    assert_eq!(world.ground.briefings.applied_bootstraps(), [bootstrap().bootstrap.unwrap()]);
}

#[tokio::test(start_paused = true)]
async fn child_session_gets_subagent_briefing() {
    let world = World::new().await;
    let now = world.engine.now();
    let key = World::session_key("me");
    let child = Session {
        spawn_depth: 1,
        ..Session::new_for_person(key, SessionId::new("s1"), AgentId::main(), now)
    };
    world.engine.db().write(move |tx| sessions::ensure(tx, &child)).await.unwrap();
    world.send_and_wait("hi").await;
    assert_eq!(world.ground.briefings.last_reader(), Some((AgentId::main(), true)));
}
