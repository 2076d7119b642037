//! SQLite: one connection that writes, and readers that never wait for it. Whoever finds the writer free writes
//! at once; whoever does not is committed in a group by the writer's thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::thread;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use self::files::Files;
use self::turn::Turn;
use self::wait::PATIENCE;
use crate::body::{Body, Value};
use crate::error::{Error, Result};
use crate::migrate::{self, Schema};
use crate::tx::Tx;

mod checkpoint;
mod files;
mod turn;
mod wait;

/// Transactions committed together at the most: bounds how long the first of a group waits for the last.
const GROUP: usize = 256;
const READERS: usize = 2;

pub(crate) struct Sqlite {
    path: PathBuf,
    writer: Arc<Writer>,
    queue: mpsc::Sender<Call>,
    readers: mpsc::Sender<Query>,
    /// Of a database that belongs to this process alone.
    files: Option<Files>,
}

type Query = Box<dyn FnOnce(&Connection) + Send>;

/// One caller's transaction: run inside a group, answered after the group's commit.
struct Call {
    body: Body,
    value: Option<Value>,
    caller: oneshot::Sender<Result<Value>>,
}

impl Call {
    fn run(&mut self, connection: &Connection) -> Result<()> {
        self.value = Some(self.body.run(Tx::sqlite(connection))?);
        Ok(())
    }

    fn answer(self, committed: Result<()>) {
        // A caller that went away does not undo what it asked for.
        let _ = self.caller.send(committed.and_then(|()| self.value.ok_or(Error::Closed)));
    }
}

impl Sqlite {
    pub fn open(path: &Path, schema: Schema) -> Result<Self> {
        let opened = Self::open_with(path, schema, |_| Ok(None))?;
        Ok(Self { files: Some(Files::opened(path)), ..opened })
    }

    /// Whether the files are still those that were opened.
    pub fn check_files(&self) -> Result<()> {
        self.files.as_ref().map_or(Ok(()), |files| files.check(&self.writer))
    }

    /// A file that other processes write, too: whoever finds it taken waits, and is served within moments.
    pub fn open_shared(path: &Path, schema: Schema) -> Result<Self> {
        Self::open_waiting(path, schema, wait::wait)
    }

    fn open_waiting(path: &Path, schema: Schema, wait: fn(i32) -> bool) -> Result<Self> {
        let mut tries = 0;
        loop {
            let share = |connection: &mut Connection| {
                connection.busy_handler(Some(wait))?;
                Ok(Some(Turn::beside(path)?))
            };
            match Self::open_with(path, schema, share) {
                // A file that another process is just making refuses in ways that no handler is asked about.
                Err(Error::Unavailable { .. }) if tries < 100 => tries += 1,
                opened => return opened,
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn open_with(
        path: &Path,
        schema: Schema,
        prepare: impl FnOnce(&mut Connection) -> Result<Option<Turn>>,
    ) -> Result<Self> {
        check_version(rusqlite::version(), rusqlite::version_number())?;
        make_private(path);
        let mut connection = Connection::open(path)?;
        configure(&connection)?;
        let turn = prepare(&mut connection)?;
        migrate::sqlite(&connection, Some(path), schema)?;
        let (written, told) = mpsc::sync_channel(1);
        let writer =
            Arc::new(Writer { connection: Mutex::new(connection), turn, waiting: 0.into(), written });
        checkpoint::start(path, Arc::downgrade(&writer), told)?;
        let (queue, work) = mpsc::channel();
        let groups = Arc::clone(&writer);
        spawn("store-writer", move || write_groups(&groups, &work))?;
        let (readers, queries) = mpsc::channel();
        let queries = Arc::new(Mutex::new(queries));
        for _ in 0..READERS {
            let connection = open_reader(path)?;
            let queries = Arc::clone(&queries);
            spawn("store-reader", move || read_queue(&connection, &queries))?;
        }
        Ok(Self { path: path.to_owned(), writer, queue, readers, files: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves all of the log into the database, and leaves none.
    pub fn settle(&self) -> Result<()> {
        let mut settled = Ok(());
        self.writer.hold(|connection| {
            settled = checkpoint::run(connection, "PRAGMA wal_checkpoint(TRUNCATE)").map(drop);
        });
        Ok(settled?)
    }

    pub async fn write(&self, mut body: Body) -> Result<Value> {
        self.check_files()?;
        if let Some(answer) = self.writer.write_now(&mut body) {
            return answer;
        }
        let (caller, answer) = oneshot::channel();
        self.writer.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.send(Call { body, value: None, caller }).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    pub async fn read(&self, mut body: Body) -> Result<Value> {
        let (caller, answer) = oneshot::channel();
        let work = Box::new(move |connection: &Connection| {
            let _ = caller.send(snapshot(connection, &mut body));
        });
        self.readers.send(work).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map(drop).map_err(|e| Error::Other(format!("no thread for {name}: {e}")))
}

/// The one connection that writes.
struct Writer {
    connection: Mutex<Connection>,
    /// Where other processes write, too.
    turn: Option<Turn>,
    /// Transactions in the queue: while there are any, nobody goes first.
    waiting: AtomicUsize,
    /// Told after each commit; full means that it has been told already.
    written: mpsc::SyncSender<()>,
}

impl Writer {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes on the caller's thread if nobody else is writing or waits to: handing a small transaction to another
    /// thread and its answer back takes longer than the transaction. A commit does not wait for the disk, but it may
    /// wait for another process.
    fn write_now(&self, body: &mut Body) -> Option<Result<Value>> {
        if self.turn.is_some() || self.waiting.load(Ordering::SeqCst) > 0 {
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

    fn begin(&self, connection: &Connection) -> Result<()> {
        let begin = || run_sql(connection, "BEGIN IMMEDIATE");
        match &self.turn {
            Some(turn) => turn.take(begin),
            None => begin(),
        }
    }

    /// Runs `body` while nobody writes.
    fn hold(&self, body: impl FnOnce(&Connection)) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let connection = self.lock();
        body(&connection);
        drop(connection);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

fn write_groups(writer: &Writer, work: &mpsc::Receiver<Call>) {
    while let Ok(first) = work.recv() {
        let connection = writer.lock();
        let begun = writer.begin(&connection);
        // Whoever came while this waited for other processes is in the group.
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(more) = work.try_recv()
        {
            group.push(more);
        }
        let count = group.len();
        commit_group(writer, &connection, begun, group);
        writer.waiting.fetch_sub(count, Ordering::SeqCst);
        drop(connection);
        let _ = writer.written.try_send(());
    }
}

/// One transaction that is nobody else's.
fn write_alone(connection: &Connection, body: &mut Body) -> Result<Value> {
    run_sql(connection, "BEGIN IMMEDIATE")?;
    let value = body.run(Tx::sqlite(connection));
    let ended = match &value {
        Ok(_) => run_sql(connection, "COMMIT"),
        Err(_) => Ok(()),
    };
    if !connection.is_autocommit() {
        let _ = run_sql(connection, "ROLLBACK");
    }
    ended.and(value)
}

fn commit_group(writer: &Writer, connection: &Connection, begun: Result<()>, group: Vec<Call>) {
    if let Err(error) = begun {
        return answer_all(group, &Err(error));
    }
    let mut done: Vec<Call> = Vec::with_capacity(group.len());
    let mut waiting = group.into_iter();
    while let Some(mut call) = waiting.next() {
        match run_one(connection, &mut call) {
            Ok(()) => done.push(call),
            // A full disk makes SQLite drop the whole transaction: nobody in this group is committed.
            Err(error) if connection.is_autocommit() => {
                call.answer(Err(error.clone()));
                answer_all(done, &Err(error));
                return commit_rest(writer, connection, waiting.collect());
            }
            Err(error) => call.answer(Err(error)),
        }
    }
    let committed = run_sql(connection, "COMMIT");
    if committed.is_err() && !connection.is_autocommit() {
        let _ = run_sql(connection, "ROLLBACK");
    }
    answer_all(done, &committed);
}

fn commit_rest(writer: &Writer, connection: &Connection, rest: Vec<Call>) {
    if !rest.is_empty() {
        commit_group(writer, connection, writer.begin(connection), rest);
    }
}

fn run_one(connection: &Connection, call: &mut Call) -> Result<()> {
    run_sql(connection, "SAVEPOINT one")?;
    let outcome = call.run(connection);
    if outcome.is_err() && !connection.is_autocommit() {
        run_sql(connection, "ROLLBACK TO one")?;
    }
    if !connection.is_autocommit() {
        run_sql(connection, "RELEASE one")?;
    }
    outcome
}

fn answer_all(group: Vec<Call>, committed: &Result<()>) {
    for call in group {
        call.answer(committed.clone());
    }
}

fn run_sql(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.raw_execute()?;
    Ok(())
}

fn read_queue(connection: &Connection, queue: &Mutex<mpsc::Receiver<Query>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        work(connection);
    }
}

fn snapshot(connection: &Connection, body: &mut Body) -> Result<Value> {
    run_sql(connection, "BEGIN")?;
    let value = body.run(Tx::sqlite(connection));
    run_sql(connection, "COMMIT")?;
    value
}

/// The file is its owner's alone, and so are the files that SQLite makes beside it. A failure shows when it is opened.
pub(crate) fn make_private(path: &Path) {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    // Not a path, but an address with options.
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

fn configure(connection: &Connection) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(128);
    plan_once(connection)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
         PRAGMA busy_timeout = 5000; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;
         PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON;",
    )?;
    Ok(())
}

/// Plans do not depend on bound values. Without this SQLite plans a statement anew each time its parameters
/// change, wherever a LIMIT or a partial index is in sight: that took more time than running it.
fn plan_once(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// 3.51.3 mends a defect that can lose WAL content; 3.52.0 was withdrawn.
pub(crate) fn check_version(text: &str, number: i32) -> Result<()> {
    if number >= 3_051_003 && number != 3_052_000 { Ok(()) } else { Err(Error::BadSqlite(text.to_owned())) }
}

/// The same statements without threads, for runs that must be repeatable from a seed.
pub(crate) struct Inline(Mutex<Connection>);

impl Inline {
    pub fn open(schema: Schema) -> Result<Self> {
        let connection = Connection::open_in_memory()?;
        configure(&connection)?;
        migrate::sqlite(&connection, None, schema)?;
        Ok(Self(Mutex::new(connection)))
    }

    pub fn write(&self, mut body: Body) -> Result<Value> {
        write_alone(&self.0.lock().unwrap_or_else(PoisonError::into_inner), &mut body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defective_versions_of_sqlite_are_refused() {
        let refused = |number| check_version("x", number).is_err();
        assert!(refused(3_051_002) && refused(3_052_000) && refused(3_046_001));
        assert!(!refused(3_051_003) && !refused(3_053_000));
        assert!(check_version(rusqlite::version(), rusqlite::version_number()).is_ok());
    }
}
