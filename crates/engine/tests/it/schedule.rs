use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polyclaw_domain::briefing::Briefing;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::config::{CatchUp, CronJobConfig, DeliverTo};
use polyclaw_domain::cron_job::{CronJob, CronJobKind};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::port::WallClock as _;
use polyclaw_domain::schedule::Schedule;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::Error;
use polyclaw_store::cron_jobs::CronJobCreator;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Db, events, messages, sessions};
use polyclaw_testkit::world::DurableWorld;
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};

fn errand(rule: &str, catch_up: CatchUp) -> CronJob {
    CronJob {
        id: "tick".into(),
        written: rule.into(),
        timezone: None,
        schedule: Schedule::parse(rule, None).unwrap(),
        agent: AgentId::main(),
        session: SessionKey::for_cron_job("tick"),
        kind: CronJobKind::Message("look at the mail".into()),
        address: Some(ChatAddress {
            channel: "chat".into(),
            account: "test".into(),
            peer: "owner".into(),
            thread: None,
        }),
        catch_up,
        enabled: true,
        requested_by: Vec::new(),
    }
}

async fn ground(job: CronJob) -> DurableWorld {
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::echo()).await;
    ground.settings.cron_jobs = vec![job];
    ground
}

async fn told(db: &Db, key: SessionKey) -> Vec<SessionMessage> {
    let read = move |tx: &mut polyclaw_store::Tx<'_>| {
        let Some(session) = sessions::get(tx, &key)? else { return Ok(Vec::new()) };
        messages::list_page(tx, &key, &session.id, 0, 10_000)
    };
    let all = db.read(read).await.unwrap();
    all.into_iter().filter(|message| message.origin == MessageOrigin::Cron).collect()
}

async fn kinds(db: &Db) -> Vec<String> {
    let rows = db.read(|tx| events::list(tx, 0, None, None, 100)).await.unwrap();
    rows.into_iter().map(|row| row.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn due_cron_job_runs_and_its_reply_is_delivered() {
    let world = ground(errand("every 10m", CatchUp::Skip)).await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(35 * 60)).await;
    world.wait_settled().await;
    let messages = told(world.engine.db(), SessionKey::for_cron_job("tick")).await;
    assert_eq!(messages.len(), 3);
    assert!(messages.iter().all(|message| message.text == "look at the mail"), "nothing is said of lateness");
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 3);
    let status = &world.engine.list_cron_jobs().await.unwrap()[0];
    assert!(status.last_due.is_some() && status.next_due > status.last_due);
}

#[tokio::test(start_paused = true)]
async fn skipped_cron_runs_before_timely_run_are_recorded() {
    let ground = ground(errand("every 10m", CatchUp::Skip)).await;
    ground.clock.set_time(60_007);
    let world = ground.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = world.engine.list_cron_jobs().await.unwrap().remove(0);
    assert_eq!(status.last_due, None, "where it was begun is no due time");
    let ground = world.kill().await;
    ground.clock.set_time(89 * 60_000);
    let world = ground.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.wait_settled().await;
    assert_eq!(
        told(world.engine.db(), SessionKey::for_cron_job("tick")).await.len(),
        1,
        "the last is in time"
    );
    let read = |tx: &mut polyclaw_store::Tx<'_>| events::list(tx, 0, Some("cron.missed"), None, 10);
    let missed = world.engine.db().read(read).await.unwrap();
    assert_eq!(missed.len(), 1);
    assert_eq!(missed[0].data["missed"], 8);
}

#[tokio::test(start_paused = true)]
async fn missed_cron_runs_are_skipped_or_caught_up_once() {
    for (policy, runs) in [(CatchUp::Skip, 0), (CatchUp::Once, 1)] {
        let ground = ground(errand("every 10m", policy)).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let ground = world.kill().await;
        ground.clock.set_time(45 * 60_000);
        let world = ground.start_engine(KillPointFaults::no_kill());
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.wait_settled().await;
        let messages = told(world.engine.db(), SessionKey::for_cron_job("tick")).await;
        assert_eq!(messages.len(), runs, "{policy:?}");
        assert!(messages.iter().all(|message| message.text.contains("earlier runs were missed")));
        let missed = kinds(world.engine.db()).await.iter().any(|kind| kind == "cron.missed");
        assert_eq!(missed, runs == 0, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn cron_run_starts_once_at_every_kill_point() {
    for point in [KillPoint::IngressBefore, KillPoint::IngressCommitted, KillPoint::TurnClaimed] {
        let mut ground = ground(errand("every 10m", CatchUp::Once)).await;
        let began = ground.clock.now();
        for _ in 0..4 {
            let faults = KillPointFaults::at_point(point, 1);
            let world = ground.start_engine(Arc::clone(&faults));
            let _ = tokio::time::timeout(Duration::from_secs(11 * 60), faults.wait_killed()).await;
            ground = world.kill().await;
        }
        let world = ground.start_engine(KillPointFaults::no_kill());
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.wait_settled().await;
        let messages = told(world.engine.db(), SessionKey::for_cron_job("tick")).await;
        let mut keys: Vec<_> =
            messages.iter().filter_map(|message| message.idempotency_key.clone()).collect();
        let all = keys.len();
        keys.dedup();
        let passed = usize::try_from(world.ground.clock.now().since(began) / 600_000).unwrap();
        assert!(passed > 0 && all == passed && keys.len() == all, "{point:?}: {passed} due, {keys:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn cron_job_runs_on_time_after_clock_is_set_back() {
    const YEAR: i64 = 365 * 24 * 3_600_000;
    let world = ground(errand("every 10m", CatchUp::Once)).await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.ground.clock.set_time(YEAR);
    tokio::time::sleep(Duration::from_secs(15 * 60)).await;
    world.ground.clock.set_time(-YEAR);
    let before = due_times(world.engine.db()).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let next = world.engine.list_cron_jobs().await.unwrap().remove(0).next_due.unwrap();
    tokio::time::sleep(Duration::from_secs(11 * 60)).await;
    world.wait_settled().await;
    let times = due_times(world.engine.db()).await.split_off(before.len());
    assert!(!before.is_empty() && times.first() == Some(&next.0), "{next} is said, {times:?} come");
}

/// Despite clock changes and restarts, no due time starts twice, and each due time matches its rule.
#[tokio::test(start_paused = true)]
async fn clock_jumps_and_restarts_never_repeat_due_time() {
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let policy = if random.bool() { CatchUp::Once } else { CatchUp::Skip };
        let mut world = ground(errand("every 10m", policy)).await.start_engine(KillPointFaults::no_kill());
        for _ in 0..8 {
            match random.usize(..4) {
                0 => world.ground.clock.set_time(random.i64(-90..90) * 60_000),
                1 => {
                    let ground = world.kill().await;
                    ground.clock.set_time(random.i64(-90..90) * 60_000);
                    world = ground.start_engine(KillPointFaults::no_kill());
                }
                2 => world = world.kill().await.start_engine(KillPointFaults::no_kill()),
                _ => {}
            }
            tokio::time::sleep(Duration::from_secs(random.u64(1..15) * 60)).await;
        }
        world.wait_settled().await;
        let times = due_times(world.engine.db()).await;
        let different: std::collections::HashSet<_> = times.iter().collect();
        assert_eq!(different.len(), times.len(), "seed {seed}: {times:?}");
        assert!(times.iter().all(|at| at % 600_000 == 0), "seed {seed}: {times:?}");
    }
}

/// Due times of the started runs.
async fn due_times(db: &Db) -> Vec<i64> {
    let messages = told(db, SessionKey::for_cron_job("tick")).await;
    let at = |message: &SessionMessage| message.idempotency_key.as_deref()?.rsplit(':').next()?.parse().ok();
    messages.iter().map(|message| at(message).expect("the moment is in the key")).collect()
}

/// Midnight UTC on 2027-03-28 and 2027-10-31, an hour before the clocks in Berlin change.
const SPRING: i64 = 1_806_192_000_000;
const AUTUMN: i64 = 1_824_940_800_000;

/// Days on which a time zone's clocks change, with a restart in every hour.
#[tokio::test(start_paused = true)]
async fn daylight_saving_change_runs_each_due_time_once() {
    for (night, rule, expected) in [
        // 02:30 does not exist in spring and runs at the same moment; in autumn it occurs twice and runs once.
        (SPRING, "30 2 * * *", 1),
        (AUTUMN, "30 2 * * *", 1),
        (SPRING, "0 * * * *", 3),
    ] {
        let schedule = Schedule::parse(rule, Some("Europe/Berlin")).unwrap();
        let mut ground = ground(CronJob { schedule, ..errand(rule, CatchUp::Once) }).await;
        ground.clock.set_time(night - ground.clock.now().0);
        for _ in 0..3 {
            let world = ground.start_engine(KillPointFaults::no_kill());
            tokio::time::sleep(Duration::from_secs(3_599)).await;
            world.wait_settled().await;
            ground = world.kill().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let world = ground.start_engine(KillPointFaults::no_kill());
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.wait_settled().await;
        let times = due_times(world.engine.db()).await;
        assert_eq!(times.len(), expected, "{rule} from {night}: {times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_schedule_runs_once_and_new_schedule_starts_fresh() {
    let at = "at 2027-01-15 08:10";
    let world = ground(errand(at, CatchUp::Once)).await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    let db = world.engine.db().clone();
    assert_eq!(told(&db, SessionKey::for_cron_job("tick")).await.len(), 1);
    let mut settings = (*world.engine.settings()).clone();
    settings.cron_jobs = vec![errand("every 1h", CatchUp::Once)];
    world.engine.reload_settings(settings);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        told(&db, SessionKey::for_cron_job("tick")).await.len(),
        1,
        "nothing of before its time is made good"
    );
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(told(&db, SessionKey::for_cron_job("tick")).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn heartbeat_needs_file_and_no_reply_sends_nothing() {
    let session = SessionKey::main(&AgentId::main());
    let beat = CronJob {
        id: "heartbeat:main".into(),
        kind: CronJobKind::Heartbeat,
        session: session.clone(),
        ..errand("every 30m", CatchUp::Skip)
    };
    let mut ground = ground(beat).await;
    let asked = AtomicUsize::new(0);
    ground.provider = ScriptedProvider::new(move |_| {
        let quiet = asked.fetch_add(1, Ordering::Relaxed) == 0;
        vec![ScriptStep::Say(if quiet { "NO_REPLY" } else { "The mail server is down." }.to_owned())]
    });
    let world = ground.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(told(world.engine.db(), session.clone()).await.len(), 0, "without a file nobody is asked");
    ground.briefings.set_briefing(Briefing { has_heartbeat: true, ..Briefing::default() });
    tokio::time::sleep(Duration::from_secs(3600)).await;
    world.wait_settled().await;
    assert_eq!(told(world.engine.db(), session).await.len(), 2);
    let texts: Vec<_> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["The mail server is down."]);
}

#[tokio::test(start_paused = true)]
async fn cron_job_can_be_run_manually() {
    let world = ground(errand("every 12h", CatchUp::Skip)).await.start_engine(KillPointFaults::no_kill());
    let accepted = world.engine.run_cron_job("tick").await.unwrap().expect("something to do");
    assert!(world.wait_answer(&accepted).await.text.contains("look at the mail"));
    assert!(matches!(world.engine.run_cron_job("tock").await, Err(Error::UnknownCronJob(_))));
}

fn job(schedule: &str) -> CronJobConfig {
    CronJobConfig {
        id: "made".into(),
        schedule: schedule.into(),
        agent: None,
        message: "look at the mail".into(),
        deliver_to: None,
        timezone: None,
        catch_up: CatchUp::Once,
        enabled: true,
    }
}

#[tokio::test(start_paused = true)]
async fn runtime_cron_job_runs_and_survives_restart() {
    let world = ground(errand("every 12h", CatchUp::Skip)).await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let maker = CronJobCreator { agent: AgentId::main(), on_behalf_of: Vec::new() };
    let made = world.engine.add_cron_job(job("every 10m"), Some(maker)).await.unwrap();
    assert!(made.next_due.is_some() && made.created_by == Some(AgentId::main()));
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    let db = world.engine.db().clone();
    assert_eq!(told(&db, SessionKey::for_cron_job("made")).await.len(), 1);
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(20 * 60)).await;
    assert_eq!(told(&db, SessionKey::for_cron_job("made")).await.len(), 3, "no time is lost or doubled");
    world.engine.update_cron_job(CronJobConfig { enabled: false, ..job("every 10m") }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    assert_eq!(told(&db, SessionKey::for_cron_job("made")).await.len(), 3);
    assert_eq!(world.engine.find_cron_job("made").await.unwrap().next_due, None);
    world.engine.remove_cron_job("made").await.unwrap();
    let left: Vec<String> =
        world.engine.list_cron_jobs().await.unwrap().into_iter().map(|one| one.job.id).collect();
    assert_eq!(left, ["tick"]);
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn config_cron_jobs_are_read_only_and_invalid_jobs_refused() {
    let world = ground(errand("every 12h", CatchUp::Skip)).await.start_engine(KillPointFaults::no_kill());
    let engine = &world.engine;
    let taken = CronJobConfig { id: "tick".into(), ..job("every 10m") };
    assert!(matches!(engine.add_cron_job(taken.clone(), None).await, Err(Error::CronJobExists(_))));
    assert!(matches!(engine.update_cron_job(taken).await, Err(Error::CronJobInConfig(_))));
    assert!(matches!(engine.remove_cron_job("tick").await, Err(Error::CronJobInConfig(_))));
    assert!(matches!(engine.update_cron_job(job("every 10m")).await, Err(Error::UnknownCronJob(_))));
    let to =
        |channel: &str| DeliverTo { channel: channel.into(), account: None, peer: "1".into(), thread: None };
    for (wrong, named) in [
        (CronJobConfig { id: "Not a name".into(), ..job("every 10m") }, "id:"),
        (CronJobConfig { message: " ".into(), ..job("every 10m") }, "message:"),
        (job("now and then"), "schedule:"),
        (job("at 1999-12-31 23:59"), "has passed"),
        (CronJobConfig { timezone: Some("Mars/Base".into()), ..job("every 10m") }, "timezone:"),
        (CronJobConfig { agent: Some(AgentId::parse("nobody").unwrap()), ..job("every 10m") }, "agent:"),
        (CronJobConfig { deliver_to: Some(to("telegram")), ..job("every 10m") }, "deliver_to:"),
    ] {
        let refused = engine.add_cron_job(wrong, None).await.unwrap_err();
        assert!(matches!(&refused, Error::InvalidCronJob(why) if why.contains(named)), "{refused}");
    }
    assert_eq!(engine.list_cron_jobs().await.unwrap().len(), 1);
}
