use serde_json::json;

use super::*;
use crate::config::{self, Config, ExternalReference};

fn translated(config: Value, with_secrets: bool) -> OpenclawTranslation {
    let is_set = |name: &str| name == "SET_HERE";
    translate_config(OpenclawInputs {
        config,
        jobs: None,
        variables: Vec::new(),
        paired: Vec::new(),
        profiles: Vec::new(),
        is_set: &is_set,
        with_secrets,
    })
}

/// Loads the translated config as a daemon would.
fn loaded(translation: &OpenclawTranslation) -> Config {
    let text = format!("{{\"schema\": 1, {}", &translation.config.to_string()[1..]);
    let look_up = |source: ExternalReference<'_>| match source {
        ExternalReference::Env("SET_HERE") => Ok("from-env".to_owned()),
        ExternalReference::Stored(name) => {
            translation.secrets.get(name).map(|secret| secret.expose().to_owned()).ok_or("gone".to_owned())
        }
        _ => Err("is not set".to_owned()),
    };
    config::load(&text.replace(", }", "}"), "config.json", &look_up)
        .unwrap_or_else(|errors| panic!("{errors}\n{:#}", translation.config))
}

fn paths(notes: &[TranslationNote]) -> Vec<&str> {
    notes.iter().map(|note| note.path.as_str()).collect()
}

#[test]
fn json5_is_parsed_and_syntax_error_has_line() {
    let text = "\u{feff}// a comment\n{ agents: { list: [ { id: 'ops', }, ], }, }\n";
    assert_eq!(parse(text).unwrap()["agents"]["list"][0]["id"], "ops");
    let broken = parse("{\n  \"token\": \"hush\",\n  !!\n}").unwrap_err();
    assert_eq!(broken.line, 3);
    assert!(!broken.to_string().contains("hush"), "{broken}");
}

#[test]
fn agent_list_and_agent_entries_translate_equally() {
    let agent =
        json!({ "name": "Ops", "model": "openai/gpt-x", "workspace": "/w", "identity": { "emoji": "x" } });
    let mut listed = agent.clone();
    listed["id"] = json!("ops");
    let old = translated(json!({ "agents": { "list": [listed] } }), false);
    let new = translated(json!({ "agents": { "entries": { "ops": agent } } }), false);
    assert_eq!(old.config, new.config);
    assert_eq!(old.agents, new.agents);
    let config = loaded(&new);
    let spec = &config.agents.agent_specs()[0];
    assert_eq!((spec.agent_id.as_str(), spec.name.as_str()), ("ops", "Ops"));
    assert_eq!(spec.defaults.model.as_ref().unwrap().to_string(), "openai/gpt-x");
    assert!(new.notes.ignored.is_empty(), "{:?}", new.notes);
}

/// Returns the folders in which each agent's files are searched, as `configured else usual,usual`.
fn looked_for(config: Value) -> Vec<String> {
    let shown = |files: &OpenclawAgentFiles| {
        format!("{} else {}", files.workspace.as_deref().unwrap_or_default(), files.usual.join(","))
    };
    translated(config, false).agents.iter().map(shown).collect()
}

#[test]
fn default_workspace_belongs_to_default_agent_and_contains_others() {
    let list =
        json!([{ "id": "ops" }, { "id": "main", "default": true }, { "id": "far", "workspace": "/far" }]);
    assert_eq!(
        looked_for(json!({ "agents": { "defaults": { "workspace": "/x/ws" }, "list": list } })),
        ["/x/ws/ops else workspace-ops", "/x/ws else ", "/far else "]
    );
    assert_eq!(
        looked_for(json!({ "agents": { "list": list } })),
        [" else workspace-ops", " else workspace,workspace-main", "/far else "]
    );
    let unmarked = json!([{ "id": "ops" }, { "id": "main" }]);
    assert_eq!(
        looked_for(json!({ "agents": { "list": unmarked } })),
        [" else workspace,workspace-ops", " else workspace-main"],
        "the first one answers, whatever it is called"
    );
    assert_eq!(
        looked_for(json!({ "agents": { "default": "main", "list": unmarked } }))[1],
        " else workspace,workspace-main"
    );
    let climbing =
        json!({ "agents": { "defaults": { "workspace": "/x" }, "list": [{ "id": "a" }, { "id": "../b" }] } });
    assert_eq!(looked_for(climbing)[1], " else ", "an id is no way out of a folder");
}

#[test]
fn colliding_and_invalid_agent_ids_are_renamed_everywhere() {
    let translation = translated(
        json!({
            "agents": { "list": [
                { "id": "Ops", "name": "Same" }, { "id": "ops", "name": "Same" }, { "id": "ops" },
                { "id": "007" }, { "id": "skills" }, { "id": "help" },
            ] },
            "bindings": [
                { "agentId": "ops", "match": { "channel": "telegram" } },
                { "agentId": "OPS", "match": { "channel": "discord" } },
                { "agentId": "nobody", "match": { "channel": "slack" } },
            ],
            "broadcast": { "123": ["Ops", "ops", "nobody"] },
        }),
        false,
    );
    let config = loaded(&translation);
    let ids: Vec<String> = config.agents.list.iter().map(|agent| agent.id.to_string()).collect();
    assert_eq!(ids, ["ops", "ops-2", "agent-007", "skills", "help-2"]);
    let bound: Vec<&str> = config.bindings.iter().map(|binding| binding.agent_id.as_str()).collect();
    assert_eq!(bound, ["ops-2", "ops"], "exactly that one, else the first that reads alike");
    assert_eq!(config.broadcast.peers["123"].len(), 2);
    assert_eq!(translation.agents[3].dir.as_deref(), Some("skills-files"), "not the folder of skills");
    let ignored = paths(&translation.notes.ignored);
    for path in ["agents.list[2].id", "bindings[2].agentId", "broadcast.123"] {
        assert!(ignored.contains(&path), "{path}: {ignored:?}");
    }
}

#[test]
fn translated_secrets_never_appear_in_notes() {
    let config = json!({
        "env": { "vars": { "FROM_FILE": "hush-1" } },
        "models": { "providers": {
            "openai": { "apiKey": "${SET_HERE}" },
            "anthropic": { "apiKey": "hush-2" },
            "local": { "baseUrl": "http://127.0.0.1:1/v1", "apiKey": { "source": "exec", "command": "hush-3" } },
        } },
        "channels": { "telegram": { "accounts": {
            "a": { "botToken": "${FROM_FILE}", "dmPolicy": "disabled" },
            "b": { "botToken": { "source": "env", "id": "SET_HERE" }, "dmPolicy": "disabled" },
            "c": { "botToken": "${NOT_SET}" },
        } } },
    });
    let without = translated(config.clone(), false);
    let loaded_without = loaded(&without);
    assert_eq!(loaded_without.channels.telegram.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(loaded_without.providers["anthropic"].api_key, None);
    assert!(without.secrets.is_empty());
    let with = translated(config, true);
    let loaded_with = loaded(&with);
    assert_eq!(loaded_with.channels.telegram["a"].bot_token.expose(), "hush-1");
    assert_eq!(loaded_with.channels.telegram["b"].bot_token.expose(), "from-env");
    assert_eq!(loaded_with.providers["anthropic"].api_key.as_ref().unwrap().expose(), "hush-2");
    assert!(paths(&with.notes.left).contains(&"channels.telegram.accounts.c.botToken"));
    for translation in [&without, &with] {
        let shown = format!("{:?} {:?} {}", translation.notes, translation.secrets, translation.config);
        assert!(!shown.contains("hush"), "{shown}");
    }
}

#[test]
fn invalid_or_unused_values_are_noted_and_url_passwords_removed() {
    let translation = translated(
        json!({
            "env": { "vars": { "USED": "hush-1", "UNUSED": "hush-2" }, "LOOSE": "hush-3" },
            "agents": { "list": "x" },
            "bindings": "x",
            "models": { "providers": {
                "a": { "baseUrl": "https://me:hush-4@models.example:8443/v1?x=@", "apiKey": "${USED}" },
                "b": { "baseUrl": "http://127.0.0.1:1/@v1", "models": "x" },
            } },
        }),
        true,
    );
    let ignored = paths(&translation.notes.ignored);
    for path in ["env.vars.UNUSED", "env.LOOSE", "agents.list", "bindings", "models.providers.b.models"] {
        assert!(ignored.contains(&path), "{path}: {ignored:?}");
    }
    assert!(!ignored.contains(&"env.vars.USED"), "{ignored:?}");
    assert_eq!(paths(&translation.notes.left), ["models.providers.a.baseUrl"]);
    let providers = &translation.config["providers"];
    assert_eq!(providers["a"]["base_url"], "https://models.example:8443/v1?x=@");
    assert_eq!(providers["b"]["base_url"], "http://127.0.0.1:1/@v1");
}

#[test]
fn translated_rule_never_allows_more() {
    let tools = |tools: Value| {
        let translation = translated(json!({ "agents": { "list": [{ "id": "a", "tools": tools }] } }), false);
        loaded(&translation).agents.list[0].tools.clone()
    };
    assert_eq!(tools(json!({ "allow": ["read", "exec", "canvas"] })).allow, ["read_file", "shell"]);
    assert_eq!(tools(json!({ "allow": ["canvas"] })).deny, ["*"], "a list of which nothing is left");
    assert_eq!(tools(json!({ "deny": ["group:web", "canvas"] })).deny, ["group:web"]);
    let narrow = json!({ "agents": { "list": [{ "id": "a" }] }, "bindings": [
        { "agentId": "a", "match": { "channel": "telegram", "planet": "mars" } } ] });
    let translation = translated(narrow, false);
    assert!(loaded(&translation).bindings.is_empty(), "without its planet it would match everybody");
    assert_eq!(paths(&translation.notes.ignored), ["bindings[0].match.planet"]);
}

#[test]
fn every_ignored_key_is_noted() {
    let translation = translated(
        json!({
            "gateway": { "port": 18789, "auth": { "token": "hush" } },
            "agents": { "defaults": { "maxConcurrent": 3 }, "list": [{ "id": "a", "tts": { "voice": "x" } }] },
            "session": { "dmScope": "per-peer", "resetTriggers": ["/new"] },
            "channels": { "signal": { "account": "+1" } },
            "plugins": { "entries": [{ "id": "p" }, 1] },
        }),
        false,
    );
    let mut ignored = paths(&translation.notes.ignored);
    ignored.sort_unstable();
    let expected = [
        "agents.defaults.maxConcurrent",
        "agents.list[0].tts.voice",
        "channels.signal.account",
        "gateway.auth.token",
        "gateway.port",
        "plugins.entries[0].id",
        "plugins.entries[1]",
        "session.resetTriggers",
    ];
    assert_eq!(ignored, expected);
}

#[test]
fn cron_jobs_translate_with_schedule_agent_and_valid_target() {
    let jobs = json!({ "version": 1, "jobs": [
        { "id": "x", "name": "Morning News", "schedule": { "kind": "cron", "expr": "0 8 * * *", "tz": "Europe/Berlin" },
          "payload": { "kind": "agentTurn", "message": "news" }, "agentId": "Ops",
          "delivery": { "mode": "announce", "channel": "telegram", "to": "telegram:5" } },
        { "name": "Morning News", "schedule": { "kind": "every", "everyMs": 90000 },
          "payload": { "kind": "systemEvent", "text": "tick" },
          "delivery": { "mode": "announce", "channel": "signal", "to": "5" } },
        { "name": "never", "schedule": { "kind": "cron", "expr": "nonsense" }, "payload": { "message": "x" } },
    ] });
    let config = json!({ "agents": { "list": [{ "id": "ops" }] },
        "channels": { "telegram": { "botToken": "${SET_HERE}", "dmPolicy": "disabled" } } });
    let is_set = |name: &str| name == "SET_HERE";
    let inputs = OpenclawInputs {
        config,
        jobs: Some(jobs),
        variables: vec![],
        paired: vec![],
        profiles: vec![],
        is_set: &is_set,
        with_secrets: false,
    };
    let translation = translate_config(inputs);
    let config = loaded(&translation);
    let ids: Vec<&str> = config.cron.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["morning-news", "morning-news-1"]);
    assert_eq!(config.cron[1].schedule, "every 90s");
    assert_eq!(config.cron[0].deliver_to.as_ref().unwrap().peer, "5");
    assert_eq!(config.cron[1].deliver_to, None);
    let ignored = paths(&translation.notes.ignored);
    assert!(
        ignored.contains(&"cron/jobs.json.jobs[1].delivery") && ignored.contains(&"cron/jobs.json.jobs[2]")
    );
}

#[test]
fn transcript_lines_and_session_keys_are_translated() {
    let line = |value: Value| parse_line(&value).map(|text| (text.role, text.text));
    let user = json!({ "type": "message", "message": { "role": "user", "content": [{ "type": "text", "text": "hi" }] } });
    assert_eq!(line(user), Some((crate::message::MessageRole::User, "hi".to_owned())));
    assert_eq!(line(json!({ "role": "assistant", "content": "yes" })).unwrap().1, "yes");
    for nothing in [
        json!({ "type": "session", "id": "1" }),
        json!({ "message": { "role": "toolResult", "content": "x" } }),
        json!({ "message": { "role": "assistant", "content": [{ "type": "toolCall", "name": "exec" }] } }),
        json!("garbage"),
        json!(null),
    ] {
        assert_eq!(line(nothing.clone()), None, "{nothing}");
    }
    let renamed = translated(json!({ "agents": { "list": [{ "id": "Ops" }] } }), false).renamed;
    for (there, here) in [
        ("agent:Ops:main", Some("agent:ops:main")),
        ("agent:ops:telegram:direct:5", Some("agent:ops:telegram:dm:5")),
        ("agent:ops:discord:channel:7", Some("agent:ops:discord:channel:7")),
        ("agent:ops:subagent:1", None),
        ("agent:nobody:main", None),
        ("cron:x", None),
        ("agent:ops", None),
    ] {
        assert_eq!(
            translate_session_key(there, &renamed).map(|key| key.to_string()).as_deref(),
            here,
            "{there}"
        );
    }
}

#[test]
fn dm_bindings_translate_and_unknown_channels_are_dropped() {
    let translation = translated(
        json!({ "bindings": [
            { "agentId": "main", "match": { "channel": "telegram", "peer": { "kind": "dm", "id": "7" } } },
            { "agentId": "main", "match": { "channel": "discord", "peer": { "kind": "direct", "id": "8" } } },
            { "agentId": "main", "match": { "channel": "signal" } },
        ] }),
        false,
    );
    assert_eq!(translation.config["bindings"][0]["match"]["peer"], json!({ "kind": "direct", "id": "7" }));
    let bound: Vec<_> =
        loaded(&translation).bindings.into_iter().map(|one| one.match_rule.peer.unwrap()).collect();
    assert!(bound.iter().all(|peer| peer.kind == crate::inbound::PeerKind::Dm), "{bound:?}");
    assert_eq!(bound.len(), 2);
    assert!(paths(&translation.notes.ignored).contains(&"bindings[2].match.channel"));
}

/// Returns the translated account of a platform.
fn account(channel: &str, settings: Value) -> Value {
    let translation = translated(json!({ "channels": { channel: settings } }), true);
    translation.config["channels"][channel]["default"].clone()
}

#[test]
fn individually_closed_group_or_topic_stays_closed() {
    let telegram = |groups: Value| {
        account("telegram", json!({ "botToken": "t", "groupPolicy": "open", "groups": groups }))
    };
    let listed = |account: &Value| (account["group_policy"].clone(), account["groups"].clone());
    let own = telegram(json!({ "-7": { "groupPolicy": "disabled" }, "-8": {} }));
    assert_eq!(listed(&own), (json!("allowlist"), json!(["-8"])));
    let unlisted = telegram(json!({ "-7": { "groupPolicy": "allowlist" }, "-8": {} }));
    assert_eq!(listed(&unlisted), (json!("allowlist"), json!(["-8"])));
    for topic in [json!({ "enabled": false }), json!({ "groupPolicy": "disabled" })] {
        let closed = telegram(json!({ "-7": { "topics": { "3": topic } }, "-8": {} }));
        assert_eq!(listed(&closed), (json!("allowlist"), json!(["-8"])));
    }
    let narrow = telegram(json!({ "-7": { "topics": { "3": { "allowFrom": ["9"] } } } }));
    assert_eq!((listed(&narrow).1, &narrow["group_allow_from"]), (json!(["-7"]), &json!(["9"])));
    let named = telegram(json!({ "-7": { "topics": { "3": { "requireMention": true } } } }));
    assert_eq!(named["require_mention"], json!(true));
}

#[test]
fn role_restricted_channel_is_dropped_unless_users_are_listed() {
    let discord = |guild: Value| {
        account("discord", json!({ "token": "t", "groupPolicy": "open", "guilds": { "1": guild } }))
    };
    let of_server = discord(json!({ "roles": ["r"], "channels": { "11": {}, "12": {} } }));
    assert_eq!((&of_server["groups"], &of_server["group_policy"]), (&Value::Null, &json!("allowlist")));
    let of_channel = discord(json!({ "channels": { "11": { "roles": ["r"] }, "12": {} } }));
    assert_eq!(of_channel["groups"], json!(["12"]));
    let with_people = discord(json!({ "channels": { "11": { "roles": ["r"], "users": ["5"] } } }));
    assert_eq!((&with_people["groups"], &with_people["group_allow_from"]), (&json!(["11"]), &json!(["5"])));
}

#[test]
fn incomplete_matrix_account_is_left_out() {
    let accounts = json!({ "accessToken": "a", "homeserver": "https://m.example", "accounts": {
        "whole": { "accessToken": "b", "userId": "@b:m.example" }, "half": { "accessToken": "c" } } });
    let translation = translated(json!({ "channels": { "matrix": accounts } }), true);
    let made = translation.config["channels"]["matrix"].as_object().unwrap();
    assert_eq!(made.keys().collect::<Vec<_>>(), ["whole"]);
    assert!(paths(&translation.notes.left).contains(&"channels.matrix.accounts.half"));
    loaded(&translation);
}
