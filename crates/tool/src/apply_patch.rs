//! `apply_patch`: several files changed by one patch. All of it fits, or nothing is written.

mod patch;

use std::sync::Arc;

use polyclaw_domain::tool::{ToolEffect, ToolOutcome, ToolScope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::edit_file::text_of;
use crate::error::{Error, Result};
use crate::work;
use crate::workspace::{self, Place, Turnstile};
use crate::write_file::fits;
use patch::Change;

pub const NAME: &str = "apply_patch";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// From "*** Begin Patch" to "*** End Patch". Between: "*** Add File: path" and lines with + in front; "*** Update
    /// File: path" and hunks, each after a line "@@" or "@@ a line to find first", of lines with a space (kept), -
    /// (removed) or + (added) in front; "*** Delete File: path".
    patch: String,
}

pub fn spec() -> ToolSpec {
    ToolSpec {
        effect: ToolEffect::Effect,
        ..arguments::build_tool_spec::<Arguments>(
            NAME,
            "Adds, changes and deletes files by one patch. Nothing is written unless all of it fits.",
        )
    }
}

/// What becomes of one file.
struct Planned {
    place: Place,
    /// None: it goes.
    content: Option<String>,
    did: &'static str,
}

/// The files that a patch changes, as it names them.
pub fn paths(arguments: &Arguments) -> Result<Vec<String>> {
    let changes = patch::parse(&arguments.patch).map_err(Error::Edit)?;
    Ok(changes.into_iter().map(|(path, _)| path).collect())
}

pub async fn run(scope: &ToolScope, arguments: Arguments, turnstile: &Arc<Turnstile>) -> Result<ToolOutcome> {
    let workspace = scope.workspace.clone();
    let turnstile = Arc::clone(turnstile);
    let limit_mb = scope.sandbox.disk_limit_mb();
    let report = work::blocking(move |budget| {
        let changes = patch::parse(&arguments.patch).map_err(Error::Edit)?;
        let mut quotas = turnstile.pass();
        let mut planned: Vec<Planned> = Vec::with_capacity(changes.len());
        for (path, change) in changes {
            budget.check()?;
            let place = workspace::locate(&workspace, &path)?;
            if planned.iter().any(|other| other.place.inside() == place.inside()) {
                return Err(Error::Edit(format!("{path} is in the patch twice; put its hunks together")));
            }
            planned.push(plan(place, change)?);
        }
        for Planned { place, content, .. } in &planned {
            quotas.admit(place, content.as_ref().map_or(0, String::len) as u64, limit_mb)?;
        }
        write(planned)
    });
    Ok(ToolOutcome::ok(report.await?))
}

fn plan(place: Place, change: Change) -> Result<Planned> {
    let (content, did) = match change {
        Change::Add(content) => match place.kind() {
            Ok(_) => return Err(Error::path(place.shown(), "is there already; update it instead")),
            Err(_) => (Some(content), "added"),
        },
        Change::Update(hunks) => {
            let edited = patch::apply(&text_of(&place)?, &hunks)
                .map_err(|why| Error::Edit(format!("{}: {why}", place.shown())))?;
            (Some(edited), "changed")
        }
        Change::Delete => {
            place.open_file()?;
            (None, "deleted")
        }
    };
    if let Some(content) = &content {
        fits(place.shown(), content)?;
    }
    Ok(Planned { place, content, did })
}

fn write(planned: Vec<Planned>) -> Result<String> {
    let mut done: Vec<String> = Vec::new();
    for Planned { place, content, did } in planned {
        let written = match &content {
            Some(content) => place.replace(content.as_bytes()).map(drop),
            None => place.remove(),
        };
        match written {
            Ok(()) => done.push(format!("{did} {}", place.shown())),
            Err(error) if done.is_empty() => return Err(error),
            // Every part fitted, but the disk did not take it: say what is there now.
            Err(error) => return Err(Error::Edit(format!("{error}. Before that: {}", done.join(", ")))),
        }
    }
    Ok(done.join("\n"))
}
