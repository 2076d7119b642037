//! In which groups an account answers, and whom. Rules are taken over as tight as they were or tighter, never looser.

use serde_json::{Map, Value};

use super::channels::{one_of, plain_id};
use super::notes::Notes;
use super::part::Part;
use super::put;

/// The one list of senders an account has for all its groups.
struct Senders {
    /// `None`: everybody.
    listed: Option<Vec<String>>,
}

impl Senders {
    /// Only those who are in both lists are left.
    fn narrow(&mut self, list: Vec<String>) {
        if list.iter().any(|id| id == "*") {
            return;
        }
        self.listed = Some(match self.listed.take() {
            Some(old) => old.into_iter().filter(|id| list.contains(id)).collect(),
            None => list,
        });
    }
}

const NO_ROLES: &str = "senders can not be told apart by their roles, so that it is not answered";

/// A group, channel or topic that nobody is answered in; or only those that a list names which has no counterpart here.
fn is_closed(part: &mut Part, (is_open, has_people): (bool, bool), notes: &mut Notes) -> bool {
    let at = part.at("groupPolicy");
    let policy = one_of(part.text("groupPolicy", notes), &["allowlist", "open", "disabled"], &at, notes);
    let is_unlisted = policy.as_deref() == Some("allowlist") && is_open && !has_people;
    if is_unlisted {
        notes.change(&at, "it had a list of senders in an account that has none, so that it is not answered");
    }
    let by_role = !has_people && takes_roles(part, notes);
    if by_role {
        notes.change(part.path(), NO_ROLES);
    }
    let is_off = [part.flag("enabled", notes), part.flag("allow", notes)].contains(&Some(false));
    is_off || is_unlisted || by_role || policy.as_deref() == Some("disabled")
}

fn takes_roles(part: &mut Part, notes: &mut Notes) -> bool {
    !part.texts("roles", notes).is_empty()
}

/// What is found out about the groups one by one.
struct Found {
    groups: Vec<String>,
    senders: Senders,
    mention: Option<bool>,
    /// A group is closed or narrower than the others.
    has_exceptions: bool,
    /// The account answers in every group.
    is_open: bool,
}

pub(super) fn read(
    part: &mut Part,
    channel: &str,
    direct: &[String],
    table: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let at = part.at("groupPolicy");
    let policy = one_of(part.text("groupPolicy", notes), &["allowlist", "open", "disabled"], &at, notes);
    let own: Vec<String> =
        part.texts("groupAllowFrom", notes).iter().map(|id| plain_id(channel, id)).collect();
    let mention = part.flag("requireMention", notes);
    let mut found = Found {
        groups: Vec::new(),
        senders: Senders { listed: None },
        mention,
        has_exceptions: false,
        is_open: policy.as_deref() == Some("open"),
    };
    for (id, group) in part.part("groups", notes).parts(notes) {
        found.group(id, group, channel, notes);
    }
    match channel {
        "slack" => part.part("channels", notes).parts(notes).into_iter().for_each(|(id, group)| {
            found.group(id, group, channel, notes);
        }),
        "discord" => found.guilds(part.part("guilds", notes), notes),
        // There a list of senders is what makes an allowlist; that of direct messages stands in for a missing one.
        _ if policy.as_deref() != Some("open") => {
            found.senders.narrow(if own.is_empty() { direct.to_vec() } else { own.clone() });
        }
        _ => {}
    }
    if !own.is_empty() {
        found.senders.narrow(own);
    }
    found.write(policy, (&at, table), notes);
}

impl Found {
    fn group(&mut self, id: String, mut group: Part, channel: &str, notes: &mut Notes) {
        let own = group.flag("requireMention", notes);
        match (id == "*", own) {
            (true, _) => self.mention = own.or(self.mention),
            (false, Some(true)) if self.mention == Some(false) => {
                self.mention = Some(true);
                notes.change(
                    &group.at("requireMention"),
                    "an account is spoken to alike in all its groups: by name",
                );
            }
            (false, Some(_)) => {
                notes.ignore(&group.at("requireMention"), "an account is spoken to alike in all its groups");
            }
            _ => {}
        }
        let has_people = self.people(&mut group, channel, notes);
        let has_closed_topic = self.has_closed_topic(&mut group, channel, notes);
        if is_closed(&mut group, (self.is_open, has_people), notes) || has_closed_topic {
            self.has_exceptions = true;
        } else {
            self.groups.push(id);
        }
        group.rest("a group is listed or not", notes);
    }

    /// Who may write in a group or a topic; `false` if it names nobody.
    fn people(&mut self, part: &mut Part, channel: &str, notes: &mut Notes) -> bool {
        let mut has_people = false;
        for key in ["allowFrom", "users"] {
            let list: Vec<String> = part.texts(key, notes).iter().map(|id| plain_id(channel, id)).collect();
            if !list.is_empty() {
                has_people = true;
                self.has_exceptions = true;
                notes.change(
                    &part.at(key),
                    "an account has one list of senders for all its groups: those in each list",
                );
                self.senders.narrow(list);
            }
        }
        has_people
    }

    /// Topics are answered as their group is: one that was closed closes it.
    fn has_closed_topic(&mut self, group: &mut Part, channel: &str, notes: &mut Notes) -> bool {
        let mut has_closed = false;
        for (_, mut topic) in group.part("topics", notes).parts(notes) {
            let has_people = self.people(&mut topic, channel, notes);
            if is_closed(&mut topic, (self.is_open, has_people), notes) {
                has_closed = true;
                notes.change(
                    topic.path(),
                    "a topic can not be closed alone, so that its group is not answered",
                );
            }
            if topic.flag("requireMention", notes) == Some(true) && self.mention != Some(true) {
                self.mention = Some(true);
                notes.change(
                    &topic.at("requireMention"),
                    "an account is spoken to alike in all its groups: by name",
                );
            }
            topic.rest("a topic is answered as its group is", notes);
        }
        has_closed
    }

    /// Channels of servers. A server whose channels are not listed has no counterpart.
    fn guilds(&mut self, guilds: Part, notes: &mut Notes) {
        for (_, mut guild) in guilds.parts(notes) {
            let users = guild.texts("users", notes);
            let has_people = !users.is_empty();
            if has_people {
                notes.change(
                    &guild.at("users"),
                    "an account has one list of senders for all its groups: those in each list",
                );
                self.senders.narrow(users);
            }
            let by_role = !has_people && takes_roles(&mut guild, notes);
            if let Some(own) = guild.flag("requireMention", notes) {
                self.mention = Some(own || self.mention == Some(true));
            }
            let channels = guild.part("channels", notes).parts(notes);
            if channels.is_empty() {
                notes.ignore(
                    guild.path(),
                    "only channels can be listed, by their ids; none of this server is",
                );
            }
            for (id, channel) in channels {
                match id.chars().all(|c| c.is_ascii_digit()) {
                    true if by_role => {
                        self.has_exceptions = true;
                        notes.change(channel.path(), NO_ROLES);
                    }
                    true => self.group(id, channel, "discord", notes),
                    false => notes.ignore(channel.path(), "a channel is listed by its id, not by its name"),
                }
            }
            guild.rest("a server has channels and people", notes);
        }
    }

    fn write(self, policy: Option<String>, (at, table): (&str, &mut Map<String, Value>), notes: &mut Notes) {
        let is_nobody = self.senders.listed.as_ref().is_some_and(Vec::is_empty);
        let is_open = policy.as_deref() == Some("open");
        let policy = if is_nobody && (is_open || !self.groups.is_empty()) {
            notes.change(at, "no sender was allowed in groups, so that groups are not answered");
            Some("disabled".to_owned())
        } else if is_open && self.has_exceptions {
            notes
                .change(at, "some groups were closed or narrower, so that only the listed ones are answered");
            Some("allowlist".to_owned())
        } else {
            policy
        };
        put(table, "group_policy", policy);
        put(table, "groups", self.groups);
        put(table, "group_allow_from", self.senders.listed.unwrap_or_default());
        put(table, "require_mention", self.mention);
    }
}
