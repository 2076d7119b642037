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

Every file is verified against the manifest before and after it is copied. The next `polyclaw up` starts the instances that
ran when the backup was created: do not run them together with the originals.")]
pub struct Args {
    /// Folder that `polyclaw backup` created.
    from: PathBuf,
    /// Verify every file against the manifest without restoring anything.
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let home = context.home.path();
    let list = if args.dry_run {
        backup::check_backup(&args.from)
    } else {
        backup::restore_backup(&args.from, home)
    };
    let list = list.map_err(CommandFailure::from)?;
    let from = args.from.display().to_string();
    let head = if args.dry_run {
        format!("Verified {}", visible_line(&from))
    } else {
        format!("Restored {}", visible_line(&home.display().to_string()))
    };
    let missing = match backup::find_missing_keys(&list).as_slice() {
        [] => String::new(),
        keys => format!(
            "\nThe backup does not contain the key of the stored secrets. Before the first start, copy it to the new home from \
             where you keep it, or from the old home: {}. Without it, stored secrets cannot be read; set them again with \
             `polyclaw secrets set`.",
            keys.join(", ")
        ),
    };
    let text_of = || format!("{head}: {}.{missing}", backup_summary(&list));
    Ok(context.output.print_value(&describe_backup(&from, &list), |_| text_of())?)
}
