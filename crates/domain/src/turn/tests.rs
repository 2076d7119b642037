use proptest::prelude::*;
use serde_json::json;

use super::*;

const LIMITS: TurnLimits = TurnLimits { rounds: 5, repeats: 4 };

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "read".into(), arguments: json!({ "path": id }) }
}

fn replied(ids: &[&str]) -> TurnEvent {
    TurnEvent::Replied { text: String::new(), calls: ids.iter().map(|id| call(id)).collect() }
}

fn resulted(id: &str, steered: bool) -> TurnEvent {
    TurnEvent::Resulted { call_id: id.into(), outcome: ToolOutcome::ok("x"), steered }
}

#[test]
fn reply_without_calls_finishes_turn() {
    let mut turn = Turn::new(LIMITS);
    assert_eq!(turn.apply_event(TurnEvent::Started { steered: false }), TurnEffect::CallModel);
    let done = turn.apply_event(TurnEvent::Replied { text: "hi".into(), calls: vec![] });
    assert_eq!(done, TurnEffect::Finish { text: "hi".into() });
}

#[test]
fn batch_calls_run_in_order_then_model_is_called() {
    let mut turn = Turn::new(LIMITS);
    assert_eq!(turn.apply_event(replied(&["a", "b"])), TurnEffect::RunTool(call("a")));
    assert_eq!(turn.apply_event(resulted("a", false)), TurnEffect::RunTool(call("b")));
    assert_eq!(turn.apply_event(resulted("b", false)), TurnEffect::CallModel);
}

#[test]
fn steer_skips_unstarted_calls_and_keeps_pairing() {
    let mut turn = Turn::new(LIMITS);
    turn.apply_event(replied(&["a", "b", "c"]));
    assert_eq!(
        turn.apply_event(resulted("a", true)),
        TurnEffect::Yield { skipped: vec![call("b"), call("c")] }
    );
}

#[test]
fn message_before_first_tool_result_does_not_steer() {
    let mut turn = Turn::new(LIMITS);
    assert_eq!(turn.apply_event(TurnEvent::Started { steered: true }), TurnEffect::CallModel);
}

#[test]
fn restored_turn_continues_at_stored_step() {
    let steps = || {
        vec![
            TurnStep::Called(vec![call("a"), call("b")]),
            TurnStep::Resulted { call_id: "a".into(), outcome: ToolOutcome::ok("x") },
        ]
    };
    let mut turn = Turn::restore_from_steps(LIMITS, steps());
    assert_eq!(turn.apply_event(TurnEvent::Started { steered: false }), TurnEffect::RunTool(call("b")));
    let mut steered = Turn::restore_from_steps(LIMITS, steps());
    assert_eq!(
        steered.apply_event(TurnEvent::Started { steered: true }),
        TurnEffect::Yield { skipped: vec![call("b")] }
    );
}

#[test]
fn repeated_identical_call_is_stopped_as_loop() {
    let mut turn = Turn::new(TurnLimits { rounds: 50, repeats: 4 });
    let same = |id: &str| ToolCall { id: id.into(), name: "poll".into(), arguments: json!({}) };
    for n in 1..=4 {
        let id = n.to_string();
        turn.apply_event(TurnEvent::Replied { text: String::new(), calls: vec![same(&id)] });
        let effect = turn.apply_event(resulted(&id, false));
        match n {
            4 => {
                assert!(matches!(effect, TurnEffect::Stop { reason: StopReason::Loop { times: 4, .. }, .. }));
            }
            _ => assert_eq!(effect, TurnEffect::CallModel),
        }
    }
}

#[test]
fn round_limit_stops_turn_with_paired_calls() {
    let mut turn = Turn::new(TurnLimits { rounds: 1, repeats: 9 });
    turn.apply_event(replied(&["a"]));
    turn.apply_event(resulted("a", false));
    let stop = turn.apply_event(replied(&["b"]));
    assert_eq!(stop, TurnEffect::Stop { reason: StopReason::TooManyRounds(1), skipped: vec![call("b")] });
}

#[test]
fn repeated_call_ids_become_distinct() {
    let mut turn = Turn::new(LIMITS);
    let mut first = vec![call("0"), call("0"), call("")];
    turn.assign_call_ids(&mut first);
    assert_eq!(first.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), ["0", "0-2", "call"]);
    turn.apply_event(TurnEvent::Replied { text: String::new(), calls: first });
    let mut second = vec![call("0")];
    turn.assign_call_ids(&mut second);
    assert_eq!(second[0].id, "0-3");
}

proptest! {
    /// For all batches and steers, every call is run once, or skipped once, unless the turn never ended.
    #[test]
    fn every_call_ends_exactly_once(batches in prop::collection::vec(1usize..4, 1..5), steer_at in prop::option::of(0usize..8)) {
        let mut turn = Turn::new(LIMITS);
        let (mut results, mut ended) = (0, 0);
        'turn: for (b, size) in batches.iter().enumerate() {
            let ids: Vec<String> = (0..*size).map(|i| format!("{b}-{i}")).collect();
            let mut effect = turn.apply_event(replied(&ids.iter().map(String::as_str).collect::<Vec<_>>()));
            loop {
                match effect {
                    TurnEffect::RunTool(call) => {
                        let steered = steer_at == Some(results);
                        results += 1;
                        ended += 1;
                        effect = turn.apply_event(resulted(&call.id, steered));
                    }
                    TurnEffect::Yield { skipped } => {
                        ended += skipped.len();
                        prop_assert_eq!(ended, batches[..=b].iter().sum::<usize>());
                        break 'turn;
                    }
                    _ => break,
                }
            }
            prop_assert_eq!(ended, batches[..=b].iter().sum::<usize>());
        }
    }
}
