//! The crash simulator: a seeded conversation on the real engine, killed at seeded points, restarted, and checked
//! against rules that must hold after any crash. The same seed gives the same run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_engine::Error;
use polyclaw_engine::ingress::AcceptedMessage;
use polyclaw_store::Db;
use tokio::task::JoinSet;

use crate::ports::KillPointFaults;
use crate::ports::fake_channel::FakeChannel;
use crate::ports::script::ScriptedProvider;
use crate::world::{DurableWorld, World, wait_settled};

mod check;
mod inbound;
mod model;
mod watch;

pub use check::{BrokenRule, check_rules};
use inbound::IngestedNames;
pub use inbound::SimulatedInbound;
use watch::KillPointWatch;

/// Maximum number of kills in a run. With more, a turn may rightly give up.
const MAX_KILLS: usize = 3;

/// A message of a simulated person.
#[derive(Clone, Debug)]
pub struct SimulatedMessage {
    pub name: String,
    pub session: String,
    pub text: String,
    pub after_ms: u64,
}

/// The plan derived from a seed.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    pub seed: u64,
    pub messages: Vec<SimulatedMessage>,
    /// The kill point number at which each engine dies.
    pub kills: Vec<u64>,
    pub idempotent_channel: bool,
    /// Messages that go through the inbound pipeline.
    pub inbounds: Vec<SimulatedInbound>,
    /// The agents of a group answer one after the other.
    pub is_sequential: bool,
}

impl SimulationPlan {
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let sessions = rng.usize(1..=3);
        let messages = (0..rng.usize(1..=6)).map(|n| random_message(&mut rng, n, sessions)).collect();
        let kills = (0..rng.usize(0..=MAX_KILLS)).map(|_| rng.u64(1..=40)).collect();
        let idempotent_channel = rng.bool();
        let (inbounds, is_sequential) = (inbound::random_inbounds(&mut rng), rng.bool());
        Self { seed, messages, kills, idempotent_channel, inbounds, is_sequential }
    }
}

fn random_message(rng: &mut Rng, n: usize, sessions: usize) -> SimulatedMessage {
    let text = task_text(rng, &format!("m{n}"));
    SimulatedMessage {
        name: format!("m{n}"),
        session: format!("s{}", rng.usize(0..sessions)),
        text,
        after_ms: rng.u64(0..120),
    }
}

/// Builds a message text with orders for the scripted model: the tools to call and the batch size.
fn task_text(rng: &mut Rng, name: &str) -> String {
    let tools: String = (0..rng.usize(0..=4)).map(|_| ["l", "p", "x"][rng.usize(0..3)]).collect();
    format!("task {name} tools={tools} batch={}", rng.usize(1..=3))
}

/// The outcome of a run, for failure reports and totals.
#[derive(Clone, Debug, Default)]
pub struct SimulationRun {
    pub killed_at: Vec<KillPoint>,
    pub accepted: usize,
    pub steered: usize,
    pub unknown: usize,
    pub failed: usize,
}

/// Runs one seed to its end on its own runtime with virtual time.
pub fn run_seed(seed: u64) -> Result<SimulationRun, BrokenRule> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|error| BrokenRule::new(seed, format!("no runtime: {error}")))?;
    runtime.block_on(run_plan(&SimulationPlan::from_seed(seed)))
}

type AcceptedAcks = Arc<Mutex<Vec<(String, AcceptedMessage)>>>;

async fn run_plan(plan: &SimulationPlan) -> Result<SimulationRun, BrokenRule> {
    let db = Db::in_memory().map_err(|error| BrokenRule::new(plan.seed, error.to_string()))?;
    let mut ground = DurableWorld::from_db(db, ScriptedProvider::new(model::answer_prompt)).await;
    ground.fake_channel = FakeChannel::new(plan.idempotent_channel);
    ground.configure(&inbound::group_config(plan.is_sequential)).await;
    let (acks, taken) = (AcceptedAcks::default(), IngestedNames::default());
    let (mut run, watch) = (SimulationRun::default(), KillPointWatch::from_ground(&ground));
    for step in &plan.kills {
        let faults = KillPointFaults::at_step(*step);
        let world = ground.start_engine(watch.wrap_faults(&faults));
        let senders = send_missing(&world, plan, &acks, &taken);
        tokio::select! {
            point = faults.wait_killed() => run.killed_at.push(point),
            () = wait_until_quiet(&world, plan, &acks, &taken) => {}
        }
        drop(senders);
        world.kill().await;
    }
    let world = ground.start_engine(watch.wrap_faults(&KillPointFaults::no_kill()));
    let senders = send_missing(&world, plan, &acks, &taken);
    wait_until_quiet(&world, plan, &acks, &taken).await;
    drop(senders);
    world.kill().await;
    let acks = acks.lock().unwrap_or_else(PoisonError::into_inner).clone();
    run.accepted = acks.len();
    watch.first_violation().map_err(|rule| BrokenRule::new(plan.seed, rule))?;
    check_rules(plan, &ground, &acks, &mut run).await?;
    Ok(run)
}

/// Delivers every message that was not acknowledged, repeatedly and under the same ID, as a platform does.
fn send_missing(
    world: &World,
    plan: &SimulationPlan,
    acks: &AcceptedAcks,
    taken: &IngestedNames,
) -> JoinSet<()> {
    let mut senders = JoinSet::new();
    inbound::deliver_missing(world, &plan.inbounds, taken, &mut senders);
    let known = acks.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for message in plan.messages.iter().filter(|m| !known.iter().any(|(name, _)| *name == m.name)) {
        let (engine, message, acks) = (world.engine.clone(), message.clone(), Arc::clone(acks));
        senders.spawn(async move {
            tokio::time::sleep(Duration::from_millis(message.after_ms)).await;
            let mut inbound = World::inbound(&message.session, &message.text);
            inbound.platform_id = Some(message.name.clone());
            loop {
                match engine.accept_message(inbound.clone()).await {
                    Ok(accepted) => {
                        acks.lock().unwrap_or_else(PoisonError::into_inner).push((message.name, accepted));
                        return;
                    }
                    Err(Error::BacklogFull(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
                    Err(error) => panic!("a message was refused: {error}"),
                }
            }
        });
    }
    senders
}

async fn wait_until_quiet(world: &World, plan: &SimulationPlan, acks: &AcceptedAcks, taken: &IngestedNames) {
    inbound::wait_until_quiet(world, &plan.inbounds, taken).await;
    while acks.lock().unwrap_or_else(PoisonError::into_inner).len() < plan.messages.len() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    wait_settled(world.engine.db()).await;
}

/// Runs many seeds on `threads` threads. Stops at the first that breaks a rule.
pub fn run_many(
    first_seed: u64,
    count: u64,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SimulationTotals, BrokenRule> {
    let next = std::sync::atomic::AtomicU64::new(0);
    let totals = Mutex::new(SimulationTotals::default());
    let broken: Mutex<Option<BrokenRule>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if n >= count || broken.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                        return;
                    }
                    match run_seed(first_seed.wrapping_add(n)) {
                        Ok(run) => totals.lock().unwrap_or_else(PoisonError::into_inner).add_run(&run),
                        Err(error) => {
                            broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        }
                    }
                    progress(n + 1);
                }
            });
        }
    });
    match broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(totals.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Totals of many runs. They show that the simulator really killed and steered; otherwise it would prove nothing.
#[derive(Clone, Debug, Default)]
pub struct SimulationTotals {
    pub runs: u64,
    pub accepted: usize,
    pub steered: usize,
    pub unknown: usize,
    pub failed: usize,
    pub kills: std::collections::BTreeMap<&'static str, u64>,
}

impl SimulationTotals {
    /// Describes what the runs should have covered but did not. Teams have their own simulation.
    pub fn blind_spots(&self) -> Option<String> {
        let points = KillPoint::ALL.iter().filter(|point| !point.is_team_point()).map(|point| point.as_str());
        let missed: Vec<&str> = points.filter(|point| !self.kills.contains_key(point)).collect();
        if !missed.is_empty() {
            return Some(format!("nothing was ever killed at {}", missed.join(", ")));
        }
        (self.steered == 0).then(|| "no turn was ever steered".to_owned())
    }

    fn add_run(&mut self, run: &SimulationRun) {
        self.runs += 1;
        self.accepted += run.accepted;
        self.steered += run.steered;
        self.unknown += run.unknown;
        self.failed += run.failed;
        for point in &run.killed_at {
            *self.kills.entry(point.as_str()).or_default() += 1;
        }
    }
}
