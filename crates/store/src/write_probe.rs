//! A probe write that tests whether writes work.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::params;
use crate::tx::Tx;

/// The log space of a message with its job. Less could fit into spare log space and prove nothing about the disk.
const PROBE_BYTES: usize = 128 * 1024;

/// Writes to a file next to the database, if it is a file, and into the database. Both writes are removed.
pub(crate) fn write_probe(tx: &mut Tx<'_>, file: Option<&Path>) -> Result<()> {
    if let Some(file) = file {
        write_probe_file(&file.with_extension("probe"))?;
    }
    tx.execute(
        "INSERT INTO account_leases (channel, account, node, lease_until) VALUES ('', '', 'probe', 0)",
        params![],
    )?;
    tx.execute("DELETE FROM account_leases WHERE node = 'probe'", params![])?;
    Ok(())
}

fn write_probe_file(path: &Path) -> Result<()> {
    let written = fs::File::create(path).and_then(|mut file| {
        file.write_all(&vec![0; PROBE_BYTES])?;
        file.sync_data()
    });
    let removed = fs::remove_file(path);
    written.and(removed).map_err(|error| from_io_error(path, &error))
}

fn from_io_error(path: &Path, error: &io::Error) -> Error {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full(text),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Error::ReadOnly(text),
        _ => Error::Unavailable { message: text, in_doubt: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, DbTarget};

    #[tokio::test]
    async fn failed_write_is_remembered_until_the_probe_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.db");
        let db = Db::open(&DbTarget::Sqlite(file.clone())).unwrap();
        db.check_writes().await.unwrap();
        let full = |_: &mut Tx<'_>| Err::<(), _>(Error::Full("so it is".into()));
        assert!(db.write(full).await.is_err());
        // A folder at the probe's path simulates a disk that still fails.
        let probe = file.with_extension("probe");
        fs::create_dir(&probe).unwrap();
        db.write(|_| Ok(())).await.unwrap();
        assert!(db.check_writes().await.is_err(), "a transaction that writes nothing says nothing");
        fs::remove_dir(&probe).unwrap();
        db.check_writes().await.unwrap();
        db.check_writes().await.unwrap();
        assert!(!probe.exists(), "nothing is left");
    }

    #[test]
    fn io_errors_map_to_store_error_codes() {
        let code = |kind: io::ErrorKind| from_io_error(Path::new("x"), &kind.into()).code();
        assert_eq!(code(io::ErrorKind::StorageFull), "disk_full");
        assert_eq!(code(io::ErrorKind::QuotaExceeded), "disk_full");
        assert_eq!(code(io::ErrorKind::ReadOnlyFilesystem), "store_read_only");
        assert_eq!(code(io::ErrorKind::FileTooLarge), "store_unavailable");
    }
}
