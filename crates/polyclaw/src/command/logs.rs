//! `polyclaw logs`: what the daemon of this home wrote.

use std::path::PathBuf;
use std::time::Duration;

use polyclaw_control::Place;
use polyclaw_control::log::{self, Follow};
use serde_json::json;

use crate::cli::Context;
use crate::failure::{Exit, Failure};
use crate::home::refused;
use crate::level::{LEVELS, is_at_least};
use crate::output::safe;

/// How often new lines are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// The last lines of the log of this home's daemon.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw logs
  polyclaw logs -f
  polyclaw logs -n 500 --level warn

A daemon that was started in a terminal, or by a service manager, writes there and not into a file. Logs of other
instances: `polyclaw instances logs <name>`.")]
pub struct Args {
    /// How many.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    lines: usize,
    /// Go on with new lines as they come.
    #[arg(short, long)]
    follow: bool,
    /// Only lines of this level and above.
    #[arg(long, value_parser = LEVELS)]
    level: Option<String>,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    if context.global.url().is_some() {
        return Err(Failure::usage("the log of an instance elsewhere is not a file here")
            .hint("`polyclaw instances logs <name>` reads it through its control plane")
            .into());
    }
    let path = written_last(context)?;
    if args.follow {
        return follow(args, context, path).await;
    }
    let lines = log::tail(&path, args.lines.min(log::MOST)).map_err(|error| refused(&path, &error))?;
    let lines = args.wanted(lines);
    Ok(context.output.say(&json!({ "lines": lines }), |_| lines.join("\n"))?)
}

impl Args {
    fn wanted(&self, lines: Vec<String>) -> Vec<String> {
        let level = self.level.as_deref();
        let kept = lines.into_iter().filter(|line| level.is_none_or(|level| is_at_least(line, level)));
        kept.map(|line| safe(&line)).collect()
    }
}

/// A control plane keeps the log of its instances in a folder of its own; a daemon that `polyclaw chat` started writes
/// beside its config. The one of the last daemon is meant.
fn written_last(context: &Context) -> Result<PathBuf, Failure> {
    let known = [Place::at(context.home.path().to_owned()).log(), context.home.log_file()];
    let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let last = known.into_iter().filter_map(|path| Some((changed(&path)?, path))).max();
    last.map(|(_, path)| path).ok_or_else(|| {
        Failure::new(Exit::NotFound, "no_log", "the daemon of this home has written no log")
            .hint("`polyclaw up` writes one; a daemon that runs in a terminal or as a service writes there")
    })
}

async fn follow(args: &Args, context: &Context, path: PathBuf) -> anyhow::Result<()> {
    if context.output.json {
        return Err(Failure::usage("--json is one answer; leave out --follow").into());
    }
    let (mut log, last) = Follow::with_backlog(path, args.lines.min(log::MOST))?;
    context.output.line(&args.wanted(last).join("\n"))?;
    loop {
        let news = log.look()?;
        context.output.line(&args.wanted(news.lines).join("\n"))?;
        if !news.more {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
