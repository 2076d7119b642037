//! An instance like another: its config, files and secrets, and none of its conversations, its token or whom it let in.

use std::fs;

use polyclaw_domain::instance::InstanceName;
use serde_json::json;

use crate::access::Caller;
use crate::config::edit;
use crate::control::Control;
use crate::create::{lay_out, write};
use crate::error::{Error, Result};
use crate::file;
use crate::place::Place;
use crate::view::{Change, View};

/// What a clone has of the other, besides the config.
const COPIED: [&str; 3] = ["workspace", "workspaces", "skills"];
/// The config may refer to what is kept in these.
const SECRETS: [&str; 2] = ["secrets.json", "secrets.key"];

impl Control {
    /// Nothing may be done to the other meanwhile; whether it runs does not matter.
    pub async fn clone_instance(
        &self,
        by: &Caller,
        word: &str,
        name: &str,
        port: Option<u16>,
    ) -> Result<View> {
        let name = InstanceName::parse(name)?;
        let other = self.row(word).await?;
        let _held = self.hold(&other).await?;
        let _turn = self.making.lock().await;
        let port = self.choose_port(&name, port).await?;
        let one = self.fresh(name, port, other.restart);
        let (from, to) = (self.place(&other), self.place(&one));
        let text = file::read_text(&from.config(), file::LARGEST_CONFIG)
            .map_err(|_| Error::NoConfig(other.name.to_string()))?;
        let text = edit::merge(&text, &json!({ "gateway": { "port": port } }))?;
        self.settle(by, "instance.clone", &one, || {
            lay_out(&to)?;
            copy(&from, &to)?;
            (self.load)(to.path(), &text).map_err(Error::BadConfig)?;
            write(&to.config(), text.as_bytes())
        })
        .await?;
        self.announce(&one.id, |instance| Change::InstanceCreated { instance }).await
    }
}

fn copy(from: &Place, to: &Place) -> Result<()> {
    for name in COPIED {
        let (source, target) = (from.path().join(name), to.path().join(name));
        if source.is_dir() {
            file::copy_folder(&source, &target, &[]).map_err(|error| Error::files(&source, &error))?;
        }
    }
    for name in SECRETS {
        let source = from.path().join(name);
        if let Ok(bytes) = fs::read(&source) {
            write(&to.path().join(name), &bytes)?;
        }
    }
    Ok(())
}
