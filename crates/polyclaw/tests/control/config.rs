//! Reading and changing configs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::plane::{Answer, Plane, is_alive, wait};

const CANARY: &str = "sk-canary-0123456789abcdefghij";

/// An instance with a secret and a comment in its config.
fn with_secret(plane: &Plane) -> (Value, String) {
    let made = plane.create("one");
    let path = plane.folder(&made).join("config.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = format!("{text}\n# My provider.\n[providers.openai]\napi_key = \"{CANARY}\" # the key\n");
    fs::write(&path, text).unwrap();
    let etag = plane.get("/instances/one/config").etag.unwrap();
    (made, etag)
}

fn patch(plane: &Plane, etag: &str, body: Value) -> Answer {
    plane.call("PATCH", "/instances/one/config", Some(body), &[("if-match", etag)])
}

#[test]
fn config_is_read_diffed_and_written_with_etag_and_masks() {
    let plane = Plane::new();
    let (made, etag) = with_secret(&plane);
    let path = plane.folder(&made).join("config.toml");
    let read = plane.get("/instances/one/config").ok();
    assert_eq!(format!("\"{}\"", read["etag"].as_str().unwrap()), etag);
    assert_eq!(read["config"]["providers"]["openai"]["api_key"], "***MASKED***");
    assert_eq!(read["secrets"], json!([{ "path": "providers.openai.api_key", "fingerprint": "…ghij" }]));
    assert!(!read.to_string().contains("canary"));
    let change = json!({ "turns": { "max_rounds": 7 } });
    let compared = plane.post("/instances/one/config/diff", json!({ "patch": change })).ok();
    assert_eq!(compared["changes"], json!([{ "path": "turns.max_rounds", "before": null, "after": 7 }]));
    assert!(compared["unchanged_count"].as_u64().unwrap() > 0);
    let before = fs::read_to_string(&path).unwrap();
    let changed = patch(&plane, &etag, change.clone());
    let tag = changed.etag.clone().unwrap();
    assert_eq!((changed.ok()["outcome"].as_str(), tag == etag), (Some("saved"), false));
    let after = fs::read_to_string(&path).unwrap();
    assert!(
        after.contains("# My provider.") && after.contains(&format!("\"{CANARY}\" # the key")),
        "{after}"
    );
    assert_eq!(fs::read_to_string(path.with_extension("toml.bak")).unwrap(), before, "one backup is kept");
    // A mask in the new config keeps the secret.
    let text = plane.get("/instances/one/config").ok()["toml"]
        .as_str()
        .unwrap()
        .replace("max_rounds = 7", "max_rounds = 8");
    let put = |etag: &str, toml: &str, headers: &[(&str, &str)]| {
        let headers = [headers, &[("if-match", etag)]].concat();
        plane.call("PUT", "/instances/one/config", Some(json!({ "toml": toml })), &headers)
    };
    let written = put(&tag, &text, &[]);
    let tag = written.etag.clone().unwrap();
    written.ok();
    assert!(fs::read_to_string(&path).unwrap().contains(CANARY));
    let allowed = [("x-allow-secret-write", "true")];
    assert_eq!(put(&tag, "gatway = 1\n", &allowed).refusal(), (400, "bad_config"));
    for (toml, expected) in [
        ("gatway = 1\n", (400, "secret_write")),
        ("[gateway\n", (400, "config_not_toml")),
        ("[providers.openai]\napi_key = \"sk-another-one\"\n", (400, "secret_write")),
        ("[providers.xai]\napi_key = \"***MASKED***\"\n", (400, "mask_without_secret")),
    ] {
        assert_eq!(put(&tag, toml, &[]).refusal(), expected, "{toml}");
    }
    assert_eq!(put("", &text, &[]).refusal(), (428, "etag_missing"));
    let stale = put(&etag, &text, &[]);
    assert_eq!(stale.refusal(), (412, "etag_stale"));
    assert_eq!(format!("\"{}\"", stale.body["error"]["details"]["current_etag"].as_str().unwrap()), tag);
    let checked = plane
        .post("/instances/one/config/validate", json!({ "patch": { "turns": { "max_round": 1 } } }))
        .ok();
    assert_eq!(checked["valid"], false);
    assert!(checked["errors"][0]["hint"].as_str().unwrap().contains("max_rounds"), "{checked}");
    let broken = json!({ "toml": "schema = 1\n[gateway\nport = 1\n" });
    let checked = plane.post("/instances/one/config/validate", broken.clone()).ok();
    assert_eq!((&checked["valid"], &checked["errors"][0]["line"]), (&json!(false), &json!(2)), "{checked}");
    let refused = put(&tag, broken["toml"].as_str().unwrap(), &[]).body["error"].clone();
    assert!(refused["message"].as_str().unwrap().contains("line 2"), "{refused}");
    assert!(!refused["hint"].as_str().unwrap().contains("JSON"), "{refused}");
    // With its own port, because another Polyclaw may listen on the default.
    let port = made["port"].as_u64().unwrap();
    let secret =
        format!("[gateway]\nport = {port}\n[providers.openai]\napi_key = \"sk-another-one-12345\"\n");
    put(&tag, &secret, &allowed).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), secret);
    let server_log = fs::read_to_string(plane.dir.path().join("server.log")).unwrap();
    assert!(!server_log.contains("canary") && !plane.get("/audit").body.to_string().contains("canary"));
}

#[test]
fn command_line_reads_and_changes_configs() {
    let plane = Plane::new();
    let (made, _) = with_secret(&plane);
    let run = |args: &[&str]| plane.run(&[&["instances", "config"], args].concat());
    assert_eq!(run(&["set", "one", "turns.max_rounds", "12"]).1["ok"]["outcome"], "saved");
    let (_, read) = run(&["get", "one"]);
    assert_eq!(read["ok"]["config"]["turns"]["max_rounds"], 12);
    let (code, refused) = run(&["set", "one", "providers.openai.api_key", "sk-other-0123456789"]);
    assert_eq!((code, refused["error"]["code"].as_str()), (2, Some("secret_write")));
    let allowed = run(&["set", "one", "providers.openai.api_key", "env:PATH", "--allow-secret-write"]);
    assert_eq!(allowed.0, 0, "{}", allowed.1);
    let file = plane.dir.path().join("new.toml");
    fs::write(&file, "[turns]\nmax_rounds = 13\n").unwrap();
    let file = file.to_str().unwrap();
    assert!(run(&["diff", "one", file]).1["ok"]["changes"].to_string().contains("turns.max_rounds"));
    assert_eq!(run(&["validate", "one", file]).0, 0);
    fs::write(file, "[turns]\nmax_round = 13\n").unwrap();
    assert_eq!(run(&["validate", "one", file]).0, 1);
    let editor = plane.dir.path().join("editor");
    fs::write(&editor, "#!/bin/sh\nsed -i 's/max_rounds = 12/max_rounds = 14/' \"$1\"\n").unwrap();
    let mut command = plane.command(&["instances", "config", "edit", "one"]);
    let edited = command.env("EDITOR", format!("sh {}", editor.display())).status().unwrap();
    let text = fs::read_to_string(plane.folder(&made).join("config.toml")).unwrap();
    assert!(
        edited.success() && text.contains("max_rounds = 14") && text.contains("# My provider."),
        "{text}"
    );
}

#[test]
fn one_of_a_hundred_config_writers_wins_each_version() {
    let plane = Plane::new();
    let (made, etag) = with_secret(&plane);
    let path = plane.folder(&made).join("config.toml");
    plane.start("one");
    let mut etag = etag;
    for version in 0..3 {
        let together = tokio::sync::Barrier::new(100);
        let calls = (0..100).map(|writer| {
            let (plane, etag, together) = (&plane, etag.clone(), &together);
            async move {
                // Its connection is already open, so only the request is left.
                plane.calling("GET", "/version", None, &[]).await.ok();
                together.wait().await;
                let body = json!({ "turns": { "max_rounds": 100 * (version + 1) + writer } });
                plane.calling("PATCH", "/instances/one/config", Some(body), &[("if-match", &etag)]).await
            }
        });
        let answers = wait(futures_util::future::join_all(calls));
        let won: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(won.len(), 1);
        assert_eq!(won[0].body["outcome"], "reloaded", "the instance applied it");
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 412)));
        etag = won[0].etag.clone().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("# the key") && text.parse::<toml::Table>().is_ok(), "{text}");
        assert_eq!(plane.get("/instances/one/config").etag.unwrap(), etag);
    }
}

#[test]
fn running_instance_reloads_config_or_keeps_the_old_one() {
    let plane = Plane::new();
    let (made, etag) = with_secret(&plane);
    let pid = plane.start("one")["pid"].as_i64().unwrap();
    let answer = patch(
        &plane,
        &etag,
        json!({ "agents": { "list": [{ "id": "main", "default": true }, { "id": "ops", "name": "Ops" }] } }),
    );
    let etag = answer.etag.clone().unwrap_or_default();
    assert_eq!(answer.ok()["outcome"], "reloaded");
    let agents = plane.get("/instances/one/gateway/agents").ok();
    assert!(agents["agents"].to_string().contains("Ops"), "{agents}");
    // The instance has an agent of that name, which a config check cannot know.
    plane.post("/instances/one/gateway/agents", json!({ "agent_id": "made", "name": "Made" })).ok();
    let path = plane.folder(&made).join("config.toml");
    let before = fs::read_to_string(&path).unwrap();
    let refused = patch(&plane, &etag, json!({ "agents": { "list": [{ "id": "other", "name": "Made" }] } }));
    assert_eq!(refused.refusal(), (409, "config_reload_failed"));
    assert_eq!(fs::read_to_string(&path).unwrap(), before, "the file is the old one again");
    let agents = plane.get("/instances/one/gateway/agents").ok().to_string();
    assert!(agents.contains("Ops") && !agents.contains("other"), "{agents}");
    let later = patch(&plane, &etag, json!({ "gateway": { "allowed_hosts": ["chat.example.com"] } }));
    let later = later.ok();
    assert_eq!(
        (&later["outcome"], &later["restart_required"]),
        (&json!("restart_required"), &json!(["gateway"]))
    );
    assert!(is_alive(pid), "it was the same process all along");
    let folder = plane.folder(&made);
    assert!(called(&folder, &made, "chat.example.com").contains(" 403 "), "the name is unknown so far");
    let restarted = plane.post("/instances/one/restart", json!({})).ok();
    assert_eq!(restarted["status"], "running");
    assert!(called(&folder, &made, "chat.example.com").contains(" 200 "), "it starts with the new config");
    assert!(called(&folder, &made, "evil.example.com").contains(" 403 "));
    let port = plane.create("two")["port"].clone();
    let etag = plane.get("/instances/one/config").etag.unwrap();
    assert_eq!(
        patch(&plane, &etag, json!({ "gateway": { "port": port } })).refusal(),
        (409, "instance_port_taken")
    );
}

/// The first line of an instance's response to a request with this host name.
fn called(folder: &Path, instance: &Value, host: &str) -> String {
    let port = u16::try_from(instance["port"].as_u64().unwrap()).unwrap();
    let token = fs::read_to_string(folder.join("token")).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!("GET /api/v1/sessions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    write!(stream, "{head}Authorization: Bearer {}\r\n\r\n", token.trim()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn missing_config_and_unknown_instance_have_different_codes() {
    let plane = Plane::new();
    let made = plane.create("one");
    fs::remove_file(plane.folder(&made).join("config.toml")).unwrap();
    let patch = |path: &str| plane.call("PATCH", path, Some(json!({ "turns": {} })), &[("if-match", "*")]);
    for (name, code) in [("one", "no_config"), ("nobody", "unknown_instance")] {
        let path = format!("/instances/{name}/config");
        assert_eq!(plane.get(&path).refusal(), (404, code), "{name}");
        assert_eq!(patch(&path).refusal(), (404, code), "{name}");
        for verb in ["validate", "diff"] {
            let answer = plane.post(&format!("{path}/{verb}"), json!({ "toml": "" }));
            assert_eq!(answer.refusal(), (404, code), "{name} {verb}");
        }
    }
    assert!(!plane.folder(&made).join("config.toml").exists(), "nothing was written");
}

#[test]
fn killed_server_leaves_config_and_backup_intact() {
    let mut plane = Plane::new();
    let (made, _) = with_secret(&plane);
    let path = plane.folder(&made).join("config.toml");
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..16 {
        let etag = plane.get("/instances/one/config").etag.unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut etag = etag;
                for value in 1..200 {
                    let answer = patch(&plane, &etag, json!({ "turns": { "max_rounds": value } }));
                    let Some(next) = answer.etag else { return };
                    etag = next;
                }
            });
            std::thread::sleep(Duration::from_micros(random.u64(1_000..150_000)));
            crate::plane::signal("KILL", plane.pid().into());
        });
        plane.kill();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.parse::<toml::Table>().is_ok() && text.contains("# the key"), "{text}");
        let backup = fs::read_to_string(path.with_extension("toml.bak")).unwrap_or_default();
        assert!(backup.parse::<toml::Table>().is_ok(), "{backup}");
        plane.serve();
    }
}

#[test]
fn wildcard_etag_writes_and_mistyped_secret_is_not_shown() {
    let plane = Plane::new();
    let (_, etag) = with_secret(&plane);
    let changed = patch(&plane, "*", json!({ "turns": { "max_rounds": 5 } }));
    assert_ne!(changed.etag.as_deref(), Some(etag.as_str()));
    assert_eq!(changed.ok()["outcome"], "saved");
    let audit = plane.get("/audit").ok();
    assert_eq!(format!("\"{}\"", audit["entries"][0]["before"].as_str().unwrap()), etag);
    let wrong = json!({ "patch": { "providers": { "openai": { "api_key": ["hush", "hush"] } } } });
    let compared = plane.post("/instances/one/config/diff", wrong).ok();
    assert_eq!(compared["changes"][0]["path"], "providers.openai.api_key");
    assert!(!compared.to_string().contains("hush"), "{compared}");
}

#[test]
fn broken_config_file_can_be_repaired_over_the_api() {
    let plane = Plane::new();
    let (made, _) = with_secret(&plane);
    let path = plane.folder(&made).join("config.toml");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{good}\n[providers.other]\napi_key = \"{CANARY}\nx = ]\n")).unwrap();
    let read = plane.get("/instances/one/config");
    let etag = read.etag.clone().unwrap();
    let read = read.ok();
    let why = read["error"].as_str().unwrap();
    assert!(why.starts_with("the config is not valid TOML") && why.contains("(line "), "{why}");
    assert!(!read.to_string().contains("canary"), "nothing of it is shown: {read}");
    let valid = plane.post("/instances/one/config/validate", json!({ "toml": "[turns]\nmax_rounds = 3\n" }));
    assert_eq!(valid.ok()["valid"], true);
    assert_eq!(patch(&plane, &etag, json!({ "turns": {} })).refusal(), (400, "config_not_toml"));
    let put = |text: &str, allow: &str| {
        let headers = [("if-match", etag.as_str()), ("x-allow-secret-write", allow)];
        plane.call("PUT", "/instances/one/config", Some(json!({ "toml": text })), &headers)
    };
    assert_eq!(put(&good, "false").refusal(), (400, "secret_write"), "their owners are no longer known");
    let masked = good.replace(CANARY, "***MASKED***");
    assert_eq!(put(&masked, "true").refusal(), (400, "mask_without_secret"));
    assert_eq!(put(&good, "true").ok()["outcome"], "saved");
    assert_eq!(fs::read_to_string(&path).unwrap(), good);
}

#[test]
fn url_with_credentials_is_masked_like_other_secrets() {
    const ADDRESS: &str = "http://user:PWPWPWPW1@127.0.0.1:1/v1?key=CANARYquery123456";
    let plane = Plane::new();
    let made = plane.create("one");
    let path = plane.folder(&made).join("config.toml");
    let etag = plane.get("/instances/one/config").etag.unwrap();
    let at = |address: &str| json!({ "providers": { "u": { "kind": "openai_compatible", "base_url": address, "models": ["m"] } } });
    let write = |etag: &str, verb: &str, body: Value, allow: &str| {
        let headers = [("if-match", etag), ("x-allow-secret-write", allow)];
        plane.call(verb, "/instances/one/config", Some(body), &headers)
    };
    assert_eq!(write(&etag, "PATCH", at(ADDRESS), "false").refusal(), (400, "secret_write"));
    let etag = write(&etag, "PATCH", at(ADDRESS), "true").etag.unwrap();
    let read = plane.get("/instances/one/config").ok();
    assert_eq!(read["config"]["providers"]["u"]["base_url"], "***MASKED***");
    assert_eq!(read["secrets"], json!([{ "path": "providers.u.base_url", "fingerprint": "…3456" }]));
    for page in ["config", "details"] {
        let shown = plane.get(&format!("/instances/one/{page}")).ok();
        assert_eq!(shown["config"]["providers"]["u"]["base_url"], "***MASKED***", "{page}");
        let shown = shown.to_string();
        assert!(!shown.contains("CANARYquery") && !shown.contains("PWPWPWPW1"), "{page}: {shown}");
    }
    let same = json!({ "toml": read["toml"] });
    assert_eq!(plane.post("/instances/one/config/diff", same.clone()).ok()["changes"], json!([]));
    let written = write(&etag, "PUT", same, "false");
    let etag = written.etag.clone().unwrap();
    written.ok();
    assert!(fs::read_to_string(&path).unwrap().contains(ADDRESS));
    let plain = at("http://127.0.0.1:1/v1");
    assert_eq!(write(&etag, "PATCH", plain.clone(), "false").refusal(), (400, "secret_write"));
    let compared = plane.post("/instances/one/config/diff", json!({ "patch": plain })).ok();
    assert_eq!(compared["changes"][0]["path"], "providers.u.base_url");
    assert!(!compared.to_string().contains("CANARYquery"), "{compared}");
}

#[test]
fn fingerprint_shows_four_characters_of_long_secrets_only() {
    let plane = Plane::new();
    let path = plane.folder(&plane.create("one")).join("config.toml");
    let first = fs::read_to_string(&path).unwrap();
    for (secret, shown) in [
        ("abcd1234", "configured"),
        ("fünfzehn-zeiche", "configured"),
        ("сек-рет-🗝-пароль-🗝🗝🗝🗝", "…🗝🗝🗝🗝"),
        ("sk-0123456789abcdefXYZW", "…XYZW"),
    ] {
        fs::write(&path, format!("{first}\n[providers.openai]\napi_key = \"{secret}\"\n")).unwrap();
        let read = plane.get("/instances/one/config").ok();
        assert_eq!(read["secrets"][0]["fingerprint"], shown, "{secret}");
        assert!(!read.to_string().contains(secret), "{read}");
    }
}

/// The header of a new token.
fn bearer(plane: &Plane, scope: &str) -> String {
    let made = plane.post("/tokens", json!({ "name": scope, "scope": scope })).ok();
    format!("Bearer {}", made["secret"].as_str().unwrap())
}

#[test]
fn read_token_cannot_probe_files_or_variables_or_secrets() {
    let plane = Plane::new();
    let (one, _) = with_secret(&plane);
    let reader = bearer(&plane, "read");
    let ask = |path: &str, body: Value| {
        let path = format!("/instances/one/config/{path}");
        plane.call("POST", &path, Some(body), &[("authorization", &reader)]).ok()
    };
    let there = plane.folder(&one).join("config.toml").display().to_string();
    let checked = ["file:/etc/hostname-that-is-not-there", "env:NOT_SET", "secret:none", "keyring:none"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("file:{there}"), "env:PATH".to_owned()])
        .map(|key| ask("validate", json!({ "patch": { "providers": { "openai": { "api_key": key } } } })));
    let answers: Vec<Value> = checked.collect();
    assert!(answers.iter().all(|answer| *answer == json!({ "valid": true, "errors": [] })), "{answers:?}");
    let given = |key: &str| json!({ "patch": { "providers": { "openai": { "api_key": key } } } });
    let (wrong, right) = (ask("diff", given("sk-wrong")), ask("diff", given(CANARY)));
    assert_eq!(wrong, right, "the response to a guess is the same");
    assert_eq!(right["changes"].as_array().unwrap().len(), 1, "{right}");
    let leaked = ask("validate", json!({ "patch": { "agents": { "defaults": { "model": CANARY } } } }));
    assert!(leaked["valid"] == false && !leaked.to_string().contains(CANARY), "{leaked}");
}

#[test]
fn non_admin_tokens_see_no_keys_in_comments_or_urls() {
    const KEYS: &str = r#"
# api_key = "canary-old" was the key until May
[turns] # canary-beside
[mcp.servers.lab]
command = "/usr/bin/node"
args = ["server.js", "--token=canary-arg", "-H", "Authorization: Basic canary-basic-0123456789abcdef"]
[mcp.servers.far]
url = "https://mcp.example.org/s/canary-server/mcp"
[[hooks]]
on = ["turn.done"]
url = "https://hooks.example.org/services/T000/B000/canary-path"
[[hooks]]
on = ["turn.done"]
command = ["/usr/bin/curl", "-H", "X-Key: canary-header", "https://example.org"]
"#;
    let plane = Plane::new();
    let made = plane.create("one");
    let path = plane.folder(&made).join("config.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{KEYS}")).unwrap();
    for scope in ["read", "operate"] {
        let token = bearer(&plane, scope);
        let headers = [("authorization", token.as_str())];
        let shown = plane.call("GET", "/instances/one/config", None, &headers).ok();
        assert!(!shown.to_string().contains("canary"), "{shown}");
        assert_eq!(shown["config"]["mcp"]["servers"]["lab"]["command"], "/usr/bin/node");
        assert_eq!(shown["config"]["hooks"][0]["url"], "https://hooks.example.org/***MASKED***");
        assert_eq!(shown["config"]["hooks"][1]["command"][0], "/usr/bin/curl");
        let details = plane.call("GET", "/instances/one/details", None, &headers).ok();
        assert!(!details.to_string().contains("canary"), "{details}");
        let draft = json!({ "toml": "schema = 1\n" });
        let diff = plane.call("POST", "/instances/one/config/diff", Some(draft), &headers).ok();
        assert!(!diff.to_string().contains("canary"), "{diff}");
        // The response to a guess is the same: a given secret always counts as a change.
        let guess = |key: &str| {
            let args = json!(["server.js", key, "-H", "Authorization: Basic canary-basic-0123456789abcdef"]);
            let draft = json!({ "patch": { "mcp": { "servers": { "lab": { "args": args } } } } });
            plane.call("POST", "/instances/one/config/diff", Some(draft), &headers).ok()
        };
        assert_eq!(guess("--token=canary-arg"), guess("--token=wrong"));
    }
    let own = plane.get("/instances/one/config").ok();
    assert!(own.to_string().contains("canary-arg") && own.to_string().contains("canary-old"), "{own}");
    assert!(!own.to_string().contains("canary-basic"), "{own}");
    let draft = json!({ "toml": "schema = 1\n" });
    let diff = plane.post("/instances/one/config/diff", draft).ok();
    assert!(!diff.to_string().contains("canary-basic"), "as the config has it: {diff}");
}

#[test]
fn named_pipe_or_huge_file_does_not_block_the_server() {
    let plane = Plane::new();
    let one = plane.create("one");
    plane.create("two");
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    let secret = plane.dir.path().join("pipe");
    pipe(&secret);
    pipe(&plane.folder(&one).join("daemon.pid"));
    let key = format!("file:{}", secret.display());
    let draft = json!({ "patch": { "providers": { "openai": { "kind": "openai", "api_key": key } } } });
    for _ in 0..8 {
        let checked = plane.post("/instances/one/config/validate", draft.clone()).ok();
        assert!(checked.to_string().contains("not a regular file"), "{checked}");
        plane.get("/instances").ok();
    }
    let large = plane.dir.path().join("large");
    std::fs::File::create(&large).unwrap().set_len(1 << 31).unwrap();
    let key = format!("file:{}", large.display());
    let draft = json!({ "patch": { "providers": { "openai": { "kind": "openai", "api_key": key } } } });
    let checked = plane.post("/instances/one/config/validate", draft).ok();
    assert!(checked.to_string().contains("larger than 65536 bytes"), "{checked}");
    assert_eq!(plane.get("/version").status, 200);
}

#[test]
fn removing_a_secret_needs_secret_write_permission() {
    let plane = Plane::new();
    let (_, etag) = with_secret(&plane);
    let without = json!({ "providers": { "openai": { "api_key": null } } });
    let refused = patch(&plane, &etag, without.clone());
    assert_eq!(refused.refusal(), (400, "secret_write"));
    let blocked = &refused.body["error"]["details"]["blocked_fields"];
    assert_eq!(*blocked, json!(["providers.openai.api_key"]), "{}", refused.body);
    let leave = [("if-match", etag.as_str()), ("x-allow-secret-write", "true")];
    assert_eq!(plane.call("PATCH", "/instances/one/config", Some(without), &leave).status, 200);
}

#[test]
fn symlinked_config_is_written_through_the_link() {
    let plane = Plane::new();
    let one = plane.create("one");
    let (link, real) = (plane.folder(&one).join("config.toml"), plane.dir.path().join("kept.toml"));
    std::fs::rename(&link, &real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let etag = plane.get("/instances/one/config").ok()["etag"].as_str().unwrap().to_owned();
    assert_eq!(patch(&plane, &etag, json!({ "turns": { "max_rounds": 7 } })).status, 200);
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains("max_rounds = 7"));
}
