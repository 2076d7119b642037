//! Tests of the status line.

use super::*;

const DEMO: &str = "embedded/smollm2-135m";

#[test]
fn demo_model_is_labelled_after_answers_and_after_reload() {
    let mut model = chat();
    model.model = DEMO.into();
    let last = |model: &mut ChatState| screen(model, 80, 8).lines().nth(7).unwrap().to_owned();
    assert!(last(&mut model).contains("embedded/smollm2-135m (demo)"), "{}", last(&mut model));
    started(&mut model, "t1");
    let end = json!({ "turn_id": "t1", "state": "done", "text": "Hi", "model": DEMO });
    frame(&mut model, "turn.ended", end);
    assert!(last(&mut model).contains("embedded/smollm2-135m (demo)"), "{}", last(&mut model));
    load(&mut model, json!({ "model": DEMO }), vec![]);
    assert!(last(&mut model).contains("embedded/smollm2-135m (demo)"), "{}", last(&mut model));
    load(&mut model, json!({ "model": "lab/large" }), vec![]);
    assert!(!last(&mut model).contains("demo"), "{}", last(&mut model));
}

#[test]
fn narrow_status_line_keeps_most_important_fields() {
    let mut model = chat();
    (model.model, model.agent, model.quit_armed) = (DEMO.into(), "main".into(), true);
    let mut last = |width: u16| screen(&mut model, width, 8).lines().nth(7).unwrap().to_owned();
    assert!(last(160).contains("real one · ") && last(160).contains(SESSION), "{}", last(160));
    for (width, kept, left_out) in [
        (130, "add a real one", SESSION),
        (110, "main · embedded/smollm2-135m (demo) · ready · Ctrl+C again quits", "often wrong"),
        (80, "main · embedded/smollm2-135m (demo) · ready · Ctrl+C again quits", "often wrong"),
        (40, "ready · Ctrl+C again quits", "smollm2"),
    ] {
        let line = last(width);
        assert!(line.contains(kept) && !line.contains(left_out), "{width}: {line}");
    }
}
