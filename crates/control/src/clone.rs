//! Clones an instance: its config, files and secrets, but not its conversations, token or pairings.

use std::fs;

use polyclaw_domain::instance::InstanceName;
use polyclaw_folder::SkippedEntry;
use serde_json::json;

use crate::access::ControlCaller;
use crate::config::edit;
use crate::control::Control;
use crate::create::{make_instance_folders, write_file};
use crate::error::{Error, Result};
use crate::file;
use crate::instance_paths::InstancePaths;
use crate::view::{InstanceChange, InstanceSnapshot};

/// Folders that a clone gets besides the config.
const COPIED_FOLDERS: [&str; 3] = ["workspace", "workspaces", "skills"];
/// Files that hold the secrets the config may refer to.
const SECRET_FILES: [&str; 2] = ["secrets.json", "secrets.key"];

/// Maximum number of uncopied entries that are logged one by one.
const MAX_NAMED_SKIPPED: usize = 20;

impl Control {
    /// Clones an instance. It is locked meanwhile, and may be running.
    pub async fn clone_instance(
        &self,
        by: &ControlCaller,
        word: &str,
        name: &str,
        port: Option<u16>,
    ) -> Result<InstanceSnapshot> {
        let name = InstanceName::parse(name)?;
        let other = self.find_instance(word).await?;
        let _held = self.lock_instance(&other).await?;
        let _turn = self.creation_lock.lock().await;
        let port = self.choose_port(&name, port).await?;
        let one = self.new_instance(name, port, other.restart);
        let (from, to) = (self.instance_paths(&other), self.instance_paths(&one));
        let text = file::read_text(&from.config_file(), file::MAX_CONFIG_BYTES)
            .map_err(|_| Error::NoConfig(other.name.to_string()))?;
        let text = edit::merge_patch(&text, &json!({ "gateway": { "port": port } }))?;
        self.commit_instance(by, "instance.clone", &one, || {
            make_instance_folders(&to)?;
            let skipped = copy_contents(&from, &to)?;
            warn_about_skipped(&skipped);
            (self.load)(to.path(), &text).map_err(Error::BadConfig)?;
            write_file(&to.config_file(), text.as_bytes())
        })
        .await?;
        self.publish_change(&one.id, |instance| InstanceChange::InstanceCreated { instance }).await
    }
}

/// Returns what could not be copied, by its full path.
fn copy_contents(from: &InstancePaths, to: &InstancePaths) -> Result<Vec<SkippedEntry>> {
    let mut skipped = Vec::new();
    for name in COPIED_FOLDERS {
        let (source, target) = (from.path().join(name), to.path().join(name));
        if source.is_dir() {
            let left = file::copy_folder(&source, &target, &[]);
            let left = left.map_err(|error| Error::from_io(&source, &error))?;
            skipped.extend(left.into_iter().map(|one| SkippedEntry { path: source.join(&one.path), ..one }));
        }
    }
    for name in SECRET_FILES {
        let source = from.path().join(name);
        if let Ok(bytes) = fs::read(&source) {
            write_file(&to.path().join(name), &bytes)?;
        }
    }
    Ok(skipped)
}

fn warn_about_skipped(skipped: &[SkippedEntry]) {
    for SkippedEntry { path, reason } in skipped.iter().take(MAX_NAMED_SKIPPED) {
        // Agents choose the names in a workspace, so each is logged quoted, on one line.
        tracing::warn!(path = ?path, reason, "could not copy a file or folder; the clone does not contain it");
    }
    if skipped.len() > MAX_NAMED_SKIPPED {
        tracing::warn!(count = skipped.len(), "the clone does not contain some files or folders");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use rustix::fs::{CWD, FileType, Mode, RenameFlags};

    use super::*;

    /// The agent of a running instance exchanges a folder with a link while the instance is cloned.
    #[test]
    fn clone_does_not_follow_folder_replaced_by_symlink() {
        let room = tempfile::tempdir().unwrap();
        let (one, outside) = (room.path().join("one"), room.path().join("outside"));
        fs::create_dir_all(one.join("workspace/folder")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("note"), "secret").unwrap();
        fs::write(one.join("workspace/folder/note"), "mine").unwrap();
        rustix::fs::mknodat(CWD, one.join("workspace/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let (folder, link) = (one.join("workspace/folder"), one.join("workspace/link"));
        symlink(&outside, &link).unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let (until, from) = (Arc::clone(&ends), InstancePaths::from_folder(one));
        let exchanging = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let (end, mut leaked, mut number) = (Instant::now() + Duration::from_secs(3), false, 0);
        while Instant::now() < end && !leaked {
            number += 1;
            let to = room.path().join(format!("copy-{number}"));
            fs::create_dir(&to).unwrap();
            copy_contents(&from, &InstancePaths::from_folder(to.clone())).ok();
            leaked = ["folder", "link"].iter().any(|name| {
                let copied = to.join("workspace").join(name);
                !copied.is_symlink()
                    && fs::read_to_string(copied.join("note")).is_ok_and(|text| text == "secret")
            });
        }
        ends.store(true, Ordering::Relaxed);
        exchanging.join().unwrap();
        assert!(!leaked && number > 1, "a file outside the workspace was copied");
    }
}
