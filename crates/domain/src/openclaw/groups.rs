//! Translates group access rules. The result is as strict as the original or stricter, never looser.

use serde_json::{Map, Value};

use super::channels::{require_known_value, strip_channel_prefix};
use super::insert_nonempty;
use super::notes::TranslationNotes;
use super::source_table::SourceTable;

/// The single list of senders that an account has for all its groups.
struct GroupSenders {
    /// `None` means everybody.
    listed: Option<Vec<String>>,
}

impl GroupSenders {
    /// Keeps only senders that are in both lists.
    fn narrow_to(&mut self, list: Vec<String>) {
        if list.iter().any(|id| id == "*") {
            return;
        }
        self.listed = Some(match self.listed.take() {
            Some(old) => old.into_iter().filter(|id| list.contains(id)).collect(),
            None => list,
        });
    }
}

const NO_ROLES_NOTE: &str = "senders cannot be distinguished by their roles, so it is not answered";

/// Returns whether a group, channel or topic is closed. It also counts as closed if its allowlist has no equivalent
/// here.
fn is_closed(
    part: &mut SourceTable,
    (is_open, has_people): (bool, bool),
    notes: &mut TranslationNotes,
) -> bool {
    let at = part.key_path("groupPolicy");
    let policy = require_known_value(
        part.take_text("groupPolicy", notes),
        &["allowlist", "open", "disabled"],
        &at,
        notes,
    );
    let is_unlisted = policy.as_deref() == Some("allowlist") && is_open && !has_people;
    if is_unlisted {
        notes.note_changed(
            &at,
            "it had its own list of senders, but the account has none, so it is not answered",
        );
    }
    let by_role = !has_people && takes_roles(part, notes);
    if by_role {
        notes.note_changed(part.path(), NO_ROLES_NOTE);
    }
    let is_off = [part.take_flag("enabled", notes), part.take_flag("allow", notes)].contains(&Some(false));
    is_off || is_unlisted || by_role || policy.as_deref() == Some("disabled")
}

fn takes_roles(part: &mut SourceTable, notes: &mut TranslationNotes) -> bool {
    !part.take_texts("roles", notes).is_empty()
}

/// The rules collected from the groups.
struct GroupTranslation {
    groups: Vec<String>,
    senders: GroupSenders,
    mention: Option<bool>,
    /// A group is closed, or stricter than the others.
    has_exceptions: bool,
    /// The account answers in every group.
    is_open: bool,
}

pub(super) fn translate_groups(
    part: &mut SourceTable,
    channel: &str,
    direct: &[String],
    table: &mut Map<String, Value>,
    notes: &mut TranslationNotes,
) {
    let at = part.key_path("groupPolicy");
    let policy = require_known_value(
        part.take_text("groupPolicy", notes),
        &["allowlist", "open", "disabled"],
        &at,
        notes,
    );
    let own: Vec<String> =
        part.take_texts("groupAllowFrom", notes).iter().map(|id| strip_channel_prefix(channel, id)).collect();
    let mention = part.take_flag("requireMention", notes);
    let mut found = GroupTranslation {
        groups: Vec::new(),
        senders: GroupSenders { listed: None },
        mention,
        has_exceptions: false,
        is_open: policy.as_deref() == Some("open"),
    };
    for (id, group) in part.take_table("groups", notes).into_tables(notes) {
        found.add_group(id, group, channel, notes);
    }
    match channel {
        "slack" => {
            part.take_table("channels", notes).into_tables(notes).into_iter().for_each(|(id, group)| {
                found.add_group(id, group, channel, notes);
            });
        }
        "discord" => found.add_guilds(part.take_table("guilds", notes), notes),
        // In OpenClaw, a list of senders implies an allowlist; without one the list of direct messages applies.
        _ if policy.as_deref() != Some("open") => {
            found.senders.narrow_to(if own.is_empty() { direct.to_vec() } else { own.clone() });
        }
        _ => {}
    }
    if !own.is_empty() {
        found.senders.narrow_to(own);
    }
    found.write(policy, (&at, table), notes);
}

impl GroupTranslation {
    fn add_group(&mut self, id: String, mut group: SourceTable, channel: &str, notes: &mut TranslationNotes) {
        let own = group.take_flag("requireMention", notes);
        match (id == "*", own) {
            (true, _) => self.mention = own.or(self.mention),
            (false, Some(true)) if self.mention == Some(false) => {
                self.mention = Some(true);
                notes.note_changed(
                    &group.key_path("requireMention"),
                    "an account uses one mention rule in all its groups: it must be mentioned",
                );
            }
            (false, Some(_)) => {
                notes.note_ignored(
                    &group.key_path("requireMention"),
                    "an account uses one mention rule in all its groups",
                );
            }
            _ => {}
        }
        let has_people = self.add_people(&mut group, channel, notes);
        let has_closed_topic = self.has_closed_topic(&mut group, channel, notes);
        if is_closed(&mut group, (self.is_open, has_people), notes) || has_closed_topic {
            self.has_exceptions = true;
        } else {
            self.groups.push(id);
        }
        group.note_rest("a group is either listed or not", notes);
    }

    /// Narrows the senders to those of a group or topic. Returns `false` if it lists none.
    fn add_people(&mut self, part: &mut SourceTable, channel: &str, notes: &mut TranslationNotes) -> bool {
        let mut has_people = false;
        for key in ["allowFrom", "users"] {
            let list: Vec<String> =
                part.take_texts(key, notes).iter().map(|id| strip_channel_prefix(channel, id)).collect();
            if !list.is_empty() {
                has_people = true;
                self.has_exceptions = true;
                notes.note_changed(
                    &part.key_path(key),
                    "an account has one list of senders for all its groups: those in every list",
                );
                self.senders.narrow_to(list);
            }
        }
        has_people
    }

    /// Applies the topics to their group: a closed topic closes the group.
    fn has_closed_topic(
        &mut self,
        group: &mut SourceTable,
        channel: &str,
        notes: &mut TranslationNotes,
    ) -> bool {
        let mut has_closed = false;
        for (_, mut topic) in group.take_table("topics", notes).into_tables(notes) {
            let has_people = self.add_people(&mut topic, channel, notes);
            if is_closed(&mut topic, (self.is_open, has_people), notes) {
                has_closed = true;
                notes.note_changed(
                    topic.path(),
                    "a single topic cannot be closed, so its group is not answered",
                );
            }
            if topic.take_flag("requireMention", notes) == Some(true) && self.mention != Some(true) {
                self.mention = Some(true);
                notes.note_changed(
                    &topic.key_path("requireMention"),
                    "an account uses one mention rule in all its groups: it must be mentioned",
                );
            }
            topic.note_rest("a topic follows the rules of its group", notes);
        }
        has_closed
    }

    /// Adds channels of servers. A server without listed channels has no equivalent here.
    fn add_guilds(&mut self, guilds: SourceTable, notes: &mut TranslationNotes) {
        for (_, mut guild) in guilds.into_tables(notes) {
            let users = guild.take_texts("users", notes);
            let has_people = !users.is_empty();
            if has_people {
                notes.note_changed(
                    &guild.key_path("users"),
                    "an account has one list of senders for all its groups: those in every list",
                );
                self.senders.narrow_to(users);
            }
            let by_role = !has_people && takes_roles(&mut guild, notes);
            if let Some(own) = guild.take_flag("requireMention", notes) {
                self.mention = Some(own || self.mention == Some(true));
            }
            let channels = guild.take_table("channels", notes).into_tables(notes);
            if channels.is_empty() {
                notes.note_ignored(
                    guild.path(),
                    "only channels can be listed, by their ids; this server has none listed",
                );
            }
            for (id, channel) in channels {
                match id.chars().all(|c| c.is_ascii_digit()) {
                    true if by_role => {
                        self.has_exceptions = true;
                        notes.note_changed(channel.path(), NO_ROLES_NOTE);
                    }
                    true => self.add_group(id, channel, "discord", notes),
                    false => {
                        notes.note_ignored(channel.path(), "channels are listed by id, not by name");
                    }
                }
            }
            guild.note_rest("a server has only channels and people", notes);
        }
    }

    fn write(
        self,
        policy: Option<String>,
        (at, table): (&str, &mut Map<String, Value>),
        notes: &mut TranslationNotes,
    ) {
        let is_nobody = self.senders.listed.as_ref().is_some_and(Vec::is_empty);
        let is_open = policy.as_deref() == Some("open");
        let policy = if is_nobody && (is_open || !self.groups.is_empty()) {
            notes.note_changed(at, "no sender was allowed in groups, so groups are not answered");
            Some("disabled".to_owned())
        } else if is_open && self.has_exceptions {
            notes.note_changed(
                at,
                "some groups were closed or more restricted, so only the listed ones are answered",
            );
            Some("allowlist".to_owned())
        } else {
            policy
        };
        insert_nonempty(table, "group_policy", policy);
        insert_nonempty(table, "groups", self.groups);
        insert_nonempty(table, "group_allow_from", self.senders.listed.unwrap_or_default());
        insert_nonempty(table, "require_mention", self.mention);
    }
}
