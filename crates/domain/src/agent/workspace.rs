//! Where an agent's files are: `{dir, overlay}`, or the folder alone as text.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where its files are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// Absolute, or below the instance's workspace; that itself if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Whether files in `agents/<id>/` of the instance's workspace stand before those of the same name in it.
    pub overlay: bool,
}

impl Default for Workspace {
    fn default() -> Self {
        Self { dir: None, overlay: true }
    }
}

impl Workspace {
    /// The folder itself, for an instance whose workspace this is.
    pub fn folder(&self, instance: &Path) -> PathBuf {
        instance.join(self.dir.as_deref().unwrap_or_default())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Folder(String),
    Whole(Whole),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    dir: Option<String>,
    #[serde(default = "yes")]
    overlay: bool,
}

fn yes() -> bool {
    true
}

impl<'de> Deserialize<'de> for Workspace {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer);
        let written =
            written.map_err(|_| serde::de::Error::custom("workspace is a folder, or {dir, overlay}"))?;
        Ok(match written {
            Written::Folder(dir) => Self { dir: Some(dir), overlay: true },
            Written::Whole(Whole { dir, overlay }) => Self { dir, overlay },
        })
    }
}

impl JsonSchema for Workspace {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Workspace".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Where its files are: a folder, absolute or below the instance's workspace, or both of:",
            "type": ["string", "object"],
            "properties": {
                "dir": {
                    "type": "string",
                    "description": "Absolute, or below the instance's workspace; that itself if left out.",
                },
                "overlay": {
                    "type": "boolean",
                    "default": true,
                    "description": "Whether files in agents/<id>/ of the instance's workspace stand before those of the same name in it.",
                },
            },
            "additionalProperties": false,
        })
    }
}
