//! Plants secrets and searches for them in everything that the real binary writes, returns and shows. They may
//! be only where they were planted: in the config and in the files that they were written to.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};

use crate::fixture::{Home, until};

const KEY: &str = "agent:main:canary";

/// Secrets of the config, the environment, a file, the store and a webhook, as hard to find as real ones.
const CONFIG: &str = "canary-config-Zx81/+4711";
const ENVIRONMENT: &str = "canary-environment-Zx82-4712";
const IN_FILE: &str = "canary-file-Zx83-4713";
const STORED: &str = "canary\"stored\\Zx84/4714";
const HOOK: &str = "canary-hook-Zx85-4715";
/// An unknown secret, recognizable by its form.
const STRAY: &str = "ghp_Zx86abcdefghijklmnopqrstuvwxyz0123456789";
const PASSWORD: &str = "canary-password-Zx87";

const KNOWN: [&str; 5] = [CONFIG, ENVIRONMENT, IN_FILE, STORED, HOOK];

/// The forms of a secret: plain, escaped, in a URL, in base64.
fn traces(secret: &str) -> Vec<String> {
    let escaped = serde_json::to_string(secret).unwrap();
    let percent: String = secret
        .bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b == b'-' || b == b'_' {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect();
    vec![secret.to_owned(), escaped[1..escaped.len() - 1].to_owned(), percent, base64(secret)]
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let messages_of = |group: &[u8]| {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let chars: Vec<char> =
            [18, 12, 6, 0].map(|shift| char::from(LETTERS[(bits >> shift & 63) as usize])).to_vec();
        chars.into_iter().take(group.len() + 1)
    };
    text.as_bytes().chunks(3).flat_map(messages_of).collect()
}

#[track_caller]
fn clean(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // The last letters of base64 depend on what follows.
    let encoded = KNOWN.map(|secret| base64(secret)[..base64(secret).len() - 4].to_owned());
    let known = KNOWN.into_iter().flat_map(traces).chain(encoded);
    for trace in known.chain([STRAY.to_owned(), PASSWORD.to_owned()]) {
        if let Some(at) = text.find(&trace) {
            let around: String =
                text[..at].chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
            panic!("{what} holds {trace:?}: …{around}");
        }
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// All secrets in one text, in every form.
fn leak() -> String {
    let mut leak = json!({ "deep": [{ "nested": KNOWN }], "escaped": json!({ "again": KNOWN }).to_string() })
        .to_string();
    for secret in KNOWN {
        for trace in traces(secret) {
            leak += &format!("\n{trace} and https://x.example/?k={trace}&z");
        }
    }
    leak + &format!("\n{STRAY} postgres://me:{PASSWORD}@db.example/x Authorization: Bearer {CONFIG}")
}

struct Api<'a> {
    home: &'a Home,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    token: String,
}

impl<'a> Api<'a> {
    fn of(home: &'a Home) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let token = fs::read_to_string(home.path().join("token")).unwrap().trim().to_owned();
        Self { home, runtime, client: reqwest::Client::new(), token }
    }

    fn call(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> String {
        let url = format!("http://127.0.0.1:{}{path}", self.home.port);
        let mut request = self.client.request(method, url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = async { request.send().await.unwrap().text().await.unwrap() };
        let text = self.runtime.block_on(answer);
        clean(path, text.as_bytes());
        text
    }

    fn get(&self, path: &str) -> String {
        self.call(reqwest::Method::GET, path, None)
    }

    fn say(&self, body: Value) -> Value {
        let path = format!("/api/v1/sessions/{KEY}/messages?wait=30");
        serde_json::from_str(&self.call(reqwest::Method::POST, &path, Some(body))).unwrap()
    }

    /// The retained frames, as a reader of the stream gets them.
    fn frames(&self) -> String {
        let url = format!("http://127.0.0.1:{}/api/v1/sessions/{KEY}/stream?after=0", self.home.port);
        let mut text = String::new();
        let read = async {
            let mut response = self.client.get(url).bearer_auth(&self.token).send().await.unwrap();
            while let Ok(Some(piece)) = response.chunk().await {
                text += &String::from_utf8_lossy(&piece);
            }
        };
        // The stream never ends; retained frames come immediately.
        let timeout_of = async { tokio::time::timeout(Duration::from_secs(3), read).await };
        let _ = self.runtime.block_on(timeout_of);
        assert!(text.contains("turn.delta"), "frames were retained: {text}");
        text
    }
}

fn set_secret(home: &Home) {
    let mut set = home.command(&["secrets", "set", "bot", "--json"]);
    let mut child = set.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{STORED}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    clean("secrets set", &[output.stdout, output.stderr].concat());
}

fn write_config(home: &Home, model: &ModelServer, secret_file: &Path) {
    home.write_config(&format!(
        "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\napi_key = '{CONFIG}'\n\
         [providers.two]\nkind = \"openai\"\napi_key = \"secret:bot\"\nmodels = [\"x\"]\n\
         [channels.webhook.desk]\nsecret = \"{HOOK}\"\nreply_url = \"http://127.0.0.1:9/reply\"\nreply_secret = \"file:{}\"\n\
         [[agents.list]]\nid = \"main\"\nmodel = \"lab/demo\"\nsystem_prompt = \"You know ${{SERVICE_TOKEN}}.\"\n",
        model.url(),
        secret_file.display()
    ));
}

/// The model's texts and calls in order.
fn scripts(model: &ModelServer) {
    let text = leak();
    let pieces = text.chars().count() / 3;
    model.push(ReplyScript::new().reasoning(leak()).chunks(&text, pieces, Duration::ZERO));
    model.push(ReplyScript::new().text(leak()).call("c1", "read_file", json!({ "path": "leak.txt" })));
    model.push(ReplyScript::new().call("c2", "write_file", json!({ "path": "copy.txt", "content": leak() })));
    model.push(ReplyScript::new().call("c3", CONFIG, json!({ CONFIG: [{ "deep": leak() }] })));
    model.push(ReplyScript::reply("read it"));
    model.push(ReplyScript::error(401, json!({ "error": { "message": leak(), "code": CONFIG } })));
    model.push(ReplyScript::error(400, json!(leak())));
}

#[test]
fn planted_secrets_appear_only_where_they_were_planted() {
    let model = ModelServer::start();
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    let secret_file = outside.path().join("hook");
    fs::write(&secret_file, format!("{IN_FILE}\n")).unwrap();
    home.write_config("");
    set_secret(&home);
    write_config(&home, &model, &secret_file);
    fs::create_dir_all(home.path().join("workspace")).unwrap();
    fs::write(home.path().join("workspace/leak.txt"), leak()).unwrap();

    let log = outside.path().join("log");
    let mut daemon = home.command(&["daemon", "--port", &home.port.to_string()]);
    let mut daemon = daemon
        .env("SERVICE_TOKEN", ENVIRONMENT)
        .env("RUST_LOG", "debug")
        .stdout(File::create(outside.path().join("out")).unwrap())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    until("the daemon responds", || {
        let mut status = home.command(&["status", "--json"]);
        status.env("SERVICE_TOKEN", ENVIRONMENT).output().unwrap().status.success()
    });
    let api = Api::of(&home);

    scripts(&model);
    let attached = json!([{ "name": "a.txt", "media_type": "text/plain", "text": leak() }]);
    let first = api.say(json!({ "text": leak(), "attachments": attached }));
    assert_eq!(first["reply"]["state"], "done", "{first}");
    assert!(first["reply"]["text"].as_str().unwrap().contains("[redacted secret]"));
    assert_eq!(api.say(json!({ "text": "read it" }))["reply"]["text"], "read it");
    assert_eq!(api.say(json!({ "text": "fail" }))["reply"]["error_code"], "provider_failed");
    assert_eq!(api.say(json!({ "text": "fail otherwise" }))["reply"]["error_code"], "provider_failed");
    let agent = json!({ "agent_id": "spy", "name": "Spy", "description": leak(), "defaults": { "system_prompt": leak() } });
    api.call(reqwest::Method::POST, "/api/v1/agents", Some(agent));

    assert_no_secret_in_process_arguments();
    clean("frames", api.frames().as_bytes());
    for path in [
        "sessions",
        "events",
        "turns",
        "outbox",
        "approvals",
        "usage",
        "usage?by=session",
        "agents",
        "models",
        "tools",
        "status",
        "metrics",
        "openapi.json",
        "health",
        "ready",
    ] {
        api.get(&format!("/api/v1/{path}"));
    }
    for path in ["", "/transcript", "/backlog"] {
        api.get(&format!("/api/v1/sessions/{KEY}{path}"));
    }
    assert_no_secret_in_command_output(&home);
    // Model requests are external too: they may contain only the key of their own provider, in a header.
    for request in model.requests() {
        clean("a prompt", request.body().to_string().as_bytes());
    }

    assert!(fs::read_to_string(&log).unwrap().contains("no model answered"), "the log is there");
    Command::new("kill").arg(daemon.id().to_string()).status().unwrap();
    daemon.wait().unwrap();
    assert_no_secret_in_files(&home, outside.path(), &secret_file);
}

fn assert_no_secret_in_process_arguments() {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        if let Ok(line) = fs::read(entry.path().join("cmdline")) {
            clean("a process", &line);
        }
    }
}

fn assert_no_secret_in_command_output(home: &Home) {
    for args in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "check"],
        &["secrets", "list"],
        &["secrets", "check", "--json"],
        &["doctor", "--json"],
        &["sessions", "--json"],
        &["sessions", "export", KEY],
        &["agents", "list", "--json"],
        &["events", "--json"],
    ] {
        let output = home.command(args).env("SERVICE_TOKEN", ENVIRONMENT).output().unwrap();
        assert!(!output.stdout.is_empty(), "{args:?}: {output:?}");
        clean(&format!("{args:?}"), &[output.stdout, output.stderr].concat());
    }
}

fn assert_no_secret_in_files(home: &Home, outside: &Path, secret_file: &Path) {
    let planted =
        [home.path().join("config.toml"), home.path().join("workspace/leak.txt"), secret_file.to_owned()];
    let mut written = Vec::new();
    files(&home.path(), &mut written);
    files(outside, &mut written);
    assert!(written.iter().any(|path| path.ends_with("memory/sessions.db")), "{written:?}");
    for path in written.iter().filter(|path| !planted.contains(path)) {
        clean(&path.display().to_string(), &fs::read(path).unwrap());
    }
}
