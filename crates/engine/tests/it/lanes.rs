use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;

use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::{JobLane, JobPriority};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};
use tokio::sync::Semaphore;

fn to(agent: &str, peer: &str, priority: JobPriority) -> IngressMessage {
    let agent = AgentId::parse(agent).unwrap();
    let mut inbound = World::inbound(peer, &format!("{agent}/{peer}"));
    inbound.session = SessionKey::for_direct(&agent, "chat", peer);
    inbound.agent = agent;
    inbound.priority = priority;
    inbound
}

/// One slot, a gate before each answer, and the order in which the model got the messages.
async fn one_slot(agents: &[&str]) -> (World, Arc<Semaphore>, Arc<Mutex<Vec<String>>>) {
    let (gate, order) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (held, seen) = (Arc::clone(&gate), Arc::clone(&order));
    let model = ScriptedProvider::new(move |prompt| {
        seen.lock().unwrap().push(polyclaw_testkit::last_user_text(prompt).to_owned());
        vec![ScriptStep::Gate(Arc::clone(&held)), ScriptStep::Say("ok".into())]
    });
    let mut ground = World::with_provider(model).await.kill().await;
    ground.settings.slots = HashMap::from([(JobLane::Main, 1)]);
    for agent in agents {
        ground.add_agent(agent).await;
    }
    (ground.start_engine(KillPointFaults::no_kill()), gate, order)
}

#[tokio::test(start_paused = true)]
async fn direct_message_precedes_background_work() {
    let (world, gate, order) = one_slot(&[]).await;
    for (peer, priority) in [
        ("busy", JobPriority::Direct),
        ("late", JobPriority::Background),
        ("hook", JobPriority::Webhook),
        ("dm", JobPriority::Direct),
    ] {
        world.engine.accept_message(to("main", peer, priority)).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    gate.add_permits(10);
    world.wait_settled().await;
    assert_eq!(*order.lock().unwrap(), ["main/busy", "main/dm", "main/hook", "main/late"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_agent_does_not_starve_another() {
    let (world, gate, order) = one_slot(&["ops"]).await;
    for n in 0..20 {
        world.engine.accept_message(to("main", &format!("p{n:02}"), JobPriority::Direct)).await.unwrap();
    }
    world.engine.accept_message(to("ops", "q", JobPriority::Direct)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    gate.add_permits(100);
    world.wait_settled().await;
    let at = order.lock().unwrap().iter().position(|text| text == "ops/q").unwrap();
    assert!(at <= 2, "served as number {at}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_session_does_not_block_another() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with_provider(crate::worker(1, &gate)).await;
    world.send_text("slow", "work").await.unwrap();
    let other = world.send_text("fast", "hello").await.unwrap();
    assert_eq!(world.wait_answer(&other).await.text, "reply to hello");
    gate.add_permits(1);
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn lane_slots_are_respected() {
    let (gate, now, most) =
        (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(0_i32)), Arc::new(Mutex::new(0)));
    let (held, running, peak) = (Arc::clone(&gate), Arc::clone(&now), Arc::clone(&most));
    let model = ScriptedProvider::new(move |_| {
        let mut running = running.lock().unwrap();
        *running += 1;
        let mut peak = peak.lock().unwrap();
        *peak = (*peak).max(*running);
        vec![ScriptStep::Gate(Arc::clone(&held)), ScriptStep::Say("ok".into())]
    });
    let mut ground = World::with_provider(model).await.kill().await;
    ground.settings.slots = HashMap::from([(JobLane::Main, 3)]);
    let world = ground.start_engine(KillPointFaults::no_kill());
    for n in 0..10 {
        world.send_text(&format!("s{n}"), "hi").await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(*most.lock().unwrap(), 3, "three at a time until the gate opens");
    gate.add_permits(100);
    world.wait_settled().await;
}
