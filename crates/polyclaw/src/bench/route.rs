//! Compares a routing decision among ten thousand bindings with one among ten. With indexes they cost the same.

use std::time::{Duration, Instant};

use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::{ChatPeer, InboundContext, PeerKind};
use polyclaw_domain::route::{Binding, BindingMatch, Router};

use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes};

const MANY_BINDINGS: usize = 10_000;
const FEW_BINDINGS: usize = 10;
/// Decisions per sample: reading the clock takes about as long as one decision.
const DECISIONS_PER_SAMPLE: u32 = 100;

pub fn run(report: &mut BenchmarkReport, seconds: Duration) {
    let few = median_us(FEW_BINDINGS, seconds / 5);
    let many = median_us(MANY_BINDINGS, seconds / 5);
    report.add("route decision among 10 bindings, median", few, "us", None);
    report.add("route decision among 10,000 bindings, median", many, "us", Some(FigureTarget::AtMost(5.0)));
    report.add("10,000 bindings relative to 10", many / few, "x", Some(FigureTarget::AtMost(3.0)));
}

pub(super) fn median_us(bindings: usize, seconds: Duration) -> f64 {
    let router =
        Router::new((0..bindings).map(make_binding).collect(), AgentId::main(), |_| "default".to_owned());
    let arrivals: Vec<InboundContext> =
        (0..DECISIONS_PER_SAMPLE as usize).map(|n| make_inbound(n * 97 % (bindings * 2))).collect();
    let (mut times, began) = (OperationTimes::default(), Instant::now());
    while began.elapsed() < seconds {
        let start = Instant::now();
        for arrival in &arrivals {
            std::hint::black_box(router.choose_agent(std::hint::black_box(arrival)));
        }
        times.push(start.elapsed() / DECISIONS_PER_SAMPLE);
    }
    times.percentile(0.5) * 1_000.0
}

/// Builds a binding: each kind in turn, each for its own conversation, server, workspace or account.
fn make_binding(n: usize) -> Binding {
    let some = |kind: &str| Some(format!("{kind}{n}"));
    let on = BindingMatch { channel: "discord".to_owned(), ..BindingMatch::default() };
    let wanted = match n % 5 {
        0 => BindingMatch { peer: Some(ChatPeer { kind: PeerKind::Channel, id: format!("c{n}") }), ..on },
        1 => BindingMatch { guild_id: some("g"), roles: vec![format!("r{n}")], ..on },
        2 => BindingMatch { guild_id: some("g"), ..on },
        3 => BindingMatch { team_id: some("w"), ..on },
        _ => BindingMatch { account_id: some("a"), ..on },
    };
    Binding { agent_id: AgentId::main(), match_rule: wanted, dm_scope: None }
}

/// Builds an inbound message. Half of them match a binding, at any tier; the others match none.
fn make_inbound(n: usize) -> InboundContext {
    InboundContext {
        channel: "discord".to_owned(),
        account: format!("a{n}"),
        peer: ChatPeer { kind: PeerKind::Channel, id: format!("c{n}") },
        parent: Some(ChatPeer { kind: PeerKind::Channel, id: format!("p{n}") }),
        thread: None,
        guild: Some(format!("g{n}")),
        team: Some(format!("w{n}")),
        roles: vec![format!("r{n}"), "member".to_owned()],
        sender: "u".to_owned(),
    }
}
