//! The config examples of the guide are valid.

use std::path::Path;

use polyclaw_domain::config::{self, ExternalReference};

use super::world;

/// Returns the TOML blocks of a page.
fn examples(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let blocks = text.split("```toml\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

/// An example is a part of a file, so agents and accounts that it names may be defined elsewhere.
fn is_elsewhere(message: &str) -> bool {
    message.starts_with("there is no agent") || message.starts_with("there is no account")
}

#[test]
fn every_guide_example_is_valid_config() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_dir(root.join("docs/guide")).expect("the guide").flatten();
    let pages = guide.map(|entry| entry.path()).chain([root.join("README.md")]);
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        for example in examples(&page) {
            seen += 1;
            let everything = |source: ExternalReference<'_>| {
                world(source).or_else(|_| Ok(format!("what is at {source:?}")))
            };
            let errors = config::load(&example, "config.toml", &everything)
                .err()
                .map(|errors| errors.0)
                .unwrap_or_default();
            let errors = errors.into_iter().filter(|error| !is_elsewhere(&error.message));
            wrong.extend(errors.map(|error| format!("{}: {error}\n{example}", page.display())));
        }
    }
    assert!(seen > 20, "only {seen} examples were found: does this test still read them?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
