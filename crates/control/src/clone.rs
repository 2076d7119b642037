//! Clones an instance: its config, files and secrets, but not its conversations, token or pairings.

use std::fs;

use polyclaw_domain::instance::InstanceName;
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
            copy_contents(&from, &to)?;
            (self.load)(to.path(), &text).map_err(Error::BadConfig)?;
            write_file(&to.config_file(), text.as_bytes())
        })
        .await?;
        self.publish_change(&one.id, |instance| InstanceChange::InstanceCreated { instance }).await
    }
}

fn copy_contents(from: &InstancePaths, to: &InstancePaths) -> Result<()> {
    for name in COPIED_FOLDERS {
        let (source, target) = (from.path().join(name), to.path().join(name));
        if source.is_dir() {
            file::copy_folder(&source, &target, &[]).map_err(|error| Error::from_io(&source, &error))?;
        }
    }
    for name in SECRET_FILES {
        let source = from.path().join(name);
        if let Ok(bytes) = fs::read(&source) {
            write_file(&to.path().join(name), &bytes)?;
        }
    }
    Ok(())
}
