//! SQLite: one writing connection, and readers that never wait for it. A caller that finds the writer free writes
//! immediately; otherwise the writer's thread commits its transaction in a group.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::thread;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use self::busy_handler::BUSY_TIMEOUT;
use self::files::DatabaseFiles;
use self::write_lock::FileWriteLock;
use crate::error::{Error, Result};
use crate::migrate::{self, SqliteSchema};
use crate::tx::Tx;
use crate::tx_body::{TxBody, TxOutput};

mod busy_handler;
mod checkpoint;
mod files;
mod write_lock;

/// Maximum number of transactions committed together. Bounds how long the first of a group waits for the last.
const MAX_GROUPED_TRANSACTIONS: usize = 256;
const READER_THREADS: usize = 2;

pub(crate) struct SqliteEngine {
    path: PathBuf,
    writer: Arc<SqliteWriter>,
    queue: mpsc::Sender<QueuedWrite>,
    readers: mpsc::Sender<ReadWork>,
    /// Set for a database that only this process uses.
    files: Option<DatabaseFiles>,
}

type ReadWork = Box<dyn FnOnce(&Connection) + Send>;

/// One caller's transaction: run within a group, answered after the group's commit.
struct QueuedWrite {
    body: TxBody,
    value: Option<TxOutput>,
    caller: oneshot::Sender<Result<TxOutput>>,
}

impl QueuedWrite {
    fn run_body(&mut self, connection: &Connection) -> Result<()> {
        self.value = Some(self.body.run(Tx::for_sqlite(connection))?);
        Ok(())
    }

    fn send_reply(self, committed: Result<()>) {
        // A transaction is not undone when its caller goes away.
        let _ = self.caller.send(committed.and_then(|()| self.value.ok_or(Error::Closed)));
    }
}

impl SqliteEngine {
    pub fn open(path: &Path, schema: SqliteSchema) -> Result<Self> {
        let opened = Self::open_with(path, schema, |_| Ok(None))?;
        Ok(Self { files: Some(DatabaseFiles::for_database(path)), ..opened })
    }

    /// Checks that the files are still those that were opened.
    pub fn check_files(&self) -> Result<()> {
        self.files.as_ref().map_or(Ok(()), |files| files.check_replaced(&self.writer))
    }

    /// Opens a file that other processes write too. Writers wait for each other and are served within moments.
    pub fn open_shared(path: &Path, schema: SqliteSchema) -> Result<Self> {
        Self::open_with_busy_handler(path, schema, busy_handler::on_busy)
    }

    fn open_with_busy_handler(path: &Path, schema: SqliteSchema, wait: fn(i32) -> bool) -> Result<Self> {
        let mut tries = 0;
        loop {
            let share = |connection: &mut Connection| {
                connection.busy_handler(Some(wait))?;
                Ok(Some(FileWriteLock::for_database(path)?))
            };
            match Self::open_with(path, schema, share) {
                // A file that another process is just creating fails in ways that do not reach the busy handler.
                Err(Error::Unavailable { .. }) if tries < 100 => tries += 1,
                opened => return opened,
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn open_with(
        path: &Path,
        schema: SqliteSchema,
        prepare: impl FnOnce(&mut Connection) -> Result<Option<FileWriteLock>>,
    ) -> Result<Self> {
        check_sqlite_version(rusqlite::version(), rusqlite::version_number())?;
        make_private(path);
        let mut connection = Connection::open(path)?;
        configure_writer(&connection)?;
        let turn = prepare(&mut connection)?;
        migrate::migrate_sqlite(&connection, Some(path), schema)?;
        let (written, receiver) = mpsc::sync_channel(1);
        let writer = Arc::new(SqliteWriter {
            connection: Mutex::new(connection),
            write_lock: turn,
            waiting: 0.into(),
            written,
        });
        checkpoint::start_checkpointer(path, Arc::downgrade(&writer), receiver)?;
        let (queue, work) = mpsc::channel();
        let groups = Arc::clone(&writer);
        spawn_thread("store-writer", move || write_groups(&groups, &work))?;
        let (readers, queries) = mpsc::channel();
        let queries = Arc::new(Mutex::new(queries));
        for _ in 0..READER_THREADS {
            let connection = open_reader(path)?;
            let queries = Arc::clone(&queries);
            spawn_thread("store-reader", move || run_reader(&connection, &queries))?;
        }
        Ok(Self { path: path.to_owned(), writer, queue, readers, files: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the whole log into the database and truncates it.
    pub fn checkpoint_all(&self) -> Result<()> {
        let mut settled = Ok(());
        self.writer.run_exclusively(|connection| {
            settled = checkpoint::run_checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)").map(drop);
        });
        Ok(settled?)
    }

    pub async fn write(&self, mut body: TxBody) -> Result<TxOutput> {
        self.check_files()?;
        if let Some(answer) = self.writer.try_write_now(&mut body) {
            return answer;
        }
        let (caller, answer) = oneshot::channel();
        self.writer.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.send(QueuedWrite { body, value: None, caller }).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    pub async fn read(&self, mut body: TxBody) -> Result<TxOutput> {
        let (caller, answer) = oneshot::channel();
        let work = Box::new(move |connection: &Connection| {
            let _ = caller.send(read_snapshot(connection, &mut body));
        });
        self.readers.send(work).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

fn spawn_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map(drop).map_err(|e| Error::Other(format!("cannot start a thread for {name}: {e}")))
}

/// The writing connection.
struct SqliteWriter {
    connection: Mutex<Connection>,
    /// Set if other processes write too.
    write_lock: Option<FileWriteLock>,
    /// Number of queued transactions. While there are any, nobody bypasses the queue.
    waiting: AtomicUsize,
    /// Signalled after each commit. A full channel means that a signal is pending.
    written: mpsc::SyncSender<()>,
}

impl SqliteWriter {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes on the caller's thread if nobody else writes or waits. Passing a small transaction to another thread
    /// takes longer than running it. Not used when other processes write too: a commit does not wait for the disk, but
    /// it may wait for them.
    fn try_write_now(&self, body: &mut TxBody) -> Option<Result<TxOutput>> {
        if self.write_lock.is_some() || self.waiting.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let connection = match self.connection.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let answer = write_alone(&connection, body);
        let _ = self.written.try_send(());
        Some(answer)
    }

    fn begin_transaction(&self, connection: &Connection) -> Result<()> {
        let begin = || run_sql(connection, "BEGIN IMMEDIATE");
        match &self.write_lock {
            Some(turn) => turn.run_locked(begin),
            None => begin(),
        }
    }

    /// Runs `body` while nobody writes.
    fn run_exclusively(&self, body: impl FnOnce(&Connection)) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let connection = self.lock();
        body(&connection);
        drop(connection);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

fn write_groups(writer: &SqliteWriter, work: &mpsc::Receiver<QueuedWrite>) {
    while let Ok(first) = work.recv() {
        let connection = writer.lock();
        let result = writer.begin_transaction(&connection);
        // Transactions queued while this one waited for other processes join the group.
        let mut group = vec![first];
        while group.len() < MAX_GROUPED_TRANSACTIONS
            && let Ok(more) = work.try_recv()
        {
            group.push(more);
        }
        let count = group.len();
        commit_group(writer, &connection, result, group);
        writer.waiting.fetch_sub(count, Ordering::SeqCst);
        drop(connection);
        let _ = writer.written.try_send(());
    }
}

/// Runs one transaction outside a group.
fn write_alone(connection: &Connection, body: &mut TxBody) -> Result<TxOutput> {
    run_sql(connection, "BEGIN IMMEDIATE")?;
    let value = body.run(Tx::for_sqlite(connection));
    let ended = match &value {
        Ok(_) => run_sql(connection, "COMMIT"),
        Err(_) => Ok(()),
    };
    if !connection.is_autocommit() {
        let _ = run_sql(connection, "ROLLBACK");
    }
    ended.and(value)
}

fn commit_group(writer: &SqliteWriter, connection: &Connection, result: Result<()>, group: Vec<QueuedWrite>) {
    if let Err(error) = result {
        return reply_to_all(group, &Err(error));
    }
    let mut done: Vec<QueuedWrite> = Vec::with_capacity(group.len());
    let mut waiting = group.into_iter();
    while let Some(mut call) = waiting.next() {
        match run_in_savepoint(connection, &mut call) {
            Ok(()) => done.push(call),
            // On a full disk SQLite rolls back the whole transaction, so nothing in this group is committed.
            Err(error) if connection.is_autocommit() => {
                call.send_reply(Err(error.clone()));
                reply_to_all(done, &Err(error));
                return commit_rest(writer, connection, waiting.collect());
            }
            Err(error) => call.send_reply(Err(error)),
        }
    }
    let committed = run_sql(connection, "COMMIT");
    if committed.is_err() && !connection.is_autocommit() {
        let _ = run_sql(connection, "ROLLBACK");
    }
    reply_to_all(done, &committed);
}

fn commit_rest(writer: &SqliteWriter, connection: &Connection, rest: Vec<QueuedWrite>) {
    if !rest.is_empty() {
        commit_group(writer, connection, writer.begin_transaction(connection), rest);
    }
}

fn run_in_savepoint(connection: &Connection, call: &mut QueuedWrite) -> Result<()> {
    run_sql(connection, "SAVEPOINT one")?;
    let outcome = call.run_body(connection);
    if outcome.is_err() && !connection.is_autocommit() {
        run_sql(connection, "ROLLBACK TO one")?;
    }
    if !connection.is_autocommit() {
        run_sql(connection, "RELEASE one")?;
    }
    outcome
}

fn reply_to_all(group: Vec<QueuedWrite>, committed: &Result<()>) {
    for call in group {
        call.send_reply(committed.clone());
    }
}

fn run_sql(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.raw_execute()?;
    Ok(())
}

fn run_reader(connection: &Connection, queue: &Mutex<mpsc::Receiver<ReadWork>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        work(connection);
    }
}

fn read_snapshot(connection: &Connection, body: &mut TxBody) -> Result<TxOutput> {
    run_sql(connection, "BEGIN")?;
    let value = body.run(Tx::for_sqlite(connection));
    run_sql(connection, "COMMIT")?;
    value
}

/// Makes the file, and files that SQLite creates next to it, accessible to its owner only. A failure shows on open.
pub(crate) fn make_private(path: &Path) {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    // This is a URI with options, not a path.
    if path.to_string_lossy().starts_with("file:") {
        return;
    }
    let opened = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    if let Ok(file) = opened {
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    }
}

fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_prepared_statement_cache_capacity(64);
    plan_once(&connection)?;
    connection
        .execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -1024; PRAGMA busy_timeout = 5000;")?;
    Ok(connection)
}

fn configure_writer(connection: &Connection) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(128);
    plan_once(connection)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
         PRAGMA busy_timeout = 5000; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;
         PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON;",
    )?;
    Ok(())
}

/// Makes query plans independent of bound values. Otherwise SQLite replans a statement whenever its parameters change
/// if there is a LIMIT or a partial index, which took longer than running it.
fn plan_once(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// 3.51.3 fixes a defect that can lose WAL content; 3.52.0 was withdrawn.
pub(crate) fn check_sqlite_version(text: &str, number: i32) -> Result<()> {
    if number >= 3_051_003 && number != 3_052_000 { Ok(()) } else { Err(Error::BadSqlite(text.to_owned())) }
}

/// The same statements without threads, for runs that must be reproducible from a seed.
pub(crate) struct InlineSqlite(Mutex<Connection>);

impl InlineSqlite {
    pub fn open(schema: SqliteSchema) -> Result<Self> {
        let connection = Connection::open_in_memory()?;
        configure_writer(&connection)?;
        migrate::migrate_sqlite(&connection, None, schema)?;
        Ok(Self(Mutex::new(connection)))
    }

    pub fn write(&self, mut body: TxBody) -> Result<TxOutput> {
        write_alone(&self.0.lock().unwrap_or_else(PoisonError::into_inner), &mut body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defective_sqlite_versions_are_refused() {
        let refused = |number| check_sqlite_version("x", number).is_err();
        assert!(refused(3_051_002) && refused(3_052_000) && refused(3_046_001));
        assert!(!refused(3_051_003) && !refused(3_053_000));
        assert!(check_sqlite_version(rusqlite::version(), rusqlite::version_number()).is_ok());
    }
}
