//! Plan approval: a member that only reads until its lead agrees.

use std::sync::Arc;

use polyclaw_domain::locale::Locale;
use polyclaw_domain::team::PlanApproval;
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_engine::team::{NewMember, OutgoingTeamMessage, SpawnedTeammate, TeamActor, TeamMessageReceipt};
use polyclaw_engine::{Error, Result};
use polyclaw_testkit::ScriptStep;
use polyclaw_testkit::world::World;
use serde_json::json;
use tokio::sync::Semaphore;

use super::fixture::{Hall, TEAM, actor, call, code, lead, letter, say, who};

on_both!(
    member_is_read_only_until_plan_is_approved,
    rejected_plan_returns_with_requested_changes,
    answer_to_earlier_plan_approves_nothing,
    only_lead_or_person_can_answer_plan,
    repeated_plan_calls_change_nothing,
    pending_plan_approval_survives_restart_and_replacement,
    plan_approval_takes_effect_within_running_turn,
    member_without_approved_plan_is_offered_no_task,
    team_command_finds_plan_in_any_led_team,
);

fn planner(task: Option<&str>) -> NewMember {
    NewMember {
        name: "ann".into(),
        task: task.map(str::to_owned),
        plan_mode_required: true,
        ..NewMember::default()
    }
}

async fn plan_of(hall: &Hall) -> Option<PlanApproval> {
    let found = hall.world.engine.member_plan(&lead(), TEAM, "ann").await.unwrap();
    found.map(|plan| plan.approval)
}

async fn request_of(hall: &Hall) -> String {
    plan_of(hall).await.unwrap().request_id().unwrap().to_owned()
}

async fn submit(hall: &Hall, by: &TeamActor, plan: &str) -> Result<TeamMessageReceipt> {
    hall.world.engine.send_team_message(by, TEAM, letter(TeamMessageKind::PlanApprovalRequest, plan)).await
}

async fn answer(
    hall: &Hall,
    by: &TeamActor,
    request: &str,
    (approve, text): (bool, &str),
) -> Result<TeamMessageReceipt> {
    let outgoing = OutgoingTeamMessage {
        to: Some("ann".into()),
        request_id: Some(request.to_owned()),
        approve: Some(approve),
        ..letter(TeamMessageKind::PlanApprovalResponse, text)
    };
    hall.world.engine.send_team_message(by, TEAM, outgoing).await
}

/// The names of the tools that each prompt of ann's held.
fn tools(hall: &Hall) -> Vec<Vec<String>> {
    let prompts = hall.model.prompts();
    let own = prompts.iter().filter(|prompt| who(prompt) == "ann");
    own.map(|prompt| prompt.tools.iter().map(|tool| tool.name.clone()).collect()).collect()
}

fn holds(tools: &[String], name: &str) -> bool {
    tools.iter().any(|tool| tool == name)
}

async fn joined(hall: Hall) -> (Hall, SpawnedTeammate) {
    let hall = hall.with_team().await;
    let ann = hall.try_join(planner(None)).await.unwrap();
    (hall, ann)
}

async fn member_is_read_only_until_plan_is_approved(hall: Hall) {
    let hall = hall.with_team().await;
    let no = hall.task("paint it", &[]).await;
    let plan =
        json!({ "team_name": TEAM, "type": "plan_approval_request", "content": "First blue, then red." });
    hall.script(
        "ann",
        vec![
            call("TaskClaim", json!({ "team_name": TEAM })),
            call("SendMessage", plan),
            say("I wait."),
            call("TaskClaim", json!({ "team_name": TEAM })),
            say("I paint."),
        ],
    );
    hall.try_join(planner(Some("Paint it."))).await.unwrap();
    hall.rest().await;
    let before = tools(&hall);
    assert!(before.iter().all(|tools| holds(tools, "SendMessage") && holds(tools, "TaskList")), "{before:?}");
    assert!(
        before.iter().all(|tools| !holds(tools, "TaskClaim") && !holds(tools, "TaskCreate")),
        "{before:?}"
    );
    assert_eq!(hall.times("ann", "plan_approval_request, and wait for the lead's answer"), 2, "it hears why");
    assert_eq!(hall.times("ann", "Until then, you have read-only tools."), 3);
    assert!(hall.times("lead", "ann is idle: plan waits for approval.") > 0);
    let asked = format!(
        "type=\"plan_approval_request\" summary=\"First blue, then red.\" request_id=\"{}\"",
        request_of(&hall).await
    );
    assert!(hall.times("lead", &asked) > 0);
    let view = hall.world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
    let text = view.to_text(Locale::English);
    assert!(text.contains("idle, plan waits for approval"), "{text}");
    hall.script("lead", vec![call("TeamStatus", json!({ "team_name": TEAM })), say("I see.")]);
    hall.world.send_and_wait("what do they want to do?").await;
    assert!(hall.times("lead", "\"plan_content\":\"First blue, then red.\"") > 0, "a lead can read it again");
    answer(&hall, &lead(), &request_of(&hall).await, (true, "Good.")).await.unwrap();
    hall.rest().await;
    assert_eq!(plan_of(&hall).await, None);
    assert!(tools(&hall).last().is_some_and(|tools| holds(tools, "TaskClaim")));
    assert!(hall.times("ann", "Your plan is approved. Start now. Good.") > 0);
    let held = hall.world.engine.list_tasks(&lead(), TEAM, Default::default()).await.unwrap();
    assert_eq!((held[0].no, held[0].lease.as_ref().map(|lease| lease.owner.as_str())), (no, Some("ann")));
}

async fn rejected_plan_returns_with_requested_changes(hall: Hall) {
    let (hall, ann) = joined(hall).await;
    submit(&hall, &actor(&ann.session_key), "All red.").await.unwrap();
    let request = request_of(&hall).await;
    assert_eq!(code(&answer(&hall, &lead(), &request, (false, " ")).await), "invalid_message");
    answer(&hall, &lead(), &request, (false, "No red.")).await.unwrap();
    hall.rest().await;
    assert_eq!(plan_of(&hall).await, Some(PlanApproval::Required));
    assert_eq!(hall.times("ann", "Revise it and submit it again. No red."), 1);
    assert!(tools(&hall).iter().all(|tools| !holds(tools, "TaskClaim")));
    submit(&hall, &actor(&ann.session_key), "All blue.").await.unwrap();
    answer(&hall, &lead(), &request_of(&hall).await, (true, "")).await.unwrap();
    assert_eq!(plan_of(&hall).await, None);
}

async fn answer_to_earlier_plan_approves_nothing(hall: Hall) {
    let (hall, ann) = joined(hall).await;
    submit(&hall, &actor(&ann.session_key), "A small change.").await.unwrap();
    let earlier = request_of(&hall).await;
    let second = submit(&hall, &actor(&ann.session_key), "Delete everything.").await;
    assert_eq!((code(&second), request_of(&hall).await), ("invalid_message", earlier.clone()));
    answer(&hall, &lead(), &earlier, (false, "Smaller.")).await.unwrap();
    submit(&hall, &actor(&ann.session_key), "Delete everything.").await.unwrap();
    assert_ne!(request_of(&hall).await, earlier);
    assert_eq!(code(&answer(&hall, &lead(), &earlier, (true, "")).await), "unknown_request");
    assert!(plan_of(&hall).await.is_some());
}

async fn only_lead_or_person_can_answer_plan(hall: Hall) {
    let (hall, ann) = joined(hall).await;
    let bob = hall.join("bob").await;
    let own = actor(&ann.session_key);
    submit(&hall, &own, "All red.").await.unwrap();
    let request = request_of(&hall).await;
    for by in [own, actor(&bob.session_key), TeamActor::on_behalf_of(Some("ann".into()), "c".into())] {
        assert_eq!(code(&answer(&hall, &by, &request, (true, "")).await), "not_lead");
    }
    let none = submit(&hall, &actor(&bob.session_key), "Mine.").await;
    assert!(matches!(none, Err(Error::Team(_))), "{none:?}");
    assert!(plan_of(&hall).await.is_some());
    let person = TeamActor::Operator { call: "by hand".into() };
    let sent = OutgoingTeamMessage {
        to: Some("ann".into()),
        approve: Some(true),
        ..letter(TeamMessageKind::PlanApprovalResponse, "")
    };
    hall.world.engine.send_team_message(&person, TEAM, sent).await.unwrap();
    assert_eq!(plan_of(&hall).await, None);
}

async fn repeated_plan_calls_change_nothing(hall: Hall) {
    let (hall, ann) = joined(hall).await;
    let (first, no) = (actor(&ann.session_key), lead());
    let sent = submit(&hall, &first, "All red.").await.unwrap();
    let request = request_of(&hall).await;
    answer(&hall, &no, &request, (false, "No red.")).await.unwrap();
    assert_eq!(submit(&hall, &first, "All red.").await.unwrap().message_ids, sent.message_ids);
    assert_eq!(plan_of(&hall).await, Some(PlanApproval::Required), "it was rejected already");
    answer(&hall, &no, &request, (false, "No red.")).await.unwrap();
    hall.rest().await;
    let messages = hall.world.engine.list_team_messages(TEAM, 100).await.unwrap();
    let of = |kind| messages.iter().filter(|message| message.kind == kind).count();
    assert_eq!((of(TeamMessageKind::PlanApprovalRequest), of(TeamMessageKind::PlanApprovalResponse)), (1, 1));
}

async fn pending_plan_approval_survives_restart_and_replacement(hall: Hall) {
    let (hall, ann) = joined(hall).await;
    submit(&hall, &actor(&ann.session_key), "All red.").await.unwrap();
    let request = request_of(&hall).await;
    let hall = hall.lives_on(200_000).await;
    assert_eq!(request_of(&hall).await, request);
    let again = NewMember { replaces: true, plan_mode_required: false, ..planner(Some("go")) };
    hall.try_join(again).await.unwrap();
    hall.rest().await;
    assert_eq!(plan_of(&hall).await, Some(PlanApproval::Required));
    assert!(tools(&hall).iter().all(|tools| !holds(tools, "TaskClaim")));
    assert_eq!(code(&answer(&hall, &lead(), &request, (true, "")).await), "unknown_request");
}

async fn plan_approval_takes_effect_within_running_turn(hall: Hall) {
    let (hall, ann) = joined(hall).await;
    submit(&hall, &actor(&ann.session_key), "All red.").await.unwrap();
    let request = request_of(&hall).await;
    hall.rest().await;
    let gate = Arc::new(Semaphore::new(0));
    let look = ScriptStep::Call("TaskList".into(), json!({ "team_name": TEAM }));
    hall.script("ann", vec![vec![ScriptStep::Gate(Arc::clone(&gate)), look], say("done")]);
    hall.send(&lead(), "ann", "Look around.").await.unwrap();
    hall.until("ann is at work", async || !tools(&hall).is_empty()).await;
    answer(&hall, &lead(), &request, (true, "")).await.unwrap();
    gate.add_permits(1);
    hall.rest().await;
    let shown = tools(&hall);
    assert_eq!(shown.len(), 2, "it is one turn");
    assert!(!holds(&shown[0], "TaskClaim") && holds(&shown[1], "TaskClaim"), "{shown:?}");
}

async fn member_without_approved_plan_is_offered_no_task(hall: Hall) {
    let (hall, ann) = joined(hall).await;
    hall.task("paint it", &[]).await;
    hall.rest().await;
    assert_eq!(hall.times("ann", "paint it"), 0);
    submit(&hall, &actor(&ann.session_key), "All red.").await.unwrap();
    hall.rest().await;
    answer(&hall, &lead(), &request_of(&hall).await, (true, "")).await.unwrap();
    hall.rest().await;
    let messages = hall.world.engine.list_team_messages(TEAM, 100).await.unwrap();
    assert!(
        messages.iter().any(|one| one.kind == TeamMessageKind::Task && one.to == "ann"),
        "from then on it is"
    );
}

async fn team_command_finds_plan_in_any_led_team(hall: Hall) {
    let (hall, ann) = joined(hall).await;
    let plan = "All \u{202e}red.";
    submit(&hall, &actor(&ann.session_key), plan).await.unwrap();
    hall.create("later").await.unwrap();
    let text_of = async |line: &str| {
        hall.world.engine.run_command(&World::session_key("me"), line).await.unwrap().unwrap()
    };
    let listed = text_of("/team").await;
    assert!(
        listed.contains("web (active): 1 member, ") && listed.contains("; 1 plan waits for approval"),
        "{listed}"
    );
    let whole = text_of("/team web").await;
    assert!(whole.contains("Open tasks: 0") && !whole.contains(ann.session_key.as_str()), "{whole}");
    assert_eq!(text_of("/team nobody").await, "There is no team 'nobody'. /team lists the teams.");
    let shown = text_of("/team plan ann").await;
    assert!(shown.contains("All <U+202E>red.") && shown.contains("/team plan web ann approve"), "{shown}");
    assert_eq!(text_of("/team send ann Soon.").await, "Sent to ann.");
    let bob = NewMember { name: "ann".into(), ..NewMember::default() };
    hall.world.engine.spawn_teammate(&lead(), "later", bob).await.unwrap();
    let asked = text_of("/team send ann Soon.").await;
    assert_eq!(asked, "You lead several teams: web, later. Write the name of the team before 'ann'.");
    let focused = hall
        .world
        .engine
        .run_command(&World::session_key("me"), "/focus ann")
        .await
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(focused.contains("(team web)") && focused.contains("(team later)"), "{focused}");
    assert_eq!(text_of("/team plan web ann approve").await, "The plan of ann is approved.");
    for (line, usage) in
        [("/team plan", "Name the member: /team plan"), ("/team send", "Name the recipient: /team send")]
    {
        assert!(text_of(line).await.starts_with(usage), "{line}");
    }
    hall.rest().await;
}
