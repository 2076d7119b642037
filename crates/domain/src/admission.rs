//! Sender admission: decides who may talk to an agent at all, before a message is routed or stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::inbound::{InboundContext, PeerKind};

/// Who may send direct messages to an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DmPolicy {
    /// Senders whose pairing code an owner approved.
    #[default]
    Pairing,
    /// Senders listed in `allow_from`.
    Allowlist,
    /// Everybody.
    Open,
    /// Nobody.
    Disabled,
}

/// In which groups an account answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GroupPolicy {
    /// Only the groups listed in `groups`.
    #[default]
    Allowlist,
    /// All groups.
    Open,
    /// No group.
    Disabled,
}

/// Access rules of one account of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AccountAccess {
    /// Whether the account is used.
    pub enabled: bool,
    /// Makes this the account for bindings and jobs that name none of the platform. If no account sets this, it is the
    /// one that was the default so far, else `default`, else the first by name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// Who may send it direct messages.
    pub dm_policy: DmPolicy,
    /// Senders that may write to it, by platform id; `*` is everybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_from: Vec<String>,
    /// In which groups it answers.
    pub group_policy: GroupPolicy,
    /// Groups in which it answers, by platform id; `*` is every group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Senders that are answered in groups, by platform id; `*` is everybody. If empty, everybody in the groups in
    /// which it answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_allow_from: Vec<String>,
    /// Answer in groups only if the account is mentioned or replied to.
    pub require_mention: bool,
    /// Owners of this instance, by platform id. They may write to it and use owner-only commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// Agents to which non-owners may switch or address messages here, besides the one that answers them and agents
    /// with no more permissions than it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentId>,
}

impl Default for AccountAccess {
    fn default() -> Self {
        Self {
            enabled: true,
            default: false,
            dm_policy: DmPolicy::default(),
            allow_from: Vec::new(),
            group_policy: GroupPolicy::default(),
            groups: Vec::new(),
            group_allow_from: Vec::new(),
            require_mention: true,
            owners: Vec::new(),
            agents: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderAdmission {
    Admitted,
    /// An unknown sender gets only a pairing code.
    Pair,
    /// The message gets no answer; only the fact that it was ignored is recorded.
    Ignored(IgnoreReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IgnoreReason {
    /// The channel has no such account.
    UnknownAccount,
    AccountDisabled,
    DmsDisabled,
    SenderNotListed,
    GroupsDisabled,
    GroupNotListed,
    NotMentioned,
}

impl IgnoreReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownAccount => "unknown_account",
            Self::AccountDisabled => "account_disabled",
            Self::DmsDisabled => "dms_disabled",
            Self::SenderNotListed => "sender_not_listed",
            Self::GroupsDisabled => "groups_disabled",
            Self::GroupNotListed => "group_not_listed",
            Self::NotMentioned => "not_mentioned",
        }
    }
}

/// What the adapter and the store know about a message besides its content.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderFacts {
    /// An owner approved the sender's pairing code.
    pub paired: bool,
    /// The text mentions the account, or the message replies to it.
    pub mentioned: bool,
}

impl AccountAccess {
    pub fn admit_sender(&self, arrival: &InboundContext, known: SenderFacts) -> SenderAdmission {
        let ignored = |reason| SenderAdmission::Ignored(reason);
        if !self.enabled {
            return ignored(IgnoreReason::AccountDisabled);
        }
        if arrival.peer.kind != PeerKind::Dm {
            return self.admit_group(arrival, known);
        }
        let listed =
            list_contains(&self.allow_from, &arrival.sender) || self.owners.contains(&arrival.sender);
        match self.dm_policy {
            DmPolicy::Disabled => ignored(IgnoreReason::DmsDisabled),
            DmPolicy::Open => SenderAdmission::Admitted,
            _ if listed => SenderAdmission::Admitted,
            DmPolicy::Allowlist => ignored(IgnoreReason::SenderNotListed),
            DmPolicy::Pairing if known.paired => SenderAdmission::Admitted,
            DmPolicy::Pairing => SenderAdmission::Pair,
        }
    }

    /// Admits a thread if its parent is listed.
    fn admit_group(&self, arrival: &InboundContext, known: SenderFacts) -> SenderAdmission {
        let places = [Some(&arrival.peer), arrival.parent.as_ref()];
        let listed = places.into_iter().flatten().any(|place| list_contains(&self.groups, &place.id));
        let may_speak = self.group_allow_from.is_empty()
            || list_contains(&self.group_allow_from, &arrival.sender)
            || self.owners.contains(&arrival.sender);
        match self.group_policy {
            GroupPolicy::Disabled => SenderAdmission::Ignored(IgnoreReason::GroupsDisabled),
            GroupPolicy::Allowlist if !listed => SenderAdmission::Ignored(IgnoreReason::GroupNotListed),
            _ if !may_speak => SenderAdmission::Ignored(IgnoreReason::SenderNotListed),
            _ if self.require_mention && !known.mentioned => {
                SenderAdmission::Ignored(IgnoreReason::NotMentioned)
            }
            _ => SenderAdmission::Admitted,
        }
    }

    /// Returns all senders of direct messages, by platform id. `None` if they cannot be listed in advance.
    pub fn known_dm_senders(&self) -> Option<Vec<&str>> {
        let mut people: Vec<&str> = self.allow_from.iter().chain(&self.owners).map(String::as_str).collect();
        people.sort_unstable();
        people.dedup();
        match self.dm_policy {
            _ if !self.enabled => Some(Vec::new()),
            DmPolicy::Disabled => Some(Vec::new()),
            DmPolicy::Allowlist if !people.contains(&"*") => Some(people),
            DmPolicy::Allowlist | DmPolicy::Open | DmPolicy::Pairing => None,
        }
    }
}

fn list_contains(list: &[String], id: &str) -> bool {
    list.iter().any(|listed| listed == "*" || listed == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::ChatPeer;

    fn from(kind: PeerKind, id: &str) -> InboundContext {
        InboundContext {
            channel: "telegram".into(),
            account: "default".into(),
            peer: ChatPeer { kind, id: id.into() },
            parent: None,
            thread: None,
            guild: None,
            team: None,
            roles: vec![],
            sender: "u1".into(),
        }
    }

    #[test]
    fn dm_policy_decides_sender_admission() {
        let dm = from(PeerKind::Dm, "u1");
        let by = |dm_policy, allow: &[&str], paired| {
            let allow_from = allow.iter().map(|id| (*id).to_owned()).collect();
            let access = AccountAccess { dm_policy, allow_from, ..AccountAccess::default() };
            access.admit_sender(&dm, SenderFacts { paired, mentioned: false })
        };
        assert_eq!(by(DmPolicy::Pairing, &[], false), SenderAdmission::Pair);
        assert_eq!(by(DmPolicy::Pairing, &[], true), SenderAdmission::Admitted);
        assert_eq!(by(DmPolicy::Pairing, &["u1"], false), SenderAdmission::Admitted);
        assert_eq!(
            by(DmPolicy::Allowlist, &["u2"], true),
            SenderAdmission::Ignored(IgnoreReason::SenderNotListed)
        );
        assert_eq!(by(DmPolicy::Allowlist, &["*"], false), SenderAdmission::Admitted);
        assert_eq!(by(DmPolicy::Open, &[], false), SenderAdmission::Admitted);
        assert_eq!(
            by(DmPolicy::Disabled, &["u1"], true),
            SenderAdmission::Ignored(IgnoreReason::DmsDisabled)
        );
    }

    #[test]
    fn group_message_must_be_listed_and_mention_agent() {
        let group = from(PeerKind::Group, "g1");
        let spoken = SenderFacts { mentioned: true, paired: false };
        let closed = AccountAccess::default();
        assert_eq!(
            closed.admit_sender(&group, spoken),
            SenderAdmission::Ignored(IgnoreReason::GroupNotListed)
        );
        let listed = AccountAccess { groups: vec!["g1".into()], ..AccountAccess::default() };
        assert_eq!(listed.admit_sender(&group, spoken), SenderAdmission::Admitted);
        assert_eq!(
            listed.admit_sender(&group, SenderFacts::default()),
            SenderAdmission::Ignored(IgnoreReason::NotMentioned)
        );
        let talkative = AccountAccess { require_mention: false, ..listed.clone() };
        assert_eq!(talkative.admit_sender(&group, SenderFacts::default()), SenderAdmission::Admitted);
        let thread = InboundContext { parent: Some(group.peer.clone()), ..from(PeerKind::Channel, "t9") };
        assert_eq!(listed.admit_sender(&thread, spoken), SenderAdmission::Admitted);
        let few = AccountAccess {
            group_allow_from: vec!["u2".into()],
            owners: vec!["u3".into()],
            ..listed.clone()
        };
        assert_eq!(few.admit_sender(&group, spoken), SenderAdmission::Ignored(IgnoreReason::SenderNotListed));
        for sender in ["u2", "u3"] {
            let known = InboundContext { sender: sender.into(), ..group.clone() };
            assert_eq!(few.admit_sender(&known, spoken), SenderAdmission::Admitted, "{sender}");
        }
        let off = AccountAccess { enabled: false, ..listed };
        assert_eq!(off.admit_sender(&group, spoken), SenderAdmission::Ignored(IgnoreReason::AccountDisabled));
    }
}
