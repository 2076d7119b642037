//! MCP servers that are programs: they never load files of agents, and they reach no more than they should.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};

use crate::fixture::{Home, until};

const PYTHON: &str = "/usr/bin/python3";

fn probe_server() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/probe_server.py").canonicalize().unwrap()
}

/// `main` has the server; `reader` has only file tools. Not below /tmp, which is another folder in the sandbox.
fn home(model: &ModelServer, server: &str) -> Home {
    let agents = "[agents.defaults.sandbox]\nmode = \"strict\"\n[[agents.list]]\nid = \"main\"\ndefault = true\n\
                  mcp = [\"lab\"]\n[[agents.list]]\nid = \"reader\"\n[mcp.servers.lab]\napproval = \"never\"\n";
    Home::in_folder(Path::new("/var/tmp")).served_by(model, &format!("{agents}{server}\n"))
}

fn call(home: &Home, model: &ModelServer, agent: &str, tool: &str, arguments: Value) -> String {
    model.push(ReplyScript::new().call("c1", tool, arguments));
    model.push(ReplyScript::reply("done"));
    let ran = home.run(&["agent", "--agent", agent, "-m", "do it"]);
    assert_eq!(ran.stdout, "done\n", "{}", ran.stderr);
    model.last_request().tool_results()[0].1.clone()
}

fn write(home: &Home, model: &ModelServer, path: &str, content: &str) {
    let text = call(home, model, "reader", "write_file", json!({ "path": path, "content": content }));
    assert!(text.contains(path), "{text}");
}

fn server_state(home: &Home) -> Value {
    home.run(&["mcp", "list", "--json"]).ok()["servers"][0].clone()
}

/// Searches all workspaces of the instance for traces of a planted file.
fn planted(home: &Home) -> bool {
    let mut folders = vec![home.path()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name() == "PLANTED" {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    false
}

#[test]
fn python_mcp_server_does_not_load_agent_written_modules() {
    let model = ModelServer::start();
    let modules = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::copy(probe_server(), modules.path().join("mcp_server_demo.py")).unwrap();
    let server = format!(
        "command = {PYTHON:?}\nargs = [\"-m\", \"mcp_server_demo\"]\nenv = {{ PYTHONPATH = {:?} }}",
        modules.path()
    );
    let home = home(&model, &server);
    let _daemon = home.daemon();
    until("the server is ready", || server_state(&home)["state"] == "ready");
    let plant = "import os\nopen(os.path.join(os.getcwd(), 'PLANTED'), 'w').close()\n";
    for name in ["mcp_server_demo.py", "json.py", "sitecustomize.py"] {
        write(&home, &model, name, plant);
    }
    let text = call(&home, &model, "main", "mcp_lab_quit", json!({}));
    assert!(text.contains("was lost"), "{text}");
    until("it was restarted", || {
        let state = server_state(&home);
        state["restarts"].as_u64() >= Some(1) && (state["state"] == "ready" || planted(&home))
    });
    assert!(!planted(&home), "a file of an agent was run");
    let seen: Value = serde_json::from_str(&call(&home, &model, "main", "mcp_lab_probe", json!({}))).unwrap();
    assert!(!seen["search_path"].to_string().contains("workspace"), "{seen}");
}

#[test]
fn script_in_a_workspace_is_refused_as_mcp_server() {
    let model = ModelServer::start();
    let server = format!("command = {PYTHON:?}\nargs = [\"../../workspace/server.py\"]");
    let home = home(&model, &server);
    let _daemon = home.daemon();
    write(&home, &model, "server.py", "open('PLANTED', 'w').close()\n");
    let checked = home.run(&["mcp", "check", "lab", "--json"]);
    assert!(checked.stdout.contains("agents can write"), "{}", checked.stdout);
    until("the server is rejected", || server_state(&home)["error"].is_string());
    let text = server_state(&home)["error"].to_string();
    assert!(text.contains("server.py") && text.contains("move the file elsewhere"), "{text}");
    assert!(!planted(&home), "a file of an agent was run");
}

#[test]
fn npx_mcp_server_does_not_run_agent_written_packages() {
    let model = ModelServer::start();
    let server =
        "command = \"npx\"\nargs = [\"-y\", \"lab-server\"]\nenv = { npm_config_offline = \"true\" }";
    let home = home(&model, server);
    let mut daemon = home.daemon();
    let run = "#!/usr/bin/env node\nrequire('fs').writeFileSync('PLANTED', '');\n";
    write(&home, &model, "node_modules/.bin/lab-server", run);
    write(&home, &model, "node_modules/lab-server/index.js", run);
    let manifest = r#"{ "name": "lab-server", "version": "1.0.0", "bin": { "lab-server": "index.js" } }"#;
    write(&home, &model, "node_modules/lab-server/package.json", manifest);
    write(&home, &model, "package.json", r#"{ "name": "lab", "dependencies": { "lab-server": "1.0.0" } }"#);
    // An agent with a shell in any mode can make them executable.
    let mut folders = vec![home.path().join("workspace")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            folders.extend(path.is_dir().then_some(path));
        }
    }
    daemon.kill();
    let _daemon = home.daemon();
    until("the server has been tried", || server_state(&home)["error"].is_string());
    assert!(!planted(&home), "a file of an agent was run");
}

#[test]
fn mcp_server_has_its_own_folder_and_cannot_read_secrets() {
    let model = ModelServer::start();
    let shared = tempfile::tempdir_in("/var/tmp").unwrap();
    let server = format!(
        "command = {PYTHON:?}\nargs = [{:?}]\nenv = {{ LAB_KEY = \"canary-4711\" }}\nwritable = [{:?}]",
        probe_server(),
        shared.path()
    );
    let home = home(&model, &server);
    let user = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::create_dir(user.path().join(".ssh")).unwrap();
    fs::write(user.path().join(".ssh/id"), "key").unwrap();
    fs::write(user.path().join("notes"), "notes").unwrap();
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let user_text = text(user.path().to_owned());
    let path = format!("{}:/usr/bin:/bin:.", text(home.path().join("workspace")));
    let _daemon = home.daemon_with(&[("HOME", &user_text), ("CANARY", "canary-0815"), ("PATH", &path)]);
    let secrets =
        ["config.toml", "token", "memory/sessions.db", "workspace"].map(|name| text(home.path().join(name)));
    let open = [text(user.path().join("notes")), "/usr/bin/env".to_owned()];
    let read: Vec<String> =
        secrets.iter().cloned().chain([text(user.path().join(".ssh/id"))]).chain(open.clone()).collect();
    let own = home.path().join("mcp/lab");
    let good = [text(own.join("state")), text(shared.path().join("made"))];
    let bad = [
        text(user.path().join("made")),
        text(home.path().join("workspace/made")),
        "/usr/bin/made".to_owned(),
    ];
    let write: Vec<String> = good.iter().chain(&bad).cloned().collect();
    let reply = call(&home, &model, "main", "mcp_lab_probe", json!({ "read": read, "write": write }));
    let seen: Value = serde_json::from_str(&reply).unwrap_or_else(|_| panic!("{reply}"));
    assert_eq!((&seen["cwd"], &seen["home"]), (&json!(own), &json!(own)), "{seen}");
    assert_eq!(seen["read"], json!(open), "{seen}");
    assert_eq!(seen["written"], json!(good), "{seen}");
    assert_eq!((&seen["seccomp"], &seen["program_path"]), (&json!("2"), &json!("/usr/bin:/bin")), "{seen}");
    let variables: Vec<&str> =
        seen["environment"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in &variables {
        let known = ["HOME", "LAB_KEY", "LC_CTYPE", "PATH", "PYTHONSAFEPATH", "TMPDIR", "PWD", "SHLVL", "_"];
        assert!(known.contains(name), "{variables:?}");
    }
    assert_eq!(server_state(&home)["sandbox"], "confined");
}

#[test]
fn mcp_cwd_in_workspace_is_refused_and_sandbox_off_shown() {
    let model = ModelServer::start();
    let server = format!(
        "command = {PYTHON:?}\nargs = [{:?}]\ncwd = \"WORKSPACE\"\nsandbox = \"off\"",
        probe_server()
    );
    let home = home(&model, &server);
    let config = home.path().join("config.toml");
    let workspace = home.path().join("workspace");
    fs::create_dir_all(&workspace).unwrap();
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("WORKSPACE", &workspace.to_string_lossy())).unwrap();
    let checked = home.run(&["mcp", "check", "--json"]);
    assert_eq!(checked.error(), (1, "mcp_server".into()));
    assert!(checked.stdout.contains("is in a folder that agents can write"), "{}", checked.stdout);
    fs::write(&config, text.replace("cwd = \"WORKSPACE\"\n", "")).unwrap();
    let checked = home.run(&["mcp", "check", "--json"]).ok();
    assert_eq!(checked["servers"][0]["sandbox"], "off", "{checked}");
}
