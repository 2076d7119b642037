//! Unknown senders get only a pairing code.

use polyclaw_domain::channel::{InboundMessage, IngestOutcome};
use polyclaw_domain::config::{CatchUp, CronJobConfig};
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::pairing::{CODE_EXPIRY_MS, CODE_REPEAT_INTERVAL_MS};
use polyclaw_store::cron_jobs::CronJobCreator;
use polyclaw_store::pairings::PairingSender;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, inbound_dm};

use crate::reception::{ground, read_after, recorded, said_in};

const CONFIG: &str = r#"
    [session]
    dm_scope = "per-channel-peer"
    [channels.telegram.default]
    bot_token = "123:token"
    owners = ["boss"]
"#;

async fn world() -> World {
    ground(CONFIG).await.start_engine(KillPointFaults::no_kill())
}

async fn pass(millis: i64) {
    tokio::time::sleep(std::time::Duration::from_millis(millis.unsigned_abs())).await;
}

fn errand(id: &str) -> CronJobConfig {
    CronJobConfig {
        id: id.into(),
        schedule: "every 12h".into(),
        agent: None,
        message: "look".into(),
        deliver_to: None,
        timezone: None,
        catch_up: CatchUp::Skip,
        enabled: true,
    }
}

fn numbered(sender: &str, n: usize) -> InboundMessage {
    inbound_dm(sender, &format!("line {n}"))
}

async fn rows(world: &World, table: &'static str) -> i64 {
    let count = match table {
        "sessions" => "SELECT COUNT(*) FROM sessions",
        "messages" => "SELECT COUNT(*) FROM messages",
        _ => "SELECT COUNT(*) FROM inbound_dedup",
    };
    let read = move |tx: &mut polyclaw_store::Tx<'_>| tx.query_one(count, &[], |row| row.int(0));
    world.engine.db().read(read).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn unknown_sender_gets_only_pairing_code() {
    let world = world().await;
    let read = read_after(&world, numbered("eve", 0)).await;
    let code = world.engine.list_pairings().await.unwrap()[0].code.clone();
    assert!(read.len() == 1 && read[0].contains(code.as_str()), "{read:?}");
    assert!(read_after(&world, numbered("eve", 0)).await.is_empty(), "the same letter again");
    for line in ["/help", "/approve x", "/main hi", "hello"] {
        assert!(read_after(&world, inbound_dm("eve", line)).await.is_empty(), "{line}");
    }
    pass(CODE_REPEAT_INTERVAL_MS).await;
    assert_eq!(read_after(&world, numbered("eve", 2)).await, read, "the same code again, later");
    assert_eq!((rows(&world, "sessions").await, rows(&world, "messages").await), (0, 0));
    assert_eq!(rows(&world, "ingress").await, 2, "what a stranger goes on writing is not even remembered");
}

#[tokio::test(start_paused = true)]
async fn paired_sender_is_admitted_until_revoked() {
    let world = world().await;
    read_after(&world, numbered("eve", 0)).await;
    let code = world.engine.list_pairings().await.unwrap()[0].code.to_string().to_lowercase();
    assert!(world.engine.approve_pairing("AAAAAAAA").await.is_err());
    world.engine.approve_pairing(&code).await.unwrap();
    assert!(world.engine.approve_pairing(&code).await.is_err(), "once");
    world.wait_settled().await;
    assert_eq!(
        world.ground.fake_channel.texts_at("eve", None).pop().unwrap(),
        "You are approved. You can write to me now."
    );
    assert_eq!(read_after(&world, inbound_dm("eve", "hello")).await, ["echo: hello"]);
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    assert_eq!(read_after(&world, inbound_dm("eve", "again")).await, ["echo: again"], "after a restart, too");
    assert_eq!(said_in(&world, "agent:main:telegram:dm:eve").await, ["hello", "again"]);
    let eve = PairingSender { channel: "telegram".into(), account: "default".into(), id: "eve".into() };
    for (id, whose) in [("hers", "telegram:default:eve"), ("his", "telegram:default:boss")] {
        let maker = CronJobCreator { agent: AgentId::main(), on_behalf_of: vec![whose.to_owned()] };
        world.engine.add_cron_job(errand(id), Some(maker)).await.unwrap();
    }
    world.engine.revoke_pairing(eve.clone()).await.unwrap();
    assert!(world.engine.find_runtime_cron_job("hers").await.is_err(), "nobody is served who was put out");
    world.engine.find_runtime_cron_job("his").await.unwrap();
    assert!(world.engine.revoke_pairing(eve).await.is_err());
    let read = read_after(&world, inbound_dm("eve", "still me")).await;
    assert!(read[0].contains("You are not approved yet"), "{read:?}");
    let kinds = [EventKind::PairingRequested, EventKind::PairingApproved, EventKind::PairingRevoked];
    for (kind, times) in kinds.into_iter().zip([2, 1, 1]) {
        assert_eq!(recorded(&world, kind).await.len(), times, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fourth_pending_pairing_and_expired_code_are_refused() {
    let world = world().await;
    for sender in ["a", "b", "c"] {
        assert_eq!(read_after(&world, numbered(sender, 0)).await.len(), 1);
    }
    let first = world.engine.list_pairings().await.unwrap()[0].code.to_string();
    assert!(read_after(&world, numbered("d", 0)).await.is_empty());
    assert!(read_after(&world, numbered("d", 1)).await.is_empty());
    assert_eq!(recorded(&world, EventKind::PairingRefused).await.len(), 1);
    pass(CODE_EXPIRY_MS).await;
    assert!(world.engine.approve_pairing(&first).await.is_err(), "expired");
    assert_eq!(read_after(&world, numbered("d", 2)).await.len(), 1, "there is room again");
    let waiting = world.engine.list_pairings().await.unwrap();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
}

#[tokio::test(start_paused = true)]
async fn concurrent_pairing_requests_are_limited_to_three() {
    let world = world().await;
    let messages = (0..20).map(|n| world.ground.fake_channel.deliver_inbound(numbered(&format!("s{n}"), 0)));
    let taken = futures_util::future::join_all(messages).await;
    assert!(taken.iter().all(|taken| *taken == IngestOutcome::Done));
    world.wait_settled().await;
    assert_eq!(world.engine.list_pairings().await.unwrap().len(), 3);
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn owner_needs_no_pairing_code() {
    let world = world().await;
    assert_eq!(read_after(&world, inbound_dm("boss", "hello")).await, ["echo: hello"]);
}

#[tokio::test(start_paused = true)]
async fn pairing_code_is_sent_once_at_every_kill_point() {
    for point in [KillPoint::ReplyOnceBefore, KillPoint::ReplyOnceCommitted, KillPoint::OutboxRecorded] {
        let ground = ground(CONFIG).await;
        let faults = KillPointFaults::at_point(point, 1);
        let world = ground.start_engine(faults.clone());
        let outlet = ground.fake_channel.clone();
        let delivered = tokio::spawn(async move { outlet.deliver_inbound(numbered("eve", 0)).await });
        faults.wait_killed().await;
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        assert_eq!(delivered.await.unwrap(), IngestOutcome::Done);
        world.wait_settled().await;
        assert_eq!(world.ground.fake_channel.texts_at("eve", None).len(), 1, "{point:?}");
        assert_eq!(world.engine.list_pairings().await.unwrap().len(), 1);
    }
}
