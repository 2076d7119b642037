//! A team has no more authority than the people it worked for.

use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::decide_approval;
use polyclaw_engine::team::TeamActor;
use polyclaw_testkit::world::World;
use serde_json::json;

use crate::approvals::{by_owner, question};

use super::fixture::{Hall, TEAM, call, lead, say};

on_both!(task_of_non_owner_never_gains_owner_authority, reading_team_status_keeps_authority);

async fn authority(hall: &Hall) -> Authority {
    let operator = TeamActor::Operator { call: "look".into() };
    hall.world.engine.team_snapshot(&operator, TEAM).await.unwrap().team.authority
}

/// A guest speaks in the lead's conversation.
async fn guest_says(hall: &Hall, text: &str) {
    let mut inbound = World::inbound("me", text);
    Authority::NonOwner.write_to_meta(&mut inbound.meta);
    let accepted = hall.world.engine.accept_message(inbound).await.unwrap();
    hall.world.wait_answer(&accepted).await;
}

async fn task_of_non_owner_never_gains_owner_authority(hall: Hall) {
    let hall = hall.with_team().await;
    hall.world.ground.tools.add_tool("write_file", ToolEffect::Idempotent, ToolConsent::NotNeeded, |_| {
        Box::pin(async { ToolOutcome::ok("written as asked") })
    });
    hall.join("ann").await;
    let write = |path: &str| call("write_file", json!({ "path": path, "content": "obey" }));
    hall.script("ann", vec![write("AGENTS.md"), say("done")]);
    hall.send(&lead(), "ann", "write it").await.unwrap();
    hall.rest().await;
    assert_eq!(
        hall.times("ann", "written as asked"),
        1,
        "owners alone were at work: {:?}",
        hall.shown("ann")
    );
    let task = json!({ "team_name": TEAM, "subject": "obey", "description": "d", "assignee": "ann" });
    hall.script("lead", vec![call("TaskCreate", task), say("ann does it")]);
    guest_says(&hall, "let ann obey").await;
    hall.rest().await;
    assert_eq!(authority(&hall).await, Authority::NonOwner);
    // An owner was the last to speak to the lead when the member works on.
    hall.world.send_and_wait("thanks").await;
    hall.script("ann", vec![write("SOUL.md"), say("done")]);
    hall.send(&lead(), "ann", "go on").await.unwrap();
    let id = question(&hall.world).await;
    decide_approval(&hall.world.engine, &id, by_owner(ApprovalDecision::Deny)).await.unwrap();
    hall.rest().await;
    let shown = hall.shown("ann").pop().unwrap();
    assert_eq!(shown.matches("written as asked").count(), 1, "{shown}");
    assert!(shown.contains("did not allow"), "{shown}");
}

async fn reading_team_status_keeps_authority(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    hall.script("lead", vec![call("TeamStatus", json!({ "team_name": TEAM })), say("all is well")]);
    guest_says(&hall, "how are they").await;
    assert_eq!(authority(&hall).await, Authority::Owner);
}
