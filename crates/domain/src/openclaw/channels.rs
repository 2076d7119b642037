//! Translates accounts of chat platforms. An account whose secret is not imported is omitted, because it could not
//! start.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::PairedSenders;
use super::groups;
use super::insert_nonempty;
use super::notes::TranslationNotes;
use super::secrets::SecretCollector;
use super::source_table::SourceTable;
use crate::config::DEFAULT_ACCOUNT;

const UNKNOWN_SETTING: &str = "there is no such setting for accounts";

/// A secret of an account: its key there, our key, and the variable used if it is omitted.
type SecretSetting = (&'static str, &'static str, &'static str);

struct OpenclawPlatform {
    name: &'static str,
    needed: &'static [SecretSetting],
    optional: &'static [SecretSetting],
    /// Other settings, by their key there and our key.
    plain: &'static [(&'static str, &'static str)],
    /// Settings without which an account is omitted.
    required: &'static [(&'static str, &'static str)],
}

const MATRIX_SETTINGS: [(&str, &str); 2] = [("homeserver", "homeserver"), ("userId", "user_id")];

const OPENCLAW_PLATFORMS: [OpenclawPlatform; 4] = [
    OpenclawPlatform {
        name: "telegram",
        needed: &[("botToken", "bot_token", "TELEGRAM_BOT_TOKEN")],
        optional: &[],
        plain: &[("apiRoot", "api_url")],
        required: &[],
    },
    OpenclawPlatform {
        name: "discord",
        needed: &[("token", "bot_token", "DISCORD_BOT_TOKEN")],
        optional: &[],
        plain: &[],
        required: &[],
    },
    OpenclawPlatform {
        name: "slack",
        needed: &[("botToken", "bot_token", "SLACK_BOT_TOKEN")],
        optional: &[
            ("appToken", "app_token", "SLACK_APP_TOKEN"),
            ("signingSecret", "signing_secret", "SLACK_SIGNING_SECRET"),
        ],
        plain: &[],
        required: &[],
    },
    OpenclawPlatform {
        name: "matrix",
        needed: &[("accessToken", "access_token", "MATRIX_ACCESS_TOKEN")],
        optional: &[],
        plain: &MATRIX_SETTINGS,
        required: &MATRIX_SETTINGS,
    },
];

pub(super) fn translate_channels(
    whole: &mut SourceTable,
    secrets: &mut SecretCollector<'_>,
    notes: &mut TranslationNotes,
) -> Value {
    let mut section = whole.take_table("channels", notes);
    let mut channels = Map::new();
    for platform in &OPENCLAW_PLATFORMS {
        // The first generation had platforms at the top level.
        let older = whole.take_table(platform.name, notes);
        let own = section.take_table(platform.name, notes);
        let base = if own.is_empty() { older } else { own.overlay_on(&older) };
        if !base.is_empty() {
            insert_nonempty(&mut channels, platform.name, translate_accounts(platform, base, secrets, notes));
        }
    }
    if let Some(value) = section.take_value("whatsapp").or_else(|| whole.take_value("whatsapp")) {
        let why =
            "OpenClaw uses a linked device; Polyclaw uses a number of the Cloud API, which has its own keys";
        notes.note_ignored_below("channels.whatsapp", &value, why);
    }
    section.note_rest("there is no such channel", notes);
    Value::Object(channels)
}

/// Translates the accounts of a platform. Settings next to the accounts apply to all of them, and form an account
/// themselves if they include a token.
fn translate_accounts(
    platform: &OpenclawPlatform,
    mut base: SourceTable,
    secrets: &mut SecretCollector<'_>,
    notes: &mut TranslationNotes,
) -> Map<String, Value> {
    let named = base.take_table("accounts", notes).into_tables(notes);
    let usual =
        base.take_text("defaultAccount", notes).unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned()).to_lowercase();
    let mut shared = base.clone();
    let tokens = platform.needed.iter().chain(platform.optional);
    let stated = tokens.filter(|(there, ..)| shared.take_value(there).is_some()).count();
    let is_one = stated > 0 || named.is_empty();
    let (mut found, mut left) = (Map::new(), BTreeSet::new());
    for (called, part) in named {
        let mut own = part.overlay_on(&shared);
        let made = translate_account(platform, &mut own, (false, &mut *secrets), notes);
        insert_nonempty(&mut found, &called.to_lowercase(), made);
        left.extend(own.note_own_rest(&part, UNKNOWN_SETTING, notes));
    }
    if !is_one {
        left.iter()
            .for_each(|key| notes.note_ignored_below(&shared.key_path(key), &Value::Null, UNKNOWN_SETTING));
    } else if found.contains_key(&usual) {
        notes.note_ignored(base.path(), format!("the account {usual:?} is also listed"));
    } else {
        let made = translate_account(platform, &mut base, (true, secrets), notes);
        insert_nonempty(&mut found, &usual, made);
        base.note_rest(UNKNOWN_SETTING, notes);
    }
    found
}

fn translate_account(
    platform: &OpenclawPlatform,
    part: &mut SourceTable,
    (usual, secrets): (bool, &mut SecretCollector<'_>),
    notes: &mut TranslationNotes,
) -> Value {
    let mut table = Map::new();
    let mut token =
        |part: &mut SourceTable, (there, ours, variable): SecretSetting, table: &mut Map<String, Value>| {
            let reference = match part.take_value(there) {
                Some(value) => secrets.translate_reference(&part.key_path(there), &value, notes),
                None if usual => secrets.default_reference(variable, notes),
                None => None,
            };
            let is_there = reference.is_some();
            insert_nonempty(table, ours, reference);
            is_there
        };
    let complete = platform.needed.iter().all(|secret| token(part, *secret, &mut table));
    for secret in platform.optional {
        token(part, *secret, &mut table);
    }
    for (there, ours) in platform.plain {
        insert_nonempty(&mut table, ours, part.take_text(there, notes));
    }
    if platform.name == "slack" {
        let events = part.take_text("mode", notes).is_some_and(|mode| mode == "http");
        insert_nonempty(&mut table, "mode", if events { "events" } else { "socket" });
        let needed = if events { "signing_secret" } else { "app_token" };
        if complete && !table.contains_key(needed) {
            notes.note_left_behind(
                part.path(),
                format!("the account is omitted, because its {needed} is missing"),
            );
            return Value::Null;
        }
    }
    translate_access(part, platform.name, &mut table, notes);
    if !complete {
        notes.note_left_behind(part.path(), "the account is omitted, because its secret is not available");
        return Value::Null;
    }
    if let Some((there, _)) = platform.required.iter().find(|(_, ours)| !table.contains_key(*ours)) {
        notes
            .note_left_behind(part.path(), format!("the account is omitted, because its {there} is missing"));
        return Value::Null;
    }
    Value::Object(table)
}

fn translate_access(
    part: &mut SourceTable,
    channel: &str,
    table: &mut Map<String, Value>,
    notes: &mut TranslationNotes,
) {
    insert_nonempty(table, "enabled", part.take_flag("enabled", notes));
    // The first generation had a separate table for direct messages.
    let mut direct = part.take_table("dm", notes);
    let policy = part.take_text("dmPolicy", notes).or_else(|| direct.take_text("policy", notes));
    let policies = ["pairing", "allowlist", "open", "disabled"];
    insert_nonempty(
        table,
        "dm_policy",
        require_known_value(policy, &policies, &part.key_path("dmPolicy"), notes),
    );
    let listed = [part.take_texts("allowFrom", notes), direct.take_texts("allowFrom", notes)].concat();
    let plain = |id: &String| strip_channel_prefix(channel, id);
    insert_nonempty(table, "allow_from", listed.iter().map(plain).collect::<Vec<_>>());
    direct.note_rest("direct messages have only a policy and a list", notes);
    groups::translate_groups(part, channel, &listed.iter().map(plain).collect::<Vec<_>>(), table, notes);
}

/// Returns an id without the channel prefix.
pub(super) fn strip_channel_prefix(channel: &str, id: &str) -> String {
    let short = id.strip_prefix(&format!("{channel}:")).or_else(|| id.strip_prefix("tg:"));
    short.unwrap_or(id).to_owned()
}

/// Adds senders that were paired there to accounts that use pairing here.
pub(super) fn add_paired_senders(
    channels: &mut Value,
    found: &[PairedSenders],
    notes: &mut TranslationNotes,
) {
    for PairedSenders { place, channel, account, ids } in found {
        let name = account.clone().unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
        let table = channels.get_mut(channel).and_then(|accounts| accounts.get_mut(&name));
        let Some(table) = table.and_then(Value::as_object_mut) else {
            notes.note_ignored(place, format!("the {channel} account {name:?} was not imported"));
            continue;
        };
        if table.get("dm_policy").is_some_and(|policy| policy != "pairing") {
            notes.note_ignored(place, "the account does not use pairing");
            continue;
        }
        let ids: Vec<String> = ids.iter().map(|id| strip_channel_prefix(channel, id)).collect();
        let list = table.entry("allow_from").or_insert_with(|| Value::Array(Vec::new()));
        let Some(list) = list.as_array_mut() else { continue };
        list.extend(ids.iter().filter(|id| *id != "*").map(|id| Value::from(id.as_str())));
        notes.note_changed(place, format!("{} paired people were added to allow_from", ids.len()));
    }
}

pub(super) fn require_known_value(
    value: Option<String>,
    known: &[&str],
    path: &str,
    notes: &mut TranslationNotes,
) -> Option<String> {
    let found = value.as_ref().filter(|value| known.contains(&value.as_str())).cloned();
    if value.is_some() && found.is_none() {
        notes.note_ignored(path, format!("expected one of {}", known.join(", ")));
    }
    found
}
