//! `polyclaw backup`: copies the home while everything runs.

use std::path::PathBuf;

use polyclaw_control::backup::{self, BackupManifest, LeftOutEntry, SecretKeys};
use polyclaw_domain::port::WallClock;
use polyclaw_domain::sanitize;
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::clock::SystemClock;
use crate::failure::CommandFailure;
use crate::output::visible_line;

const MAX_SHOWN_LEFT_OUT: usize = 20;
const MAX_SHOWN_PATH_CHARS: usize = 200;

/// Copy this home with all its instances into a folder: config, secrets, files, conversations.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw backup
  polyclaw backup /mnt/disk/polyclaw-monday
  polyclaw restore /mnt/disk/polyclaw-monday --dry-run

Nothing has to be stopped: every database is copied as of one moment. Not included are model weights, logs, and data in
PostgreSQL or in the system's keyring. The encryption key of stored secrets is included only with `--with-key`: keep the
file `secrets.key` of each home elsewhere. Only its owner can access the folder, which holds conversations and tokens in
plain text.")]
pub struct Args {
    /// Destination folder. It must not exist. Named after the current time if omitted.
    to: Option<PathBuf>,
    /// Include the key of the stored secrets. Anyone who has the backup can then read them.
    #[arg(long)]
    with_key: bool,
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let named = || PathBuf::from(format!("polyclaw-backup-{}", now.to_string().replace([':', '.'], "-")));
    let to = std::path::absolute(args.to.clone().unwrap_or_else(named))?;
    let keys = if args.with_key { SecretKeys::Included } else { SecretKeys::LeftOut };
    let made = backup::create_backup(context.home.path(), &to, (env!("CARGO_PKG_VERSION"), now), keys);
    let list = made.map_err(CommandFailure::from)?;
    let place = to.display().to_string();
    let answer = describe_backup(&place, &list);
    let left = match backup::find_missing_keys(&list).as_slice() {
        [] => String::new(),
        keys => format!("\nNot included; keep these elsewhere: {}.", keys.join(", ")),
    };
    let skipped = left_out_lines(&list);
    let head = || format!("Backed up to {}: {}.{left}{skipped}", visible_line(&place), backup_summary(&list));
    Ok(context.output.print_value(&answer, |_| head())?)
}

/// Lists the files that could not be copied. Agents choose their names, so each is shown on one line.
fn left_out_lines(list: &BackupManifest) -> String {
    if list.left_out.is_empty() {
        return String::new();
    }
    let line = |one: &LeftOutEntry| {
        format!(
            "\n  {}: {}",
            sanitize::to_single_line(&one.path, MAX_SHOWN_PATH_CHARS),
            visible_line(&one.reason)
        )
    };
    let lines: String = list.left_out.iter().take(MAX_SHOWN_LEFT_OUT).map(line).collect();
    format!(
        "\n{} files or folders could not be copied and are not included; backup.json lists them all:{lines}",
        list.left_out.len()
    )
}

pub fn describe_backup(place: &str, list: &BackupManifest) -> Value {
    let entry = |entry: &backup::BackupEntry| json!({ "path": entry.path, "bytes": entry.bytes });
    json!({
        "path": place,
        "version": list.version,
        "created_at": list.created_at,
        "sum": list.sum_totals(),
        "missing_keys": backup::find_missing_keys(list),
        "left_out": list.left_out,
        "files": list.entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

pub fn backup_summary(list: &BackupManifest) -> String {
    let sum = list.sum_totals();
    let megabytes = sum.bytes.div_ceil(1024 * 1024);
    format!(
        "{} instance(s), {} file(s), {} database(s), {megabytes} MB",
        sum.instances, sum.files, sum.databases
    )
}
