//! SIGKILL while a delegate streams to a chat platform: its text and the caller's appear once each.

use std::time::Duration;

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use polyclaw_testkit::platform::telegram::TelegramEmulator;
use serde_json::json;

use crate::daemon::{Home, PATIENCE};

const TOKEN: &str = "1:bot";
const OWNER: i64 = 5;
pub const EXPERT: &str = "Expert: it has been known since long ago that it is 42";
pub const CALLER: &str = "So it is 42.";

/// The kill point, and at which pass the process dies.
const DEATHS: [(KillPoint, usize); 9] = [
    (KillPoint::MidStream, 1),
    (KillPoint::MidStream, 2),
    (KillPoint::IntentStored, 1),
    (KillPoint::ToolRan, 1),
    (KillPoint::FinishBefore, 1),
    (KillPoint::FinishCommitted, 1),
    (KillPoint::OutboxSending, 1),
    (KillPoint::OutboxAccepted, 1),
    (KillPoint::OutboxAccepted, 2),
];

/// The caller asks the expert, whose answer takes two seconds: long enough for a draft.
pub fn answer(request: &ReceivedRequest) -> ReplyScript {
    let asks = request.messages().iter().any(|message| message["role"] == "tool");
    if request.last_user_text().contains("the task") {
        let text = EXPERT.strip_prefix("Expert: ").unwrap_or_default();
        return ReplyScript::new().chunks(text, 10, Duration::from_millis(200));
    }
    match asks {
        true => ReplyScript::new().chunks(CALLER, 2, Duration::from_millis(50)),
        false => ReplyScript::new().call(
            "a",
            "delegate_to_agent",
            json!({ "agent_id": "expert", "task": "the task", "stream": true }),
        ),
    }
}

/// Two agents, of which the first may ask the second.
pub fn agents(model: &ModelServer) -> String {
    format!(
        "[providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [agents]\ndefault = \"main\"\n[agents.defaults]\nmodel = \"scripted/m\"\n\
         [[agents.list]]\nid = \"main\"\nname = \"Main\"\ndelegation = {{ allow_agents = [\"expert\"] }}\n\
         [[agents.list]]\nid = \"expert\"\nname = \"Expert\"\nisolation = \"process\"\n",
        model.url()
    )
}

fn config(model: &ModelServer, telegram: &TelegramEmulator) -> String {
    format!(
        "{}[channels.telegram.default]\nbot_token = \"{TOKEN}\"\napi_url = \"{}\"\n\
         dm_policy = \"allowlist\"\nallow_from = [\"{OWNER}\"]\nowners = [\"{OWNER}\"]\n",
        agents(model),
        telegram.api_url()
    )
}

async fn dies_at(point: KillPoint, passing: usize) {
    let case = format!("{}:{passing}", point.as_str());
    let (model, telegram) = (ModelServer::start(), TelegramEmulator::start());
    model.answer_with(answer);
    telegram.add_bot(TOKEN, 1, "polly_bot");
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&folder.path().join("home"), &config(&model, &telegram));
    let mut daemon = home.start(Some(&case)).await;
    telegram.send_dm(TOKEN, OWNER, "ask the expert");
    assert!(daemon.dies(PATIENCE).await, "{case} was never reached");
    drop(daemon);
    let _daemon = home.start(None).await;
    let is_shown = |telegram: &TelegramEmulator, text: &str| {
        telegram.visible_messages().iter().any(|one| one.text == text)
    };
    telegram.wait_until("both are shown", |shown| is_shown(shown, EXPERT) && is_shown(shown, CALLER)).await;
    // A second copy would arrive immediately, too.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let shown: Vec<String> = telegram.visible_messages().into_iter().map(|one| one.text).collect();
    let place = |text: &str| shown.iter().position(|one| one == text);
    assert!(place(EXPERT) < place(CALLER), "{case}: {shown:?}");
    // A draft with an unknown state is left as it is, and says that it continues.
    let others = shown.iter().filter(|one| *one != EXPERT && *one != CALLER);
    assert!(others.clone().all(|one| one.ends_with('…')), "{case}: {shown:?}");
    assert!(shown.len() - others.count() == 2, "{case}: {shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delegate_and_caller_text_are_shown_once_after_kill() {
    let mut cases = tokio::task::JoinSet::new();
    for (point, passing) in DEATHS {
        cases.spawn(dies_at(point, passing));
    }
    while let Some(case) = cases.join_next().await {
        case.unwrap();
    }
}
