//! A message is answered once, whatever is killed.

use std::process::{Child, Stdio};
use std::time::Duration;

use polyclaw_testkit::PIXEL;
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};

use crate::fixture::{Home, Ran, until};

const MAIN: &str = "agent:main:main";

fn ask(home: &Home, text: &str) -> Child {
    let mut command = home.command(&["agent", "--message", text]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn answer(asked: Child) -> Ran {
    let output = asked.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn turn_killed_mid_answer_is_answered_once_after_restart() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().text("half an ").wait(Duration::from_millis(100)).hang());
    model.push(ReplyScript::reply("the whole answer"));
    let home = Home::with_model(&model);
    let mut daemon = home.daemon();
    let asked = ask(&home, "hello");
    until("the model is asked", || model.request_count() == 1);
    std::thread::sleep(Duration::from_millis(300));
    daemon.kill();
    let _daemon = home.daemon();
    let ran = answer(asked);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "the whole answer\n"), "{}", ran.stderr);
    let answers: Vec<_> = home.transcript(MAIN);
    assert_eq!(answers, [("user".into(), "hello".into()), ("assistant".into(), "the whole answer".into())]);
}

#[test]
fn turn_killed_mid_answer_resends_the_image_after_restart() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().text("it is ").wait(Duration::from_millis(100)).hang());
    model.push(ReplyScript::reply("a red dot"));
    let home = Home::with_model(&model);
    let image = home.path().join("dot.png");
    std::fs::write(&image, PIXEL).unwrap();
    let mut daemon = home.daemon();
    let mut command = home.command(&["agent", "--message", "what is it?", "--attach"]);
    let asked = command.arg(&image).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the model is asked", || model.request_count() == 1);
    daemon.kill();
    std::fs::remove_file(&image).unwrap();
    let _daemon = home.daemon();
    let ran = answer(asked);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a red dot\n"), "{}", ran.stderr);
    let shown = |at: usize| model.requests()[at].messages().last().unwrap()["content"].clone();
    assert_eq!(shown(0), shown(1));
    assert_eq!(shown(1)[1]["type"], "image_url");
}

#[test]
fn plain_turn_is_answered_once_at_every_kill_point() {
    let points = [
        "ingress.before",
        "ingress.committed",
        "turn.claimed",
        "prompt.built",
        "stream.mid",
        "reply.received",
        "finish.before",
        "finish.committed",
    ];
    for point in points {
        let model = ModelServer::start();
        // Streamed in pieces, so that it can be interrupted halfway.
        model.answer_with(|_| ReplyScript::new().chunks("echo: hello", 3, Duration::from_millis(30)));
        let home = Home::with_model(&model);
        let mut daemon = home.daemon_with(&[("POLYCLAW_KILL_AT", &format!("{point}:1"))]);
        let asked = ask(&home, "hello");
        let died = daemon.ended();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&died), Some(9), "{point}");
        let _daemon = home.daemon();
        let ran = answer(asked);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "echo: hello\n"), "{point}: {}", ran.stderr);
        let stored = [("user".into(), "hello".into()), ("assistant".into(), "echo: hello".into())];
        assert_eq!(home.transcript(MAIN), stored, "{point}");
    }
}

#[test]
fn drain_finishes_running_turn_and_refuses_new_messages() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().chunks("a slow but whole answer", 8, Duration::from_millis(250)));
    let home = Home::with_model(&model);
    let mut daemon = home.daemon();
    let asked = ask(&home, "hello");
    until("the model is asked", || model.request_count() == 1);
    daemon.signal("TERM");
    until("it drains", || home.run(&["status", "--json"]).stdout.contains("\"draining\""));
    let refused = home.run(&["agent", "-m", "more", "--session", "agent:main:other", "--json"]);
    assert_eq!(refused.error(), (5, "shutting_down".into()));
    assert!(daemon.ended().success());
    let ran = answer(asked);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a slow but whole answer\n"), "{}", ran.stderr);
}

#[test]
fn second_signal_exits_immediately_and_turn_resumes_at_next_start() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().text("half").wait(Duration::from_millis(50)).hang());
    model.push(ReplyScript::reply("whole"));
    let home = Home::with_model(&model);
    let mut daemon = home.daemon();
    let asked = ask(&home, "hello");
    until("the model is asked", || model.request_count() == 1);
    daemon.signal("INT");
    until("it drains", || home.run(&["status", "--json"]).stdout.contains("\"draining\""));
    daemon.signal("INT");
    assert_eq!(daemon.ended().code(), Some(1));
    let _daemon = home.daemon();
    assert_eq!(answer(asked).stdout, "whole\n");
}

#[test]
fn idle_daemon_stops_immediately() {
    let home = Home::new();
    let mut daemon = home.daemon();
    let began = std::time::Instant::now();
    daemon.signal("TERM");
    assert!(daemon.ended().success());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
