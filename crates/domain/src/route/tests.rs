use proptest::prelude::*;

use super::*;
use crate::arrival::PeerKind;

fn agent(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

fn peer(kind: PeerKind, id: &str) -> Option<Peer> {
    Some(Peer { kind, id: id.into() })
}

fn binding(id: &str, wanted: Match) -> Binding {
    Binding { agent_id: agent(id), wanted, dm_scope: None }
}

/// A match on one channel; what it names beside that is put over it.
fn on(channel: &str) -> Match {
    Match { channel: channel.into(), ..Match::default() }
}

fn router(bindings: Vec<Binding>) -> Router {
    Router::new(bindings, AgentId::main(), |_| "default".to_owned())
}

/// A message in a thread of a channel of a server, by somebody with two roles.
fn arrival() -> Arrival {
    Arrival {
        channel: "discord".into(),
        account: "default".into(),
        peer: Peer { kind: PeerKind::Channel, id: "t1".into() },
        parent: peer(PeerKind::Channel, "c1"),
        thread: None,
        guild: Some("g1".into()),
        team: Some("w1".into()),
        roles: vec!["r1".into(), "r2".into()],
        sender: "u1".into(),
    }
}

/// One binding of every tier but the last, the closest first, named after its tier.
fn tiers() -> Vec<(Tier, Match)> {
    let guild = || Some("g1".to_owned());
    vec![
        (Tier::Peer, Match { peer: peer(PeerKind::Group, "t1"), ..on("discord") }),
        (Tier::ParentPeer, Match { peer: peer(PeerKind::Channel, "c1"), ..on("discord") }),
        (Tier::PeerWildcard, Match { peer: peer(PeerKind::Channel, "*"), ..on("discord") }),
        (
            Tier::GuildRoles,
            Match { guild_id: guild(), roles: vec!["r9".into(), "r2".into()], ..on("discord") },
        ),
        (Tier::Guild, Match { guild_id: guild(), ..on("discord") }),
        (Tier::Team, Match { team_id: Some("w1".into()), ..on("discord") }),
        (Tier::Account, on("discord")),
        (Tier::Channel, Match { account_id: Some("*".into()), ..on("discord") }),
    ]
}

fn word(tier: Tier) -> String {
    tier.as_str().replace('_', "-")
}

#[test]
fn every_tier_beats_every_lower_one_whatever_the_order() {
    let all = tiers();
    for (above, (high, first)) in all.iter().enumerate() {
        let alone = router(vec![binding(&word(*high), first.clone())]);
        assert_eq!(alone.choose(&arrival()).tier, *high);
        for (low, second) in &all[above + 1..] {
            for flip in [false, true] {
                let mut both =
                    vec![binding(&word(*high), first.clone()), binding(&word(*low), second.clone())];
                if flip {
                    both.reverse();
                }
                let router = router(both);
                let choice = router.choose(&arrival());
                assert_eq!((choice.tier, choice.agent), (*high, &agent(&word(*high))), "over {low:?}");
            }
        }
    }
    assert_eq!(router(vec![]).choose(&arrival()).tier, Tier::Default);
}

#[test]
fn among_equals_the_first_of_the_config_answers() {
    for (tier, wanted) in tiers() {
        let two = router(vec![binding("a", wanted.clone()), binding("b", wanted)]);
        assert_eq!(two.choose(&arrival()).agent, &agent("a"), "{tier:?}");
        assert_eq!(two.explain(&arrival()).candidates[1].loss, Some(Loss::Order), "{tier:?}");
    }
}

#[test]
fn all_that_a_binding_names_must_hold() {
    let whole = Match {
        account_id: Some("default".into()),
        peer: peer(PeerKind::Channel, "t1"),
        guild_id: Some("g1".into()),
        roles: vec!["r1".into()],
        team_id: Some("w1".into()),
        ..on("discord")
    };
    let loss = |change: &dyn Fn(&mut Match)| {
        let mut wanted = whole.clone();
        change(&mut wanted);
        router(vec![binding("a", wanted)]).explain(&arrival()).candidates[0].loss
    };
    assert_eq!(loss(&|_| {}), None);
    assert_eq!(loss(&|wanted| wanted.channel = "slack".into()), Some(Loss::Channel));
    assert_eq!(loss(&|wanted| wanted.account_id = Some("biz".into())), Some(Loss::Account));
    assert_eq!(loss(&|wanted| wanted.peer = peer(PeerKind::Channel, "t2")), Some(Loss::Peer));
    assert_eq!(loss(&|wanted| wanted.peer = peer(PeerKind::Dm, "t1")), Some(Loss::Peer));
    assert_eq!(loss(&|wanted| wanted.guild_id = Some("g2".into())), Some(Loss::Guild));
    assert_eq!(loss(&|wanted| wanted.roles = vec!["r3".into()]), Some(Loss::Roles));
    assert_eq!(loss(&|wanted| wanted.team_id = Some("w2".into())), Some(Loss::Team));
}

#[test]
fn an_omitted_account_is_the_default_one_and_a_star_is_every_one() {
    let elsewhere = Arrival { account: "biz".into(), ..arrival() };
    let own = router(vec![binding("a", on("discord"))]);
    assert_eq!(own.choose(&arrival()).tier, Tier::Account);
    assert_eq!(own.choose(&elsewhere).tier, Tier::Default);
    let any = Match { account_id: Some("*".into()), ..on("discord") };
    assert_eq!(router(vec![binding("a", any)]).choose(&elsewhere).tier, Tier::Channel);
    let named = Match { account_id: Some("*".into()), peer: peer(PeerKind::Channel, "t1"), ..on("discord") };
    assert_eq!(router(vec![binding("a", named)]).choose(&elsewhere).tier, Tier::Peer);
}

#[test]
fn a_person_is_no_group() {
    let dm = Arrival { peer: Peer { kind: PeerKind::Dm, id: "t1".into() }, parent: None, ..arrival() };
    let groups = router(vec![binding("a", Match { peer: peer(PeerKind::Group, "*"), ..on("discord") })]);
    assert_eq!(groups.choose(&dm).tier, Tier::Default);
    assert_eq!(groups.choose(&arrival()).tier, Tier::PeerWildcard);
}

#[test]
fn an_explanation_names_every_candidate() {
    let bindings = tiers().into_iter().map(|(tier, wanted)| binding(&word(tier), wanted)).collect();
    let explained = router(bindings).explain(&arrival());
    assert_eq!((explained.tier, explained.binding), (Tier::Peer, Some(0)));
    let losses: Vec<_> = explained.candidates.iter().map(|candidate| candidate.loss).collect();
    assert_eq!(losses[0], None);
    assert!(losses[1..].iter().all(|loss| *loss == Some(Loss::Tier)), "{losses:?}");
}

fn some_match() -> impl Strategy<Value = Match> {
    let id =
        || prop::option::of(prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("*".to_owned())]);
    let kind = prop_oneof![Just(PeerKind::Dm), Just(PeerKind::Group), Just(PeerKind::Channel)];
    let roles = prop::collection::vec(prop_oneof![Just("a".to_owned()), Just("b".to_owned())], 0..2);
    (id(), id(), kind, id(), roles, id()).prop_map(|(account_id, peer, kind, guild_id, roles, team_id)| {
        Match {
            channel: "x".into(),
            account_id,
            peer: peer.map(|id| Peer { kind, id }),
            roles: if guild_id.is_some() { roles } else { vec![] },
            guild_id,
            team_id,
        }
    })
}

proptest! {
    /// The indexes find what looking at every binding in order finds.
    #[test]
    fn indexes_change_nothing(wanted in prop::collection::vec(some_match(), 0..12), from in some_match(), parent in some_match()) {
        let bindings: Vec<_> = wanted.into_iter().map(|wanted| binding("a", wanted)).collect();
        let router = Router::new(bindings, AgentId::main(), |_| "a".to_owned());
        let peer = from.peer.clone().unwrap_or(Peer { kind: PeerKind::Dm, id: "a".into() });
        let arrival = Arrival {
            channel: "x".into(),
            account: from.account_id.unwrap_or_else(|| "a".into()),
            peer,
            parent: parent.peer,
            thread: None,
            guild: from.guild_id,
            team: from.team_id,
            roles: from.roles,
            sender: "u".into(),
        };
        let explained = router.explain(&arrival);
        let holding = |tier: &Tier| {
            let holds = |at: &usize| {
                let own = router.bindings[*at].wanted.tier();
                let reached = own == *tier || (own == Tier::Peer && *tier == Tier::ParentPeer);
                reached && router.loss(*at, *tier, &arrival, "a").is_none()
            };
            (0..router.bindings.len()).find(holds)
        };
        let expected = Tier::ALL.iter().find_map(|tier| Some((*tier, holding(tier)?)));
        prop_assert_eq!((explained.tier, explained.binding), expected.map_or((Tier::Default, None), |(tier, at)| (tier, Some(at))));
    }
}
