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
fn killed_in_the_middle_of_an_answer_it_answers_once_after_the_restart() {
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
fn killed_in_the_middle_of_an_answer_it_shows_the_image_again_after_the_restart() {
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
fn at_every_kill_point_of_a_plain_turn_the_answer_comes_once() {
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
fn a_drain_lets_the_running_turn_end_and_takes_nothing_new() {
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
fn a_second_signal_ends_at_once_and_the_turn_goes_on_at_the_next_start() {
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
fn a_daemon_with_nothing_to_do_ends_at_once() {
    let home = Home::new();
    let mut daemon = home.daemon();
    let began = std::time::Instant::now();
    daemon.signal("TERM");
    assert!(daemon.ended().success());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
