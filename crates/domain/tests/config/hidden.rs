//! Secrets never appear in output.

use polyclaw_domain::config;
use polyclaw_domain::redact::{REDACTION_MARK, Redactor};

use super::toml;

const WITH_SECRETS: &str = r#"
store.url = "postgres://me:canary-url-4711@localhost/claw"
[providers.openai]
api_key = "canary-literal-4711"
[channels.webhook.ci]
secret = "env:OPENAI_API_KEY"
reply_url = "https://x.example"
reply_secret = "file:/run/secrets/hook"
[tools.web_search]
kind = "brave"
api_key = "canary-search-4711"
[mcp.servers.a]
command = "x"
env = { KEY = "canary-env-4712", OTHER = "env:OPENAI_API_KEY" }
[mcp.servers.b]
url = "https://x.example"
headers = { Authorization = "Bearer canary-header-4711" }
"#;

#[test]
fn rendered_config_contains_no_secret() {
    let config = toml(WITH_SECRETS).unwrap();
    let renderings = [
        format!("{config:?}"),
        format!("{config:#?}"),
        serde_json::to_string(&config).unwrap(),
        toml::to_string(&config).unwrap(),
        format!("{}", config.channels.webhook["ci"].secret),
    ];
    for rendering in renderings {
        assert!(!rendering.contains("canary"), "{rendering}");
        assert!(rendering.contains("***"));
    }
}

#[test]
fn loaded_config_lists_secrets_from_every_source() {
    let loaded = toml(&format!("{WITH_SECRETS}[providers.a]\nkind = \"openai\"\napi_key = \"keyring:bot\"\n[providers.b]\nkind = \"openai\"\napi_key = \"secret:bot\"\n")).unwrap();
    let mut known: Vec<&str> = loaded.secrets.iter().map(config::Secret::expose).collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(
        known,
        [
            "Bearer canary-header-4711",
            "canary-env-4711",
            "canary-env-4712",
            "canary-file-4711",
            "canary-keyring-4711",
            "canary-literal-4711",
            "canary-search-4711",
            "canary-stored-4711",
            "postgres://me:canary-url-4711@localhost/claw"
        ]
    );
}

#[test]
fn api_key_in_base_url_is_redacted_on_its_own() {
    let loaded = toml(
        "[providers.lab]\nkind = \"openai_compatible\"\nmodels = [\"m\"]\n\
         base_url = \"https://h.example/v1?api_key=canary-query-4711\"\n",
    );
    let secrets = loaded.unwrap().secrets;
    let redactor = Redactor::new(secrets.iter().map(config::Secret::expose));
    assert_eq!(redactor.redact_text("it is canary-query-4711"), format!("it is {REDACTION_MARK}"));
}

#[test]
fn config_errors_contain_no_secret() {
    for mistake in [
        "[store]\nurl = \"canary://x\"",
        "[store]\nurl = [\"canary\"]",
        "[store]\nurl = { canary = 1 }",
        "[providers.openai]\nbase_url = \"canary://user:pass@host\"",
        "[providers.openai]\napi_key = \"env:OPENAI_API_KEY\"\nkind = \"${OPENAI_API_KEY}\"",
        "[agents.defaults]\nmodel = \"${OPENAI_API_KEY}\"",
        "[gateway]\nallowed_hosts = [\"${OPENAI_API_KEY}/x\"]",
        "[providers.openai]\napi_key = \"canary",
        "[providers.openai]\napi_key = canary",
    ] {
        let errors = toml(mistake).unwrap_err();
        // The name of a key is no secret, even in place of a secret value.
        for error in &errors.0 {
            let text = format!("{} {:?}", error.message, error.hint);
            assert!(!text.contains("canary"), "{errors}");
        }
    }
}

#[test]
fn config_error_shows_variable_name_not_value() {
    assert_eq!(
        toml("[agents.defaults]\nmodel = \"${REGION}\"").unwrap_err().to_string(),
        "config.toml:2: agents.defaults.model: '${REGION}' is not a model: use provider/model, for example openai/gpt-5-mini"
    );
}
