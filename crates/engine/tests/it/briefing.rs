//! What a turn is told from files, and when that counts as told.

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
use polyclaw_testkit::{Line, Scripted, last_user};

fn bootstrap() -> Briefing {
    let bootstrap = Some(BootstrapVersion { path: PathBuf::from("BOOTSTRAP.md"), stamp: 7 });
    Briefing { text: "Ask for a name.".into(), bootstrap, ..Briefing::default() }
}

#[tokio::test(start_paused = true)]
async fn files_come_into_the_prompt_and_never_into_the_history() {
    let model = Scripted::echo();
    let world = World::with(Arc::clone(&model) as _).await;
    world.ground.papers.tell(Briefing { text: "Be brief.".into(), ..Briefing::default() });
    world.says("hi").await;
    let prompt = model.prompts().pop().unwrap();
    assert!(prompt.system.contains("\n\nBe brief.\n\n"), "{}", prompt.system);
    assert!(world.transcript("me").await.iter().all(|message| !message.text.contains("Be brief.")));
    assert_eq!(world.ground.papers.last(), Some((AgentId::main(), false)));
}

#[tokio::test(start_paused = true)]
async fn skills_are_told_to_an_agent_that_can_read_them_and_to_no_other() {
    let model = Scripted::echo();
    let world = World::with(Arc::clone(&model) as _).await;
    let skill_list = "# Skills\n- weather: Says how it is.".into();
    world.ground.papers.tell(Briefing { text: "Be brief.".into(), skill_list, ..Briefing::default() });
    world.says("hi").await;
    let told = |n: usize| model.prompts()[n].system.clone();
    assert!(told(0).contains("Be brief.") && !told(0).contains("# Skills"), "{}", told(0));
    let read = |_: &ToolCall| Box::pin(async { ToolOutcome::ok(String::new()) }) as _;
    world.ground.tools.add(skill::READ_SKILL_TOOL, ToolEffect::Pure, ToolConsent::NotNeeded, read);
    world.says("again").await;
    assert!(told(1).contains("Be brief.\n\n# Skills"), "{}", told(1));
}

#[tokio::test(start_paused = true)]
async fn a_bootstrap_has_been_told_only_when_its_turn_ended_well() {
    let failing = |text: &str| ProviderError {
        class: ErrorClass::BadRequest,
        model: "scripted/model".to_owned(),
        message: text.to_owned(),
        retry_after_ms: None,
    };
    let model = Scripted::new(move |prompt| match last_user(prompt) {
        "fail" => vec![Line::Fail(failing("no"))],
        text => vec![Line::Say(format!("reply to {text}"))],
    });
    let world = World::with(model).await;
    world.ground.papers.tell(bootstrap());
    world.says("fail").await;
    assert!(world.ground.papers.shown().is_empty());
    world.says("hi").await;
    world.settled().await;
    assert_eq!(world.ground.papers.shown(), [bootstrap().bootstrap.unwrap()]);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_is_briefed_as_one() {
    let world = World::new().await;
    let now = world.engine.now();
    let key = World::key("me");
    let child = Session {
        spawn_depth: 1,
        ..Session::new_for_person(key, SessionId::new("s1"), AgentId::main(), now)
    };
    world.engine.db().write(move |tx| sessions::ensure(tx, &child)).await.unwrap();
    world.says("hi").await;
    assert_eq!(world.ground.papers.last(), Some((AgentId::main(), true)));
}
