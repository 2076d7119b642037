//! Snapshots of the help texts, so that changes are reviewed.

use crate::fixture::Home;

/// The commands or verbs that a help lists.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

/// The help of a command followed by that of its subcommands.
fn whole(home: &Home, path: &[String]) -> String {
    let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let ran = home.run(&args);
    assert_eq!(ran.code, 0, "{path:?}: {}", ran.stderr);
    assert!(ran.stdout.contains("Examples:\n"), "{path:?} has no examples");
    let mut text = ran.stdout.clone();
    for verb in listed(&ran.stdout) {
        let below = [path, &[verb]].concat();
        text += &format!("\n---- polyclaw {}\n\n{}", below.join(" "), whole(home, &below));
    }
    text
}

/// The location of memories cannot be configured.
#[test]
fn help_mentions_no_other_memory_backend() {
    let home = Home::new();
    let help = whole(&home, &["memory".to_owned()]) + &home.run(&["--help"]).stdout;
    for word in ["backend", "markdown file"] {
        assert!(!help.to_lowercase().contains(word), "{word} is in {help}");
    }
}

#[test]
fn help_of_every_command_matches_snapshot_with_examples() {
    let home = Home::new();
    let first = home.run(&["--help"]);
    insta::assert_snapshot!("help_help", first.stdout);
    let commands = listed(&first.stdout);
    for named in ["memory", "messages", "migrate", "backup", "restore", "service", "teams", "tools", "model"]
    {
        assert!(commands.contains(&named.to_owned()), "{named} is not listed: {commands:?}");
    }
    for command in commands {
        let help = whole(&home, std::slice::from_ref(&command));
        insta::assert_snapshot!(format!("help_{command}"), help);
    }
}
