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

use crate::error::{Error, Result};
use crate::migrate::{self, Schema};
use crate::tx::Tx;

mod checkpoint;

/// Transactions committed together at the most: bounds how long the first of a group waits for the last.
const GROUP: usize = 256;
const READERS: usize = 2;

pub(crate) struct Sqlite {
    path: PathBuf,
    writer: Arc<Writer>,
    queue: mpsc::Sender<Box<dyn Work>>,
    readers: mpsc::Sender<Query>,
}

type Query = Box<dyn FnOnce(&Connection) + Send>;

/// One caller's transaction: run inside a group, answered after the group's commit.
trait Work: Send {
    fn run(&mut self, connection: &Connection) -> Result<()>;
    fn answer(self: Box<Self>, committed: Result<()>);
}

struct Call<T, F> {
    body: F,
    value: Option<T>,
    caller: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnMut(&mut Tx<'_>) -> Result<T> + Send> Work for Call<T, F> {
    fn run(&mut self, connection: &Connection) -> Result<()> {
        self.value = Some(Tx::sqlite(connection).run(&mut self.body)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let Self { value, caller, .. } = *self;
        // A caller that went away does not undo what it asked for.
        let _ = caller.send(committed.and_then(|()| value.ok_or(Error::Closed)));
    }
}

impl Sqlite {
    pub fn open(path: &Path, schema: Schema) -> Result<Self> {
        Self::open_with(path, schema, |_| Ok(()))
    }

    /// A file that other processes write, too: whoever finds it taken waits, and is served within moments.
    pub fn open_shared(path: &Path, schema: Schema) -> Result<Self> {
        let mut tries = 0;
        loop {
            match Self::open_with(path, schema, |connection| Ok(connection.busy_handler(Some(wait_turn))?)) {
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
        prepare: impl FnOnce(&mut Connection) -> Result<()>,
    ) -> Result<Self> {
        check_version(rusqlite::version(), rusqlite::version_number())?;
        let mut connection = Connection::open(path)?;
        configure(&connection)?;
        prepare(&mut connection)?;
        migrate::sqlite(&connection, Some(path), schema)?;
        let (written, told) = mpsc::sync_channel(1);
        let writer = Arc::new(Writer { connection: Mutex::new(connection), waiting: 0.into(), written });
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
        Ok(Self { path: path.to_owned(), writer, queue, readers })
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

    pub async fn write<T, F>(&self, mut body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        if let Some(answer) = self.writer.write_now(&mut body) {
            return answer;
        }
        let (caller, answer) = oneshot::channel();
        self.writer.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.send(Box::new(Call { body, value: None, caller })).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    pub async fn read<T, F>(&self, mut body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let work = Box::new(move |connection: &Connection| {
            let _ = caller.send(snapshot(connection, &mut body));
        });
        self.readers.send(work).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

/// How long a writer waits for those of other processes before its caller is told that the file is taken.
const PATIENCE: Duration = Duration::from_secs(30);

/// SQLite's own pauses grow to a tenth of a second, in which dozens of others come first: these stay short.
fn wait_turn(tried: i32) -> bool {
    let pause = Duration::from_micros(if tried < 20 { 200 } else { 2_000 });
    thread::sleep(pause);
    u32::try_from(tried).is_ok_and(|tried| pause * tried < PATIENCE)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map(drop).map_err(|e| Error::Other(format!("no thread for {name}: {e}")))
}

/// The one connection that writes.
struct Writer {
    connection: Mutex<Connection>,
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
    /// thread and its answer back takes longer than the transaction. A commit does not wait for the disk.
    fn write_now<T>(&self, body: &mut impl FnMut(&mut Tx<'_>) -> Result<T>) -> Option<Result<T>> {
        if self.waiting.load(Ordering::SeqCst) > 0 {
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

    /// Runs `body` while nobody writes.
    fn hold(&self, body: impl FnOnce(&Connection)) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let connection = self.lock();
        body(&connection);
        drop(connection);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

fn write_groups(writer: &Writer, work: &mpsc::Receiver<Box<dyn Work>>) {
    while let Ok(first) = work.recv() {
        let connection = writer.lock();
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(more) = work.try_recv()
        {
            group.push(more);
        }
        let count = group.len();
        commit_group(&connection, group);
        writer.waiting.fetch_sub(count, Ordering::SeqCst);
        drop(connection);
        let _ = writer.written.try_send(());
    }
}

/// One transaction that is nobody else's.
fn write_alone<T>(connection: &Connection, body: &mut impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
    run_sql(connection, "BEGIN IMMEDIATE")?;
    let value = Tx::sqlite(connection).run(body);
    let ended = match &value {
        Ok(_) => run_sql(connection, "COMMIT"),
        Err(_) => Ok(()),
    };
    if !connection.is_autocommit() {
        let _ = run_sql(connection, "ROLLBACK");
    }
    ended.and(value)
}

fn commit_group(connection: &Connection, group: Vec<Box<dyn Work>>) {
    if let Err(error) = run_sql(connection, "BEGIN IMMEDIATE") {
        return answer_all(group, &Err(error));
    }
    let mut done: Vec<Box<dyn Work>> = Vec::with_capacity(group.len());
    let mut waiting = group.into_iter();
    while let Some(mut work) = waiting.next() {
        match run_one(connection, &mut *work) {
            Ok(()) => done.push(work),
            // A full disk makes SQLite drop the whole transaction: nobody in this group is committed.
            Err(error) if connection.is_autocommit() => {
                work.answer(Err(error.clone()));
                answer_all(done, &Err(error));
                return commit_rest(connection, waiting.collect());
            }
            Err(error) => work.answer(Err(error)),
        }
    }
    let committed = run_sql(connection, "COMMIT");
    if committed.is_err() && !connection.is_autocommit() {
        let _ = run_sql(connection, "ROLLBACK");
    }
    answer_all(done, &committed);
}

fn commit_rest(connection: &Connection, rest: Vec<Box<dyn Work>>) {
    if !rest.is_empty() {
        commit_group(connection, rest);
    }
}

fn run_one(connection: &Connection, work: &mut dyn Work) -> Result<()> {
    run_sql(connection, "SAVEPOINT one")?;
    let outcome = work.run(connection);
    if outcome.is_err() && !connection.is_autocommit() {
        run_sql(connection, "ROLLBACK TO one")?;
    }
    if !connection.is_autocommit() {
        run_sql(connection, "RELEASE one")?;
    }
    outcome
}

fn answer_all(group: Vec<Box<dyn Work>>, committed: &Result<()>) {
    for work in group {
        work.answer(committed.clone());
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

fn snapshot<T>(connection: &Connection, body: &mut impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
    run_sql(connection, "BEGIN")?;
    let value = Tx::sqlite(connection).run(body);
    run_sql(connection, "COMMIT")?;
    value
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
         PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = FAST;",
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

    pub fn write<T>(&self, mut body: impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
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
