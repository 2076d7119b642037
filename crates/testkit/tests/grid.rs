//! The grid: which crate may use which. Adding an edge is a decision, and this table is where it is made.

use std::collections::{BTreeMap, BTreeSet};

const TABLE: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("folder", &["tree"]),
    ("tree", &[]),
    ("api", &["domain"]),
    ("store", &["domain"]),
    ("engine", &["domain", "folder", "store", "tree"]),
    ("control", &["domain", "folder", "store", "tree"]),
    ("provider", &["domain"]),
    ("tool", &["domain", "folder", "tree"]),
    ("channel", &["domain"]),
    ("server", &["api", "domain", "store", "engine", "control"]),
    ("testkit", &["domain", "store", "engine"]),
];

/// Normal dependencies between the crates of the workspace, from their manifests.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let short = |name: &str| name.strip_prefix("polyclaw-").unwrap_or(name).to_owned();
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .map(|package| {
            let used = package["dependencies"].as_array().expect("dependencies").iter();
            let used = used.filter(|dependency| dependency["kind"].is_null());
            let used = used.filter_map(|dependency| dependency["name"].as_str());
            let used = used.filter(|name| name.starts_with("polyclaw-")).map(short).collect();
            (short(package["name"].as_str().expect("a name")), used)
        })
        .collect()
}

#[test]
fn crates_depend_only_on_listed_crates() {
    let edges = edges();
    for (name, allowed) in TABLE {
        let used = edges.get(*name).unwrap_or_else(|| panic!("there is no crate {name}"));
        let wrong: Vec<_> = used.iter().filter(|used| !allowed.contains(&used.as_str())).collect();
        assert!(wrong.is_empty(), "{name} must not use {wrong:?}");
    }
    let known: BTreeSet<&str> = TABLE.iter().map(|(name, _)| *name).chain(["polyclaw"]).collect();
    let new: Vec<_> = edges.keys().filter(|name| !known.contains(name.as_str())).collect();
    assert!(new.is_empty(), "new crates need a row in the table: {new:?}");
}

#[test]
fn domain_crate_has_no_io_dependencies() {
    let manifest = include_str!("../../domain/Cargo.toml");
    let normal = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    for banned in ["tokio", "reqwest", "rusqlite", "getrandom", "tracing"] {
        assert!(!normal.lines().any(|line| line.starts_with(banned)), "domain must not use {banned}");
    }
}

/// Vector instructions need `unsafe`; they have one file, and no other may lift the ban.
#[test]
fn unsafe_code_is_allowed_in_one_file_only() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![crates.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                let lifts = ["allow", "expect", "warn"]
                    .iter()
                    .any(|word| text.contains(&format!("{word}(unsafe_code")));
                found.extend(lifts.then(|| path.strip_prefix(&crates).expect("below crates").to_owned()));
            }
        }
    }
    assert_eq!(found, [std::path::PathBuf::from("provider/src/embedded/kernel/avx2.rs")]);
}

/// `provider` has a list of lints of its own for that one file; it may differ in nothing else.
#[test]
fn provider_lints_match_workspace_except_unsafe() {
    let lints = |text: &str, from: &str| {
        let list = text.split(from).nth(1).expect("a list of lints").lines();
        let list = list.take_while(|line| !line.starts_with("[profile")).map(str::trim);
        let list = list.filter(|line| line.contains('=')).map(|line| line.replace("\"forbid\"", "\"deny\""));
        list.collect::<Vec<_>>()
    };
    let own = lints(include_str!("../../provider/Cargo.toml"), "[lints.rust]");
    assert_eq!(own, lints(include_str!("../../../Cargo.toml"), "[workspace.lints.rust]"));
    let manifests = [
        "api", "domain", "folder", "tree", "store", "engine", "control", "tool", "channel", "server",
        "testkit", "polyclaw",
    ];
    for manifest in manifests {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(manifest).join("Cargo.toml");
        let text = std::fs::read_to_string(path).expect("a manifest");
        assert!(text.contains("[lints]\nworkspace = true"), "{manifest} does not take the workspace's lints");
    }
}
