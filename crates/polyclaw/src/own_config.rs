//! Changes the config file of this home: comments stay, what can not be taken is not written, and a daemon that runs
//! works with it at once or keeps the old.

use std::fs;
use std::time::{Duration, Instant};

use polyclaw_control::lock::HeldLock;
use polyclaw_control::{Error, InstancePaths, file};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, UNREACHABLE};
use crate::failure::{Exit, Failure};
use crate::home::refused;

/// How long whoever else acts on this home is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub async fn change(
    context: &Context,
    client: &Client,
    change: impl Fn(&str) -> Result<String, Failure>,
) -> anyhow::Result<()> {
    if context.global.url().is_some() {
        return Err(Failure::usage("the config of an instance elsewhere is changed there")
            .hint("`polyclaw instances config edit` changes that of any instance of a control plane")
            .into());
    }
    let _alone = alone(context).await?;
    let before = read(context)?;
    let after = change(&before)?;
    replace(context, &before, &after)?;
    if !context.home.is_served() {
        let told = json!({ "outcome": "saved" });
        return Ok(context
            .output
            .say(&told, |_| "It is written; the next start begins with it.".to_owned())?);
    }
    let reloaded = client.post("/config/reload", &json!({})).await;
    let reloaded = reloaded.map_err(|failure| undo(context, (&before, &after), failure))?;
    tell(context, reloaded)
}

/// Writes what can be taken, where nobody wrote meanwhile: whoever does so by hand takes no lock.
fn replace(context: &Context, before: &str, after: &str) -> Result<(), Failure> {
    let checked = context.home.load_unresolved(after);
    checked
        .map_err(|errors| Failure::failed("bad_config", errors.to_string()).hint("nothing was written"))?;
    if read(context)? != before {
        return Err(Failure::new(Exit::Conflict, "etag_stale", "somebody else changed the config meanwhile")
            .hint("nothing was written; look at what changed, and try again"));
    }
    write(context, after)
}

fn tell(context: &Context, mut reloaded: Value) -> anyhow::Result<()> {
    reloaded["outcome"] = json!("reloaded");
    let later = reloaded["restart_required"].as_array().is_some_and(|list| !list.is_empty());
    Ok(context.output.say(&reloaded, |_| match later {
        false => "It is written, and works from now on.".to_owned(),
        true => format!("It is written; a restart is needed for {}.", reloaded["restart_required"]),
    })?)
}

/// The old config again, unless nobody is there who could object. What somebody wrote meanwhile is theirs.
fn undo(context: &Context, (before, after): (&str, &str), failure: Failure) -> Failure {
    if failure.code == UNREACHABLE {
        return failure.hint("it is written; the next start begins with it");
    }
    let undone = read(context).and_then(|now| if now == after { write(context, before) } else { Ok(()) });
    undone.err().unwrap_or(failure)
}

/// The control plane changes this file under the same lock.
async fn alone(context: &Context) -> Result<HeldLock, Failure> {
    let (place, began) = (InstancePaths::from_folder(context.home.path().to_owned()), Instant::now());
    loop {
        if let Some(held) = place.try_lock()? {
            return Ok(held);
        }
        if began.elapsed() > PATIENCE {
            return Err(Error::Busy(context.home.path().display().to_string()).into());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn read(context: &Context) -> Result<String, Failure> {
    let path = context.home.config();
    fs::read_to_string(&path).map_err(|error| refused(&path, &error))
}

fn write(context: &Context, text: &str) -> Result<(), Failure> {
    let path = context.home.config();
    // What was there before stays beside it.
    let before = InstancePaths::from_folder(context.home.path().to_owned()).config_backup();
    file::replace_with_backup(&path, text.as_bytes(), &before).map_err(|error| refused(&path, &error))
}
