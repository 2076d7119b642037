//! PostgreSQL: a pool of threads, each with a connection and its prepared statements, so that the same synchronous
//! functions run here as on SQLite.

mod pool;

use std::thread;
use std::time::{Duration, Instant};

use polyclaw_domain::time::Millis;
use postgres::{Client, NoTls, SimpleQueryMessage, fallible_iterator::FallibleIterator};
use tokio::sync::{mpsc as signal, oneshot};

use crate::error::{Error, Result, catch_panic};
use crate::migrate;
use crate::notify::{CONNECTED_SIGNAL, NodeSignal};
use crate::tx::{PreparedStatements, Tx};
use crate::tx_body::{TxBody, TxOutput, downcast_output};
use pool::{PoolWorker, SendReply, WorkerPool};

/// Maximum number of tries after connections lost before the commit.
const MAX_CONNECTION_TRIES: u32 = 4;
/// Maximum number of retries after a deadlock. The other transaction continued meanwhile, so there is always progress.
const MAX_DEADLOCK_RETRIES: u32 = 20;
/// Base backoff after a deadlock. A loser that retried immediately would collide with the winner again. The backoff is
/// randomized so that no two retry together.
const INITIAL_BACKOFF: Duration = Duration::from_millis(20);
/// A server that does not even refuse connections is not retried for longer than this; the caller gets the error.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an unanswered commit is resolved before the caller gets an in-doubt error.
const IN_DOUBT_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two checks of the same commit.
const IN_DOUBT_POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct PostgresEngine {
    url: String,
    pool: WorkerPool<ConnectionWork>,
}

/// Returns the reply to send to the caller.
type ConnectionWork = Box<dyn FnOnce(&mut PostgresConnection) -> Option<SendReply> + Send>;

struct PostgresConnection {
    url: String,
    live: Option<(Client, PreparedStatements)>,
}

/// How far a transaction came.
enum CommitOutcome {
    Known(Result<TxOutput>),
    /// The commit was sent and its answer was lost. The transaction with this id may have been committed.
    InDoubt {
        value: TxOutput,
        number: i64,
        message: String,
    },
}

/// The resolved state of an in-doubt transaction.
enum TransactionFate {
    Committed,
    RolledBack,
    Unknown,
}

/// Connects and disconnects.
pub(crate) fn check_connection(url: &str) -> Result<()> {
    connect(url).map(drop)
}

impl PostgresEngine {
    pub fn open(url: &str, connections: usize) -> Result<Self> {
        let mut client = connect(url)?;
        migrate::migrate_postgres(&mut client)?;
        let mut first = Some((client, PreparedStatements::default()));
        let pool = WorkerPool::new();
        for _ in 0..connections.max(1) {
            let worker: PoolWorker<ConnectionWork> = pool.new_worker(first.is_some());
            let connection = PostgresConnection { url: url.to_owned(), live: first.take() };
            let body = move || connection.run_worker(&worker);
            thread::Builder::new()
                .name("store-postgres".into())
                .spawn(body)
                .map_err(|e| Error::Other(format!("cannot start a thread: {e}")))?;
        }
        Ok(Self { url: url.to_owned(), pool })
    }

    /// Runs a transaction. If the answer to its commit is lost, its fate is resolved before this returns.
    pub async fn write(&self, mut body: TxBody) -> Result<TxOutput> {
        loop {
            let call = move |connection: &mut PostgresConnection| (connection.write(&mut body), body);
            let (ended, again) = self.run_on_pool(call).await?;
            let (value, number, message) = match ended {
                CommitOutcome::Known(outcome) => return outcome,
                CommitOutcome::InDoubt { value, number, message } => (value, number, message),
            };
            match self.resolve_in_doubt(number).await {
                TransactionFate::Committed => return Ok(value),
                TransactionFate::RolledBack => body = again,
                TransactionFate::Unknown => return Err(Error::Unavailable { message, in_doubt: true }),
            }
        }
    }

    /// Runs statements in autocommit mode.
    pub async fn run_autocommit(&self, mut body: TxBody) -> Result<TxOutput> {
        self.run_on_pool(move |connection| connection.run_autocommit(&mut body)).await?
    }

    pub async fn read(&self, mut body: TxBody) -> Result<TxOutput> {
        self.run_on_pool(move |connection| connection.read(&mut body)).await?
    }

    async fn run_on_pool<T, F>(&self, call: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut PostgresConnection) -> T + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let work = move |connection: &mut PostgresConnection| {
            // Callers give up while the database is unavailable; skip work that nobody waits for.
            let value = (!caller.is_closed()).then(|| call(connection))?;
            let tell: SendReply = Box::new(move || drop(caller.send(value)));
            Some(tell)
        };
        self.pool.submit(Box::new(work));
        answer.await.map_err(|_| Error::Closed)
    }

    /// Polls the fate of an in-doubt transaction until the database knows it.
    async fn resolve_in_doubt(&self, number: i64) -> TransactionFate {
        const STATUS: &str = "SELECT txid_status($1)";
        let ends = Instant::now() + IN_DOUBT_TIMEOUT;
        while Instant::now() < ends {
            let look = move |tx: &mut Tx<'_>| tx.query_one(STATUS, &[number.into()], |row| row.opt_text(0));
            let result =
                self.read(TxBody::new(look)).await.and_then(downcast_output::<Option<Option<String>>>);
            match result.map(Option::flatten).as_ref().map(Option::as_deref) {
                Ok(Some("committed")) => return TransactionFate::Committed,
                Ok(Some("aborted")) => return TransactionFate::RolledBack,
                // The server process has not noticed the lost connection yet, or the database is still unavailable.
                Ok(Some(_)) | Err(Error::Unavailable { .. }) => {
                    tokio::time::sleep(IN_DOUBT_POLL_INTERVAL).await;
                }
                _ => break,
            }
        }
        TransactionFate::Unknown
    }

    /// Listens on a separate connection while the receiver lives. Reconnects when the connection breaks.
    pub fn subscribe_signals(&self) -> signal::UnboundedReceiver<NodeSignal> {
        let (sender, receiver) = signal::unbounded_channel();
        let url = self.url.clone();
        let spawned = thread::Builder::new().name("store-listen".into()).spawn(move || {
            while !sender.is_closed() {
                if let Err(error) = listen_for_signals(&url, &sender) {
                    tracing::warn!(%error, "stopped listening for other nodes; reconnecting in 1 s");
                    thread::sleep(Duration::from_secs(1));
                }
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start the listener for other nodes; falling back to polling");
        }
        receiver
    }
}

impl PostgresConnection {
    fn run_worker(mut self, worker: &PoolWorker<ConnectionWork>) {
        let mut tell = None;
        while let Some(call) = worker.next(tell.take()) {
            // The caller sees a dropped channel; the next call gets a new connection.
            let made = catch_panic(|| {
                tell = call(&mut self);
                Ok(())
            });
            if let Err(error) = made {
                tracing::error!(%error, "database work panicked; opening a new connection");
                // Dropping the broken connection may panic again; the thread continues anyway.
                let broken = self.live.take();
                let _ = catch_panic(|| {
                    drop(broken);
                    Ok(())
                });
            }
        }
    }

    fn run_autocommit(&mut self, body: &mut TxBody) -> Result<TxOutput> {
        let mut is_sent = false;
        let tried = self.with_retries(|connection| {
            let (client, statements) = connection.open()?;
            is_sent = true;
            body.run(Tx::for_postgres(client, statements, None))
        });
        tried.map_err(|error| match error {
            Error::Unavailable { message, .. } => Error::Unavailable { message, in_doubt: is_sent },
            error => error,
        })
    }

    fn read(&mut self, body: &mut TxBody) -> Result<TxOutput> {
        self.with_retries(|connection| {
            let (client, statements) = connection.open()?;
            let (clock, []) = begin_transaction(client, BEGIN_READ)?;
            let run = |client: &mut Client| body.run(Tx::for_postgres(client, statements, Some(clock)));
            let value = run_or_rollback(client, run)?;
            client.batch_execute("COMMIT")?;
            Ok(value)
        })
    }

    fn write(&mut self, body: &mut TxBody) -> CommitOutcome {
        let tried = self.with_retries(|connection| {
            let (client, statements) = connection.open()?;
            let (clock, [number]) = begin_transaction(client, BEGIN_WRITE)?;
            let run = |client: &mut Client| body.run(Tx::for_postgres(client, statements, Some(clock)));
            let value = run_or_rollback(client, run)?;
            Ok(match client.batch_execute("COMMIT").map_err(Error::from) {
                Ok(()) => CommitOutcome::Known(Ok(value)),
                Err(Error::Unavailable { message, .. }) => CommitOutcome::InDoubt { value, number, message },
                Err(error) => return Err(error),
            })
        });
        let ended = tried.unwrap_or_else(|error| CommitOutcome::Known(Err(error)));
        if matches!(ended, CommitOutcome::InDoubt { .. }) {
            self.live = None;
        }
        ended
    }

    fn with_retries<T>(&mut self, mut once: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let (mut tries, mut collisions) = (1, 0);
        loop {
            match once(self) {
                Err(Error::Collided(_)) if collisions < MAX_DEADLOCK_RETRIES => {
                    collisions += 1;
                    thread::sleep(deadlock_backoff(collisions, fastrand::f64()));
                }
                Err(Error::Unavailable { .. })
                    if tries < MAX_CONNECTION_TRIES && began.elapsed() < RECONNECT_TIMEOUT =>
                {
                    // A broken connection is only noticed in use, so it is not used again.
                    self.live = None;
                    thread::sleep(INITIAL_BACKOFF * tries);
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    fn open(&mut self) -> Result<(&mut Client, &mut PreparedStatements)> {
        if self.live.as_ref().is_none_or(|(client, _)| client.is_closed()) {
            self.live = Some((connect(&self.url)?, PreparedStatements::default()));
        }
        self.live.as_mut().map(|(client, statements)| (client, statements)).ok_or(Error::Closed)
    }
}

/// Returns the backoff after the n-th deadlock; `luck` is between 0 and 1.
fn deadlock_backoff(collisions: u32, luck: f64) -> Duration {
    INITIAL_BACKOFF.mul_f64(luck * f64::from(collisions + 1))
}

macro_rules! clock {
    () => {
        "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}

/// Every transaction reads the database's clock, in milliseconds.
const BEGIN_READ: &str = concat!("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; ", clock!());
/// A writing transaction also reads its id, to resolve a commit without an answer.
const BEGIN_WRITE: &str = concat!("BEGIN; ", clock!(), ", txid_current()");

/// Begins a transaction and returns the clock and the other values. All statements are sent together.
fn begin_transaction<const N: usize>(
    client: &mut Client,
    sql: &str,
) -> Result<((Millis, Instant), [i64; N])> {
    // Roll back on failure, or the next transaction would start inside the failed one.
    let messages = run_or_rollback(client, |client| Ok(client.simple_query(sql)?))?;
    // This clock is behind the database's by the network delay and never ahead, so leases end too early rather than too
    // late.
    let notified_at = Instant::now();
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let number = |index: usize| row?.get(index)?.parse::<i64>().ok();
    let more = (1..=N).map(number).collect::<Option<Vec<_>>>().and_then(|more| more.try_into().ok());
    let began = number(0).zip(more).map(|(clock, more)| ((Millis(clock), notified_at), more));
    began.ok_or_else(|| Error::Other("a transaction started without a time or a number".into()))
}

/// Runs the work of a transaction and rolls back on failure.
fn run_or_rollback<T>(client: &mut Client, run: impl FnOnce(&mut Client) -> Result<T>) -> Result<T> {
    let value = run(client);
    if value.is_err() {
        // If this fails too, the connection is gone and the transaction with it.
        let _ = client.batch_execute("ROLLBACK");
    }
    value
}

fn connect(url: &str) -> Result<Client> {
    let mut config: postgres::Config =
        url.parse().map_err(|_| Error::Other("store.url is not a postgres:// URL".into()))?;
    config.connect_timeout(Duration::from_secs(5)).application_name("polyclaw");
    // A vanished server sends nothing: these settings detect it within half a minute instead of hours.
    config.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3).tcp_user_timeout(Duration::from_secs(20));
    let mut client = config.connect(NoTls)?;
    // If this machine vanishes, its locks are released after at most this time.
    client.batch_execute("SET idle_in_transaction_session_timeout = '30s'")?;
    Ok(client)
}

fn listen_for_signals(url: &str, sender: &signal::UnboundedSender<NodeSignal>) -> Result<()> {
    let mut client = connect(url)?;
    client.batch_execute("LISTEN polyclaw")?;
    // Signals sent before this node listened, or while it was disconnected, were missed.
    let _ = sender.send(NodeSignal(CONNECTED_SIGNAL.to_owned()));
    while !client.is_closed() && !sender.is_closed() {
        let mut notifications = client.notifications();
        // The timeout only bounds how long a closed receiver goes unnoticed.
        let mut batch = notifications.timeout_iter(Duration::from_secs(5));
        while let Some(notification) = batch.next()? {
            if sender.send(NodeSignal(notification.payload().to_owned())).is_err() {
                return Ok(());
            }
        }
    }
    if sender.is_closed() {
        return Ok(());
    }
    Err(Error::Unavailable { message: "connection closed".into(), in_doubt: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(error: &Error) -> (u32, Error) {
        let mut connection = PostgresConnection { url: String::new(), live: None };
        let mut tries = 0;
        let result = connection.with_retries(|_| {
            tries += 1;
            Err::<(), _>(error.clone())
        });
        (tries, result.unwrap_err())
    }

    #[test]
    fn failed_begin_leaves_connection_usable() {
        let url = polyclaw_testkit::postgres::PostgresCluster::for_process().fresh_database().unwrap();
        let mut client = connect(&url).unwrap();
        assert!(begin_transaction::<0>(&mut client, "BEGIN; SELECT 1 / 0").is_err());
        assert!(begin_transaction::<1>(&mut client, BEGIN_WRITE).is_ok());
    }

    #[test]
    fn transient_errors_are_retried_up_to_their_limit() {
        let away = Error::Unavailable { message: "away".into(), in_doubt: false };
        let (tries, error) = tried(&away);
        assert_eq!((tries, error.to_string()), (MAX_CONNECTION_TRIES, away.to_string()));
        let met = Error::Collided("met".into());
        let (tries, error) = tried(&met);
        assert_eq!((tries, error.to_string()), (MAX_DEADLOCK_RETRIES + 1, met.to_string()));
        assert_eq!(tried(&Error::Conflict("there".into())).0, 1, "what will not change is not tried again");
    }

    #[test]
    fn deadlock_backoff_grows_up_to_its_limit() {
        assert_eq!(deadlock_backoff(1, 0.0), Duration::ZERO);
        assert_eq!(deadlock_backoff(1, 0.5), INITIAL_BACKOFF);
        assert_eq!(deadlock_backoff(9, 1.0), INITIAL_BACKOFF * 10);
        assert_eq!(
            deadlock_backoff(MAX_DEADLOCK_RETRIES, 1.0),
            Duration::from_millis(420),
            "and never for long"
        );
    }
}
