//! Random changes of external input: no panic, no internal error, no unbounded memory. `make fuzz` runs
//! more; `POLYCLAW_SEED` repeats one case.

use std::io::Read;
use std::net::TcpStream;

use polyclaw_domain::config;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_testkit::fuzz;
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};

use crate::daemon::{Daemon, TOKEN, config};
use crate::readers::{memory, metric, socket, text_frame};

#[test]
fn session_keys() {
    let corpus =
        ["agent:main:main", "agent:main:web:dm:x", "agent:a-b:webhook:chat:group:%3A%25", "cron:7", "a:b.c"];
    fuzz::run_cases("session keys", &corpus, 20_000, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(key) = SessionKey::parse(&text) {
            assert_eq!(SessionKey::parse(key.as_str()).as_ref(), Ok(&key), "written values are read back");
        }
    });
}

#[test]
fn configs() {
    let corpus = [
        "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m\"]\n",
        "[agents.defaults]\nmodel = \"lab/m\"\n[[agents.list]]\nid = \"ops\"\n",
        "[gateway]\nport = 18801\nbind = \"127.0.0.1\"\n[turns]\nlease_seconds = 2\n",
        "[channels.webhook.chat]\nsecret = \"env:SECRET\"\nreply_url = \"http://127.0.0.1/x\"\n",
    ];
    fuzz::run_cases("configs", &corpus, 4_000, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let look_up = |_: config::ExternalReference<'_>| Ok("value".to_owned());
        if let Err(errors) = config::load(&text, "config.toml", &look_up) {
            assert!(!errors.to_string().is_empty(), "an error has a reason");
        }
    });
}

/// Asserts that the input did not harm the daemon.
async fn assert_unharmed(daemon: &mut Daemon, before: i64) {
    daemon.assert_alive();
    let reply = daemon.say("after", "after", 30).await.unwrap();
    assert_eq!(reply.reply(), "echo: after", "{reply:?}");
    let log = daemon.log();
    assert!(!log.contains("panicked"), "{log}");
    let grown = memory(daemon, "VmRSS") - before;
    assert!(grown < 60_000, "{grown} kB more");
}

/// Waits until all input was read or the socket was closed.
fn wait_until_frames_are_read(stream: &mut TcpStream) {
    let last = br#"{"type":"req","id":"the last","method":"none"}"#;
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    if text_frame(stream, last).is_ok() {
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            heard.extend_from_slice(&piece[..count]);
            if String::from_utf8_lossy(&heard).contains("the last") {
                return;
            }
        }
    }
}

#[tokio::test]
async fn frames() {
    let corpus = [
        r#"{"type":"req","id":1,"method":"subscribe","params":{"session_key":"agent:main:web:dm:x","after":0}}"#,
        r#"{"type":"req","id":"a","method":"send","params":{"session_key":"agent:main:web:dm:x","text":"hi"}}"#,
        r#"{"type":"req","id":null,"method":"command","params":{"session_key":"agent:main:main","text":"/help"}}"#,
        r#"{"type":"req","id":[],"method":"approve","params":{"approval_id":"x","decision":"approve"}}"#,
    ];
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "")).await;
    let before = memory(&daemon, "VmRSS");
    for chunk in fuzz::cases(&corpus, 600).chunks(30) {
        let mut stream = socket(&daemon);
        for (seed, bytes) in chunk {
            // Invalid UTF-8 closes the socket, as it should; most frames are valid, so that some are read.
            let text = String::from_utf8_lossy(bytes);
            let sent = if seed % 30 == 29 { bytes } else { text.as_bytes() };
            // The previous frame may have closed the socket.
            let _ = text_frame(&mut stream, sent);
        }
        wait_until_frames_are_read(&mut stream);
    }
    let accepted = metric(&daemon, "polyclaw_messages_accepted_total").await;
    assert!(accepted > 5, "too few frames were read: {accepted}");
    assert_unharmed(&mut daemon, before).await;
}

#[tokio::test]
async fn random_openai_requests_never_return_500() {
    let corpus = [
        r#"{"model":"main","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#,
        r#"{"model":"main","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"x"}]}"#,
        r#"{"model":"main","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}],"previous_response_id":"x"}"#,
    ];
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "")).await;
    let before = memory(&daemon, "VmRSS");
    for (seed, bytes) in fuzz::cases(&corpus, 400) {
        let path = if seed % 4 == 0 { "responses" } else { "chat/completions" };
        let asked = daemon.client.post(format!("{}/v1/{path}", daemon.url)).bearer_auth(TOKEN);
        let answer =
            asked.header("content-type", "application/json").body(bytes.clone()).send().await.unwrap();
        let status = answer.status().as_u16();
        let shown = String::from_utf8_lossy(&bytes);
        assert_ne!(status, 500, "{}={seed} repeats it: {shown}", fuzz::SEED_VARIABLE);
    }
    assert_unharmed(&mut daemon, before).await;
}

#[tokio::test]
async fn random_provider_streams_end_in_done_or_failed() {
    let corpus = [
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"list_dir\",\"arguments\":\"{\"}}]}}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n",
        "event: error\ndata: {\"error\":{\"message\":\"overloaded\",\"type\":\"x\"}}\n\n",
    ];
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "[turns]\nstall_seconds = 2\nmax_rounds = 2")).await;
    let before = memory(&daemon, "VmRSS");
    for (seed, bytes) in fuzz::cases(&corpus, 150) {
        model.push(ReplyScript::new().raw(String::from_utf8_lossy(&bytes)));
        let answer = daemon.say(&format!("s{seed}"), "go", 30).await.unwrap();
        let state = answer.body["reply"]["state"].as_str().unwrap_or_default();
        let ended = ["done", "failed"].contains(&state);
        let code = &answer.body["reply"]["error_code"];
        assert!(ended && code != "internal", "{}={seed} repeats it: {answer:?}", fuzz::SEED_VARIABLE);
    }
    assert_unharmed(&mut daemon, before).await;
}
