//! The meaning of a config after it was parsed.

use polyclaw_domain::agent::{AgentSpec, SandboxMode};
use polyclaw_domain::config::{self, Config, GatewayAuth, ProviderKind};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::provider::{ModelRef, ReasoningEffort};
use polyclaw_domain::time::Millis;
use proptest::prelude::*;

use super::{json, toml, world};

#[test]
fn an_empty_file_is_the_default_config() {
    for empty in ["", "schema = 1", "# nothing\n", "\u{feff}", "[gateway]\n[agents]\n"] {
        assert_eq!(toml(empty).unwrap(), Config::default());
    }
    assert_eq!(json("{}").unwrap(), Config::default());
}

#[test]
fn defaults_match_documentation() {
    let config = Config::default();
    assert_eq!((config.gateway.bind.to_string().as_str(), config.gateway.port), ("127.0.0.1", 18801));
    assert_eq!(config.gateway.auth, GatewayAuth::Token);
    let lanes = &config.lanes;
    assert_eq!(
        (lanes.main, lanes.subagent, lanes.teammate, lanes.cron, lanes.internal_announce),
        (None, 8, 10, 2, 4)
    );
    let turns = &config.turns;
    assert_eq!(
        (turns.max_rounds, turns.stall_seconds, turns.timeout_minutes, turns.attempts),
        (50, 120, 30, 3)
    );
    assert_eq!((turns.lease_seconds, turns.repeat_limit, turns.automatic_budget), (30, 4, 20));
    assert_eq!((config.delivery.ttl_minutes, config.session.main_key.as_str()), (15, "main"));
    assert_eq!(config.context_window(&ModelRef::parse("any/model").unwrap()), 128_000);
    assert!(!config.tools.allow_private_addresses && config.store.url.is_none());
}

#[test]
fn camel_case_json_equals_toml_config() {
    let from_toml = toml(
        r#"
        [gateway]
        port = 1000
        allowed_hosts = ["a.example"]
        [providers.myLab]
        kind = "openai_compatible"
        base_url = "http://127.0.0.1:1/v1"
        api_key = "env:OPENAI_API_KEY"
        [models."myLab/Big_Model"]
        context_window = 4096
        [agents]
        default = "ops"
        defaults = { model = "myLab/Big_Model", max_tokens = 100 }
        [[agents.list]]
        id = "ops"
        system_prompt = "In ${REGION}."
        tools = { deny = ["shell"] }
        [[agents.list]]
        id = "dev_2"
        temperature = 1
        [tools]
        allow_private_addresses = true
        [turns]
        max_rounds = 1000
        [channels.webhook.myHook]
        secret = "file:/run/secrets/hook"
        reply_url = "https://x.example/in"
        "#,
    );
    let from_json = json(
        r#"
        // the same, as OpenClaw would write it
        {
          gateway: { port: 1000, allowedHosts: ["a.example"], auth: null },
          providers: { myLab: { kind: "openai_compatible", baseUrl: "http://127.0.0.1:1/v1", "apiKey": 'env:OPENAI_API_KEY' } },
          models: { "myLab/Big_Model": { contextWindow: 0x1000 } },
          agents: {
            default: "ops",
            defaults: { model: "myLab/Big_Model", maxTokens: 100 },
            entries: {
              ops: { systemPrompt: "In ${REGION}.", tools: { deny: ["shell"] } },
              dev_2: { temperature: 1.0 },
            },
          },
          tools: { allowPrivateAddresses: true },
          turns: { maxRounds: 1e3 },
          channels: { webhook: { myHook: { secret: "file:/run/secrets/hook", replyUrl: "https://x.example/in" } } },
        }
        "#,
    );
    assert_eq!(from_toml.unwrap(), from_json.unwrap());
}

#[test]
fn agent_list_and_entries_are_merged() {
    let config =
        toml("agents.default = \"a\"\n[[agents.list]]\nid = \"a\"\n[agents.entries.b]\nname = \"B\"")
            .unwrap();
    let ids: Vec<&str> = config.agents.list.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn agent_inherits_missing_settings_from_defaults() {
    let config = toml(
        r#"
        [agents.defaults]
        model = "p/one"
        fallbacks = ["p/two"]
        temperature = 0.5
        max_tokens = 100
        reasoning_effort = "low"
        [[agents.list]]
        id = "plain"
        default = true
        [[agents.list]]
        id = "own"
        name = "Own"
        model = "p/three"
        fallbacks = []
        temperature = 0.9
        reasoning_effort = "high"
        tools = { deny = ["shell"] }
        "#,
    )
    .unwrap();
    let specs = config.agents.agent_specs();
    let model = |name: &str| ModelRef::parse(name).unwrap();
    let (plain, own) = (&specs[0], &specs[1]);
    assert_eq!((plain.name.as_str(), own.name.as_str()), ("plain", "Own"));
    assert_eq!(
        (&plain.defaults.model, &own.defaults.model),
        (&Some(model("p/one")), &Some(model("p/three")))
    );
    assert_eq!((&plain.defaults.fallbacks, &own.defaults.fallbacks), (&vec![model("p/two")], &vec![]));
    assert_eq!((plain.defaults.temperature, own.defaults.temperature), (Some(0.5), Some(0.9)));
    assert_eq!((plain.defaults.max_tokens, own.defaults.max_tokens), (Some(100), Some(100)));
    assert_eq!(plain.defaults.reasoning_effort, Some(ReasoningEffort::Low));
    assert_eq!(own.defaults.reasoning_effort, Some(ReasoningEffort::High));
    assert!(plain.policy.tools.deny.is_empty() && own.policy.tools.deny == ["shell"]);
    assert_eq!(config.agents.default_agent_id(), plain.agent_id);
}

#[test]
fn agent_table_overrides_only_its_own_keys() {
    let config = toml(
        "[agents.defaults.sandbox]\nmode = \"strict\"\nmemory_mb = 64\n\
         [agents.defaults.subagents]\nmax_spawn_depth = 3\nmax_concurrent = 4\n\
         [[agents.list]]\nid = \"ops\"\nsandbox = { memory_mb = 128, processes = 9 }\nsubagents = { max_concurrent = 9 }\n",
    );
    let spec = &config.unwrap().agents.agent_specs()[0];
    assert_eq!(
        (spec.sandbox.mode, spec.sandbox.memory_mb, spec.sandbox.processes),
        (SandboxMode::Strict, Some(128), Some(9))
    );
    assert_eq!((spec.subagents.max_spawn_depth, spec.subagents.max_concurrent), (3, 9));
    let camel = json(
        r#"{agents: {defaults: {subagents: {maxSpawnDepth: 3}}, entries: {ops: {subagents: {maxConcurrent: 9}}}}}"#,
    );
    let spec = &camel.unwrap().agents.agent_specs()[0];
    assert_eq!((spec.subagents.max_spawn_depth, spec.subagents.max_concurrent), (3, 9));
}

#[test]
fn config_without_agents_has_main_agent() {
    assert_eq!(Config::default().agents.default_agent_id(), AgentId::main());
    assert_eq!(Config::default().agents.agent_specs(), [AgentSpec::with_id(AgentId::main())]);
    let specs = toml("[agents.defaults]\nmodel = \"p/one\"").unwrap().agents.agent_specs();
    assert_eq!(specs[0].defaults.model, Some(ModelRef::parse("p/one").unwrap()));
}

#[test]
fn single_agent_needs_no_default() {
    assert_eq!(toml("[[agents.list]]\nid = \"ops\"").unwrap().agents.default_agent_id().as_str(), "ops");
}

#[test]
fn provider_kind_defaults_to_its_name() {
    let config = toml("[providers.anthropic]\n[providers.mine]\nkind = \"openai\"").unwrap();
    let kind = |name: &str| config.providers[name].resolve_kind(name);
    assert_eq!(
        (kind("anthropic"), kind("mine")),
        (Some(ProviderKind::Anthropic), Some(ProviderKind::Openai))
    );
}

#[test]
fn variables_and_secret_references_are_resolved() {
    let config = toml(
        r#"
        store.url = "env:DATABASE_URL"
        [providers.openai]
        base_url = "https://${REGION}.example.com/v1"
        api_key = "${OPENAI_API_KEY}"
        [channels.webhook.ci]
        secret = "file:/run/secrets/hook"
        reply_url = "https://x.example"
        reply_secret = "as it stands"
        [agents.defaults]
        system_prompt = "Echo $${REGION} and $5."
        "#,
    )
    .unwrap();
    let shown = |secret: &Option<config::Secret>| secret.as_ref().unwrap().expose().to_owned();
    assert!(shown(&config.store.url).starts_with("postgres://me:"));
    assert_eq!(config.providers["openai"].base_url.as_deref(), Some("https://eu-central.example.com/v1"));
    assert_eq!(shown(&config.providers["openai"].api_key), "canary-env-4711");
    let hook = &config.channels.webhook["ci"];
    assert_eq!(
        (hook.secret.expose(), shown(&hook.reply_secret).as_str()),
        ("canary-file-4711", "as it stands")
    );
    assert_eq!(config.agents.defaults.system_prompt.as_deref(), Some("Echo ${REGION} and $5."));
}

/// Text that is almost a config reaches further into the parser than noise does.
fn arbitrary_near_config() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[gateway]\n"),
        Just("port = "),
        Just("18801\n"),
        Just("\"x\"\n"),
        Just("[[agents.list]]\n"),
        Just("id = "),
        Just("agents"),
        Just(".entries"),
        Just(".list"),
        Just(" = "),
        Just("${A}"),
        Just("\"env:\""),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("'"),
        Just("\""),
        Just("\n"),
        Just("\\u"),
        Just("providers"),
        Just("models"),
        Just("nan"),
        Just("1e999"),
        Just("null"),
        Just("-"),
        Just("ü"),
        Just("//"),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn config_loader_never_panics(noise in any::<String>(), near in arbitrary_near_config()) {
        for text in [&noise, &near] {
            for file in ["config.toml", "config.json5"] {
                if let Err(errors) = config::load(text, file, &world) {
                    prop_assert!(!errors.0.is_empty());
                    prop_assert!(errors.0.iter().all(|error| error.line.is_none_or(|line| line >= 1)));
                }
            }
        }
    }
}

#[test]
fn model_and_workspace_accept_text_or_table() {
    let config = toml(
        r#"
        [agents.defaults]
        model = { provider = "p", model = "one/x", temperature = 0.5, fallbacks = ["p/two"] }
        [[agents.list]]
        id = "a"
        default = true
        workspace = "files"
        [[agents.list]]
        id = "b"
        model = { provider = "p", model = "three" }
        workspace = { dir = "/srv", overlay = false }
        tools = { profile = "coding", deny = ["group:web"], approval = "always", approvals = { shell = "never" } }
        "#,
    )
    .unwrap();
    let specs = config.agents.agent_specs();
    let shown = |n: usize| serde_json::to_value(&specs[n]).unwrap();
    assert_eq!(
        shown(0)["defaults"],
        serde_json::json!({ "model": "p/one/x", "fallbacks": ["p/two"], "temperature": 0.5 })
    );
    assert_eq!(shown(1)["defaults"]["model"], "p/three");
    assert_eq!(shown(0)["workspace"], serde_json::json!({ "dir": "files", "overlay": true }));
    assert_eq!(shown(1)["workspace"], serde_json::json!({ "dir": "/srv", "overlay": false }));
    assert_eq!(shown(1)["policy"]["tools"]["approvals"]["shell"], "never");
    assert_eq!(serde_json::from_value::<AgentSpec>(shown(1)).unwrap(), specs[1]);
}

#[test]
fn tool_rules_are_read_as_written() {
    let config = toml(
        r#"
        [tools]
        profile = "full"
        deny = ["shell"]
        disabled = ["http_fetch"]
        approval = "unsafe"
        [tools.subagents]
        allow = ["group:fs"]
        [tools.senders."webhook:ci:*"]
        deny = ["*"]
        "#,
    )
    .unwrap();
    let rules = config.tools.tool_rules();
    assert_eq!(
        (rules.policy.deny.as_slice(), rules.disabled.as_slice()),
        (&["shell".to_owned()][..], &["http_fetch".to_owned()][..])
    );
    assert_eq!(rules.subagents.allow, ["group:fs"]);
    assert_eq!(rules.senders["webhook:ci:*"].deny, ["*"]);
}

#[test]
fn routing_rules_are_read() {
    let text = r#"
        [[agents.list]]
        id = "main"
        default = true
        [[agents.list]]
        id = "ops"
        [[bindings]]
        agent_id = "ops"
        match = { channel = "discord", account_id = "biz", guild_id = "g1", roles = ["r1"], peer = { kind = "channel", id = "c1" } }
        dm_scope = "per-channel-peer"
        [broadcast]
        strategy = "sequential"
        "120363@g.us" = ["main", "ops"]
        [session]
        dm_scope = "per-peer"
        identity_links = { alice = ["telegram:1", "discord:2"] }
    "#;
    let config = toml(text).unwrap();
    assert_eq!(config.bindings[0].match_rule.roles, ["r1"]);
    assert_eq!(config.broadcast.peers["120363@g.us"].len(), 2);
    assert_eq!(config.session.identity_links["alice"].len(), 2);
}

#[test]
fn channel_account_is_one_flat_table() {
    let config = toml(
        r#"
        [session]
        dm_scope = "per-channel-peer"
        [channels.telegram.home]
        bot_token = "t"
        dm_policy = "allowlist"
        allow_from = ["1"]
        [channels.telegram.default]
        bot_token = "u"
        [channels.matrix.m]
        homeserver = "https://matrix.example.org"
        user_id = "@p:example.org"
        password = "p"
        "#,
    )
    .expect("a good config");
    let home = &config.channels.telegram["home"];
    assert_eq!(home.access.allow_from, ["1"]);
    assert!(home.access.require_mention, "what is not said is as by default");
    assert_eq!(config.channels.default_accounts()["telegram"], "default");
    assert_eq!(config.channels.default_accounts()["matrix"], "m");
    let accounts: Vec<_> =
        config.channels.account_accesses().map(|(channel, account, _)| (channel, account)).collect();
    assert_eq!(accounts, [("telegram", "default"), ("telegram", "home"), ("matrix", "m")]);
}

#[test]
fn cron_jobs_and_heartbeats_resolve_schedule_and_address() {
    let config = toml(
        r#"
        [channels.telegram.home]
        bot_token = "t"
        dm_policy = "allowlist"
        allow_from = ["7"]
        [[cron]]
        id = "morning"
        schedule = "30 8 * * 1-5"
        timezone = "Europe/Berlin"
        message = "What is on today?"
        deliver_to = { channel = "telegram", peer = "7" }
        catch_up = "once"
        [heartbeat.main]
        every = "45m"
        "#,
    )
    .expect("a good config");
    let job = &config.cron[0];
    assert!(job.enabled && job.parse_schedule().is_ok());
    let to = job.deliver_to.as_ref().map(|to| to.resolve_address(&config.channels));
    assert_eq!(to.map(|address| address.account), Some("home".to_owned()), "the only account is meant");
    let beat = config.heartbeat.values().next().expect("a heartbeat");
    assert_eq!(beat.parse_schedule().expect("a schedule").next(Millis(0)), Some(Millis(45 * 60_000)));
}
