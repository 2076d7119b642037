//! Asking an agent from the command line.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use polyclaw_testkit::PIXEL;
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};

use crate::fixture::Home;

const MAIN: &str = "agent:main:main";

#[test]
fn agent_command_prints_only_the_answer_on_stdout() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().chunks("It is four.", 3, Duration::from_millis(5)));
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    let ran = home.run(&["agent", "--message", "What is two and two?"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "It is four.\n", ""));
    let messages = home.transcript(MAIN);
    assert_eq!(
        messages,
        [("user".into(), "What is two and two?".into()), ("assistant".into(), "It is four.".into())]
    );
}

#[test]
fn chat_command_is_answered_without_a_model_call() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    home.run(&["agent", "-m", "hi"]);
    let ran = home.run(&["agent", "-m", "/Status"]);
    let text = "session agent:main:main\nagent main\nmodel lab/demo\nidle\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, text, ""));
    assert_eq!(
        home.run(&["agent", "-m", "/whoami", "--json"]).ok()["text"],
        "session agent:main:main, agent main"
    );
    assert_eq!(home.run(&["agent", "-m", "/status", "--deliver"]).code, 2);
    assert_eq!((model.requests().len(), home.transcript(MAIN).len()), (1, 2));
    assert_eq!(home.run(&["agent", "-m", "/etc/passwd"]).stdout, "echo: /etc/passwd\n");
}

#[test]
fn json_output_contains_the_whole_reply() {
    let model = ModelServer::start();
    model.push(ReplyScript::reply("yes").usage(7, 3));
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    let reply =
        home.run(&["agent", "--message", "well?", "--json", "--session", "agent:main:test"]).ok()["reply"]
            .clone();
    assert_eq!(
        (&reply["text"], &reply["state"], &reply["model"]),
        (&"yes".into(), &"done".into(), &"lab/demo".into())
    );
    assert_eq!((&reply["usage"]["input_tokens"], &reply["usage"]["output_tokens"]), (&7.into(), &3.into()));
}

#[test]
fn attachments_are_sent_as_text_and_images() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    let file = |name: &str, content: &[u8]| {
        let path = home.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (image, log) = (file("screen.png", PIXEL), file("app.log", b"it broke here"));
    let ran = home.run(&["agent", "--message", "why?", "--attach", &image, "--attach", &log]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asked = model.last_request();
    let content = &asked.messages().last().unwrap()["content"];
    let text = content[0]["text"].as_str().unwrap();
    assert!(text.starts_with("why?\n[attachment screen.png (image/png)]"), "{text}");
    assert!(text.contains("it broke here"), "{text}");
    let url = content[1]["image_url"]["url"].as_str().unwrap();
    assert!(url.starts_with("data:image/png;base64,iVBORw0KGgo"), "{url}");
    let song = file("song.mp3", b"ID3\xff\0");
    let refused = home.run(&["agent", "--message", "listen", "--attach", &song]);
    assert!(refused.code == 2 && refused.stderr.contains("neither text nor"), "{}", refused.stderr);
}

#[test]
fn unreachable_model_fails_with_a_message() {
    let home = Home::new();
    home.write_config(
        "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"demo\"]\n",
    );
    let _daemon = home.daemon();
    let ran = home.run(&["agent", "--message", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("lab/demo"), "{}", ran.stderr);
    let machine = home.run(&["agent", "--message", "hi", "--json"]);
    assert_eq!(machine.code, 1);
    assert!(machine.stdout.starts_with("{\"error\":{\"code\":"), "{}", machine.stdout);
}

#[test]
fn missing_model_error_names_the_variable_to_set() {
    let home = Home::new();
    home.write_config("");
    let _daemon = home.daemon();
    let ran = home.run(&["agent", "--message", "hi"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("OPENAI_API_KEY") && ran.stderr.contains("[no_model]"), "{}", ran.stderr);
}

#[test]
fn timed_out_command_leaves_the_turn_running() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().wait(Duration::from_millis(2500)).text("late"));
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    assert_eq!(home.run(&["agent", "-m", "hi", "--timeout", "1", "--json"]).error(), (5, "timeout".into()));
    crate::fixture::until("the answer is stored", || home.transcript(MAIN).len() == 2);
}

#[test]
fn chat_without_terminal_starts_daemon_and_answers_each_line() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let mut command = home.command(&["chat"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut chat = command.spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"one\n\n/whoami\ntwo\n").unwrap();
    let output = chat.wait_with_output().unwrap();
    let pid = std::fs::read_to_string(home.path().join("daemon.pid")).unwrap();
    let stop = std::process::Command::new("kill").arg(pid.trim()).status().unwrap();
    assert!(output.status.success() && stop.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "echo: one\nsession agent:main:main, agent main\necho: two\n");
    assert!(String::from_utf8(output.stderr).unwrap().contains("starting one"));
}
