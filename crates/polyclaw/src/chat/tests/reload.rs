//! Merges the stored session with live frames in every order: each piece of text appears once, and newer data wins.

use super::*;

const WORDS: [&str; 6] = ["a1", "a2", "d1", "d2", "b1", "b2"];

/// What a server publishes in order: a frame's kind, its data, and the message that is stored before it.
fn happens() -> Vec<(&'static str, Value, Option<Value>)> {
    let of_turn = |more: Value| {
        let mut data = json!({ "turn_id": "t1", "agent_id": "main", "resumes": [] });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        data
    };
    let speaks =
        |text: &str| of_turn(json!({ "run_id": "r1", "agent_id": "expert", "name": "Expert", "text": text }));
    let says = |step: u64, text: &str| of_turn(json!({ "step": step, "text": text }));
    let call = json!({ "call_id": "c1", "name": "delegate_to_agent", "arguments": {}, "is_error": false, "text": "{}" });
    let result = json!({ "streamed": true, "run_id": "r1", "agent_id": "expert", "response": "d1 d2 " });
    let asked = json!({ "id": "m1", "role": "user", "text": "ask", "turn_id": "t1", "parts": [] });
    let step = json!({ "id": "m2", "role": "assistant", "text": "a1 a2 ", "turn_id": "t1",
        "parts": [{ "type": "tool_call", "id": "c1", "name": "delegate_to_agent", "arguments": {} }] });
    let body = json!({ "id": "m3", "role": "tool", "text": result.to_string(), "turn_id": "t1",
        "parts": [{ "type": "tool_result", "call_id": "c1", "name": "delegate_to_agent", "is_error": false }] });
    let end = json!({ "id": "m4", "role": "assistant", "text": "b1 b2 ", "turn_id": "t1", "parts": [] });
    let accepted = json!({ "message_id": "m1", "turn_id": "t1", "text": "ask", "waiting": false });
    vec![
        ("message.accepted", accepted, Some(asked)),
        ("turn.started", of_turn(json!({})), None),
        ("turn.delta", says(0, "a1 "), None),
        ("turn.delta", says(0, "a2 "), None),
        ("tool.started", of_turn(call.clone()), Some(step)),
        ("delegate.started", speaks(""), None),
        ("delegate.delta", speaks("d1 "), None),
        ("delegate.delta", speaks("d2 "), None),
        ("delegate.ended", speaks("d1 d2 "), None),
        ("tool.ended", of_turn(call), Some(body)),
        ("turn.delta", says(1, "b1 "), None),
        ("turn.delta", says(1, "b2 "), None),
        ("turn.ended", of_turn(json!({ "state": "done", "text": "b1 b2 " })), Some(end)),
    ]
}

/// The stored state once the first `place` frames are, or are about to be, published.
fn stored_state_at(place: usize) -> (Value, Vec<Value>) {
    let all = happens();
    let messages = all[..place].iter().filter_map(|(_, _, message)| message.clone()).collect();
    let running = (1..all.len()).contains(&place).then_some("t1");
    (json!({ "running_turn_id": running }), messages)
}

fn words(model: &ChatState) -> Vec<String> {
    let texts = model.entries.iter().filter_map(|entry| match entry {
        TranscriptEntry::Answer { text, .. } | TranscriptEntry::DelegateText { text, .. } => {
            Some(text.as_str())
        }
        _ => None,
    });
    texts.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

fn each_once(model: &ChatState, case: &str) {
    let texts = words(model);
    for word in WORDS {
        assert!(texts.iter().filter(|said| *said == word).count() <= 1, "{case}: {texts:?}");
    }
}

fn is_whole(model: &ChatState, case: &str) {
    assert_eq!(words(model), WORDS, "{case}");
    assert_eq!(model.running, None, "{case}: nothing is answered any more");
    assert_eq!(said(model), [("ask", UserMessageState::Accepted)], "{case}");
    assert!(!model.entries.iter().any(is_open_entry), "{case}: {:?}", model.entries);
}

fn is_open_entry(entry: &TranscriptEntry) -> bool {
    matches!(
        entry,
        TranscriptEntry::Answer { open: true, .. } | TranscriptEntry::DelegateText { open: true, .. }
    )
}

#[test]
fn reload_at_any_time_loses_and_repeats_no_text() {
    let all = happens();
    for asked in 0..=all.len() {
        for read in asked..=all.len() {
            for arrives in asked..=all.len() {
                let case = format!("asked for after {asked}, read after {read}, there after {arrives}");
                let mut model = chat();
                for place in 0..=all.len() {
                    if place == asked {
                        assert_eq!(frame(&mut model, "session.changed", json!({})), [ChatEffect::Reload]);
                    }
                    if place == arrives {
                        let (session, messages) = stored_state_at(read);
                        assert_eq!(load(&mut model, session, messages), [], "{case}");
                        let texts = words(&model);
                        let body = all[..place].iter().filter(|(kind, ..)| kind.ends_with(".delta"));
                        for (_, data, _) in body {
                            let word = data["text"].as_str().unwrap().trim();
                            assert!(
                                texts.iter().any(|said| said == word),
                                "{case}: {word} is lost, {texts:?}"
                            );
                        }
                    }
                    each_once(&model, &case);
                    if let Some((kind, data, _)) = all.get(place) {
                        frame(&mut model, kind, data.clone());
                        each_once(&model, &case);
                    }
                }
                is_whole(&model, &case);
            }
        }
    }
}

#[test]
fn change_during_reload_triggers_one_more_reload() {
    let mut model = chat();
    assert_eq!(frame(&mut model, "session.changed", json!({})), [ChatEffect::Reload]);
    for _ in 0..3 {
        assert_eq!(frame(&mut model, "session.changed", json!({})), [], "one at a time");
    }
    let (session, messages) = stored_state_at(4);
    assert_eq!(load(&mut model, session, messages), [ChatEffect::Reload]);
    let (session, messages) = stored_state_at(happens().len());
    assert_eq!(load(&mut model, session, messages), []);
    is_whole(&model, "read twice");
}

#[test]
fn delegate_rerun_after_server_restart_is_shown_once() {
    let all = happens();
    let again = |from: usize| [1].into_iter().chain(from..all.len()).map(|n| &all[n]);
    // The frame reached before the restart, and the first frame that the new process still retains.
    for (died, first) in [(6, 5), (7, 5), (8, 5), (8, 6), (3, 2), (4, 2), (11, 10)] {
        let begins_at = if died > 9 { 10 } else { first };
        for arrives in 0..=again(begins_at).count() {
            let case = format!("died after {died}, kept from {first}, read after {arrives} frames");
            let mut model = chat();
            for (kind, data, _) in &all[..died] {
                frame(&mut model, kind, data.clone());
            }
            model.handle_event(ChatEvent::Link(LinkState::Lost));
            assert_eq!(model.handle_event(ChatEvent::Link(LinkState::Live)), []);
            assert_eq!(frame(&mut model, "replay.gap", json!({})), [ChatEffect::Reload], "{case}");
            for (n, (kind, data, _)) in again(begins_at).enumerate() {
                if n == arrives {
                    let (session, messages) = stored_state_at(died);
                    load(&mut model, session, messages);
                }
                frame(&mut model, kind, data.clone());
                each_once(&model, &case);
            }
            if arrives == again(begins_at).count() {
                let (session, messages) = stored_state_at(all.len());
                load(&mut model, session, messages);
            }
            is_whole(&model, &case);
        }
    }
}

#[test]
fn replay_gap_during_reload_triggers_another_reload() {
    let all = happens();
    let mut model = chat();
    for (kind, data, _) in &all[..7] {
        frame(&mut model, kind, data.clone());
    }
    frame(&mut model, "session.changed", json!({}));
    frame(&mut model, all[7].0, all[7].1.clone());
    assert_eq!(frame(&mut model, "replay.gap", json!({})), []);
    for n in [1, 5, 6] {
        frame(&mut model, all[n].0, all[n].1.clone());
    }
    let (session, messages) = stored_state_at(7);
    assert_eq!(load(&mut model, session, messages), [ChatEffect::Reload]);
    assert_eq!(
        words(&model),
        ["a1", "a2", "d1"],
        "what the gap tore is gone, and what came after it is there"
    );
}

#[test]
fn message_with_pending_acceptance_is_shown_once_after_reload() {
    for (read, posted_first) in [(0, true), (0, false), (1, true), (1, false)] {
        let mut model = chat();
        let effects = send(&mut model, "ask");
        let ChatEffect::Send { key, .. } = &effects[1] else { panic!() };
        let answer = receipt(json!({ "message_id": "m1", "turn_id": "t1", "waiting": false }));
        let posted = ChatEvent::Posted { key: key.clone(), answer };
        frame(&mut model, "session.changed", json!({}));
        if posted_first {
            model.handle_event(posted.clone());
        }
        let (session, messages) = stored_state_at(read);
        load(&mut model, session, messages);
        assert_eq!(said(&model).len(), 1, "{read} {posted_first}");
        if !posted_first {
            model.handle_event(posted);
        }
        frame(&mut model, happens()[0].0, happens()[0].1.clone());
        assert_eq!(said(&model), [("ask", UserMessageState::Accepted)], "{read} {posted_first}");
    }
}

#[test]
fn failed_load_is_retried_after_reconnect() {
    let mut model = chat();
    frame(&mut model, "session.changed", json!({}));
    delta(&mut model, "t1", "meanwhile");
    assert_eq!(model.handle_event(ChatEvent::NotLoaded("it cannot be read".into())), []);
    assert_eq!(answers(&model), ["meanwhile"]);
    assert!(screen(&mut model, 60, 10).contains("it cannot be read"));
    model.handle_event(ChatEvent::Link(LinkState::Lost));
    assert_eq!(model.handle_event(ChatEvent::Link(LinkState::Live)), [ChatEffect::Reload]);
}

#[test]
fn command_reply_is_shown_below_the_new_conversation() {
    let mut model = chat();
    for (kind, data, _) in &happens()[..9] {
        frame(&mut model, kind, data.clone());
    }
    ended(&mut model, "t1", "done", Some("b1"));
    let notice = ChatEvent::CommandAnswered { text: "A new conversation.".into(), changes: true };
    assert_eq!(model.handle_event(notice), [ChatEffect::Reload]);
    load(&mut model, json!({}), vec![]);
    let shown = screen(&mut model, 60, 10);
    assert!(shown.contains("A new conversation.") && words(&model).is_empty(), "{shown}");
}

#[test]
fn running_tool_output_survives_reload() {
    let mut model = chat();
    for (kind, data, _) in &happens()[..5] {
        frame(&mut model, kind, data.clone());
    }
    frame(&mut model, "tool.output", json!({ "turn_id": "t1", "call_id": "c1", "text": "half of it" }));
    frame(&mut model, "session.changed", json!({}));
    let (session, messages) = stored_state_at(5);
    load(&mut model, session, messages);
    let Some(TranscriptEntry::Tool(tool)) = model.entries.last() else { panic!("{:?}", model.entries) };
    assert_eq!((tool.output.as_str(), tool.state), ("half of it", ToolState::Running));
}
