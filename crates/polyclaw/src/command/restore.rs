//! `polyclaw restore`: restores a home from a backup.

use std::path::PathBuf;

use polyclaw_control::backup;

use super::backup::{backup_summary, describe_backup};
use crate::cli::CommandContext;
use crate::failure::CommandFailure;
use crate::output::visible_line;

/// Restore this home from a backup. The home must not exist yet: nothing is overwritten.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw restore ./polyclaw-backup --dry-run
  POLYCLAW_HOME=~/restored polyclaw restore ./polyclaw-backup

Every file is compared with the list in the backup, before and after it is copied. Instances that ran when the backup was
made are started by the next `polyclaw up`: do not run them beside the ones they are copies of.")]
pub struct Args {
    /// Folder that `polyclaw backup` created.
    from: PathBuf,
    /// Verify every file against the manifest without restoring anything.
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let home = context.home.path();
    let list = match args.dry_run {
        true => backup::check_backup(&args.from),
        false => backup::restore_backup(&args.from, home),
    };
    let list = list.map_err(CommandFailure::from)?;
    let from = args.from.display().to_string();
    let head = match args.dry_run {
        true => format!("{} is whole", visible_line(&from)),
        false => format!("{} is restored", visible_line(&home.display().to_string())),
    };
    let missing = match backup::find_missing_keys(&list).as_slice() {
        [] => String::new(),
        keys => format!(
            "\nThe key of stored secrets is not in the backup. Copy it from where you keep it, or from the old home, into \
             the new one before you start it: {}. Without it stored secrets cannot be read; `polyclaw secrets set` stores \
             them anew.",
            keys.join(", ")
        ),
    };
    let text_of = || format!("{head}: {}.{missing}", backup_summary(&list));
    Ok(context.output.print_value(&describe_backup(&from, &list), |_| text_of())?)
}
