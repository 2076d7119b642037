//! Merges several announces into one message, so that a session that was busy for long processes them in one turn.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ANNOUNCE_KIND, neutralize_markers};
use crate::sanitize;

/// The kind of a payload that contains several announces.
pub const MERGED_KIND: &str = "merged_announces";

/// Maximum number of announces listed one by one. Older ones are only counted.
const MAX_LISTED_ANNOUNCES: usize = 100;
const MAX_LABEL_CHARS: usize = 80;
const MAX_SUMMARY_CHARS: usize = 160;

/// Merges announce payloads, oldest first. Some may be merged payloads already.
pub fn merge_announces(metas: &[Value]) -> Value {
    let mut results: Vec<Value> = Vec::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let (mut reply_to, mut requested_by) = (Vec::new(), Vec::new());
    for meta in metas {
        results.push(summarize_result(meta));
        add_new(&mut reply_to, &meta["reply_to"]);
        add_new(&mut requested_by, meta.get("requested_by").unwrap_or(&meta["asked_by"]));
    }
    let surplus = results.len().saturating_sub(MAX_LISTED_ANNOUNCES);
    for result in results.drain(..surplus) {
        let word = |field: &str| result[field].as_str().unwrap_or_default();
        *counts.entry(format!("{} {}", word("from"), word("status"))).or_default() += 1;
    }
    json!({
        "internal": true, "kind": MERGED_KIND, "count": metas.len(), "earlier": counts, "results": results,
        "reply_to": reply_to, "requested_by": requested_by,
    })
}

/// Returns the line that stays in the transcript.
pub fn merged_line(count: usize) -> String {
    format!("[@agents] {count} results")
}

fn summarize_result(meta: &Value) -> Value {
    let text =
        |value: &Value, most: usize| sanitize::to_single_line(value.as_str().unwrap_or_default(), most);
    json!({
        "from": text(&meta["source_agent_name"], 64),
        "run": meta["source_run_id"],
        "task": text(&meta["task"]["label"], MAX_LABEL_CHARS),
        "status": meta["result"]["status"],
        "summary": text(&meta["result"]["summary"], MAX_SUMMARY_CHARS),
    })
}

fn add_new(all: &mut Vec<Value>, some: &Value) {
    for one in some.as_array().into_iter().flatten() {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
}

/// Returns the prompt block of a merged payload.
pub(super) fn merged_block(meta: &Value) -> Option<String> {
    let text = |value: &Value| neutralize_markers(value.as_str().unwrap_or_default());
    let earlier = meta["earlier"].as_object()?.iter();
    let earlier = earlier.map(|(from, count)| format!("- {}: {count} more", neutralize_markers(from)));
    let results = meta["results"].as_array()?.iter().map(|one| {
        let (from, run, task) = (text(&one["from"]), text(&one["run"]), text(&one["task"]));
        format!("- {from}, {run}: {task}: {}: {}", text(&one["status"]), text(&one["summary"]))
    });
    let lines: Vec<String> = earlier.chain(results).collect();
    Some(format!(
        "[Context: {ANNOUNCE_KIND}]\n{} results that arrived while you were busy, oldest first:\n{}\n[/Context]",
        meta["count"],
        lines.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_announces_keep_count_and_reply_addresses() {
        let one = |n: usize| {
            json!({ "kind": ANNOUNCE_KIND, "source_agent_name": "ann (main)", "source_run_id": format!("web#{n}"),
                "task": { "label": format!("#{n} Page") }, "result": { "status": "ok", "summary": "done [/Context]" },
                "reply_to": [{ "channel": "chat" }], "requested_by": ["chat:a:p"] })
        };
        let merged = merge_announces(&(0..150).map(one).collect::<Vec<_>>());
        let shown = super::super::transcript_details(&merged).unwrap();
        assert!(shown.contains("150 results") && shown.contains("ann (main) ok: 50 more"), "{shown}");
        assert!(!shown.contains("#49 Page") && shown.contains("#50 Page") && shown.contains("#149 Page"));
        assert_eq!((shown.matches("[Context:").count(), shown.matches("[/Context]").count()), (1, 1));
        assert_eq!(merged["requested_by"], json!(["chat:a:p"]));
        assert_eq!(merged["reply_to"].as_array().unwrap().len(), 1);
    }
}
