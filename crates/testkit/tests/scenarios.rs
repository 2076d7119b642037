//! The scenarios of teams, each with a test that is there and runs on both engines. The tables are at the head of the tests.
#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How many there are of each group.
const GROUPS: [(&str, usize); 6] =
    [("lifecycle", 11), ("tasks", 17), ("mailbox", 19), ("concurrency", 19), ("spawning", 18), ("lead", 18)];

const TABLES: [&str; 2] = ["crates/engine/tests/it/teams.rs", "crates/store/tests/it/tasks.rs"];

/// Where the tests are, each file a module; of folders all files.
const PLACES: [&str; 9] = [
    "crates/engine/tests/it/teams",
    "crates/engine/tests/it/privilege.rs",
    "crates/store/tests/it/tasks.rs",
    "crates/store/tests/it/tasks",
    "crates/store/src/sqlite/checkpoint.rs",
    "crates/store/src/sqlite/write_lock.rs",
    "crates/store/src/sqlite/busy_handler.rs",
    "crates/store/src/pg.rs",
    "crates/polyclaw/tests/crash/teams/story.rs",
];

/// What makes a test for each engine of every name in its list.
const ON_BOTH: [&str; 3] = ["on_both!(", "on_every_ledger!(", "at_every_place!("];

/// Two tests in place of one: each engine has its own way, or only one has what the scenario is about.
const OF_ONE_ENGINE: [&str; 7] = [
    "concurrency 5",
    "concurrency 8",
    "concurrency 9",
    "concurrency 14",
    "concurrency 15",
    "concurrency 19",
    "lead 18",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files() -> Vec<PathBuf> {
    let files = |place: &str| {
        let path = root().join(place);
        match path.is_dir() {
            true => fs::read_dir(path).unwrap().map(|one| one.unwrap().path()).collect(),
            false => vec![path],
        }
    };
    PLACES.into_iter().flat_map(files).collect()
}

/// Every test by `module::name`, and whether it runs on both engines.
fn tests() -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    for path in files() {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("#[ignore"), "{} leaves some out", path.display());
        // The crash tests tell the same story as the engine's.
        let is_crash = path.to_str().unwrap().contains("/crash/");
        let module = if is_crash { "crash" } else { path.file_stem().unwrap().to_str().unwrap() };
        let singles = ["#[test]\n", "#[tokio::test"].into_iter().flat_map(|mark| text.split(mark).skip(1));
        for name in singles.filter_map(|rest| rest.split_once("fn ")?.1.split('(').next()) {
            found.insert(format!("{module}::{name}"), false);
        }
        for list in ON_BOTH.into_iter().filter_map(|list| text.split_once(list)?.1.split(");").next()) {
            for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                assert!(text.contains(&format!("fn {name}(")), "{module}::{name} is a name only");
                found.insert(format!("{module}::{name}"), true);
            }
        }
    }
    found
}

/// The scenarios of each row, and its tests.
fn rows() -> Vec<(Vec<String>, Vec<String>)> {
    let row = |line: &str| {
        let (scenarios, tests) = line.strip_suffix(" |").unwrap().split_once(" | ").unwrap();
        let (group, numbers) = scenarios.split_once(' ').unwrap();
        let scenarios = numbers.split(", ").map(|number| format!("{group} {number}")).collect();
        let tests = tests.split(", ").map(|name| name.trim_matches('`').to_owned()).collect();
        (scenarios, tests)
    };
    let table = |path: &str| {
        let text = fs::read_to_string(root().join(path)).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("//! | ")).skip(1).map(row).collect::<Vec<_>>()
    };
    TABLES.into_iter().flat_map(table).collect()
}

#[test]
fn every_team_scenario_has_a_test_on_both_engines() {
    let (rows, tests) = (rows(), tests());
    let mut lines: Vec<&String> = rows.iter().flat_map(|(scenarios, _)| scenarios).collect();
    let asked = GROUPS.iter().flat_map(|(group, count)| (1..=*count).map(move |n| format!("{group} {n}")));
    let mut asked: Vec<String> = asked.collect();
    lines.sort();
    asked.sort();
    assert_eq!(lines, asked.iter().collect::<Vec<_>>(), "each scenario has one row");
    for (scenarios, names) in &rows {
        let on_both =
            |name: &String| *tests.get(name).unwrap_or_else(|| panic!("{scenarios:?}: no test {name}"));
        let found = names.iter().filter(|name| on_both(name)).count();
        let is_of_one = scenarios.iter().all(|one| OF_ONE_ENGINE.contains(&one.as_str()));
        let is_shown = found > 0 || is_of_one && names.len() > 1;
        assert!(is_shown, "{scenarios:?} is shown on one engine only");
    }
}
