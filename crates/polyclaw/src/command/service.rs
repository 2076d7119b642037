//! `polyclaw service`: runs the control plane as a login service.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::cli::CommandContext;
use crate::failure::{CommandFailure, FailureExit};
use crate::home::{access_failure, make_private, write_private};
use crate::output::visible_line;
use crate::service::{LISTEN_VARIABLES, ServiceSpec, ServiceUnit, UNIT_MARK};

const AS_YOURSELF_HINT: &str = "run it as yourself, or add --allow-root";

/// Run the control plane as a login service: install, uninstall, status.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw service install --dry-run
  polyclaw service install
  polyclaw service status
  polyclaw service uninstall

On Linux this is a systemd user unit, on macOS a launchd agent; neither needs root. To run it while you are not logged in:
`loginctl enable-linger`. Uninstalling keeps the home and the instances.")]
pub struct Args {
    #[command(subcommand)]
    verb: ServiceCommand,
}

#[derive(clap::Args)]
struct ServiceChangeArgs {
    /// Print the files and commands without doing anything.
    #[arg(long)]
    dry_run: bool,
    /// Only write or remove the unit file; do not notify the service manager.
    #[arg(long)]
    no_start: bool,
    /// Allow root, for a machine whose user is root.
    #[arg(long)]
    allow_root: bool,
}

#[derive(clap::Subcommand)]
enum ServiceCommand {
    /// Install the unit and start the service.
    #[command(after_help = "Examples:
  polyclaw service install --dry-run
  polyclaw service install")]
    Install(ServiceChangeArgs),
    /// Stop the service and remove the unit.
    #[command(after_help = "Examples:
  polyclaw service uninstall")]
    Uninstall(ServiceChangeArgs),
    /// Show whether the service is installed and running.
    #[command(after_help = "Examples:
  polyclaw service status")]
    Status,
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let unit = service_spec(context)?.system_unit();
    match &args.verb {
        ServiceCommand::Install(how) => install_unit(&unit, how, context),
        ServiceCommand::Uninstall(how) => uninstall_unit(&unit, how, context),
        ServiceCommand::Status => show_status(&unit, context),
    }
}

fn service_spec(context: &CommandContext) -> Result<ServiceSpec, CommandFailure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user_home = set("HOME").ok_or_else(|| CommandFailure::usage("HOME is not set"))?;
    let program =
        std::env::current_exe().map_err(|error| CommandFailure::failed("no_program", error.to_string()))?;
    let home = context.home.path().to_owned();
    let stated = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let place =
        LISTEN_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), stated(name)?))).collect();
    Ok(ServiceSpec { program, home, user_home, settings: set("XDG_CONFIG_HOME"), place })
}

fn install_unit(unit: &ServiceUnit, how: &ServiceChangeArgs, context: &CommandContext) -> anyhow::Result<()> {
    if how.dry_run {
        return print_state(
            unit,
            context,
            "would_install",
            &format!(
                "{}\n{}\n{}{}",
                path_heading(&unit.path),
                unit.text,
                command_lines(&unit.install),
                root_notice(how)
            ),
        );
    }
    check_root(how, "this would install a service for root")?;
    let present = fs::read_to_string(&unit.path).ok();
    check_ours(unit, present.as_deref())?;
    if present.as_deref() != Some(unit.text.as_str()) {
        make_private(unit.path.parent().unwrap_or(Path::new("/")))?;
        write_private(&unit.path, &unit.text).map_err(|error| access_failure(&unit.path, &error))?;
    }
    let text = run_system_commands(&unit.install, how);
    print_state(
        unit,
        context,
        "installed",
        &format!("Installed as {}.{text}", visible_line(&unit.path.display().to_string())),
    )
}

fn uninstall_unit(
    unit: &ServiceUnit,
    how: &ServiceChangeArgs,
    context: &CommandContext,
) -> anyhow::Result<()> {
    if how.dry_run {
        return print_state(
            unit,
            context,
            "would_uninstall",
            &format!("{}\n{}{}", command_lines(&unit.uninstall), path_heading(&unit.path), root_notice(how)),
        );
    }
    let Ok(present) = fs::read_to_string(&unit.path) else {
        return print_state(unit, context, "absent", "Not installed.");
    };
    check_root(how, "this would remove a service of root")?;
    check_ours(unit, Some(&present))?;
    let text = run_system_commands(&unit.uninstall, how);
    fs::remove_file(&unit.path).map_err(|error| access_failure(&unit.path, &error))?;
    print_state(unit, context, "uninstalled", &format!("Uninstalled.{text}"))
}

fn show_status(unit: &ServiceUnit, context: &CommandContext) -> anyhow::Result<()> {
    if !unit.path.exists() {
        return print_state(unit, context, "absent", "Not installed. Run `polyclaw service install`.");
    }
    let runs = build_command(&unit.status).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let (state, text) = match runs {
        Ok(ended) if ended.success() => ("running", "Installed and running."),
        Ok(_) => ("stopped", "Installed, but not running."),
        Err(_) => ("unknown", "Installed; the service manager does not report whether it runs."),
    };
    print_state(unit, context, state, text)
}

fn print_state(unit: &ServiceUnit, context: &CommandContext, state: &str, text: &str) -> anyhow::Result<()> {
    let answer = json!({ "state": state, "path": unit.path, "text": unit.text });
    Ok(context.output.print_value(&answer, |_| text.to_owned())?)
}

fn path_heading(path: &Path) -> String {
    format!("# {}", visible_line(&path.display().to_string()))
}

fn command_lines(list: &[Vec<String>]) -> String {
    list.iter().map(|words| format!("$ {}", words.join(" "))).collect::<Vec<_>>().join("\n")
}

/// Rejects root unless it is allowed explicitly: a service for root is rarely intended.
fn check_root(how: &ServiceChangeArgs, what: &str) -> Result<(), CommandFailure> {
    if is_refused(how) { Err(CommandFailure::usage(what).hint(AS_YOURSELF_HINT)) } else { Ok(()) }
}

fn is_refused(how: &ServiceChangeArgs) -> bool {
    rustix::process::geteuid().is_root() && !how.allow_root
}

/// Returns the note that a dry run shows to root, because the real command would be rejected.
fn root_notice(how: &ServiceChangeArgs) -> String {
    if is_refused(how) { format!("\n# As root this is rejected: {AS_YOURSELF_HINT}.") } else { String::new() }
}

fn check_ours(unit: &ServiceUnit, present: Option<&str>) -> Result<(), CommandFailure> {
    if present.is_none_or(|text| text.contains(UNIT_MARK)) {
        return Ok(());
    }
    let what = format!("{} was not written by Polyclaw", unit.path.display());
    Err(CommandFailure::new(FailureExit::Conflict, "already_exists", what).hint("move it away first"))
}

/// Runs the service manager's commands. Returns a note if one fails; the unit file is correct in any case.
fn run_system_commands(list: &[Vec<String>], how: &ServiceChangeArgs) -> String {
    if how.no_start {
        return String::new();
    }
    let failed = list.iter().find(|words| !build_command(words).status().is_ok_and(|ended| ended.success()));
    failed
        .map(|words| format!(" The service manager reported an error: run `{}`.", words.join(" ")))
        .unwrap_or_default()
}

fn build_command(words: &[String]) -> Command {
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1)).stdin(Stdio::null());
    command
}
