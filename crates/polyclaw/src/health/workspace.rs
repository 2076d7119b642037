//! Checks the workspace folders of agents. A tool creates its agent's folder when it first needs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polyclaw_domain::config::Config;
use rustix::fs::{Access, access};

use super::HealthCheck;
use crate::home::Home;

/// Reports folders that neither exist nor can be created.
pub(super) fn check_folders(home: &Home, config: &Config) -> Option<HealthCheck> {
    let (root, default) = (home.workspace_dir(), config.agents.default_agent_id());
    let mut agents: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for spec in config.agents.agent_specs() {
        agents.entry(spec.workspace_folder(&root, &default)).or_default().push(spec.agent_id.to_string());
    }
    let notice = agents.iter().filter_map(|(folder, agents)| {
        let why = folder_obstacle(folder)?;
        Some(format!("{} of {}: {why}", folder.display(), agents.join(", ")))
    });
    let lines: Vec<String> = notice.collect();
    let hint = "create the folder for the user that runs the daemon, or set another workspace for the agent";
    (!lines.is_empty()).then(|| HealthCheck::fail("workspace", lines.join("; "), hint))
}

/// Returns why a folder cannot be used or created.
fn folder_obstacle(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|place| place.symlink_metadata().is_ok())?;
    let shown = there.display();
    if !there.is_dir() {
        return Some(format!("{shown} is not a folder"));
    }
    let wanted = Access::READ_OK | Access::EXEC_OK;
    // An existing folder may be read-only.
    let wanted = if there == folder { wanted } else { wanted | Access::WRITE_OK };
    access(there, wanted).is_err().then(|| {
        if there == folder {
            "it cannot be read".to_owned()
        } else {
            format!("it does not exist and cannot be created in {shown}")
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

    use super::*;

    #[test]
    fn folder_obstacle_names_file_or_link_in_the_path() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("file"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", home.path().join("link")).unwrap();
        for (folder, why) in [
            ("", None),
            ("ops/deep", None),
            ("file", Some("file is not a folder")),
            ("file/ops", Some("file is not a folder")),
            ("link", Some("link is not a folder")),
        ] {
            let text = folder_obstacle(&home.path().join(folder));
            assert_eq!(text.is_some(), why.is_some(), "{folder}: {text:?}");
            assert!(text.unwrap_or_default().ends_with(why.unwrap_or_default()), "{folder}");
        }
    }
}
