//! Documentation that would otherwise drift.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The words a `fn code` of any crate can return.
fn codes() -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("crates").flatten() {
        sources(&entry.path().join("src"), &mut files);
    }
    let mut codes = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a source file");
        for body in text.split("fn code(").skip(1) {
            let body = body.split("\n    }").next().unwrap_or_default();
            let arms = body.split("=> \"").skip(1).filter_map(|arm| arm.split('"').next());
            // Words only: a terminal's colours have codes too.
            codes.extend(
                arms.filter(|code| code.starts_with(|c: char| c.is_ascii_lowercase())).map(str::to_owned),
            );
        }
    }
    codes.sort();
    codes.dedup();
    codes
}

#[test]
fn every_error_code_is_documented() {
    let page = std::fs::read_to_string(root().join("docs/errors.md")).expect("docs/errors.md");
    let codes = codes();
    assert!(codes.len() > 40, "only {} codes were found: does this test still read them?", codes.len());
    let missing: Vec<_> = codes.iter().filter(|code| !page.contains(&format!("`{code}`"))).collect();
    assert!(missing.is_empty(), "docs/errors.md lacks {missing:?}");
}

#[test]
fn local_links_between_pages_resolve() {
    for page in ["README.md", "ARCHITECTURE.md", "docs/decisions/README.md"] {
        let path = root().join(page);
        let text = std::fs::read_to_string(&path).expect(page);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let is_local = !file.is_empty() && !file.contains("://");
            assert!(
                !is_local || path.parent().expect("a parent").join(file).exists(),
                "{page} links to {target}"
            );
        }
    }
}
