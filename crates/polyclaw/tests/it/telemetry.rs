//! Spans at a collector: one tree from a message to the last grandchild, across sessions and restarts.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use polyclaw_testkit::collector::{CollectedSpan, SpanCollector};
use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use serde_json::json;

use crate::fixture::{Home, until};

const WORD: &str = "Zanzibar-4711";

/// The person's agent starts a child, which starts a grandchild; each yields until the announce.
fn answer(request: &ReceivedRequest) -> ReplyScript {
    let text_of = |role: &str, text: &str| {
        let content =
            |message: &serde_json::Value| message["content"].as_str().unwrap_or_default().contains(text);
        request.messages().iter().any(|message| message["role"] == role && content(message))
    };
    let is_notified = text_of("user", "[Context: subagent_announce]");
    let next = |task: &str| match (is_notified, text_of("tool", "accepted")) {
        (true, _) => ReplyScript::reply("heard it"),
        (false, false) => ReplyScript::new().call("a", "sessions_spawn", json!({ "task": task })),
        (false, true) => ReplyScript::new().call("b", "sessions_yield", json!({})),
    };
    match (text_of("user", "the smallest part"), text_of("user", "the smaller part")) {
        (true, false) => ReplyScript::reply("the smallest part is done"),
        (_, true) => next("the smallest part"),
        _ => next("the smaller part"),
    }
}

fn home(model: &ModelServer, endpoint: &str) -> Home {
    model.answer_with(answer);
    Home::with_model_and(model, &format!("[telemetry]\nendpoint = \"{endpoint}\"\n"))
}

fn turns(spans: &[CollectedSpan]) -> usize {
    spans.iter().filter(|span| span.attribute("gen_ai.operation.name") == Some("invoke_agent")).count()
}

/// One trace, one root, and everything below it.
fn is_one_tree(spans: &[CollectedSpan]) -> Result<(), String> {
    let traces: HashSet<&str> = spans.iter().map(|span| span.text_field("traceId")).collect();
    let ids: HashSet<&str> = spans.iter().map(|span| span.text_field("spanId")).collect();
    let roots = spans.iter().filter(|span| span.text_field("parentSpanId").is_empty()).count();
    let lost = spans.iter().find(|span| {
        !span.text_field("parentSpanId").is_empty() && !ids.contains(span.text_field("parentSpanId"))
    });
    match (traces.len(), roots, lost) {
        (1, 1, None) => Ok(()),
        other => Err(format!("{other:?} of {} spans", spans.len())),
    }
}

/// The names from a span up to the root.
fn span_names_to_root(spans: &[CollectedSpan], from: &CollectedSpan) -> Vec<String> {
    let by_id: HashMap<&str, &CollectedSpan> =
        spans.iter().map(|span| (span.text_field("spanId"), span)).collect();
    let mut names = vec![from.text_field("name").to_owned()];
    let mut at = from;
    while let Some(parent) = by_id.get(at.text_field("parentSpanId")) {
        names.push(parent.text_field("name").to_owned());
        at = parent;
    }
    names
}

#[test]
fn spans_of_a_message_and_its_subagents_form_one_tree() {
    let (model, collector) = (ModelServer::start(), SpanCollector::start());
    let home = home(&model, &collector.url());
    let _daemon = home.daemon();
    home.run(&["agent", "--message", &format!("do it in {WORD}")]);
    until("five turns are exported", || {
        turns(&collector.spans()) == 5 && is_one_tree(&collector.spans()).is_ok()
    });
    let spans = collector.spans();
    let deepest = spans.iter().map(|span| span_names_to_root(&spans, span)).max_by_key(Vec::len).unwrap();
    let agent = "invoke_agent main";
    let spawn = "execute_tool sessions_spawn";
    assert_eq!(
        deepest.iter().skip(1).map(String::as_str).collect::<Vec<_>>(),
        [agent, spawn, agent, spawn, agent, "receive"]
    );
    let chats: Vec<&CollectedSpan> =
        spans.iter().filter(|span| span.attribute("gen_ai.operation.name") == Some("chat")).collect();
    assert_eq!(chats.len(), model.request_count(), "every model call is a span");
    assert!(chats.iter().all(|chat| chat.attribute("gen_ai.request.model") == Some("demo")
        && chat.attribute("gen_ai.provider.name") == Some("lab")
        && chat.0["kind"] == 3));
    // Spans contain no message texts.
    let all = collector.all_text();
    for word in [WORD, "smallest", "heard it", "agent:main:main"] {
        assert!(!all.contains(word), "{word} was exported");
    }
}

#[test]
fn spans_after_a_kill_stay_in_the_same_tree() {
    let (model, collector) = (ModelServer::start(), SpanCollector::start());
    let home = home(&model, &collector.url());
    let mut daemon = home.daemon_with(&[("POLYCLAW_KILL_AT", "tool.ran:1")]);
    let mut asking = home.command(&["agent", "--message", "do it"]).spawn().unwrap();
    daemon.ended();
    let _daemon = home.daemon();
    asking.wait().unwrap();
    until("five turns are exported", || {
        turns(&collector.spans()) == 5 && is_one_tree(&collector.spans()).is_ok()
    });
}

#[test]
fn unreachable_collector_does_not_delay_turns_and_drops_are_counted() {
    let model = ModelServer::start();
    let home = home(&model, "http://127.0.0.1:9");
    model.answer_with(|_| ReplyScript::reply("yes"));
    let _daemon = home.daemon();
    let began = Instant::now();
    for n in 0..5 {
        assert_eq!(home.run(&["agent", "--message", &format!("message {n}")]).code, 0);
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    until("dropped spans are counted", || {
        let output = home.run(&["status", "--json"]);
        assert_eq!(output.code, 0);
        dropped(&home) > 0
    });
}

fn dropped(home: &Home) -> u64 {
    let token = std::fs::read_to_string(home.path().join("token")).unwrap();
    let port = home.port.to_string();
    let url = format!("http://127.0.0.1:{port}/metrics");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let text = runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        client.get(url).bearer_auth(token.trim()).send().await.unwrap().text().await.unwrap()
    });
    let line = text.lines().find(|line| line.starts_with("polyclaw_spans_dropped_total ")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
