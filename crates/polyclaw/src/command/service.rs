//! `polyclaw service`: the system starts the control plane by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::cli::Context;
use crate::failure::{Exit, Failure};
use crate::home::{make_private, refused, write_private};
use crate::output::safe;
use crate::service::{MARK, PLACE, Service, Unit};

const AS_YOURSELF: &str = "run it as yourself, or add --allow-root";

/// Let the system start the control plane when you log in: install, uninstall, status.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw service install --dry-run
  polyclaw service install
  polyclaw service status
  polyclaw service uninstall

On Linux it is a unit of your own systemd, on macOS one of your launchd; nothing needs root. To have it run while you are
not logged in: `loginctl enable-linger`. Taking it away leaves the home and the instances as they are.")]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Args)]
struct How {
    /// Print what would be written and run, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write or remove the file alone: the system is not told.
    #[arg(long)]
    no_start: bool,
    /// As root too: for a machine on which root is who works there.
    #[arg(long)]
    allow_root: bool,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Write the unit, and start it.
    #[command(after_help = "Examples:
  polyclaw service install --dry-run
  polyclaw service install")]
    Install(How),
    /// Stop it, and take the unit away.
    #[command(after_help = "Examples:
  polyclaw service uninstall")]
    Uninstall(How),
    /// Whether it is installed and runs.
    #[command(after_help = "Examples:
  polyclaw service status")]
    Status,
}

pub fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let unit = service(context)?.unit();
    match &args.verb {
        Verb::Install(how) => install(&unit, how, context),
        Verb::Uninstall(how) => uninstall(&unit, how, context),
        Verb::Status => status(&unit, context),
    }
}

fn service(context: &Context) -> Result<Service, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user_home = set("HOME").ok_or_else(|| Failure::usage("HOME is not set"))?;
    let program =
        std::env::current_exe().map_err(|error| Failure::failed("no_program", error.to_string()))?;
    let home = context.home.path().to_owned();
    let stated = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let place = PLACE.iter().filter_map(|name| Some(((*name).to_owned(), stated(name)?))).collect();
    Ok(Service { program, home, user_home, settings: set("XDG_CONFIG_HOME"), place })
}

fn install(unit: &Unit, how: &How, context: &Context) -> anyhow::Result<()> {
    if how.dry_run {
        return say(
            unit,
            context,
            "would_install",
            &format!("{}\n{}\n{}{}", title(&unit.path), unit.text, commands(&unit.install), for_root(how)),
        );
    }
    check_root(how, "this would install a service of root's")?;
    let present = fs::read_to_string(&unit.path).ok();
    check_ours(unit, present.as_deref())?;
    if present.as_deref() != Some(unit.text.as_str()) {
        make_private(unit.path.parent().unwrap_or(Path::new("/")))?;
        write_private(&unit.path, &unit.text).map_err(|error| refused(&unit.path, &error))?;
    }
    let told = tell(&unit.install, how);
    say(
        unit,
        context,
        "installed",
        &format!("Installed as {}.{told}", safe(&unit.path.display().to_string())),
    )
}

fn uninstall(unit: &Unit, how: &How, context: &Context) -> anyhow::Result<()> {
    if how.dry_run {
        return say(
            unit,
            context,
            "would_uninstall",
            &format!("{}\n{}{}", commands(&unit.uninstall), title(&unit.path), for_root(how)),
        );
    }
    let Ok(present) = fs::read_to_string(&unit.path) else {
        return say(unit, context, "absent", "It is not installed.");
    };
    check_root(how, "this would take a service of root's away")?;
    check_ours(unit, Some(&present))?;
    let told = tell(&unit.uninstall, how);
    fs::remove_file(&unit.path).map_err(|error| refused(&unit.path, &error))?;
    say(unit, context, "uninstalled", &format!("Taken away.{told}"))
}

fn status(unit: &Unit, context: &Context) -> anyhow::Result<()> {
    if !unit.path.exists() {
        return say(unit, context, "absent", "It is not installed. `polyclaw service install` does that.");
    }
    let runs = command(&unit.status).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let (state, text) = match runs {
        Ok(ended) if ended.success() => ("running", "It is installed and runs."),
        Ok(_) => ("stopped", "It is installed and does not run."),
        Err(_) => ("unknown", "It is installed; the system does not say whether it runs."),
    };
    say(unit, context, state, text)
}

fn say(unit: &Unit, context: &Context, state: &str, text: &str) -> anyhow::Result<()> {
    let answer = json!({ "state": state, "path": unit.path, "text": unit.text });
    Ok(context.output.say(&answer, |_| text.to_owned())?)
}

fn title(path: &Path) -> String {
    format!("# {}", safe(&path.display().to_string()))
}

fn commands(list: &[Vec<String>]) -> String {
    list.iter().map(|words| format!("$ {}", words.join(" "))).collect::<Vec<_>>().join("\n")
}

/// Root's own session is hardly ever meant.
fn check_root(how: &How, what: &str) -> Result<(), Failure> {
    match is_refused(how) {
        true => Err(Failure::usage(what).hint(AS_YOURSELF)),
        false => Ok(()),
    }
}

fn is_refused(how: &How) -> bool {
    rustix::process::geteuid().is_root() && !how.allow_root
}

/// What a dry run says to root, who would be refused.
fn for_root(how: &How) -> String {
    if is_refused(how) { format!("\n# As root this is refused: {AS_YOURSELF}.") } else { String::new() }
}

fn check_ours(unit: &Unit, present: Option<&str>) -> Result<(), Failure> {
    if present.is_none_or(|text| text.contains(MARK)) {
        return Ok(());
    }
    let what = format!("{} was not written by polyclaw", unit.path.display());
    Err(Failure::new(Exit::Conflict, "in_the_way", what).hint("move it away first"))
}

/// What came of telling the system. The file is right in any case.
fn tell(list: &[Vec<String>], how: &How) -> String {
    if how.no_start {
        return String::new();
    }
    let failed = list.iter().find(|words| !command(words).status().is_ok_and(|ended| ended.success()));
    failed
        .map(|words| format!(" The system did not take notice: run `{}`.", words.join(" ")))
        .unwrap_or_default()
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1)).stdin(Stdio::null());
    command
}
