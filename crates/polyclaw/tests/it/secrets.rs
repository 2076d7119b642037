//! `polyclaw secrets` and references to stored secrets.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};

use crate::fixture::Home;

const VALUE: &str = "canary-kept-4711";

/// A fake `secret-tool` keyring: a program that reads values from its input and stores them in files. It also
/// records its arguments.
const SECRET_TOOL: &str = r#"#!/bin/sh
dir=$(dirname "$0")/ring; mkdir -p "$dir"; echo "$@" >> "$dir/../arguments"
for last; do :; done
case $1 in
  store) cat > "$dir/$last" ;;
  lookup) [ -f "$dir/$last" ] && cat "$dir/$last" ;;
  clear) rm -f "$dir/$last" ;;
esac
"#;

fn set(home: &Home, name: &str, value: &str, path: Option<&str>) -> Output {
    let mut command = home.command(&["secrets", "set", name, "--json"]);
    if let Some(path) = path {
        command.env("PATH", path).env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn config(home: &Home, model: &ModelServer, reference: &str) {
    home.write_config(&format!(
        "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\napi_key = \"{reference}\"\n",
        model.url()
    ));
}

#[test]
fn stored_secret_is_used_by_config_reference_and_never_shown() {
    let model = ModelServer::start();
    model.push(ReplyScript::reply("hello"));
    let home = Home::new();
    config(&home, &model, "secret:lab");
    let missing = home.run(&["config", "check"]);
    assert!(missing.stderr.contains("secret lab: it is not stored in this home"), "{}", missing.stderr);
    assert!(missing.stderr.contains("polyclaw secrets set lab"), "{}", missing.stderr);
    assert!(set(&home, "lab", &format!("{VALUE}\n"), None).status.success());
    assert_eq!(home.run(&["secrets", "list", "--json"]).ok()["secrets"], serde_json::json!(["lab"]));
    assert_eq!(home.run(&["secrets", "check", "--json"]).ok()["config_secrets"], 1);
    assert_eq!(home.run(&["secrets", "rotate", "--json"]).ok()["secrets"], 1);
    let _daemon = home.daemon();
    assert_eq!(home.run(&["agent", "-m", "hi"]).stdout, "hello\n");
    let sent = model.last_request().headers.get("authorization").unwrap().to_str().unwrap().to_owned();
    assert_eq!(sent, format!("Bearer {VALUE}"), "the provider gets the real value");
    for file in ["secrets.json", "secrets.key"] {
        let path = home.path().join(file);
        assert!(!fs::read_to_string(&path).unwrap().contains(VALUE));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(home.run(&["config", "show"]).stdout.contains("api_key = \"***\""));
    assert_eq!(home.run(&["secrets", "remove", "lab", "--json"]).code, 0);
    assert_eq!(home.run(&["secrets", "remove", "lab", "--json"]).error(), (3, "unknown_secret".into()));
}

#[test]
fn keyring_holds_the_store_key_and_resolves_references() {
    let model = ModelServer::start();
    let (home, bin) = (Home::new(), tempfile::tempdir().unwrap());
    let tool = bin.path().join("secret-tool");
    fs::write(&tool, SECRET_TOOL).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    assert!(set(&home, "lab", VALUE, Some(&path)).status.success());
    assert!(!home.path().join("secrets.key").exists(), "the key is in the keyring");
    assert!(!fs::read_to_string(bin.path().join("arguments")).unwrap().contains(VALUE));
    fs::write(bin.path().join("ring/elsewhere"), "canary-in-the-keyring").unwrap();
    config(&home, &model, "keyring:elsewhere");
    let check = |path: &str| {
        let mut command = home.command(&["secrets", "check", "--json"]);
        command.env("PATH", path).env("DBUS_SESSION_BUS_ADDRESS", "x").output().unwrap()
    };
    let checked = check(&path);
    assert!(checked.status.success(), "{checked:?}");
    let without = String::from_utf8(check("/usr/bin:/bin").stdout).unwrap();
    assert!(without.contains("secrets_locked") && without.contains("no keyring is available"), "{without}");
}

#[test]
fn secret_value_is_refused_as_an_argument() {
    let home = Home::new();
    let refused = home.run(&["secrets", "set", "lab", VALUE]);
    assert_eq!(refused.code, 2);
    let wrong = home.run(&["secrets", "set", "my password!", "--json"]);
    assert!(wrong.code == 2 && !wrong.stdout.contains("my password"), "{}", wrong.stdout);
    assert_eq!(set(&home, "lab", "", None).status.code(), Some(2), "empty");
}
