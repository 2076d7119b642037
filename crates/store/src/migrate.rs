//! Forward-only migrations. A newer schema is rejected. An older one is migrated after the file was copied.

use std::path::Path;

use rusqlite::Connection;

use crate::error::{Error, Result};

/// The migrations of one kind of SQLite file, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteSchema(&'static [&'static str]);

/// The main database: sessions, turns and everything they need.
pub(crate) const MAIN_SCHEMA: SqliteSchema = SqliteSchema(&[
    include_str!("../migrations/sqlite/0001.sql"),
    include_str!("../migrations/sqlite/0002.sql"),
    include_str!("../migrations/sqlite/0003.sql"),
    include_str!("../migrations/sqlite/0004.sql"),
    include_str!("../migrations/sqlite/0005.sql"),
    include_str!("../migrations/sqlite/0006.sql"),
    include_str!("../migrations/sqlite/0007.sql"),
    include_str!("../migrations/sqlite/0008.sql"),
    include_str!("../migrations/sqlite/0009.sql"),
    include_str!("../migrations/sqlite/0010.sql"),
    include_str!("../migrations/sqlite/0011.sql"),
    include_str!("../migrations/sqlite/0012.sql"),
    include_str!("../migrations/sqlite/0013.sql"),
    include_str!("../migrations/sqlite/0014.sql"),
    include_str!("../migrations/sqlite/0015.sql"),
    include_str!("../migrations/sqlite/0016.sql"),
    include_str!("../migrations/sqlite/0017.sql"),
    include_str!("../migrations/sqlite/0018.sql"),
    include_str!("../migrations/sqlite/0019.sql"),
    include_str!("../migrations/sqlite/0020_turn_deaths.sql"),
    include_str!("../migrations/sqlite/0021_logins.sql"),
    include_str!("../migrations/sqlite/0022_agent_priority_default_accounts.sql"),
    include_str!("../migrations/sqlite/0023_agent_overlays.sql"),
    include_str!("../migrations/sqlite/0024_plan_approval.sql"),
    include_str!("../migrations/sqlite/0025_approval_asked_by.sql"),
    include_str!("../migrations/sqlite/0026_team_authority.sql"),
    include_str!("../migrations/sqlite/0027_rename_to_field_words.sql"),
    include_str!("../migrations/sqlite/0028_conversation_language.sql"),
    include_str!("../migrations/sqlite/0029_rename_held_code.sql"),
]);
/// The memory database.
pub(crate) const MEMORY_SCHEMA: SqliteSchema = SqliteSchema(&[
    include_str!("../migrations/brain/0001.sql"),
    include_str!("../migrations/brain/0002_rename_to_field_words.sql"),
]);
/// The task ledger of a team.
pub(crate) const LEDGER_SCHEMA: SqliteSchema = SqliteSchema(&[
    include_str!("../migrations/ledger/0001.sql"),
    include_str!("../migrations/ledger/0002.sql"),
    include_str!("../migrations/ledger/0003_open_tasks.sql"),
    include_str!("../migrations/ledger/0004_fencing_token.sql"),
]);

/// The registry of a control plane.
pub(crate) const REGISTRY_SCHEMA: SqliteSchema = SqliteSchema(&[
    include_str!("../migrations/registry/0001.sql"),
    include_str!("../migrations/registry/0002.sql"),
    include_str!("../migrations/registry/0003.sql"),
    include_str!("../migrations/registry/0004.sql"),
    include_str!("../migrations/registry/0005.sql"),
    include_str!("../migrations/registry/0006.sql"),
    include_str!("../migrations/registry/0007_logins.sql"),
    include_str!("../migrations/registry/0008_restart_intent.sql"),
    include_str!("../migrations/registry/0009_rename_to_field_words.sql"),
]);

const POSTGRES_MIGRATIONS: &[&str] = &[
    include_str!("../migrations/postgres/0001.sql"),
    include_str!("../migrations/postgres/0002.sql"),
    include_str!("../migrations/postgres/0003.sql"),
    include_str!("../migrations/postgres/0004.sql"),
    include_str!("../migrations/postgres/0005.sql"),
    include_str!("../migrations/postgres/0006.sql"),
    include_str!("../migrations/postgres/0007.sql"),
    include_str!("../migrations/postgres/0008.sql"),
    include_str!("../migrations/postgres/0009.sql"),
    include_str!("../migrations/postgres/0010.sql"),
    include_str!("../migrations/postgres/0011.sql"),
    include_str!("../migrations/postgres/0012.sql"),
    include_str!("../migrations/postgres/0013.sql"),
    include_str!("../migrations/postgres/0014.sql"),
    include_str!("../migrations/postgres/0015.sql"),
    include_str!("../migrations/postgres/0016.sql"),
    include_str!("../migrations/postgres/0017.sql"),
    include_str!("../migrations/postgres/0018.sql"),
    include_str!("../migrations/postgres/0019.sql"),
    include_str!("../migrations/postgres/0020.sql"),
    include_str!("../migrations/postgres/0021.sql"),
    include_str!("../migrations/postgres/0022_turn_deaths.sql"),
    include_str!("../migrations/postgres/0023_logins.sql"),
    include_str!("../migrations/postgres/0024_agent_priority_default_accounts.sql"),
    include_str!("../migrations/postgres/0025_agent_overlays.sql"),
    include_str!("../migrations/postgres/0026_open_tasks.sql"),
    include_str!("../migrations/postgres/0027_plan_approval.sql"),
    include_str!("../migrations/postgres/0028_approval_asked_by.sql"),
    include_str!("../migrations/postgres/0029_team_authority.sql"),
    include_str!("../migrations/postgres/0030_rename_to_field_words.sql"),
    include_str!("../migrations/postgres/0031_conversation_language.sql"),
    include_str!("../migrations/postgres/0032_rename_held_code.sql"),
];

pub(crate) fn migrate_sqlite(
    connection: &Connection,
    path: Option<&Path>,
    schema: SqliteSchema,
) -> Result<()> {
    apply_sqlite_migrations(connection, path, schema.0)
}

fn apply_sqlite_migrations(connection: &Connection, path: Option<&Path>, migrations: &[&str]) -> Result<()> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = known_version(found, migrations)?;
    if found == known {
        return Ok(());
    }
    if let Some(path) = path.filter(|_| found > 0) {
        copy_before_migration(connection, path, found)?;
    }
    for (version, sql) in (1_i64..).zip(migrations).skip(usize::try_from(found).unwrap_or(0)) {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another process may have migrated first.
        let now: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let sql = if now < version { sql } else { "" };
        connection.execute_batch(&format!("{sql}\nPRAGMA user_version = {};\nCOMMIT;", now.max(version)))?;
    }
    Ok(())
}

fn copy_before_migration(connection: &Connection, path: &Path, version: i64) -> Result<()> {
    let copy = path.with_extension(format!("v{version}.db"));
    if copy.exists() {
        return Ok(());
    }
    tracing::info!(copy = %copy.display(), "copying the database before migrating it");
    let partial = path.with_extension("copying");
    let _ = std::fs::remove_file(&partial);
    connection.execute("VACUUM INTO ?1", [partial.to_string_lossy()])?;
    crate::sqlite::make_private(&partial);
    std::fs::rename(&partial, &copy).map_err(|e| Error::Other(format!("cannot copy the database: {e}")))
}

pub(crate) fn migrate_postgres(client: &mut postgres::Client) -> Result<()> {
    let mut tx = client.transaction()?;
    // Nodes that start concurrently migrate one after the other.
    tx.batch_execute(
        "SELECT pg_advisory_xact_lock(7018881);
         CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL);",
    )?;
    let found: i64 = tx.query_one("SELECT COALESCE(MAX(version), 0) FROM schema_version", &[])?.try_get(0)?;
    known_version(found, POSTGRES_MIGRATIONS)?;
    for (version, sql) in (1_i64..).zip(POSTGRES_MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
        tx.batch_execute(sql)?;
        tx.execute("INSERT INTO schema_version (version) VALUES ($1)", &[&version])?;
    }
    Ok(tx.commit()?)
}

/// Checks that this build knows a file's schema.
pub(crate) fn check_schema_version(found: i64, schema: SqliteSchema) -> Result<()> {
    known_version(found, schema.0).map(drop)
}

fn known_version(found: i64, migrations: &[&str]) -> Result<i64> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if found > known { Err(Error::NewerSchema { found, known }) } else { Ok(known) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_database_is_copied_and_migrated_and_newer_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.db");
        let connection = Connection::open(&path).unwrap();
        let first = "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (7);";
        apply_sqlite_migrations(&connection, Some(&path), &[first]).unwrap();
        assert!(!dir.path().join("sessions.v0.db").exists(), "a new database has nothing worth a copy");
        apply_sqlite_migrations(&connection, Some(&path), &[first, "CREATE TABLE b (y INTEGER) STRICT;"])
            .unwrap();
        let copy = Connection::open(dir.path().join("sessions.v1.db")).unwrap();
        assert_eq!(copy.query_row("SELECT x FROM a", [], |r| r.get::<_, i64>(0)).unwrap(), 7);
        assert!(copy.prepare("SELECT y FROM b").is_err());
        let refused = apply_sqlite_migrations(&connection, Some(&path), &[first]);
        assert!(matches!(refused, Err(Error::NewerSchema { found: 2, known: 1 })));
    }

    #[test]
    fn failed_migration_leaves_version_unchanged() {
        let connection = Connection::open_in_memory().unwrap();
        let good = "CREATE TABLE a (x INTEGER) STRICT;";
        assert!(apply_sqlite_migrations(&connection, None, &[good, "CREATE TABLE a (x INTEGER);"]).is_err());
        connection.execute_batch("ROLLBACK").unwrap();
        let version: i64 = connection.query_row("PRAGMA user_version", [], |r| r.get(0)).unwrap();
        assert_eq!(version, 1);
    }
}
