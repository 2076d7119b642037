use std::error::Error as _;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the disk is full: {0}")]
    Full(String),
    #[error("the database is not writable: {0}")]
    ReadOnly(String),
    /// A unique index was violated.
    #[error("already exists: {0}")]
    Conflict(String),
    /// PostgreSQL is unreachable or the connection broke. Nothing was committed, unless `in_doubt` is set: then the
    /// outcome is unknown.
    #[error("the database is unavailable: {message}")]
    Unavailable { message: String, in_doubt: bool },
    /// The transaction was rolled back because of a deadlock or serialization failure.
    #[error("the database is busy: {0}")]
    Collided(String),
    #[error(
        "the database has schema {found}, but this build supports only up to {known}: use a newer polyclaw"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error("SQLite {0} is linked; 3.51.3 or newer is required, except 3.52.0")]
    BadSqlite(String),
    /// Writes into such files would be lost when the process ends.
    #[error("the database's files were removed or replaced under the running process: {0}")]
    FilesReplaced(String),
    #[error("the database is corrupt: {0}")]
    Corrupt(String),
    /// The database is intact, but a stored value cannot be decoded.
    #[error("a stored value is invalid: {0}")]
    Unreadable(String),
    #[error("the database is closed")]
    Closed,
    /// The caller's `body` refused, and the transaction was rolled back.
    #[error("the transaction was rolled back")]
    RolledBack,
    #[error("database error: {0}")]
    Other(String),
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Full(_) => "disk_full",
            Self::ReadOnly(_) => "store_read_only",
            Self::Conflict(_) => "store_conflict",
            Self::Unavailable { .. } | Self::Collided(_) | Self::Closed => "store_unavailable",
            Self::NewerSchema { .. } => "newer_schema",
            Self::BadSqlite(_) => "bad_sqlite",
            Self::FilesReplaced(_) => "store_files_replaced",
            Self::Corrupt(_) => "store_corrupt",
            Self::Unreadable(_) => "store_unreadable",
            Self::RolledBack | Self::Other(_) => "store_failed",
        }
    }

    /// Whether a later retry may succeed without changing the request.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::Collided(_)
                | Self::Full(_)
                | Self::ReadOnly(_)
                | Self::FilesReplaced(_)
        )
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(text),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly(text),
            Some(ErrorCode::ConstraintViolation) if is_unique_violation(&error) => Self::Conflict(text),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(text),
            // Busy: another program has held the file's lock for longer than the timeout.
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked,
            ) => Self::Unavailable { message: text, in_doubt: false },
            _ => Self::Other(text),
        }
    }
}

/// Only a unique constraint means "already there". Other constraint violations are bugs, as on PostgreSQL.
fn is_unique_violation(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{
        SQLITE_CONSTRAINT_PRIMARYKEY as PRIMARY, SQLITE_CONSTRAINT_ROWID as ROWID,
        SQLITE_CONSTRAINT_UNIQUE as UNIQUE,
    };
    error.sqlite_error().is_some_and(|error| matches!(error.extended_code, PRIMARY | ROWID | UNIQUE))
}

impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Self {
        use postgres::error::SqlState;
        let Some(db) = error.as_db_error() else {
            let cause =
                error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
            return if is_connection_error(&error) {
                Self::Unavailable { message: cause, in_doubt: false }
            } else {
                Self::Other(cause)
            };
        };
        let text = format!("{} ({})", db.message(), db.code().code());
        match db.code() {
            &SqlState::UNIQUE_VIOLATION => Self::Conflict(text),
            &SqlState::DISK_FULL => Self::Full(text),
            &SqlState::READ_ONLY_SQL_TRANSACTION => Self::ReadOnly(text),
            &SqlState::ADMIN_SHUTDOWN
            | &SqlState::CRASH_SHUTDOWN
            | &SqlState::CANNOT_CONNECT_NOW
            | &SqlState::TOO_MANY_CONNECTIONS
            | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => {
                Self::Unavailable { message: text, in_doubt: false }
            }
            &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => Self::Collided(text),
            _ => Self::Other(text),
        }
    }
}

/// Whether the server was unreachable or the connection broke, as opposed to a value that does not fit a column.
fn is_connection_error(error: &postgres::Error) -> bool {
    error.is_closed() || matches!(error.source(), Some(source) if source.is::<std::io::Error>())
}

/// Runs a transaction's body. A panic fails that transaction, not the thread that serves all of them.
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    outcome.unwrap_or_else(|_| Err(Error::Other("a transaction panicked; it was rolled back".into())))
}
