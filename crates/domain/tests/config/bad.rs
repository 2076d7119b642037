//! Exact error messages of invalid configs.

use polyclaw_domain::config;
use polyclaw_domain::scope::DmScope;

use super::{json, toml};

fn said(text: &str) -> String {
    toml(text).expect_err("a bad config").to_string()
}

fn json_error_text(text: &str) -> String {
    json(text).expect_err("a bad config").to_string()
}

#[track_caller]
fn assert_table(read: fn(&str) -> String, table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(read(text), *expected, "\n---\n{text}");
    }
}

#[test]
fn unknown_key_error_suggests_nearest_key() {
    assert_table(
        said,
        &[
            (
                "[gateway]\nbind = \"::1\"\n\nprot = 1",
                "config.toml:4: gateway.prot: unknown key; did you mean \"port\"?",
            ),
            ("[gatway]", "config.toml:1: gatway: unknown key; did you mean \"gateway\"?"),
            (
                "[turns]\nmaxRounds = 3",
                "config.toml:2: turns.maxRounds: unknown key; did you mean \"max_rounds\"?",
            ),
            (
                "[routing]\nfrequency = 1",
                "config.toml:2: routing.frequency: unknown key; there is only \"intent_classifier\"",
            ),
            (
                "[observability]\nverbose = true",
                "config.toml:2: observability.verbose: unknown key; expected one of: log_level, log_format",
            ),
            (
                "[[agents.list]]\nid = \"a\"\n[agents.list.tools]\nalow = []",
                "config.toml:4: agents.list[0].tools.alow: unknown key; did you mean \"allow\"?",
            ),
            (
                "[models.\"openai/gpt-5.1\"]\ncontext = 1",
                "config.toml:2: models.\"openai/gpt-5.1\".context: unknown key; expected one of: context_window, input_usd_per_million, output_usd_per_million, cached_usd_per_million",
            ),
        ],
    );
}

#[test]
fn wrong_value_type_error_names_expected_type() {
    assert_table(
        said,
        &[
            ("gateway = 3", "config.toml:1: gateway: expected a table, found a whole number"),
            ("[gateway]\nport = \"80\"", "config.toml:2: gateway.port: expected a whole number, found text"),
            ("[gateway]\nport = 80.5", "config.toml:2: gateway.port: expected a whole number"),
            (
                "[gateway]\nallowed_hosts = \"x\"",
                "config.toml:2: gateway.allowed_hosts: expected a list, found text",
            ),
            (
                "[tools]\nallow_private_addresses = 1",
                "config.toml:2: tools.allow_private_addresses: expected true or false, found a whole number",
            ),
            (
                "[tools]\ndisabled = [\n  \"a\",\n  2]",
                "config.toml:4: tools.disabled[1]: expected text, found a whole number",
            ),
            (
                "[session]\nmain_key = 2020-01-01",
                "config.toml:2: session.main_key: expected text, found a date",
            ),
        ],
    );
}

#[test]
fn out_of_range_numbers_are_refused() {
    assert_table(
        said,
        &[
            ("[gateway]\nport = 0", "config.toml:2: gateway.port: must be at least 1"),
            ("[gateway]\nport = 65536", "config.toml:2: gateway.port: must be at most 65535"),
            ("[lanes]\nmain = 0", "config.toml:2: lanes.main: must be at least 1"),
            ("[lanes]\ncron = 257", "config.toml:2: lanes.cron: must be at most 256"),
            ("[turns]\nstall_seconds = 0", "config.toml:2: turns.stall_seconds: must be at least 1"),
            ("[turns]\nlease_seconds = -5", "config.toml:2: turns.lease_seconds: must be at least 1"),
            ("[turns]\nattempts = 4294967296", "config.toml:2: turns.attempts: this number is too large"),
            (
                "[turns]\nattempts = 99999999999999999999",
                "config.toml:2: turns.attempts: this number is too large",
            ),
            ("[delivery]\nttl_minutes = 0", "config.toml:2: delivery.ttl_minutes: must be at least 1"),
            (
                "[agents.defaults]\ntemperature = 2.1",
                "config.toml:2: agents.defaults.temperature: must be at most 2.0",
            ),
            (
                "[agents.defaults]\ntemperature = nan",
                "config.toml:2: agents.defaults.temperature: this number is too large",
            ),
            (
                "schema = 2",
                "config.toml:1: schema: this file has schema 2; this program supports schema 1; use the polyclaw version that wrote it, or set schema = 1",
            ),
        ],
    );
}

#[test]
fn invalid_choices_and_addresses_are_refused() {
    assert_table(
        said,
        &[
            (
                "[gateway]\nauth = \"tokn\"",
                "config.toml:2: gateway.auth: \"tokn\" is not a valid value; did you mean \"token\"?",
            ),
            (
                "[observability]\nlog_format = \"yaml\"",
                "config.toml:2: observability.log_format: \"yaml\" is not a valid value; expected one of: text, json",
            ),
            (
                "[providers.x]\nkind = \"antropic\"",
                "config.toml:2: providers.x.kind: \"antropic\" is not a valid value; did you mean \"anthropic\"?",
            ),
            (
                "[gateway]\nbind = \"localhost\"",
                "config.toml:2: gateway.bind: \"localhost\" is not an IP address; use \"127.0.0.1\" for this machine only, \"0.0.0.0\" for every network",
            ),
            (
                "[providers.openai]\nbase_url = \"ftp://x\"",
                "config.toml:2: providers.openai.base_url: this is not an http or https URL; use the full URL, like https://example.com/v1",
            ),
            (
                "[store]\nurl = \"mysql://x\"",
                "config.toml:2: store.url: this is not a postgres:// URL; omit it to use SQLite in the instance's home",
            ),
            (
                "[session]\nmain_key = \"My Key\"",
                "config.toml:2: session.main_key: \"My Key\" is not valid in a session key; use up to 64 of a-z, 0-9, '_' and '-'",
            ),
            (
                "[gateway]\nallowed_hosts = [\"https://x/\"]",
                "config.toml:2: gateway.allowed_hosts[0]: \"https://x/\" is not a host name; use only the name, like chat.example.com",
            ),
            (
                "[gateway]\nallowed_origins = [\"*\"]",
                "config.toml:2: gateway.allowed_origins[0]: \"*\" is not a web origin; use only scheme and host, like https://chat.example.com",
            ),
        ],
    );
}

#[test]
fn gateway_without_auth_must_bind_to_loopback() {
    assert_eq!(
        said("[gateway]\nbind = \"0.0.0.0\"\nauth = \"off\""),
        "config.toml:3: gateway.auth: no token is required, but other machines can reach 0.0.0.0; \
         set auth = \"token\", or bind = \"127.0.0.1\""
    );
    for loopback in ["127.0.0.1", "127.1.2.3", "::1"] {
        assert!(toml(&format!("[gateway]\nbind = \"{loopback}\"\nauth = \"off\"")).is_ok(), "{loopback}");
    }
}

#[test]
fn agent_ids_are_unique_and_exactly_one_is_default() {
    let two = |rest: &str| format!("[[agents.list]]\nid = \"ops\"\n[[agents.list]]\nid = \"dev\"\n{rest}");
    assert_eq!(
        said(&two("")),
        "config.toml:1: agents.list: there are several agents, and none is the default; \
         add default = \"ops\" to [agents], or default = true to one of them"
    );
    assert_eq!(
        said(&two("[agents]\ndefault = \"opps\"")),
        "config.toml:6: agents.default: there is no agent \"opps\"; did you mean \"ops\"?"
    );
    assert_eq!(
        said(&two("default = true\n[agents]\ndefault = \"ops\"")),
        "config.toml:5: agents.list[1].default: \"dev\" and \"ops\" cannot both be the default; keep one of them"
    );
    assert_table(
        said,
        &[
            (
                "agents.default = \"a\"\n[[agents.list]]\nid = \"a\"\n[[agents.list]]\nid = \"a\"",
                "config.toml:5: agents.list[1].id: there are two agents \"a\"; the first one is on line 3",
            ),
            (
                "agents.default = \"a\"\n[[agents.list]]\nid = \"a\"\n[[agents.list]]\nid = \"b\"\nname = \"a\"",
                "config.toml:6: agents.list[1].name: there are two agents named \"a\"; the first one is on line 3",
            ),
            (
                "[[agents.list]]\nid = \"a\"\ndefault = true\n[[agents.list]]\nid = \"b\"\ndefault = true",
                "config.toml:6: agents.list[1].default: \"b\" and \"a\" cannot both be the default; keep one of them",
            ),
            (
                "agents.default = \"ops\"",
                "config.toml:1: agents.default: there is no agent \"ops\"; there is only \"main\"",
            ),
            (
                "[[agents.list]]\nid = \"Ops\"",
                "config.toml:2: agents.list[0].id: 'Ops' is not an agent id: expected a lower-case letter, followed by up to 63 of a-z, 0-9, '_' and '-'",
            ),
            ("[[agents.list]]\nname = \"Ops\"", "config.toml:1: agents.list[0]: id is missing; add id = …"),
        ],
    );
}

#[test]
fn model_must_name_configured_provider() {
    let openai = "[providers.openai]\n";
    assert_eq!(
        said("[agents.defaults]\nmodel = \"gpt\""),
        "config.toml:2: agents.defaults.model: 'gpt' is not a model: use provider/model, for example openai/gpt-5-mini"
    );
    assert_eq!(
        said(&format!("{openai}[agents.defaults]\nmodel = \"opnai/gpt\"")),
        "config.toml:3: agents.defaults.model: opnai/gpt uses provider \"opnai\", which is not configured; did you mean \"openai\"?"
    );
    assert_eq!(
        said(&format!("{openai}[[agents.list]]\nid = \"a\"\nfallbacks = [\"openai/x\", \"groq/y\"]")),
        "config.toml:4: agents.list[0].fallbacks[1]: groq/y uses provider \"groq\", which is not configured; there is only \"openai\""
    );
    assert_eq!(
        said(&format!("{openai}[models.\"gpt\"]\n[models.\"x/y\"]")),
        "config.toml:2: models.gpt: 'gpt' is not a model: use provider/model, for example openai/gpt-5-mini\n\
         config.toml:3: models.\"x/y\": x/y uses provider \"x\", which is not configured; there is only \"openai\""
    );
    assert!(
        toml("[agents.defaults]\nmodel = \"any/thing\"").is_ok(),
        "found at start, nothing to compare with"
    );
}

#[test]
fn missing_required_provider_and_webhook_keys_are_reported() {
    assert_table(
        said,
        &[
            (
                "[providers.lab]",
                "config.toml:1: providers.lab: \"lab\" is not a known kind of provider, and kind is not set; add one, like kind = \"openai_compatible\"",
            ),
            (
                "[providers.lab]\nkind = \"openai_compatible\"",
                "config.toml:1: providers.lab: base_url is missing, and openai_compatible has no default URL; add it, like base_url = \"http://127.0.0.1:8080/v1\"",
            ),
            (
                "[providers.\"a/b\"]\nkind = \"openai\"",
                "config.toml:1: providers.\"a/b\": a provider's name must not contain slashes or spaces; it is the part before the first / of a model",
            ),
            (
                "[channels.webhook.ci]",
                "config.toml:1: channels.webhook.ci: secret is missing; add secret = …",
            ),
            (
                "[channels.webhook.ci]\nsecret = \"s\"\nagent = \"mian\"",
                "config.toml:3: channels.webhook.ci.agent: there is no agent \"mian\"; did you mean \"main\"?",
            ),
            (
                "[channels.webhook.\"a b\"]\nsecret = \"s\"\nreply_secret = \"t\"",
                "config.toml:1: channels.webhook.\"a b\": \"a b\" is not valid in the URL /hooks/<name>; use letters, digits, '_' and '-'\n\
                 config.toml:3: channels.webhook.\"a b\".reply_secret: reply_secret is set, but there is no reply_url to post replies to; add reply_url, or remove reply_secret",
            ),
        ],
    );
}

#[test]
fn unresolved_external_references_are_reported() {
    assert_table(
        said,
        &[
            (
                "[providers.openai]\napi_key = \"env:NOPE\"",
                "config.toml:2: providers.openai.api_key: environment variable NOPE is not set; set NOPE in the environment of the instance, or remove the reference",
            ),
            (
                "[session]\nmain_key = \"${NOPE}\"",
                "config.toml:2: session.main_key: environment variable NOPE is not set; set NOPE in the environment of the instance, or remove the reference",
            ),
            (
                "[providers.openai]\napi_key = \"file:/nope\"",
                "config.toml:2: providers.openai.api_key: secret file /nope: no such file; store the secret in it, readable only by you (0600)",
            ),
            (
                "[providers.openai]\napi_key = \"keyring:x\"",
                "config.toml:2: providers.openai.api_key: keyring entry x: there is none of that name; store it there, or run `polyclaw secrets set x` and use secret:x",
            ),
            (
                "[providers.openai]\napi_key = \"***\"",
                "config.toml:2: providers.openai.api_key: this is a masked secret, not its value; use env:NAME, file:/path, keyring:name, secret:name or the value itself",
            ),
            (
                "[providers.openai]\napi_key = \"\"",
                "config.toml:2: providers.openai.api_key: the secret is empty; use env:NAME, file:/path, keyring:name, secret:name or the value itself",
            ),
        ],
    );
}

/// There is only one memory store, so no file or backend can be chosen.
#[test]
fn memory_store_backend_cannot_be_chosen() {
    for key in ["backend", "store", "markdown", "markdown_dir", "path"] {
        let text = said(&format!("[memory]\n{key} = \"markdown\""));
        assert!(text.starts_with(&format!("config.toml:2: memory.{key}: unknown key")), "{text}");
    }
}

#[test]
fn all_errors_are_reported_in_file_order() {
    assert_eq!(
        said(
            "[session]\nmain_key = \"\"\n[gateway]\nprot = 1\nport = 0\n[lanes]\ncron = 0\n[channels.webhook.ci]\nsecret = \"x\"\nagent = \"who\""
        ),
        "config.toml:2: session.main_key: \"\" is not valid in a session key; use up to 64 of a-z, 0-9, '_' and '-'\n\
         config.toml:4: gateway.prot: unknown key; did you mean \"port\"?\n\
         config.toml:5: gateway.port: must be at least 1\n\
         config.toml:7: lanes.cron: must be at least 1\n\
         config.toml:10: channels.webhook.ci.agent: there is no agent \"who\"; there is only \"main\""
    );
}

#[test]
fn one_error_causes_no_follow_up_errors() {
    assert_eq!(
        said(
            "[[agents.list]]\nid = \"ops\"\nmodle = \"x/y\"\n[channels.webhook.ci]\nsecret = \"x\"\nagent = \"ops\""
        ),
        "config.toml:3: agents.list[0].modle: unknown key; did you mean \"model\"?"
    );
}

#[test]
fn syntax_error_is_reported_once_with_line() {
    assert_table(
        said,
        &[
            ("[gateway]\nport = \n", "config.toml:2: string values must be quoted, expected literal string"),
            ("[gateway]\n[gateway]\n", "config.toml:2: duplicate key"),
        ],
    );
    assert_table(
        json_error_text,
        &[
            ("{\n  gateway: {", "openclaw.json:2: the file ends too early, in this: object"),
            ("{\n  gateway: }", "openclaw.json:2: expected value"),
            ("{}\n\n{}", "openclaw.json:3: text after the closing brace"),
            ("{}\nnul", "openclaw.json:2: the file ends too early, in this: null"),
            ("", "openclaw.json:1: the file ends too early, in this: value"),
            ("[]", "openclaw.json:1: expected a table, found a list"),
        ],
    );
    let deep = format!("{{ gateway: {}", "[".repeat(100_000));
    assert_eq!(json_error_text(&deep), "openclaw.json:1: nested too deeply");
}

#[test]
fn json_errors_keep_the_spelling_of_the_file() {
    assert_table(
        json_error_text,
        &[
            (
                "{\n  turns: {\n    maxRonds: 3 } }",
                "openclaw.json:3: turns.maxRonds: unknown key; did you mean \"maxRounds\"?",
            ),
            (
                "{ turns: { maxRounds: 3,\n max_rounds: 4 } }",
                "openclaw.json:2: turns.max_rounds: max_rounds is given twice; keep one of them",
            ),
            (
                "{ agents: {\n entries: {\n  ops: {\n   systemPrompt: 1 } } } }",
                "openclaw.json:4: agents.entries.ops.systemPrompt: expected text, found a whole number",
            ),
            (
                "{ agents: { list: [\n  { id: 'a' },\n  { id: 'a' } ], default: 'a' } }",
                "openclaw.json:3: agents.list[1].id: there are two agents \"a\"; the first one is on line 2",
            ),
            (
                "{ tools: { disabled: [null] } }",
                "openclaw.json:1: tools.disabled[0]: expected text, found nothing",
            ),
        ],
    );
}

#[test]
fn invalid_tool_rules_are_reported() {
    assert_table(
        said,
        &[
            (
                "[tools]\ndeny = [\"shel\"]",
                "config.toml:2: tools.deny[0]: there is no tool \"shel\"; did you mean \"shell\"?",
            ),
            (
                "[tools]\ndisabled = [\"http_fetsch\"]",
                "config.toml:2: tools.disabled[0]: there is no tool \"http_fetsch\"; did you mean \"http_fetch\"?",
            ),
            (
                "[tools]\nallow = [\"group:file\"]\nprofile = \"full\"",
                "config.toml:2: tools.allow[0]: there is no \"group:file\"; did you mean \"group:fs\"?",
            ),
            (
                "[tools]\nprofile = \"codng\"",
                "config.toml:2: tools.profile: \"codng\" is not a valid value; did you mean \"coding\"?",
            ),
            (
                "[[agents.list]]\nid = \"a\"\ntools = { profile = \"minimal\", allow = [\"shell\"] }",
                "config.toml:3: agents.list[0].tools.allow[0]: \"shell\" is not in the profile \"minimal\", and allow can only narrow a profile; use another profile, or remove profile and list groups",
            ),
            (
                "[[agents.list]]\nid = \"a\"\ntemperature = 1\nmodel = { provider = \"p\", model = \"m\", temperature = 0 }",
                "config.toml:3: agents.list[0].temperature: temperature is given twice: here, and in the model's \
                 table; keep one of them",
            ),
            (
                "[agents.defaults]\nmodel = { provider = \"p\" }",
                "config.toml:2: agents.defaults.model: model is missing; add model = …",
            ),
        ],
    );
}

#[test]
fn unusable_mcp_servers_and_services_are_reported() {
    assert_table(
        said,
        &[
            (
                "[mcp.servers.a_b]\ncommand = \"x\"",
                "config.toml:1: mcp.servers.a_b: \"a_b\" is not a valid name for an MCP server; \
                 use up to 32 lower-case letters, digits and -, starting with a letter",
            ),
            (
                "[mcp.servers.a]\nenabled = true",
                "config.toml:1: mcp.servers.a: neither command nor url is set; set one of them",
            ),
            (
                "[mcp.servers.a]\nurl = \"https://x.example\"\nargs = [\"x\"]",
                "config.toml:1: mcp.servers.a: args, env and cwd are allowed only with command; remove them",
            ),
            (
                "[mcp.servers.git]\ncommand = \"x\"\n[[agents.list]]\nid = \"a\"\nmcp = [\"*\", \"got\"]",
                "config.toml:5: agents.list[0].mcp[1]: there is no MCP server \"got\"; did you mean \"git\"?",
            ),
            (
                "[tools.web_search]\nkind = \"searxng\"",
                "config.toml:1: tools.web_search: url is missing, and SearXNG has no default URL; \
                 add it, like url = \"http://127.0.0.1:8888\"",
            ),
            (
                "[tools.web_search]\nkind = \"brave\"",
                "config.toml:1: tools.web_search: api_key is missing, and this service requires one; \
                 add it, like api_key = \"env:SEARCH_API_KEY\"",
            ),
        ],
    );
}

#[test]
fn invalid_routing_rules_are_reported() {
    let two = "[[agents.list]]\nid = \"a\"\ndefault = true\n[[agents.list]]\nid = \"b\"\n";
    for (text, expected) in [
        (
            "[[bindings]]\nagent_id = \"c\"\nmatch = { channel = \"slack\" }",
            "config.toml:7: bindings[0].agent_id: there is no agent \"c\"; did you mean \"a\"?",
        ),
        (
            "[[bindings]]\nagent_id = \"a\"\nmatch = { channel = \"slack\", roles = [\"r\"] }",
            "config.toml:8: bindings[0].match.roles: roles require a server; add guild_id",
        ),
        (
            "[[bindings]]\nagent_id = \"a\"\nmatch = { channel = \"telegrm\" }",
            "config.toml:8: bindings[0].match.channel: \"telegrm\" is not a channel; did you mean \"telegram\"?",
        ),
        (
            "[[bindings]]\nagent_id = \"a\"\nmatch = { channel = \"webhook\", account_id = \"ci\" }\n\
             [channels.webhook.ci]\nsecret = \"s\"\nagent = \"b\"",
            "config.toml:8: bindings[0].match.account_id: the webhook \"ci\" already sets its agent: bindings do not apply to it; remove the binding, or remove channels.webhook.ci.agent",
        ),
        (
            "[channels.webhook.ci]\nsecret = \"s\"\nmap = { text = \"{a\", peer = \"a..b\", id = \"a.b\" }",
            "config.toml:8: channels.webhook.ci.map.text: \"{a\" is neither a path nor a text with paths; \
             use \"issue.title\", or \"{sender.login}: {comment.body}\"\n\
             config.toml:8: channels.webhook.ci.map.peer: \"a..b\" is neither a path nor a text with paths; \
             use \"issue.title\", or \"{sender.login}: {comment.body}\"",
        ),
        (
            "[broadcast]\n\"g1\" = [\"a\", \"a\"]",
            "config.toml:7: broadcast.g1[1]: \"a\" is listed twice; keep one of them",
        ),
        (
            "[session]\nidentity_links = { al = [\"x\"] }",
            "config.toml:7: session.identity_links.al[0]: \"x\" does not identify a sender; use channel:id, such as telegram:123",
        ),
        (
            "[[agents.list]]\nid = \"status\"",
            "config.toml:7: agents.list[2].id: /status is a command, so no agent can have this id; use another id",
        ),
        (
            "[[agents.list]]\nid = \"team\"",
            "config.toml:7: agents.list[2].id: /team is a command, so no agent can have this id; use another id",
        ),
    ] {
        assert_eq!(said(&format!("{two}{text}")), expected);
    }
}

#[test]
fn cron_jobs_that_cannot_run_are_reported() {
    assert_table(
        said,
        &[
            (
                "[[cron]]\nid = \"a\"\nschedule = \"every 10 minutes\"\nmessage = \"x\"",
                "config.toml:3: cron[0].schedule: \"every 10 minutes\" is not a valid schedule: ' ' is not a unit; use s, m, h or d; use `30 8 * * 1-5`, `every 10m` or `at 2026-12-01 09:00`",
            ),
            (
                "[[cron]]\nid = \"a\"\nschedule = \"every 1m\"\nmessage = \"x\"\ntimezone = \"Mars/Base\"",
                "config.toml:5: cron[0].timezone: \"Mars/Base\" is not a time zone; use a name like Europe/Berlin",
            ),
            (
                "[[cron]]\nid = \"a\"\nschedule = \"every 1m\"\nmessage = \"x\"\ndeliver_to = { channel = \"telegram\", peer = \"1\" }",
                "config.toml:5: cron[0].deliver_to: there is no account \"\" of channel \"telegram\"; \
                 add it under [channels], or use a configured account",
            ),
            (
                "[[cron]]\nid = \"a\"\nschedule = \"99 * * * *\"\nmessage = \"x\"\ntimezone = \"Mars/Base\"",
                "config.toml:3: cron[0].schedule: \"99 * * * *\" is not a valid schedule: \
                 Component error: Number out of bounds.; use `30 8 * * 1-5`, `every 10m` or `at 2026-12-01 09:00`\n\
                 config.toml:5: cron[0].timezone: \"Mars/Base\" is not a time zone; use a name like Europe/Berlin",
            ),
            (
                "[heartbeat.nobody]",
                "config.toml:1: heartbeat.nobody: there is no agent \"nobody\"; there is only \"main\"",
            ),
        ],
    );
}

#[test]
fn hook_needs_one_target_and_known_events() {
    assert_table(
        said,
        &[
            (
                "[[hooks]]\non = []\ncommand = [\"x\"]",
                "config.toml:1: hooks[0]: on is missing: the hook receives no events; add on = [\"turn.done\"]",
            ),
            (
                "[[hooks]]\non = [\"turn.done\"]",
                "config.toml:1: hooks[0]: a hook needs either a command or a url; set exactly one of them",
            ),
            (
                "[[hooks]]\non = [\"turn.dome\"]\ncommand = [\"x\"]",
                "config.toml:2: hooks[0].on[0]: \"turn.dome\" is not a valid value; did you mean \"turn.done\"?",
            ),
        ],
    );
}

/// A conversation shared by everybody is rejected if several people can write, however the config causes it.
#[test]
fn accidental_shared_dm_scope_is_refused() {
    let account = |name: &str, rules: &str| {
        format!("[channels.telegram.{name}]\nbot_token = \"token {name}\"\n{rules}\n")
    };
    let one = "dm_policy = \"allowlist\"\nallow_from = [\"1\"]";
    let other = "dm_policy = \"allowlist\"\nallow_from = [\"2\"]";
    let binding = |scope: &str, matching: &str| {
        format!(
            "[[bindings]]\nagent_id = \"main\"\ndm_scope = \"{scope}\"\nmatch = {{ channel = \"telegram\"{matching} }}\n"
        )
    };
    let apart = "[session]\ndm_scope = \"per-channel-peer\"\n";
    let linked = "[session]\nidentity_links = { al = [\"telegram:1\", \"telegram:2\"] }\n";
    let allowed = "[session]\nallow_shared_dm = true\n";
    let main = "[session]\ndm_scope = \"main\"\n";
    let several = [
        account("a", ""),
        account("a", "dm_policy = \"open\""),
        account("a", "dm_policy = \"allowlist\"\nallow_from = [\"*\"]"),
        account("a", "dm_policy = \"allowlist\"\nallow_from = [\"1\"]\nowners = [\"2\"]"),
        account("a", one) + &account("b", other),
    ];
    let refused = several.iter().map(|text| (text.clone() + main, true));
    for (text, scope) in several.iter().map(|text| (text.clone(), DmScope::PerChannelPeer)).chain([
        (account("a", one), DmScope::Main),
        (account("a", "") + allowed, DmScope::Main),
        (String::new(), DmScope::Main),
    ]) {
        let config = toml(&text).unwrap();
        assert_eq!(config.session.effective_dm_scope(&config.channels, &config.bindings), scope, "{text}");
    }
    for (text, is_refused) in refused.chain([
        (account("a", one), false),
        (account("a", &format!("{one}\nowners = [\"1\"]")), false),
        (account("a", "dm_policy = \"disabled\""), false),
        (account("a", "enabled = false"), false),
        (account("a", "") + apart, false),
        (account("a", "") + allowed, false),
        (account("a", one) + &account("b", other) + linked, false),
        (account("a", "") + &binding("per-peer", ""), false),
        (
            account("a", "")
                + &account("b", "dm_policy = \"disabled\"")
                + main
                + &binding("per-peer", ", account_id = \"b\""),
            true,
        ),
        (account("a", "") + main + &binding("per-peer", ", peer = { kind = \"dm\", id = \"1\" }"), true),
        (account("a", "") + apart + &binding("main", ""), true),
        (account("a", "") + apart + &binding("main", ", peer = { kind = \"dm\", id = \"1\" }"), false),
        (account("a", "") + apart + &binding("main", ", peer = { kind = \"group\", id = \"1\" }"), false),
    ]) {
        let refused = toml(&text).err().map(|errors| errors.to_string());
        let says = refused.as_ref().is_some_and(|reply| reply.contains("would share one conversation"));
        assert_eq!(says, is_refused, "{text}\n{refused:?}");
        assert_eq!(refused.is_some(), is_refused, "{text}\n{refused:?}");
    }
}

#[test]
fn shared_dm_scope_error_points_to_its_setting() {
    let account = "[channels.telegram.default]\nbot_token = \"t\"\ndm_policy = \"open\"\n";
    let text = format!(
        "{account}[session]\ndm_scope = \"per-peer\"\n[[bindings]]\nagent_id = \"main\"\ndm_scope = \"main\"\n\
         match = {{ channel = \"telegram\" }}\n"
    );
    let reply = toml(&text).unwrap_err().to_string();
    assert!(reply.contains("config.toml:8: bindings[0].dm_scope: several people"), "{reply}");
    assert!(reply.contains("remove dm_scope = \"main\" from the binding"), "{reply}");
}

#[test]
fn unknown_binding_account_and_ambiguous_menu_name_are_refused() {
    assert_table(
        said,
        &[
            (
                "[channels.telegram.work]\nbot_token = \"t\"\n[session]\ndm_scope = \"per-peer\"\n\
                 [[bindings]]\nagent_id = \"main\"\nmatch = { channel = \"telegram\", account_id = \"wrok\" }",
                "config.toml:7: bindings[0].match.account_id: there is no telegram account \"wrok\"; \
                 did you mean \"work\"?",
            ),
            (
                "[agents]\ndefault = \"a-b\"\n[[agents.list]]\nid = \"a-b\"\n[[agents.list]]\nid = \"a_b\"",
                "config.toml:6: agents.list[1].id: \"a-b\" and \"a_b\" are both /a_b in menus; \
                 change one of the ids",
            ),
        ],
    );
}

#[test]
fn unreadable_value_hides_no_other_errors() {
    assert_table(
        said,
        &[
            (
                "[broadcast]\nstrategy = \"paralel\"\n\"-7\" = [\"nobody\"]",
                "config.toml:2: broadcast.strategy: \"paralel\" is not a valid value; did you mean \"parallel\"?\n\
                 config.toml:3: broadcast.-7[0]: there is no agent \"nobody\"; there is only \"main\"",
            ),
            // A value that was dropped because it is invalid is not also reported as missing.
            (
                "[channels.matrix.home]\nhomeserver = \"https://h\"\nuser_id = \"@c:h\"\naccess_token = 7",
                "config.toml:4: channels.matrix.home.access_token: expected text, found a whole number",
            ),
        ],
    );
}

#[test]
fn unusable_channel_account_is_refused() {
    const APART: &str = "[session]\ndm_scope = \"per-channel-peer\"\n";
    for (text, path, expected) in [
        (
            "[channels.telegram.a]\nbot_token = \"t\"\n[channels.telegram.b]\nbot_token = \"t\"",
            "channels.telegram.b.bot_token",
            "account \"a\" has the same bot_token",
        ),
        (
            "[channels.telegram.a]\nbot_token = \"t\"\nowners = [\"7\", \"@ann\"]",
            "channels.telegram.a.owners[1]",
            "\"@ann\" is a name",
        ),
        (
            "[channels.discord.a]\nbot_token = \"t\"\nallow_from = [\"@ann\"]",
            "channels.discord.a.allow_from[0]",
            "\"@ann\" is a name",
        ),
        (
            "[channels.matrix.a]\nhomeserver = \"https://h\"\nuser_id = \"claw\"\npassword = \"p\"\nowners = [\"@ann:h\"]",
            "channels.matrix.a.user_id",
            "\"claw\" is not a Matrix user id",
        ),
    ] {
        let errors = toml(&format!("{APART}{text}")).expect_err(text).0;
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].path, path);
        assert!(errors[0].message.contains(expected), "{errors:?}");
    }
}

#[test]
fn unknown_agent_is_allowed_when_agents_may_be_created_later() {
    let text = "[turns]\nattempts = 0\n[channels.webhook.ci]\nsecret = \"s\"\nagent = \"later\"\n";
    let text_of =
        |errors: Vec<config::ConfigError>| errors.into_iter().map(|one| one.path).collect::<Vec<_>>();
    let open = config::load_with_unknown_agents(text, "config.toml", &crate::world).unwrap_err();
    assert_eq!(text_of(open.0), ["turns.attempts"]);
    let closed = toml(text).unwrap_err();
    assert_eq!(text_of(closed.0), ["turns.attempts", "channels.webhook.ci.agent"]);
}
