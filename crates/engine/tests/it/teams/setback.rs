//! A model that is away for a while: turns fail, and what waited for them is done when it is back. Time is virtual, but
//! for the one that needs real databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_domain::team::MemberState;
use polyclaw_domain::team::failures::FailureStreak;
use polyclaw_domain::team_message::{TeamMessageKind, TeamMessageState};
use polyclaw_engine::team::{NewTeamTask, OutgoingTeamMessage};
use polyclaw_store::{Db, outbox, teams};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider};

use super::chaos::{join, team};
use super::fixture::{Hall, TEAM, call, lead, letter, said, say, who};

on_both!(replacement_member_starts_without_failure_streak);

fn down() -> ModelScript {
    let error = ProviderError {
        class: ErrorClass::BadRequest,
        message: "not now".into(),
        model: "scripted/model".into(),
        retry_after_ms: None,
    };
    vec![ScriptStep::Fail(error)]
}

/// A model that is away while a flag is set, and a world with a team of `ann` and `bob`.
struct Outage {
    world: World,
    model: Arc<ScriptedProvider>,
    is_down: Arc<AtomicBool>,
}

impl Outage {
    async fn new() -> Self {
        let is_down = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_down);
        let model = ScriptedProvider::new(move |prompt| match flag.load(Ordering::SeqCst) {
            true => down(),
            // Whoever is told of a free task takes it.
            false if said(prompt).contains("is available: ") && !said(prompt).contains("result ") => {
                call("TaskClaim", serde_json::json!({ "team_name": TEAM }))
            }
            false => say("noted"),
        });
        let ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        world.send_and_wait("hello").await;
        team(&world).await;
        join(&world, "ann", false).await;
        join(&world, "bob", false).await;
        Self { world, model, is_down }
    }

    fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    async fn write(&self, to: &str, text: &str) {
        let outgoing = OutgoingTeamMessage { to: Some(to.into()), ..letter(TeamMessageKind::Message, text) };
        self.world.engine.send_team_message(&lead(), TEAM, outgoing).await.unwrap();
    }

    fn calls(&self, name: &str) -> usize {
        self.model.prompts().iter().filter(|prompt| who(prompt) == name).count()
    }

    async fn setback(&self, name: &str) -> Option<FailureStreak> {
        let view = self.world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
        match name {
            "lead" => view.lead_failure_streak,
            _ => view.members.into_iter().find(|one| one.member.name == name).unwrap().failures,
        }
    }

    /// Whether everything that was written to a name is read.
    async fn has_read(&self, name: &str) -> bool {
        let messages = self.world.engine.list_team_messages(TEAM, 99).await.unwrap();
        messages
            .iter()
            .filter(|message| message.to == name)
            .all(|message| message.state == TeamMessageState::Read)
    }
}

async fn seconds(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

#[tokio::test(start_paused = true)]
async fn work_left_by_outage_completes_after_recovery() {
    let outage = Outage::new().await;
    seconds(10).await;
    outage.set_down(true);
    outage.write("ann", "look").await;
    let new = NewTeamTask { subject: "draw".into(), ..NewTeamTask::default() };
    outage.world.engine.create_task(&lead(), TEAM, new).await.unwrap();
    seconds(6).await;
    let streak = outage.setback("ann").await.expect("people see that it fails");
    assert_eq!((streak.code.as_str(), streak.failures), ("provider_failed", 1));
    assert!(outage.setback("lead").await.is_some(), "the notice could not be read either");
    assert!(!outage.has_read("ann").await && !outage.has_read("lead").await);
    outage.set_down(false);
    seconds(90).await;
    for name in ["ann", "bob", "lead"] {
        assert!(outage.has_read(name).await, "{name}");
        assert_eq!(outage.setback(name).await, None, "{name}");
    }
    let view = outage.world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
    assert_eq!(view.counts.in_progress, 1, "the task is taken");
}

#[tokio::test(start_paused = true)]
async fn long_outage_backs_off_and_retries_survive_restart() {
    let mut outage = Outage::new().await;
    seconds(10).await;
    outage.set_down(true);
    let before = outage.calls("ann");
    outage.write("ann", "look").await;
    seconds(3600).await;
    // At 0 and after 0.5, 1, 2, 4, 8, 15, 15 minutes.
    assert_eq!(outage.calls("ann") - before, 8);
    let notice = outage.world.engine.list_team_messages(TEAM, 99).await.unwrap();
    let notices = notice.iter().filter(|message| message.content.starts_with("ann is idle: failed")).count();
    assert_eq!(notices, 1, "the lead is told once");
    let since = outage.setback("ann").await.unwrap().since;
    outage.world = outage.world.kill().await.start_engine(KillPointFaults::no_kill());
    outage.set_down(false);
    assert_eq!(outage.setback("ann").await.unwrap().since, since);
    seconds(16 * 60).await;
    assert!(outage.has_read("ann").await);
    assert_eq!((outage.setback("ann").await, outage.calls("ann") - before), (None, 9));
}

#[tokio::test(start_paused = true)]
async fn lead_failure_is_reported_to_people_once() {
    let outage = Outage::new().await;
    outage.world.send_and_wait("tell me when it is done").await;
    seconds(10).await;
    outage.set_down(true);
    let text_of = || async {
        let sent = outage.world.engine.db().read(|tx| outbox::list(tx, None, "", 100)).await.unwrap();
        sent.iter().filter(|message| message.text.contains("The model did not answer")).count()
    };
    outage.write("ann", "look").await;
    seconds(2 * 3600).await;
    assert!(outage.setback("lead").await.unwrap().failures > 3, "it was tried");
    assert_eq!(text_of().await, 1);
    outage.world.send_text("me", "are you there?").await.unwrap();
    seconds(5).await;
    assert_eq!(text_of().await, 2, "whoever asks is told");
}

#[tokio::test(start_paused = true)]
async fn person_message_to_lead_retries_members_immediately() {
    let outage = Outage::new().await;
    seconds(10).await;
    outage.set_down(true);
    outage.write("ann", "look").await;
    seconds(3600).await;
    outage.set_down(false);
    outage.world.send_and_wait("go on").await;
    seconds(5).await;
    assert!(outage.has_read("ann").await);
    assert_eq!(outage.setback("ann").await, None);
}

#[tokio::test(start_paused = true)]
async fn no_retry_without_pending_messages_or_after_stop() {
    let outage = Outage::new().await;
    seconds(10).await;
    outage.set_down(true);
    let refused = outage.world.send_text("me", "hello again").await;
    refused.unwrap();
    seconds(5).await;
    let before = outage.model.prompts().len();
    seconds(7200).await;
    assert_eq!(outage.model.prompts().len(), before, "nothing waits for the lead");
    assert!(outage.setback("lead").await.is_some_and(|setback| setback.retry_at.is_none()));
    outage.write("ann", "look").await;
    seconds(5).await;
    outage.world.engine.stop_session(&World::session_key("me")).await.unwrap();
    let before = outage.model.prompts().len();
    seconds(7200).await;
    assert_eq!(outage.model.prompts().len(), before, "nobody is woken until somebody writes");
    outage.set_down(false);
    outage.world.send_and_wait("go on").await;
    seconds(5).await;
    assert!(outage.has_read("ann").await);
}

async fn replacement_member_starts_without_failure_streak(hall: Hall) {
    let hall = hall.with_team().await;
    hall.script("ann", vec![down()]);
    hall.join("ann").await;
    hall.send(&lead(), "ann", "go").await.unwrap();
    let streak_of = async || {
        let view = hall.world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
        view.members[0].failures.clone()
    };
    hall.until("it failed", async || streak_of().await.is_some()).await;
    let retries = hall.world.engine.db().read(teams::list_retries).await.unwrap();
    assert!(
        retries
            .iter()
            .any(|retry| retry.name == "ann" && Some(retry.at) == retries.iter().map(|one| one.at).min())
    );
    hall.script("ann", vec![down()]);
    hall.send(&lead(), "ann", "and now").await.unwrap();
    hall.until("it failed again", async || streak_of().await.is_some_and(|one| one.failures == 2)).await;
    let new = polyclaw_engine::team::NewMember { name: "ann".into(), replaces: true, ..Default::default() };
    hall.try_join(new).await.unwrap();
    hall.until("its mail is read", async || hall.times("ann", ">go<") == 3).await;
    hall.rest().await;
    assert_eq!(streak_of().await, None);
}

#[tokio::test(start_paused = true)]
async fn closed_member_is_not_retried() {
    let outage = Outage::new().await;
    seconds(10).await;
    outage.set_down(true);
    outage.write("ann", "look").await;
    seconds(6).await;
    let db = outage.world.engine.db();
    let waits = async || db.read(teams::list_retries).await.unwrap().iter().any(|retry| retry.name == "ann");
    assert!(waits().await);
    let team = outage.world.engine.team_snapshot(&lead(), TEAM).await.unwrap().team;
    let now = outage.world.engine.now();
    db.write(move |tx| teams::set_member_state(tx, &team.id, "ann", MemberState::Closed, now)).await.unwrap();
    seconds(60).await;
    assert!(!waits().await, "or it would be looked at every second, for ever");
}
