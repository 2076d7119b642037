//! Accounts of chat platforms. One whose secret stays behind is left out: it could not start.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Paired;
use super::groups;
use super::notes::Notes;
use super::part::Part;
use super::put;
use super::secrets::Secrets;
use crate::config::DEFAULT_ACCOUNT;

const UNKNOWN: &str = "an account has no such setting";

/// A secret of an account: its key there, ours, and the variable that is meant where it is not written.
type Token = (&'static str, &'static str, &'static str);

struct Platform {
    name: &'static str,
    needed: &'static [Token],
    optional: &'static [Token],
    /// Other settings, by their keys there and here.
    plain: &'static [(&'static str, &'static str)],
    /// Those of them without which there is no account.
    required: &'static [(&'static str, &'static str)],
}

const MATRIX: [(&str, &str); 2] = [("homeserver", "homeserver"), ("userId", "user_id")];

const PLATFORMS: [Platform; 4] = [
    Platform {
        name: "telegram",
        needed: &[("botToken", "bot_token", "TELEGRAM_BOT_TOKEN")],
        optional: &[],
        plain: &[("apiRoot", "api_url")],
        required: &[],
    },
    Platform {
        name: "discord",
        needed: &[("token", "bot_token", "DISCORD_BOT_TOKEN")],
        optional: &[],
        plain: &[],
        required: &[],
    },
    Platform {
        name: "slack",
        needed: &[("botToken", "bot_token", "SLACK_BOT_TOKEN")],
        optional: &[
            ("appToken", "app_token", "SLACK_APP_TOKEN"),
            ("signingSecret", "signing_secret", "SLACK_SIGNING_SECRET"),
        ],
        plain: &[],
        required: &[],
    },
    Platform {
        name: "matrix",
        needed: &[("accessToken", "access_token", "MATRIX_ACCESS_TOKEN")],
        optional: &[],
        plain: &MATRIX,
        required: &MATRIX,
    },
];

pub(super) fn read(whole: &mut Part, secrets: &mut Secrets<'_>, notes: &mut Notes) -> Value {
    let mut section = whole.part("channels", notes);
    let mut channels = Map::new();
    for platform in &PLATFORMS {
        // The first generation had platforms beside the other sections.
        let older = whole.part(platform.name, notes);
        let own = section.part(platform.name, notes);
        let base = if own.is_empty() { older } else { own.over(&older) };
        if !base.is_empty() {
            put(&mut channels, platform.name, accounts(platform, base, secrets, notes));
        }
    }
    if let Some(value) = section.take("whatsapp").or_else(|| whole.take("whatsapp")) {
        let why =
            "there it is a linked device; here it is a number of the Cloud API, which has keys of its own";
        notes.ignore_below("channels.whatsapp", &value, why);
    }
    section.rest("there is no such channel", notes);
    Value::Object(channels)
}

/// What stands beside the accounts holds for all of them, and is an account itself where it has a token.
fn accounts(
    platform: &Platform,
    mut base: Part,
    secrets: &mut Secrets<'_>,
    notes: &mut Notes,
) -> Map<String, Value> {
    let named = base.part("accounts", notes).parts(notes);
    let usual =
        base.text("defaultAccount", notes).unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned()).to_lowercase();
    let mut shared = base.clone();
    let tokens = platform.needed.iter().chain(platform.optional);
    let stated = tokens.filter(|(there, ..)| shared.take(there).is_some()).count();
    let is_one = stated > 0 || named.is_empty();
    let (mut found, mut left) = (Map::new(), BTreeSet::new());
    for (called, part) in named {
        let mut own = part.over(&shared);
        let made = account(platform, &mut own, (false, &mut *secrets), notes);
        put(&mut found, &called.to_lowercase(), made);
        left.extend(own.rest_of(&part, UNKNOWN, notes));
    }
    if !is_one {
        left.iter().for_each(|key| notes.ignore_below(&shared.at(key), &Value::Null, UNKNOWN));
    } else if found.contains_key(&usual) {
        notes.ignore(base.path(), format!("the account {usual:?} is listed too"));
    } else {
        let made = account(platform, &mut base, (true, secrets), notes);
        put(&mut found, &usual, made);
        base.rest(UNKNOWN, notes);
    }
    found
}

fn account(
    platform: &Platform,
    part: &mut Part,
    (usual, secrets): (bool, &mut Secrets<'_>),
    notes: &mut Notes,
) -> Value {
    let mut table = Map::new();
    let mut token = |part: &mut Part, (there, ours, variable): Token, table: &mut Map<String, Value>| {
        let reference = match part.take(there) {
            Some(value) => secrets.reference(&part.at(there), &value, notes),
            None if usual => secrets.usual(variable, notes),
            None => None,
        };
        let is_there = reference.is_some();
        put(table, ours, reference);
        is_there
    };
    let complete = platform.needed.iter().all(|secret| token(part, *secret, &mut table));
    for secret in platform.optional {
        token(part, *secret, &mut table);
    }
    for (there, ours) in platform.plain {
        put(&mut table, ours, part.text(there, notes));
    }
    if platform.name == "slack" {
        let events = part.text("mode", notes).is_some_and(|mode| mode == "http");
        put(&mut table, "mode", if events { "events" } else { "socket" });
        let needed = if events { "signing_secret" } else { "app_token" };
        if complete && !table.contains_key(needed) {
            notes.leave(part.path(), format!("the account needs its {needed}, and is left out"));
            return Value::Null;
        }
    }
    access(part, platform.name, &mut table, notes);
    if !complete {
        notes.leave(part.path(), "the account is left out until its secret is here");
        return Value::Null;
    }
    if let Some((there, _)) = platform.required.iter().find(|(_, ours)| !table.contains_key(*ours)) {
        notes.leave(part.path(), format!("the account needs its {there}, and is left out"));
        return Value::Null;
    }
    Value::Object(table)
}

fn access(part: &mut Part, channel: &str, table: &mut Map<String, Value>, notes: &mut Notes) {
    put(table, "enabled", part.flag("enabled", notes));
    // The first generation had what is about direct messages in a table of its own.
    let mut direct = part.part("dm", notes);
    let policy = part.text("dmPolicy", notes).or_else(|| direct.text("policy", notes));
    let policies = ["pairing", "allowlist", "open", "disabled"];
    put(table, "dm_policy", one_of(policy, &policies, &part.at("dmPolicy"), notes));
    let listed = [part.texts("allowFrom", notes), direct.texts("allowFrom", notes)].concat();
    let plain = |id: &String| plain_id(channel, id);
    put(table, "allow_from", listed.iter().map(plain).collect::<Vec<_>>());
    direct.rest("direct messages have a policy and a list", notes);
    groups::read(part, channel, &listed.iter().map(plain).collect::<Vec<_>>(), table, notes);
}

/// An id as the platform has it.
pub(super) fn plain_id(channel: &str, id: &str) -> String {
    let short = id.strip_prefix(&format!("{channel}:")).or_else(|| id.strip_prefix("tg:"));
    short.unwrap_or(id).to_owned()
}

/// People who were let in by a code there. They may write here too, where codes let people in.
pub(super) fn paired(channels: &mut Value, found: &[Paired], notes: &mut Notes) {
    for Paired { place, channel, account, ids } in found {
        let name = account.clone().unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
        let table = channels.get_mut(channel).and_then(|accounts| accounts.get_mut(&name));
        let Some(table) = table.and_then(Value::as_object_mut) else {
            notes.ignore(place, format!("the {channel} account {name:?} did not come along"));
            continue;
        };
        if table.get("dm_policy").is_some_and(|policy| policy != "pairing") {
            notes.ignore(place, "the account does not let people in by codes");
            continue;
        }
        let ids: Vec<String> = ids.iter().map(|id| plain_id(channel, id)).collect();
        let list = table.entry("allow_from").or_insert_with(|| Value::Array(Vec::new()));
        let Some(list) = list.as_array_mut() else { continue };
        list.extend(ids.iter().filter(|id| *id != "*").map(|id| Value::from(id.as_str())));
        notes.change(place, format!("{} paired people are listed in allow_from", ids.len()));
    }
}

pub(super) fn one_of(value: Option<String>, known: &[&str], path: &str, notes: &mut Notes) -> Option<String> {
    let found = value.as_ref().filter(|value| known.contains(&value.as_str())).cloned();
    if value.is_some() && found.is_none() {
        notes.ignore(path, format!("it is one of {}", known.join(", ")));
    }
    found
}
