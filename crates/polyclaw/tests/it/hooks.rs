//! Hooks on the real binary: a program, an address, and one that never ends.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use polyclaw_testkit::model_server::ModelServer;
use serde_json::Value;

use crate::fixture::{Home, PATIENCE, until};

/// Accepts one post, answers it, and returns it.
fn listener() -> (String, mpsc::Receiver<String>) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/told", socket.local_addr().unwrap());
    let (heard, post) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = socket.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while !text.ends_with('}') {
            let count = stream.read(&mut piece).unwrap();
            text.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        heard.send(text).unwrap();
    });
    (url, post)
}

#[test]
fn hooks_notify_programs_and_urls_and_stop_hung_ones() {
    let model = ModelServer::start();
    let (url, post) = listener();
    let notes = tempfile::tempdir().unwrap();
    let (notice, stuck) = (notes.path().join("told"), notes.path().join("stuck"));
    let rest = format!(
        r#"
[[hooks]]
on = ["message.accepted", "turn.done"]
sessions = "agent:main:*"
command = ["/bin/sh", "-c", "cat >> {notice}; echo >> {notice}; echo $POLYCLAW_EVENT >> {notice}.event"]
[[hooks]]
on = ["turn.done"]
url = "{url}"
secret = "a secret of the hook"
[[hooks]]
on = ["message.accepted"]
timeout_seconds = 1
command = ["/bin/sh", "-c", "setsid sleep 30 & echo $! > {stuck}; wait"]
"#,
        notice = notice.display(),
        stuck = stuck.display(),
    );
    let home = Home::with_model_and(&model, &rest);
    let _daemon = home.daemon();
    assert_eq!(home.run(&["agent", "--message", "hello hooks"]).code, 0);
    let post = post.recv_timeout(PATIENCE).expect("a post");
    assert!(
        post.contains("x-polyclaw-signature: sha256=") || post.contains("X-Polyclaw-Signature: sha256="),
        "{post}"
    );
    let body: Value = serde_json::from_str(post.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(
        (body["event"].as_str(), body["text"].as_str()),
        (Some("turn.done"), Some("echo: hello hooks"))
    );
    until("the program was called twice", || {
        fs::read_to_string(&notice)
            .is_ok_and(|text| text.contains("message.accepted") && text.contains("turn.done"))
    });
    until("the stuck program started", || {
        fs::read_to_string(&stuck).is_ok_and(|text| !text.trim().is_empty())
    });
    let child = fs::read_to_string(&stuck).unwrap().trim().to_owned();
    until("the children of the stuck program have ended", || !fs::exists(format!("/proc/{child}")).unwrap());
}

#[test]
fn hook_with_agent_writable_program_is_refused() {
    let model = ModelServer::start();
    let home = Home::with_model_and(&model, "");
    let (script, elsewhere) = (home.path().join("workspace/notify.sh"), tempfile::tempdir().unwrap());
    let ran = elsewhere.path().join("ran");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    fs::write(&script, format!("touch {}\n", ran.display())).unwrap();
    let (link, script) = (elsewhere.path().join("link"), script.display().to_string());
    std::os::unix::fs::symlink(&script, &link).unwrap();
    let config = fs::read_to_string(home.path().join("config.toml")).unwrap();
    for words in [
        format!(r#""/bin/sh", "{script}""#),
        format!(r#""{script}""#),
        format!(r#""/bin/sh", "{}""#, link.display()),
        format!(r#""/bin/sh", "-c", "sh {script}""#),
    ] {
        let hook = format!("{config}\n[[hooks]]\non = [\"turn.done\"]\ncommand = [{words}]\n");
        fs::write(home.path().join("config.toml"), hook).unwrap();
        let log = elsewhere.path().join("log");
        let mut command = home.command(&["daemon", "--port", &home.port.to_string()]);
        let mut started = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let began = std::time::Instant::now();
        while started.try_wait().unwrap().is_none() && home.run(&["status", "--json"]).code != 0 {
            assert!(began.elapsed() < PATIENCE);
        }
        let accepted = started.try_wait().unwrap().is_none();
        let _ = started.kill();
        let _ = started.wait();
        let said = fs::read_to_string(&log).unwrap();
        assert!(!accepted && said.contains("folder that agents can write"), "{words}: {said}");
    }
    // Outside when it was checked, in an agent's folder when it runs.
    fs::remove_file(&link).unwrap();
    fs::write(&link, "exit 0\n").unwrap();
    let told = elsewhere.path().join("told");
    let hook = |words: String| format!("\n[[hooks]]\non = [\"turn.done\"]\ncommand = [{words}]\n");
    let first = hook(format!(r#""/bin/sh", "{}""#, link.display()));
    let hook = format!("{config}{first}{}", hook(format!(r#""/bin/touch", "{}""#, told.display())));
    fs::write(home.path().join("config.toml"), hook).unwrap();
    let _daemon = home.daemon();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&script, &link).unwrap();
    assert_eq!(home.run(&["agent", "--message", "hello"]).code, 0);
    // The other hook of the same event was run, and this one was to be run before it.
    until("hooks were notified", || told.exists());
    thread::sleep(std::time::Duration::from_millis(500));
    assert!(!ran.exists());
}

#[test]
fn hook_process_ends_with_a_killed_daemon() {
    let model = ModelServer::start();
    let notes = tempfile::tempdir().unwrap();
    let path = notes.path().join("begun");
    let rest = format!(
        r#"
[[hooks]]
on = ["message.accepted"]
timeout_seconds = 300
command = ["/bin/sh", "-c", "setsid sleep 300 & echo $! > {path}; wait"]
"#,
        path = path.display(),
    );
    let home = Home::with_model_and(&model, &rest);
    let mut daemon = home.daemon();
    assert_eq!(home.run(&["agent", "--message", "hello"]).code, 0);
    until("the hook started", || fs::read_to_string(&path).is_ok_and(|text| !text.trim().is_empty()));
    let child = fs::read_to_string(&path).unwrap().trim().to_owned();
    assert!(fs::exists(format!("/proc/{child}")).unwrap());
    daemon.kill();
    until("the children of the hook have ended", || !fs::exists(format!("/proc/{child}")).unwrap());
}
