//! The first moments of a process: messages that arrive or resume then are answered by the model that is found.

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};

use crate::daemon::{Home, PATIENCE};

const ME: &str = "agent:main:web:dm:me";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_at_startup_wait_for_model_selection() {
    let model = ModelServer::start();
    model.answer_with(|request| ReplyScript::reply(format!("re: {}", request.last_user_text())));
    let folder = tempfile::tempdir().unwrap();
    let config = format!("[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\n", model.url());
    let home = Home::new(&folder.path().join("home"), &config);
    for n in 0..3 {
        let daemon = home.start(None).await;
        let reply = daemon.say(ME, &format!("hello {n}"), 60).await.unwrap();
        assert_eq!(reply["reply"]["text"], format!("re: hello {n}"), "{reply}");
    }
    let mut daemon = home.start(Some("turn.claimed:1")).await;
    let _ = daemon.say(ME, "left behind", 0).await;
    assert!(daemon.dies(PATIENCE).await);
    let daemon = home.start(None).await;
    let reply = daemon.say(ME, "left behind", 60).await.unwrap();
    assert_eq!(reply["reply"]["text"], "re: left behind", "{reply}");
}
