use proptest::prelude::*;

use super::*;
use crate::inbound::PeerKind;

fn agent(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

fn peer(kind: PeerKind, id: &str) -> Option<ChatPeer> {
    Some(ChatPeer { kind, id: id.into() })
}

fn binding(id: &str, wanted: BindingMatch) -> Binding {
    Binding { agent_id: agent(id), match_rule: wanted, dm_scope: None }
}

/// Returns a match on one channel; callers set further fields over it.
fn on(channel: &str) -> BindingMatch {
    BindingMatch { channel: channel.into(), ..BindingMatch::default() }
}

fn router(bindings: Vec<Binding>) -> Router {
    Router::new(bindings, AgentId::main(), |_| "default".to_owned())
}

/// Returns a message in a thread of a channel of a server, from a sender with two roles.
fn arrival() -> InboundContext {
    InboundContext {
        channel: "discord".into(),
        account: "default".into(),
        peer: ChatPeer { kind: PeerKind::Channel, id: "t1".into() },
        parent: peer(PeerKind::Channel, "c1"),
        thread: None,
        guild: Some("g1".into()),
        team: Some("w1".into()),
        roles: vec!["r1".into(), "r2".into()],
        sender: "u1".into(),
    }
}

/// Returns one binding per tier except the last, most specific first, named after its tier.
fn tiers() -> Vec<(BindingTier, BindingMatch)> {
    let guild = || Some("g1".to_owned());
    vec![
        (BindingTier::Peer, BindingMatch { peer: peer(PeerKind::Group, "t1"), ..on("discord") }),
        (BindingTier::ParentPeer, BindingMatch { peer: peer(PeerKind::Channel, "c1"), ..on("discord") }),
        (BindingTier::PeerWildcard, BindingMatch { peer: peer(PeerKind::Channel, "*"), ..on("discord") }),
        (
            BindingTier::GuildRoles,
            BindingMatch { guild_id: guild(), roles: vec!["r9".into(), "r2".into()], ..on("discord") },
        ),
        (BindingTier::Guild, BindingMatch { guild_id: guild(), ..on("discord") }),
        (BindingTier::Team, BindingMatch { team_id: Some("w1".into()), ..on("discord") }),
        (BindingTier::Account, on("discord")),
        (BindingTier::Channel, BindingMatch { account_id: Some("*".into()), ..on("discord") }),
    ]
}

fn word(tier: BindingTier) -> String {
    tier.as_str().replace('_', "-")
}

#[test]
fn higher_binding_tier_wins_in_any_order() {
    let all = tiers();
    for (above, (high, first)) in all.iter().enumerate() {
        let alone = router(vec![binding(&word(*high), first.clone())]);
        assert_eq!(alone.choose_agent(&arrival()).tier, *high);
        for (low, second) in &all[above + 1..] {
            for flip in [false, true] {
                let mut both =
                    vec![binding(&word(*high), first.clone()), binding(&word(*low), second.clone())];
                if flip {
                    both.reverse();
                }
                let router = router(both);
                let choice = router.choose_agent(&arrival());
                assert_eq!((choice.tier, choice.agent), (*high, &agent(&word(*high))), "over {low:?}");
            }
        }
    }
    assert_eq!(router(vec![]).choose_agent(&arrival()).tier, BindingTier::Default);
}

#[test]
fn first_binding_wins_within_tier() {
    for (tier, wanted) in tiers() {
        let two = router(vec![binding("a", wanted.clone()), binding("b", wanted)]);
        assert_eq!(two.choose_agent(&arrival()).agent, &agent("a"), "{tier:?}");
        assert_eq!(
            two.explain_route(&arrival()).candidates[1].mismatch,
            Some(BindingMismatch::Order),
            "{tier:?}"
        );
    }
}

#[test]
fn binding_matches_only_if_all_fields_match() {
    let whole = BindingMatch {
        account_id: Some("default".into()),
        peer: peer(PeerKind::Channel, "t1"),
        guild_id: Some("g1".into()),
        roles: vec!["r1".into()],
        team_id: Some("w1".into()),
        ..on("discord")
    };
    let loss = |change: &dyn Fn(&mut BindingMatch)| {
        let mut wanted = whole.clone();
        change(&mut wanted);
        router(vec![binding("a", wanted)]).explain_route(&arrival()).candidates[0].mismatch
    };
    assert_eq!(loss(&|_| {}), None);
    assert_eq!(loss(&|wanted| wanted.channel = "slack".into()), Some(BindingMismatch::Channel));
    assert_eq!(loss(&|wanted| wanted.account_id = Some("biz".into())), Some(BindingMismatch::Account));
    assert_eq!(loss(&|wanted| wanted.peer = peer(PeerKind::Channel, "t2")), Some(BindingMismatch::Peer));
    assert_eq!(loss(&|wanted| wanted.peer = peer(PeerKind::Dm, "t1")), Some(BindingMismatch::Peer));
    assert_eq!(loss(&|wanted| wanted.guild_id = Some("g2".into())), Some(BindingMismatch::Guild));
    assert_eq!(loss(&|wanted| wanted.roles = vec!["r3".into()]), Some(BindingMismatch::Roles));
    assert_eq!(loss(&|wanted| wanted.team_id = Some("w2".into())), Some(BindingMismatch::Team));
}

#[test]
fn omitted_account_means_default_and_star_means_any() {
    let elsewhere = InboundContext { account: "biz".into(), ..arrival() };
    let own = router(vec![binding("a", on("discord"))]);
    assert_eq!(own.choose_agent(&arrival()).tier, BindingTier::Account);
    assert_eq!(own.choose_agent(&elsewhere).tier, BindingTier::Default);
    let any = BindingMatch { account_id: Some("*".into()), ..on("discord") };
    assert_eq!(router(vec![binding("a", any)]).choose_agent(&elsewhere).tier, BindingTier::Channel);
    let named =
        BindingMatch { account_id: Some("*".into()), peer: peer(PeerKind::Channel, "t1"), ..on("discord") };
    assert_eq!(router(vec![binding("a", named)]).choose_agent(&elsewhere).tier, BindingTier::Peer);
}

#[test]
fn group_wildcard_does_not_match_dm() {
    let dm =
        InboundContext { peer: ChatPeer { kind: PeerKind::Dm, id: "t1".into() }, parent: None, ..arrival() };
    let groups =
        router(vec![binding("a", BindingMatch { peer: peer(PeerKind::Group, "*"), ..on("discord") })]);
    assert_eq!(groups.choose_agent(&dm).tier, BindingTier::Default);
    assert_eq!(groups.choose_agent(&arrival()).tier, BindingTier::PeerWildcard);
}

#[test]
fn route_explanation_lists_every_candidate() {
    let bindings = tiers().into_iter().map(|(tier, wanted)| binding(&word(tier), wanted)).collect();
    let explained = router(bindings).explain_route(&arrival());
    assert_eq!((explained.tier, explained.binding), (BindingTier::Peer, Some(0)));
    let losses: Vec<_> = explained.candidates.iter().map(|candidate| candidate.mismatch).collect();
    assert_eq!(losses[0], None);
    assert!(losses[1..].iter().all(|loss| *loss == Some(BindingMismatch::Tier)), "{losses:?}");
}

fn some_match() -> impl Strategy<Value = BindingMatch> {
    let id =
        || prop::option::of(prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("*".to_owned())]);
    let kind = prop_oneof![Just(PeerKind::Dm), Just(PeerKind::Group), Just(PeerKind::Channel)];
    let roles = prop::collection::vec(prop_oneof![Just("a".to_owned()), Just("b".to_owned())], 0..2);
    (id(), id(), kind, id(), roles, id()).prop_map(|(account_id, peer, kind, guild_id, roles, team_id)| {
        BindingMatch {
            channel: "x".into(),
            account_id,
            peer: peer.map(|id| ChatPeer { kind, id }),
            roles: if guild_id.is_some() { roles } else { vec![] },
            guild_id,
            team_id,
        }
    })
}

proptest! {
    /// The indexes find the same as a linear search of all bindings in order.
    #[test]
    fn indexed_routing_equals_linear_search(wanted in prop::collection::vec(some_match(), 0..12), from in some_match(), parent in some_match()) {
        let bindings: Vec<_> = wanted.into_iter().map(|wanted| binding("a", wanted)).collect();
        let router = Router::new(bindings, AgentId::main(), |_| "a".to_owned());
        let peer = from.peer.clone().unwrap_or(ChatPeer { kind: PeerKind::Dm, id: "a".into() });
        let arrival = InboundContext {
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
        let explained = router.explain_route(&arrival);
        let holding = |tier: &BindingTier| {
            let holds = |at: &usize| {
                let own = router.bindings[*at].match_rule.binding_tier();
                let reached = own == *tier || (own == BindingTier::Peer && *tier == BindingTier::ParentPeer);
                reached && router.find_mismatch(*at, *tier, &arrival, "a").is_none()
            };
            (0..router.bindings.len()).find(holds)
        };
        let expected = BindingTier::ALL.iter().find_map(|tier| Some((*tier, holding(tier)?)));
        prop_assert_eq!((explained.tier, explained.binding), expected.map_or((BindingTier::Default, None), |(tier, at)| (tier, Some(at))));
    }
}
