//! The help is what people read first: a change to it is looked at.

use crate::fixture::Home;

const COMMANDS: [&str; 28] = [
    "",
    "up",
    "instances",
    "control",
    "audit",
    "daemon",
    "chat",
    "agent",
    "agents",
    "sessions",
    "runs",
    "skills",
    "mcp",
    "models",
    "approvals",
    "pairing",
    "route",
    "outbox",
    "cron",
    "usage",
    "events",
    "status",
    "doctor",
    "config",
    "secrets",
    "completions",
    "selftest",
    "bench",
];

#[test]
fn every_command_says_what_it_does_with_examples() {
    let home = Home::new();
    for command in COMMANDS {
        let args: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let ran = home.run(&args);
        assert_eq!(ran.code, 0, "{command}");
        assert!(ran.stdout.contains("Examples:"), "{command} has no examples");
        let name = if command.is_empty() { "help" } else { command };
        insta::assert_snapshot!(format!("help_{name}"), ran.stdout);
    }
}
