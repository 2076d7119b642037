//! Tests of the chat without a terminal or a network.

mod reload;
mod status;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use polyclaw_api::approvals::ApprovalView;
use polyclaw_api::messages::SessionMessageReceipt;
use polyclaw_api::sessions::SessionView;
use polyclaw_api::teams::TeamDetail;
use polyclaw_api::transcript::SessionMessageView;
use polyclaw_domain::approval::ApprovalDecision;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::entry::{ToolState, TranscriptEntry, UserMessageState};
use super::state::{ChatEffect, ChatEvent, ChatState, LinkState};
use super::view::ChatView;
use crate::stream::StreamFrame;

const SESSION: &str = "agent:main:main";
const NOON: &str = "2026-11-19T12:00:00.000Z";

fn chat() -> ChatState {
    let mut model = ChatState::new(SESSION.to_owned(), Vec::new());
    assert_eq!(model.handle_event(ChatEvent::Link(LinkState::Live)), [ChatEffect::Reload]);
    load(&mut model, json!({}), vec![]);
    model
}

/// A type of the API from the fields that a test is about.
fn with_defaults<T: DeserializeOwned>(mut defaults: Value, given: Value) -> T {
    defaults.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    serde_json::from_value(defaults).unwrap()
}

/// A session. Without fields there is none.
fn session(given: Value) -> Option<Box<SessionView>> {
    let defaults = json!({
        "session_key": SESSION, "session_id": "s1", "agent_id": "main", "active_agent_id": "main", "spawn_depth": 0,
        "delegation_depth": 0, "lane": "main", "deliver_policy": true, "send_policy": true, "status": "active",
        "queued": 0, "created_at": NOON, "updated_at": NOON,
    });
    given.as_object().is_some_and(|given| !given.is_empty()).then(|| with_defaults(defaults, given))
}

fn message(given: Value) -> SessionMessageView {
    let defaults = json!({
        "position": 1, "parts": [], "origin": "user", "channel": "cli", "deliver": true, "created_at": NOON,
    });
    with_defaults(defaults, given)
}

fn approval(given: Value) -> ApprovalView {
    let defaults = json!({
        "turn_id": "t1", "call_id": "c1", "fingerprint": "", "question": "", "requested_by": "",
        "expires_at": NOON, "created_at": NOON,
    });
    with_defaults(defaults, given)
}

fn receipt(given: Value) -> SessionMessageReceipt {
    with_defaults(json!({ "session_key": SESSION, "duplicate": false, "waiting": false }), given)
}

/// A team with members and tasks.
fn team(mut given: Value) -> TeamDetail {
    let fill = |items: &mut Value, defaults: Value| {
        for item in items.as_array_mut().into_iter().flatten() {
            *item = with_defaults(defaults.clone(), item.clone());
        }
    };
    let member = json!({
        "role": "", "session_key": "", "agent_id": "main", "color": "blue", "capabilities": [], "tasks": [],
        "unread": 0, "joined_at": NOON, "last_active_at": NOON,
    });
    let task = json!({
        "subject": "", "description": "", "depends_on": [], "artifacts": [], "created_by": "lead",
        "created_at": NOON,
    });
    fill(&mut given["members"], member);
    fill(&mut given["open"], task.clone());
    fill(&mut given["ended"], task);
    let counts = json!({ "pending": 0, "blocked": 0, "in_progress": 0, "completed": 0, "failed": 0 });
    given["counts"] = with_defaults(counts, given["counts"].clone());
    let defaults = json!({
        "id": "1", "description": "", "agent_type": "", "lead_session_key": SESSION, "created_at": NOON,
        "updated_at": NOON, "is_lead_lost": false, "lead_unread": 0,
        "turns": { "used": 0, "limit": 20, "is_waiting": false },
    });
    with_defaults(defaults, given)
}

fn load(model: &mut ChatState, given: Value, messages: Vec<Value>) -> Vec<ChatEffect> {
    let messages = messages.into_iter().map(message).collect();
    model.handle_event(ChatEvent::Loaded { session: session(given), messages, approvals: vec![] })
}

fn key(model: &mut ChatState, code: KeyCode) -> Vec<ChatEffect> {
    model.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn ctrl(model: &mut ChatState, character: char) -> Vec<ChatEffect> {
    model.handle_key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL))
}

fn type_in(model: &mut ChatState, text: &str) {
    for character in text.chars() {
        key(model, KeyCode::Char(character));
    }
}

fn send(model: &mut ChatState, text: &str) -> Vec<ChatEffect> {
    type_in(model, text);
    key(model, KeyCode::Enter)
}

fn frame(model: &mut ChatState, kind: &str, data: Value) -> Vec<ChatEffect> {
    let defaults = json!({
        "type": "event", "event": kind, "seq": 1, "session_key": SESSION, "message": "", "turn_id": "none",
        "agent_id": "main", "origin": "user", "waiting": false, "resumes": [], "step": 1_000, "text": "",
        "arguments": null, "is_error": false, "is_whole": true, "question": "", "requested_by": "",
        "message_id": null, "model": null, "usage": {}, "error_code": null, "truncated": false,
    });
    let frame = StreamFrame::from_data(None, with_defaults(defaults, data)).expect("a frame of this API");
    model.handle_event(ChatEvent::Frame(frame))
}

fn started(model: &mut ChatState, turn: &str) {
    frame(model, "turn.started", json!({ "turn_id": turn, "agent_id": "main", "resumes": [] }));
}

fn delta(model: &mut ChatState, turn: &str, text: &str) {
    frame(model, "turn.delta", json!({ "turn_id": turn, "text": text }));
}

fn ended(model: &mut ChatState, turn: &str, state: &str, text: Option<&str>) {
    frame(model, "turn.ended", json!({ "turn_id": turn, "state": state, "text": text, "model": "lab/demo" }));
}

fn said(model: &ChatState) -> Vec<(&str, UserMessageState)> {
    let users = model.entries.iter().filter_map(|entry| match entry {
        TranscriptEntry::User(message) => Some((message.text.as_str(), message.state)),
        _ => None,
    });
    users.collect()
}

fn answers(model: &ChatState) -> Vec<&str> {
    let answers = model.entries.iter().filter_map(|entry| match entry {
        TranscriptEntry::Answer { text, .. } => Some(text.as_str()),
        _ => None,
    });
    answers.collect()
}

fn screen(model: &mut ChatState, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| ChatView::default().draw_chat(frame, model)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_message_is_sent_accepted_and_answered() {
    let mut model = chat();
    let effects = send(&mut model, "hello");
    let [ChatEffect::Remember(_), ChatEffect::Send { key, text }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(text, "hello");
    assert_eq!(said(&model), [("hello", UserMessageState::Sending)]);
    let answer = receipt(json!({ "message_id": "m1", "turn_id": "t1", "waiting": false }));
    model.handle_event(ChatEvent::Posted { key: key.clone(), answer });
    frame(
        &mut model,
        "message.accepted",
        json!({ "message_id": "m1", "turn_id": "t1", "text": "hello", "waiting": false }),
    );
    started(&mut model, "t1");
    delta(&mut model, "t1", "Hi ");
    delta(&mut model, "t1", "there");
    assert_eq!(answers(&model), ["Hi there"]);
    assert!(model.running.is_some());
    ended(&mut model, "t1", "done", Some("Hi there!"));
    assert_eq!(answers(&model), ["Hi there!"], "the stored text is the answer");
    assert_eq!(said(&model), [("hello", UserMessageState::Accepted)], "shown once, whoever told first");
    assert!(model.running.is_none());
    assert_eq!(model.model, "lab/demo");
}

#[test]
fn delegate_text_is_shown_once_under_agent_name() {
    let mut model = chat();
    started(&mut model, "t1");
    let says = |model: &mut ChatState, kind: &str, text: &str| {
        let data = json!({ "turn_id": "t1", "run_id": "r1", "name": "Expert", "text": text });
        frame(model, kind, data);
    };
    says(&mut model, "delegate.started", "");
    says(&mut model, "delegate.delta", "It was ");
    // A fallback model starts over.
    says(&mut model, "delegate.started", "");
    says(&mut model, "delegate.delta", "It is ");
    says(&mut model, "delegate.ended", "It is 42.");
    delta(&mut model, "t1", "As the expert says.");
    ended(&mut model, "t1", "done", Some("As the expert says."));
    let spoken = |model: &ChatState| -> Vec<(String, String)> {
        let speeches = model.entries.iter().filter_map(|entry| match entry {
            TranscriptEntry::DelegateText { name, text, open: false, .. } => {
                Some((name.clone(), text.clone()))
            }
            _ => None,
        });
        speeches.collect()
    };
    assert_eq!(spoken(&model), [("Expert".to_owned(), "It is 42.".to_owned())]);
    assert_eq!(answers(&model), ["As the expert says."]);
    let shown = screen(&mut model, 40, 20);
    assert!(
        shown.find("Expert") < shown.find("It is 42.") && shown.contains("As the expert says."),
        "{shown}"
    );
}

#[test]
fn accepted_frame_before_post_response_is_same_message() {
    let mut model = chat();
    let effects = send(&mut model, "hello");
    frame(
        &mut model,
        "message.accepted",
        json!({ "message_id": "m1", "turn_id": "t1", "text": "hello", "waiting": false }),
    );
    let ChatEffect::Send { key, .. } = &effects[1] else { panic!() };
    model.handle_event(ChatEvent::Posted {
        key: key.clone(),
        answer: receipt(json!({ "message_id": "m1", "turn_id": "t1" })),
    });
    assert_eq!(said(&model), [("hello", UserMessageState::Accepted)]);
}

#[test]
fn message_sent_during_a_turn_waits_for_its_own_turn() {
    let mut model = chat();
    started(&mut model, "t1");
    send(&mut model, "and this");
    frame(
        &mut model,
        "message.accepted",
        json!({ "message_id": "m2", "turn_id": "t2", "text": "and this", "waiting": true }),
    );
    assert_eq!(said(&model), [("and this", UserMessageState::Waiting)]);
    assert_eq!(model.waiting_count(), 1);
    delta(&mut model, "t1", "still the ");
    delta(&mut model, "t1", "first");
    assert!(
        matches!(model.entries.last(), Some(TranscriptEntry::User(_))),
        "the answer stands before what waits for it"
    );
    assert_eq!(answers(&model), ["still the first"]);
    assert!(screen(&mut model, 80, 12).contains("1 waiting"));
    ended(&mut model, "t1", "steered", None);
    started(&mut model, "t2");
    assert_eq!(model.waiting_count(), 0);
}

#[test]
fn internal_message_is_shown_with_its_origin() {
    let text = "[@agent:Expert#expert] finish";
    let mut live = chat();
    let accepted = json!({ "message_id": "m1", "turn_id": "t1", "origin": "agent:expert", "text": text });
    for _ in 0..2 {
        frame(&mut live, "message.accepted", accepted.clone());
    }
    let mut stored = chat();
    let written =
        json!({ "id": "m1", "role": "user", "origin": "agent:expert", "text": text, "turn_id": "t1" });
    load(&mut stored, json!({}), vec![written]);
    for model in [&mut live, &mut stored] {
        assert!(said(model).is_empty(), "nobody typed it");
        let shown = screen(model, 60, 10);
        assert_eq!(shown.matches("◦ agent:expert: [@agent:Expert#expert] finish").count(), 1, "{shown}");
    }
}

#[test]
fn delegate_heading_is_same_live_and_after_reload() {
    let result = json!({ "streamed": true, "run_id": "r1", "agent_id": "expert", "response": "It is 42." });
    let message = json!({ "id": "m1", "role": "tool", "text": result.to_string(), "turn_id": "t1",
        "parts": [{ "type": "tool_result", "call_id": "c1", "name": "delegate_to_agent", "is_error": false }] });
    for (face, heading) in [(None, "Expert"), (Some("🦉 Expert"), "🦉 Expert")] {
        let mut model = chat();
        model.faces.extend(face.map(|face| ("expert".to_owned(), face.to_owned())));
        let speaks =
            json!({ "turn_id": "t1", "run_id": "r1", "agent_id": "expert", "name": "Expert", "text": "It" });
        frame(&mut model, "delegate.delta", speaks);
        let named = |model: &ChatState| matches!(&model.entries[0], TranscriptEntry::DelegateText { name, .. } if name == heading);
        assert!(named(&model), "{:?}", model.entries);
        load(&mut model, json!({}), vec![message.clone()]);
        assert!(named(&model), "{:?}", model.entries);
    }
}

#[test]
fn message_from_another_client_is_shown() {
    let mut model = chat();
    frame(
        &mut model,
        "message.accepted",
        json!({ "message_id": "m9", "turn_id": "t9", "text": "from the web", "waiting": false }),
    );
    assert_eq!(said(&model), [("from the web", UserMessageState::Accepted)]);
}

#[test]
fn frames_of_an_ended_turn_are_ignored() {
    let mut model = chat();
    delta(&mut model, "t1", "one");
    ended(&mut model, "t1", "done", Some("one"));
    delta(&mut model, "t1", "one");
    ended(&mut model, "t1", "done", Some("one"));
    assert_eq!(answers(&model), ["one"]);
}

#[test]
fn fallback_restarts_answer_and_tool_call_splits_it() {
    let mut model = chat();
    delta(&mut model, "t1", "half an ans");
    frame(&mut model, "turn.restarted", json!({ "turn_id": "t1" }));
    delta(&mut model, "t1", "Let me look.");
    frame(
        &mut model,
        "tool.started",
        json!({ "turn_id": "t1", "call_id": "c1", "name": "shell", "arguments": { "command": "ls" } }),
    );
    frame(&mut model, "tool.output", json!({ "turn_id": "t1", "call_id": "c1", "text": "a\nb\n" }));
    let Some(TranscriptEntry::Tool(tool)) = model.entries.last() else { panic!() };
    assert_eq!(
        (tool.arguments.as_str(), tool.visible_output(), tool.state),
        ("ls", vec!["a", "b"], ToolState::Running)
    );
    frame(
        &mut model,
        "tool.ended",
        json!({ "turn_id": "t1", "call_id": "c1", "name": "shell", "is_error": true, "text": "exit 1" }),
    );
    delta(&mut model, "t1", "Done.");
    ended(&mut model, "t1", "done", Some("Done."));
    assert_eq!(answers(&model), ["Let me look.", "Done."]);
    let shown = screen(&mut model, 60, 20);
    assert!(shown.contains("✗ shell ls") && shown.contains("│ exit 1"), "{shown}");
}

#[test]
fn approval_is_answered_by_key_only_while_input_is_empty() {
    let mut model = chat();
    frame(
        &mut model,
        "approval.requested",
        json!({ "approval_id": "a1", "turn_id": "t1", "tool": "shell", "arguments": { "command": "rm -r x" } }),
    );
    let shown = screen(&mut model, 60, 14);
    assert!(shown.contains("shell wants to run") && shown.contains("rm -r x"), "{shown}");
    type_in(&mut model, "o");
    assert!(key(&mut model, KeyCode::Char('y')).is_empty(), "a letter of a message");
    assert_eq!(model.input.text(), "oy");
    model.input.clear();
    assert_eq!(
        key(&mut model, KeyCode::Char('n')),
        [ChatEffect::Decide { id: "a1".into(), decision: ApprovalDecision::Deny }]
    );
    frame(&mut model, "approval.decided", json!({ "approval_id": "a1", "state": "denied" }));
    assert!(model.open_question().is_none());
    key(&mut model, KeyCode::Char('y'));
    assert_eq!(model.input.text(), "y");
}

#[test]
fn approval_is_answered_by_typed_word_and_enter() {
    let asked = json!({ "approval_id": "a1", "turn_id": "t1", "tool": "shell", "arguments": {} });
    let approve = [ChatEffect::Decide { id: "a1".into(), decision: ApprovalDecision::Approve }];
    // The word was typed before the request appeared.
    for word in ["y", "Yes"] {
        let mut model = chat();
        type_in(&mut model, word);
        frame(&mut model, "approval.requested", asked.clone());
        assert_eq!(key(&mut model, KeyCode::Enter), approve);
        assert!(model.input.is_empty());
    }
    // One key answers. The Enter or the rest of the word that follows is no message.
    for rest in ["", "es"] {
        let mut model = chat();
        frame(&mut model, "approval.requested", asked.clone());
        assert_eq!(key(&mut model, KeyCode::Char('y')), approve);
        assert!(send(&mut model, rest).is_empty() && model.input.is_empty() && said(&model).is_empty());
        frame(&mut model, "approval.decided", json!({ "approval_id": "a1", "state": "approved" }));
        assert_eq!(send(&mut model, "es").len(), 2, "later it is a message again");
    }
}

#[test]
fn approval_closes_when_it_expires_or_its_turn_ends() {
    let mut model = chat();
    for (id, turn) in [("a1", "t1"), ("a2", "t2")] {
        let asked = json!({ "approval_id": id, "turn_id": turn, "tool": "shell", "arguments": {} });
        frame(&mut model, "approval.requested", asked);
    }
    frame(&mut model, "approval.decided", json!({ "approval_id": "a1", "state": "expired" }));
    assert_eq!(model.open_question().unwrap().id, "a2");
    ended(&mut model, "t2", "cancelled", None);
    assert!(model.open_question().is_none());
    let shown = screen(&mut model, 60, 20);
    assert!(shown.contains("expired") && shown.contains("no longer needed"), "{shown}");
    assert!(key(&mut model, KeyCode::Char('y')).is_empty());
    assert_eq!(model.input.text(), "y");
}

#[test]
fn escape_stops_turn_and_second_ctrl_c_quits() {
    let mut model = chat();
    assert!(key(&mut model, KeyCode::Esc).is_empty());
    started(&mut model, "t1");
    assert_eq!(key(&mut model, KeyCode::Esc), [ChatEffect::Stop]);
    ended(&mut model, "t1", "cancelled", None);
    assert!(screen(&mut model, 60, 10).contains("Stopped."));
    type_in(&mut model, "draft");
    assert!(ctrl(&mut model, 'c').is_empty() && model.input.is_empty());
    type_in(&mut model, "x");
    assert!(ctrl(&mut model, 'c').is_empty(), "typing disarms it");
    assert_eq!(ctrl(&mut model, 'c'), [ChatEffect::Quit]);
}

#[test]
fn slash_commands_are_completed_and_sent_as_commands() {
    let mut model = chat();
    type_in(&mut model, "/mo");
    assert!(screen(&mut model, 90, 20).contains("/models"));
    key(&mut model, KeyCode::Down);
    key(&mut model, KeyCode::Tab);
    assert_eq!(model.input.text(), "/model ");
    type_in(&mut model, "lab/demo");
    assert_eq!(key(&mut model, KeyCode::Enter)[1], ChatEffect::Command("/model lab/demo".into()));
    type_in(&mut model, "/sta");
    assert_eq!(
        key(&mut model, KeyCode::Enter)[1],
        ChatEffect::Command("/status".into()),
        "no argument: at once"
    );
    assert_eq!(
        send(&mut model, "/team")[1],
        ChatEffect::Command("/team".into()),
        "what it takes may be left out"
    );
    assert!(send(&mut model, "/focus").is_empty(), "what it takes may not");
    assert_eq!(model.input.text(), "/focus ");
    model.input.clear();
    assert_eq!(send(&mut model, "/stop")[1], ChatEffect::Stop);
    assert!(matches!(&send(&mut model, "/etc/hosts is a file")[1], ChatEffect::Send { .. }));
    assert_eq!(send(&mut model, "/quit")[1], ChatEffect::Quit);
}

#[test]
fn stored_transcript_replaces_live_entries_but_not_unsent_messages() {
    let mut model = chat();
    delta(&mut model, "t1", "a piece of");
    send(&mut model, "not accepted yet");
    let messages = vec![
        json!({ "id": "m1", "role": "user", "text": "hi", "turn_id": "t1", "parts": [] }),
        json!({ "id": "m2", "role": "assistant", "text": "", "turn_id": "t1",
            "parts": [{ "type": "tool_call", "id": "c1", "name": "read_file", "arguments": { "path": "a", "lines": 3 } }] }),
        json!({ "id": "m3", "role": "tool", "text": "content", "turn_id": "t1",
            "parts": [{ "type": "tool_result", "call_id": "c1", "name": "read_file", "is_error": false }] }),
        json!({ "id": "m4", "role": "assistant", "text": "It says content.", "turn_id": "t1", "parts": [] }),
    ];
    let approvals = vec![
        json!({ "id": "a1", "session_key": SESSION, "state": "pending", "tool": "shell", "arguments": {} }),
        json!({ "id": "a2", "session_key": "agent:other:main", "state": "pending", "tool": "shell", "arguments": {} }),
    ];
    let stored = json!({ "active_agent_id": "ops", "model": null, "running_turn_id": "t2" });
    let messages = messages.into_iter().map(message).collect();
    let approvals = approvals.into_iter().map(approval).collect();
    model.handle_event(ChatEvent::Loaded { session: session(stored), messages, approvals });
    assert_eq!(
        said(&model),
        [("hi", UserMessageState::Accepted), ("not accepted yet", UserMessageState::Sending)]
    );
    assert_eq!(answers(&model), ["It says content."]);
    assert_eq!(model.open_question().unwrap().id, "a1");
    assert_eq!((model.agent.as_str(), model.running.as_deref()), ("ops", Some("t2")));
    assert!(screen(&mut model, 80, 24).contains("✓ read_file path=a lines=3"));
}

#[test]
fn replay_gap_reloads_the_conversation() {
    assert_eq!(frame(&mut chat(), "replay.gap", json!({})), [ChatEffect::Reload]);
}

#[test]
fn failed_turn_and_refused_message_show_their_reason() {
    let mut model = chat();
    ended(&mut model, "t1", "failed", Some("The model did not answer."));
    let effects = send(&mut model, "hello");
    let ChatEffect::Send { key, .. } = &effects[1] else { panic!() };
    model.handle_event(ChatEvent::Refused { key: key.clone(), reason: "50 messages already wait".into() });
    let shown = screen(&mut model, 60, 14);
    assert!(shown.contains("The model did not answer.") && shown.contains("not accepted"), "{shown}");
}

#[test]
fn connection_state_is_shown_in_chat() {
    let mut model = chat();
    assert!(screen(&mut model, 60, 8).contains("ready"));
    model.handle_event(ChatEvent::Link(LinkState::Lost));
    assert!(screen(&mut model, 60, 8).contains("reconnecting"));
}

#[test]
fn scrolling_stops_at_first_line_and_sending_jumps_to_last() {
    let mut model = chat();
    for n in 0..50 {
        ended(&mut model, &format!("t{n}"), "done", Some(&format!("answer {n}")));
    }
    for _ in 0..30 {
        key(&mut model, KeyCode::PageUp);
    }
    assert!(screen(&mut model, 60, 14).contains("answer 0"));
    assert!(model.scroll < 100, "no further than there are lines: {}", model.scroll);
    send(&mut model, "back");
    assert!(screen(&mut model, 60, 14).contains("back"));
}

#[test]
fn multiline_input_renders_at_any_screen_size() {
    let mut model = chat();
    type_in(&mut model, "one");
    ctrl(&mut model, 'j');
    model.handle_key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
    model.paste_text("日本\r\nthree\x1b[31m");
    assert_eq!(model.input.text(), "one\n\n日本\nthree[31m");
    for (width, height) in [(80, 24), (20, 8), (5, 4), (1, 1)] {
        screen(&mut model, width, height);
    }
}

#[test]
fn answer_cut_at_length_limit_is_marked_live_and_stored() {
    let mut live = chat();
    started(&mut live, "t1");
    let end = json!({ "turn_id": "t1", "state": "done", "text": "and then the", "truncated": true });
    frame(&mut live, "turn.ended", end);
    let mut stored = chat();
    let cut = json!({ "id": "m1", "role": "assistant", "text": "and then the", "turn_id": "t1", "parts": [],
        "meta": { "finish_reason": "length" } });
    load(&mut stored, json!({}), vec![cut]);
    for model in [&mut live, &mut stored] {
        assert!(screen(model, 70, 12).contains("Cut off here"));
    }
}

#[test]
fn team_panel_follows_team_changes_while_open() {
    let mut model = chat();
    assert_eq!(frame(&mut model, "team.changed", json!({ "change": {} })), [], "nobody looks");
    assert_eq!(ctrl(&mut model, 't'), [ChatEffect::FetchTeams]);
    assert!(screen(&mut model, 100, 14).contains("No teams."));
    let web = json!({
        "name": "web", "status": "active", "lead_status": "idle", "counts": { "pending": 1, "in_progress": 1, "completed": 1 },
        "members": [{ "name": "ann", "status": "working", "tasks": ["#2 Writing"] }, { "name": "bob", "status": "idle" }],
        "open": [
            { "task_id": 2, "status": "in_progress", "title": "Writing", "owner": "ann", "blocked_by": [] },
            { "task_id": 3, "status": "pending", "title": "Check\u{1b}[2J it", "owner": null, "blocked_by": [2] },
        ],
        "ended": [{ "task_id": 1, "status": "completed", "title": "Plan", "owner": "bob", "blocked_by": [] }],
    });
    model.handle_event(ChatEvent::Teams(vec![team(web)]));
    frame(&mut model, "turn.notice", json!({ "text": "the conversation" }));
    insta::assert_snapshot!(screen(&mut model, 100, 14));
    let narrow = screen(&mut model, 60, 14);
    assert!(narrow.contains("@ann working") && !narrow.contains("the conversation"), "{narrow}");
    assert_eq!(frame(&mut model, "team.changed", json!({ "change": {} })), [ChatEffect::FetchTeams]);
    assert_eq!(ctrl(&mut model, 't'), []);
    let late = json!({ "name": "late", "status": "active", "lead_status": "idle", "counts": {}, "members": [], "open": [], "ended": [] });
    model.handle_event(ChatEvent::Teams(vec![team(late)]));
    assert!(!screen(&mut model, 100, 14).contains("late"), "what is closed stays closed");
}

#[test]
fn team_panel_shows_waiting_and_failing_and_omitted_items() {
    let mut model = chat();
    ctrl(&mut model, 't');
    let streak = json!({ "since": NOON, "code": "provider_failed", "failures": 3 });
    let task = |no: u32| json!({ "task_id": no, "status": "pending", "title": "Draw the header of the new page", "blocked_by": [] });
    let web = json!({
        "name": "web", "status": "active", "lead_status": "idle", "counts": { "pending": 9 },
        "turns": { "used": 20, "limit": 20, "is_waiting": true },
        "members": [
            { "name": "ann", "status": "idle", "plan": "submitted", "tasks": [] },
            { "name": "somebody-with-a-very-long-name-indeed", "status": "working", "tasks": ["#1 Draws the header of the page"] },
            { "name": "bob", "status": "idle", "failure_streak": streak },
        ],
        "open": (1..=9).map(task).collect::<Vec<_>>(), "ended": [],
    });
    model.handle_event(ChatEvent::Teams(vec![team(web)]));
    insta::assert_snapshot!(screen(&mut model, 100, 18));
}
