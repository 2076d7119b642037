use polyclaw_domain::authority::Authority;
use polyclaw_domain::id::{AgentId, TeamId, TraceId};
use polyclaw_domain::run::SubagentRun;
use polyclaw_domain::team::shutdown::{ShutdownAnswer, ShutdownRequest};
use polyclaw_domain::team::{MemberState, Team, TeamMember, TeamStatus};
use polyclaw_store::{Db, Error, Result, jobs, runs, teams};

use crate::rows::{NOW, address, claim, claimer, key, queue, with_sessions};
use crate::runs::run;

on_every_engine!(
    team_name_is_unique_until_the_team_has_ended,
    team_member_keeps_its_name_when_its_session_is_replaced,
    shutdown_request_has_one_answer,
    shutdown_call_refers_to_the_team_it_ended,
    failure_retry_of_a_member_is_claimed_once,
    members_at_work_are_derived_from_turns_and_runs,
);

pub fn team(id: &str, name: &str) -> Team {
    Team {
        id: TeamId::new(id),
        name: name.into(),
        description: "to build it".into(),
        agent_type: "general".into(),
        status: TeamStatus::Active,
        lead: key("lead"),
        lead_agent: AgentId::main(),
        trace: TraceId::new("x"),
        reply_to: vec![address()],
        authority: Authority::Owner,
        created_at: NOW,
        updated_at: NOW,
    }
}

fn member(name: &str, peer: &str) -> TeamMember {
    TeamMember {
        team: TeamId::new("t"),
        name: name.into(),
        session: key(peer),
        agent: AgentId::main(),
        role: "writer".into(),
        capabilities: vec!["rust".into()],
        color: "blue".into(),
        state: MemberState::Active,
        plan: None,
        joined_at: NOW,
        last_active_at: NOW,
    }
}

async fn insert(db: &Db, team: Team) -> Result<()> {
    db.write(move |tx| teams::insert(tx, &team)).await
}

async fn failure_retry_of_a_member_is_claimed_once(db: Db) -> Result<()> {
    let id = || TeamId::new("t");
    insert(&db, team("t", "web")).await?;
    db.write(|tx| teams::add_member(tx, &member("ann", "a"))).await?;
    let fail = |name: &'static str, at: i64| {
        db.write(move |tx| teams::record_failure(tx, &id(), name, "provider_down", NOW.plus(at)))
    };
    fail("ann", 0).await?;
    fail("lead", 1).await?;
    fail("ann", 2).await?;
    let ann = db.read(move |tx| teams::get_failure_streak(tx, &id(), "ann")).await?.unwrap();
    assert_eq!((ann.since, ann.failures, ann.retry_at), (NOW, 2, Some(NOW.plus(60_002))));
    let retries = db.read(teams::list_retries).await?;
    assert_eq!(retries.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["lead", "ann"], "in order");
    let take = |at: usize| {
        let retry = retries[at].clone();
        db.write(move |tx| teams::claim_retry(tx, &retry, None))
    };
    assert!(take(0).await? && !take(0).await?, "one of those who look takes it");
    assert_eq!(db.write(|tx| teams::cancel_retries(tx, &key("a"))).await?, 1, "a member that is stopped");
    assert_eq!(db.write(|tx| teams::retry_teams_led_by(tx, &key("lead"), NOW)).await?, 2);
    assert_eq!(db.write(|tx| teams::cancel_retries(tx, &key("lead"))).await?, 2, "a lead that is stopped");
    assert!(!take(1).await? && db.read(teams::list_retries).await?.is_empty());
    db.write(|tx| teams::replace_member(tx, &member("ann", "b"))).await?;
    let left = db.read(move |tx| teams::list_failure_streaks(tx, &id())).await?;
    assert_eq!(left.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["lead"]);
    db.write(move |tx| teams::clear_failures(tx, &id(), "lead")).await?;
    assert!(db.read(move |tx| teams::list_failure_streaks(tx, &id())).await?.is_empty());
    Ok(())
}

async fn team_name_is_unique_until_the_team_has_ended(db: Db) -> Result<()> {
    insert(&db, team("t", "web")).await?;
    assert!(matches!(insert(&db, team("u", "web")).await, Err(Error::Conflict(_))));
    assert_eq!(db.read(|tx| teams::find_open_by_name(tx, "web")).await?, Some(team("t", "web")));
    let end = |from: TeamStatus, to: TeamStatus| {
        db.write(move |tx| teams::set_status(tx, &TeamId::new("t"), (&[from], to), NOW))
    };
    assert!(!end(TeamStatus::ShuttingDown, TeamStatus::Shutdown).await?, "it is not there yet");
    assert!(end(TeamStatus::Active, TeamStatus::Shutdown).await?);
    insert(&db, team("u", "web")).await?;
    assert_eq!(db.read(|tx| teams::find_open_by_name(tx, "web")).await?.unwrap().id, TeamId::new("u"));
    assert_eq!(db.read(teams::list_open).await?.len(), 1);
    assert_eq!(db.read(|tx| teams::list_ended(tx, 9)).await?.len(), 1);
    assert_eq!(db.read(|tx| teams::list_led_by(tx, &key("lead"))).await?.len(), 2);
    db.write(|tx| teams::set_request_origin(tx, &key("lead"), &TraceId::new("y"), &[])).await?;
    let asked = db.read(|tx| teams::find_open_by_name(tx, "web")).await?.unwrap();
    assert_eq!((asked.trace.as_str(), asked.reply_to.len()), ("y", 0));
    Ok(())
}

async fn team_member_keeps_its_name_when_its_session_is_replaced(db: Db) -> Result<()> {
    insert(&db, team("t", "web")).await?;
    db.write(|tx| teams::add_member(tx, &member("ann", "a"))).await?;
    assert!(db.write(|tx| teams::add_member(tx, &member("ann", "b"))).await.is_err());
    assert_eq!(db.read(|tx| teams::find_member_by_session(tx, &key("a"))).await?, Some(member("ann", "a")));
    db.write(|tx| teams::replace_member(tx, &member("ann", "b"))).await?;
    assert_eq!(db.read(|tx| teams::find_member_by_session(tx, &key("a"))).await?, None);
    db.write(|tx| teams::set_member_state(tx, &TeamId::new("t"), "ann", MemberState::Lost, NOW.plus(1)))
        .await?;
    let now = db.read(|tx| teams::list_members(tx, &TeamId::new("t"))).await?;
    let lost = TeamMember { state: MemberState::Lost, last_active_at: NOW.plus(1), ..member("ann", "b") };
    assert_eq!(now, [lost]);
    Ok(())
}

async fn shutdown_request_has_one_answer(db: Db) -> Result<()> {
    insert(&db, team("t", "web")).await?;
    let id = TeamId::new("t");
    let request =
        ShutdownRequest { id: "r1".into(), member: "ann".into(), deadline: NOW.plus(60), answer: None };
    let (asked, of) = (request.clone(), id.clone());
    db.write(move |tx| teams::insert_shutdown_request(tx, &of, &asked, NOW)).await?;
    assert!(db.write(|tx| teams::record_shutdown_answer(tx, "r1", &ShutdownAnswer::Approved)).await?);
    assert!(
        !db.write(|tx| teams::record_shutdown_answer(tx, "r1", &ShutdownAnswer::Idle)).await?,
        "the first stands"
    );
    assert!(!db.write(|tx| teams::record_shutdown_answer(tx, "r9", &ShutdownAnswer::Idle)).await?);
    let of = id.clone();
    let answered = db.read(move |tx| teams::list_shutdown_requests(tx, &of)).await?;
    assert_eq!(answered, [ShutdownRequest { answer: Some(ShutdownAnswer::Approved), ..request }]);
    let of = id.clone();
    db.write(move |tx| teams::delete_shutdown_requests(tx, &of)).await?;
    assert!(db.read(move |tx| teams::list_shutdown_requests(tx, &id)).await?.is_empty());
    Ok(())
}

async fn shutdown_call_refers_to_the_team_it_ended(db: Db) -> Result<()> {
    const END: (&[TeamStatus], TeamStatus) = (&[TeamStatus::Active], TeamStatus::Shutdown);
    for (at, id) in (0_i64..).zip(["t1", "t2", "t3"]) {
        insert(&db, team(id, "web")).await?;
        let is_meant = db.write(move |tx| teams::record_shutdown_call(tx, "c", &TeamId::new(id))).await?;
        assert_eq!(is_meant, id == "t1");
        if id != "t3" {
            db.write(move |tx| teams::set_status(tx, &TeamId::new(id), END, NOW.plus(at))).await?;
        }
    }
    let id = |team: &Team| team.id.to_string();
    assert_eq!(
        db.read(|tx| teams::find_by_shutdown_call(tx, "c")).await?.as_ref().map(id).as_deref(),
        Some("t1")
    );
    assert_eq!(db.read(|tx| teams::find_by_shutdown_call(tx, "d")).await?, None);
    let ended = db.read(|tx| teams::list_ended_by_name(tx, "web")).await?;
    assert_eq!(ended.iter().map(id).collect::<Vec<_>>(), ["t2", "t1"], "the newest first");
    Ok(())
}

async fn members_at_work_are_derived_from_turns_and_runs(db: Db) -> Result<()> {
    with_sessions(&db, &["a", "b", "c"]).await?;
    insert(&db, team("t", "web")).await?;
    db.write(|tx| {
        [("ann", "a"), ("bob", "b"), ("cat", "c")]
            .iter()
            .try_for_each(|(name, peer)| teams::add_member(tx, &member(name, peer)))
    })
    .await?;
    queue(&db, vec![crate::rows::job("t1", "b"), crate::rows::job("t2", "a")]).await?;
    claim(&db, claimer("n/1")).await?.unwrap();
    assert_eq!(db.read(|tx| teams::list_members_at_work(tx, &TeamId::new("t"))).await?, ["ann", "bob"]);
    let waiting = db.read(|tx| jobs::session_load(tx, &key("a"))).await?.queued.unwrap();
    db.write(move |tx| jobs::hold_for_person(tx, &waiting)).await?;
    let team = TeamId::new("t");
    let (at_work, with_runs) = db
        .write(move |tx| {
            runs::insert(tx, &SubagentRun { owner: key("c"), ..run("r", "child", None) })?;
            Ok((teams::list_members_at_work(tx, &team)?, teams::list_members_with_runs(tx, &team)?))
        })
        .await?;
    assert_eq!(at_work, ["bob"], "whose turn waits for a person is not at work");
    assert_eq!(with_runs.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["cat"]);
    Ok(())
}
