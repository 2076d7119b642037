use std::time::Duration;

use polyclaw_domain::provider::ErrorClass::{Malformed, Unreachable};
use polyclaw_testkit::model_server::ReplyScript;

use crate::fixture::{Bench, SHAPES, user};

#[tokio::test]
async fn unreadable_answer_is_malformed() {
    let bench = Bench::new();
    let scripts = || {
        [
            ("empty", ReplyScript::empty()),
            ("json", ReplyScript::reply("a").malformed_json()),
            ("html", ReplyScript::new().malformed_sse().unfinished()),
            ("no end", ReplyScript::reply("a").unfinished()),
            ("nothing", ReplyScript::new().unfinished()),
        ]
    };
    for model in SHAPES {
        for (name, script) in scripts() {
            assert_eq!(bench.class(model, script).await, Malformed, "{model} {name}");
        }
        assert!(bench.ask(model, &user("hi")).await.is_ok(), "the client still works");
    }
}

#[tokio::test]
async fn broken_connection_is_unreachable() {
    let bench = Bench::new();
    for model in SHAPES {
        let script = ReplyScript::reply("half an ans").wait(Duration::from_millis(5)).cut();
        assert_eq!(bench.class(model, script).await, Unreachable, "{model}");
    }
}

#[tokio::test]
async fn empty_finished_answer_is_accepted() {
    let bench = Bench::new();
    for model in SHAPES {
        assert_eq!(bench.says(model, ReplyScript::new()).await.unwrap().text, "", "{model}");
    }
}

/// Whatever stands where an event should, the call ends: with what was readable, or with an error of its class.
#[tokio::test]
async fn invalid_stream_events_never_panic() {
    let bench = Bench::new();
    let odd = [
        "data: null\n\n",
        "data: []\n\n",
        "data: {\"choices\":null}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":{\"a\":1}}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{}}]}}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":1e99}}\n\n",
        "event: message_start\ndata: {}\n\n",
        "event: content_block_delta\ndata: {}\n\n",
        "event: content_block_start\ndata: {\"content_block\":{\"type\":\"tool_use\"}}\n\n",
        "event: unheard_of\ndata: 1\n\n",
        "event\ndata\n\n\n\n:\n\n",
        "data: \u{0}\n\n",
    ];
    for model in SHAPES {
        for raw in odd {
            match bench.says(model, ReplyScript::reply("a").raw(raw)).await {
                Ok(reply) => assert_eq!((reply.text.as_str(), reply.calls.len()), ("a", 0), "{model} {raw}"),
                Err(error) => assert_eq!(error.class, Malformed, "{model} {raw}"),
            }
        }
    }
}
