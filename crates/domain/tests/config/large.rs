//! Files with very many entries: the time to check them must grow linearly, not quadratically.

use std::time::{Duration, Instant};

use crate::toml;

/// Parses a file. Returns the duration and the number of errors.
fn check(text: &str) -> (Duration, usize) {
    let began = Instant::now();
    let errors = toml(text).err().map_or(0, |errors| errors.0.len());
    (began.elapsed(), errors)
}

fn agents(count: usize, more: impl Fn(usize) -> String) -> String {
    let mut text = "agents.default = \"a0\"\n".to_owned();
    for index in 0..count {
        text += &format!("[[agents.list]]\nid = \"a{index}\"\n{}\n", more(index));
    }
    text
}

/// Four times the entries may take at most eight times as long; a check of all pairs would take sixteen times. The
/// minimum keeps the test stable on a busy machine.
fn assert_linear_time(what: &str, text: impl Fn(usize) -> String) {
    let (small, _) = check(&text(2_000));
    let (large, _) = check(&text(8_000));
    let most = small.max(Duration::from_millis(250)) * 8;
    assert!(large < most, "{what}: {small:?} for 2,000, {large:?} for 8,000");
}

#[test]
fn agent_checks_run_in_linear_time() {
    assert_linear_time("sound", |count| agents(count, |_| String::new()));
    assert_linear_time("one name", |count| agents(count, |_| "name = \"same\"".to_owned()));
    assert_linear_time("each names another", |count| {
        agents(count, |index| format!("subagents.allow_agents = [\"a{}\"]", count - index - 1))
    });
    assert_linear_time("each names none", |count| {
        agents(count, |index| format!("subagents.allow_agents = [\"nobody{index}\"]"))
    });
}

#[test]
fn rule_checks_run_in_linear_time() {
    assert_linear_time("jobs", |count| {
        let job = |index: usize| {
            format!(
                "[channels.webhook.h{index}]\nsecret = \"a secret of {index}\"\n\
                 [[cron]]\nid = \"j{index}\"\nschedule = \"every 10m\"\nmessage = \"go\"\n\
                 deliver_to = {{ channel = \"webhook\", account = \"h{index}\", peer = \"1\" }}\n"
            )
        };
        (0..count).map(job).collect()
    });
    assert_linear_time("unreadable values", |count| {
        agents(count, |index| format!("temperature = \"x\"\nidentity.emoji = \"x{index}\""))
    });
}

#[test]
fn excess_errors_are_counted_not_listed() {
    let errors = toml(&agents(1_000, |_| "name = \"same\"".to_owned())).unwrap_err().0;
    assert_eq!(errors.len(), 201);
    assert_eq!(errors[0].path, "agents.list[1].name");
    assert_eq!(errors[200].message, "and 799 more errors");
}
