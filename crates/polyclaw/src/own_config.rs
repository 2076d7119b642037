//! Changes the config file of this home: comments stay, what can not be taken is not written, and a daemon that runs
//! works with it at once or keeps the old.

use std::fs;

use polyclaw_control::{Error, Place, file};
use serde_json::json;

use crate::cli::Context;
use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::home::refused;

pub async fn change(
    context: &Context,
    client: &Client,
    change: impl Fn(&str) -> Result<String, Error>,
) -> anyhow::Result<()> {
    if context.global.url.is_some() {
        return Err(Failure::usage("the config of an instance elsewhere is changed there")
            .hint("`polyclaw instances config edit` changes that of any instance of a control plane")
            .into());
    }
    let path = context.home.config();
    let before = fs::read_to_string(&path).map_err(|error| refused(&path, &error))?;
    let after = change(&before).map_err(Failure::from)?;
    context
        .home
        .load(&after)
        .map_err(|errors| Failure::failed("bad_config", errors.to_string()).hint("nothing was written"))?;
    write(context, &after)?;
    if !context.home.is_served() {
        let told = json!({ "outcome": "saved" });
        return Ok(context
            .output
            .say(&told, |_| "It is written; the next start begins with it.".to_owned())?);
    }
    match client.post("/config/reload", &json!({})).await {
        Ok(mut reloaded) => {
            reloaded["outcome"] = json!("reloaded");
            let later = reloaded["restart_required"].as_array().is_some_and(|list| !list.is_empty());
            Ok(context.output.say(&reloaded, |_| match later {
                false => "It is written, and works from now on.".to_owned(),
                true => format!("It is written; a restart is needed for {}.", reloaded["restart_required"]),
            })?)
        }
        // Nobody is there who could object.
        Err(failure) if failure.exit == Exit::Unavailable => Err(failure.into()),
        Err(failure) => {
            write(context, &before)?;
            Err(failure.into())
        }
    }
}

fn write(context: &Context, text: &str) -> Result<(), Failure> {
    let path = context.home.config();
    // What was there before stays beside it.
    let before = Place::at(context.home.path().to_owned()).config_backup();
    file::replace(&path, text.as_bytes(), &before).map_err(|error| refused(&path, &error))
}
