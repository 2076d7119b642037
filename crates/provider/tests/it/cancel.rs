use std::time::Duration;

use polyclaw_domain::provider::ModelProvider;
use polyclaw_testkit::model_server::ReplyScript;

use crate::fixture::{Bench, SHAPES, refs, user};

/// Starts a call, waits until the server has it, and drops it.
async fn drop_after_arrival(bench: &Bench, model: &str) {
    let (candidates, prompt) = (refs(&[model]), user("hi"));
    let sink = |_| {};
    let seen = bench.server.request_count();
    let call = bench.models.stream_reply(&candidates, &prompt, &sink);
    tokio::select! {
        reply = call => panic!("a hanging server answered: {reply:?}"),
        _ = bench.server.wait_for_requests(seen + 1) => {}
    }
}

#[tokio::test]
async fn dropped_call_closes_its_connection() {
    let bench = Bench::new();
    for (done, model) in SHAPES.into_iter().enumerate() {
        bench.server.push(ReplyScript::new().hang());
        drop_after_arrival(&bench, model).await;
        bench.server.wait_for_abandoned(2 * done + 1).await;
        bench.server.push(ReplyScript::reply("one").hang());
        drop_after_arrival(&bench, model).await;
        bench.server.wait_for_abandoned(2 * done + 2).await;
    }
}

#[tokio::test]
async fn hanging_call_does_not_block_others() {
    let bench = Bench::new();
    bench.server.push(ReplyScript::reply("one").hang());
    let (candidates, prompt) = (refs(&["openai/a"]), user("hi"));
    let sink = |_| {};
    let hanging = bench.models.stream_reply(&candidates, &prompt, &sink);
    let other = async {
        bench.server.wait_for_requests(1).await;
        bench.ask("openai/b", &user("hello")).await.unwrap().text
    };
    tokio::select! {
        reply = hanging => panic!("a hanging server answered: {reply:?}"),
        text = tokio::time::timeout(Duration::from_secs(60), other) => assert_eq!(text.unwrap(), "echo: hello"),
    }
}
