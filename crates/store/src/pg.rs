//! PostgreSQL: a pool of threads, each with a connection and its prepared statements, so that the same plain,
//! synchronous functions run here as on SQLite.

mod pool;

use std::thread;
use std::time::{Duration, Instant};

use polyclaw_domain::time::Millis;
use postgres::{Client, NoTls, SimpleQueryMessage, fallible_iterator::FallibleIterator};
use tokio::sync::{mpsc as signal, oneshot};

use crate::body::{Body, Value, opened};
use crate::error::{Error, Result, caught};
use crate::live::{CONNECTED, Signal};
use crate::migrate;
use crate::tx::{Statements, Tx};
use pool::{Pool, Tell, Worker};

/// Connections lost before commit are tried again this often.
const TRIES: u32 = 4;
/// The loser of a deadlock is tried again this often: the winner went on meanwhile, so somebody always gets ahead.
const COLLISIONS: u32 = 20;
/// The loser of a deadlock that came back at once would take the winner's row from under it, and meet it again. No two
/// come back at the same moment.
const PAUSE: Duration = Duration::from_millis(20);
/// A server that does not even refuse is not waited for again and again: whoever asks is told.
const LONG: Duration = Duration::from_secs(2);
/// How long a commit without an answer is asked after before its caller is told that nobody knows.
const DOUBT: Duration = Duration::from_secs(60);
/// Between two questions after the same commit.
const ASK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) struct Postgres {
    url: String,
    pool: Pool<Work>,
}

/// Returns how whoever asked is told.
type Work = Box<dyn FnOnce(&mut Connection) -> Option<Tell> + Send>;

struct Connection {
    url: String,
    live: Option<(Client, Statements)>,
}

/// How far a transaction came.
enum Ended {
    Known(Result<Value>),
    /// The commit was sent and its answer was lost: the transaction of this number may have happened.
    InDoubt {
        value: Value,
        number: i64,
        message: String,
    },
}

/// What became of a transaction in doubt.
enum Fate {
    Committed,
    Undone,
    Unknown,
}

/// Connects, and leaves again.
pub(crate) fn reach(url: &str) -> Result<()> {
    connect(url).map(drop)
}

impl Postgres {
    pub fn open(url: &str, connections: usize) -> Result<Self> {
        let mut client = connect(url)?;
        migrate::postgres(&mut client)?;
        let mut first = Some((client, Statements::default()));
        let pool = Pool::new();
        for _ in 0..connections.max(1) {
            let worker: Worker<Work> = pool.worker(first.is_some());
            let connection = Connection { url: url.to_owned(), live: first.take() };
            let body = move || connection.work(&worker);
            thread::Builder::new()
                .name("store-postgres".into())
                .spawn(body)
                .map_err(|e| Error::Other(format!("no thread: {e}")))?;
        }
        Ok(Self { url: url.to_owned(), pool })
    }

    /// Runs a transaction and knows what became of it, even where the answer to its commit was lost.
    pub async fn write(&self, mut body: Body) -> Result<Value> {
        loop {
            let call = move |connection: &mut Connection| (connection.write(&mut body), body);
            let (ended, again) = self.call(call).await?;
            let (value, number, message) = match ended {
                Ended::Known(outcome) => return outcome,
                Ended::InDoubt { value, number, message } => (value, number, message),
            };
            match self.fate(number).await {
                Fate::Committed => return Ok(value),
                Fate::Undone => body = again,
                Fate::Unknown => return Err(Error::Unavailable { message, in_doubt: true }),
            }
        }
    }

    /// Runs statements without a transaction around them.
    pub async fn once(&self, mut body: Body) -> Result<Value> {
        self.call(move |connection| connection.once(&mut body)).await?
    }

    pub async fn read(&self, mut body: Body) -> Result<Value> {
        self.call(move |connection| connection.read(&mut body)).await?
    }

    async fn call<T, F>(&self, call: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> T + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let work = move |connection: &mut Connection| {
            // While the database is away callers give up: what nobody waits for is not begun.
            let value = (!caller.is_closed()).then(|| call(connection))?;
            let tell: Tell = Box::new(move || drop(caller.send(value)));
            Some(tell)
        };
        self.pool.give(Box::new(work));
        answer.await.map_err(|_| Error::Closed)
    }

    /// Asks what became of a transaction until the database says so.
    async fn fate(&self, number: i64) -> Fate {
        const STATUS: &str = "SELECT txid_status($1)";
        let ends = Instant::now() + DOUBT;
        while Instant::now() < ends {
            let look = move |tx: &mut Tx<'_>| tx.query_one(STATUS, &[number.into()], |row| row.opt_text(0));
            let told = self.read(Body::new(look)).await.and_then(opened::<Option<Option<String>>>);
            match told.map(Option::flatten).as_ref().map(Option::as_deref) {
                Ok(Some("committed")) => return Fate::Committed,
                Ok(Some("aborted")) => return Fate::Undone,
                // Its server process has not noticed yet that nobody listens, or the database is still away.
                Ok(Some(_)) | Err(Error::Unavailable { .. }) => tokio::time::sleep(ASK_AGAIN).await,
                _ => break,
            }
        }
        Fate::Unknown
    }

    /// Listens on a connection of its own for as long as the receiver lives; reconnects when it breaks.
    pub fn signals(&self) -> signal::UnboundedReceiver<Signal> {
        let (sender, receiver) = signal::unbounded_channel();
        let url = self.url.clone();
        let spawned = thread::Builder::new().name("store-listen".into()).spawn(move || {
            while !sender.is_closed() {
                if let Err(error) = listen(&url, &sender) {
                    tracing::warn!(%error, "listening for other nodes stopped, connecting again");
                    thread::sleep(Duration::from_secs(1));
                }
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread to listen for other nodes, falling back to polling");
        }
        receiver
    }
}

impl Connection {
    fn work(mut self, worker: &Worker<Work>) {
        let mut tell = None;
        while let Some(call) = worker.next(tell.take()) {
            // Whoever asked is told by the answer that never came; the next gets a connection that works.
            let made = caught(|| {
                tell = call(&mut self);
                Ok(())
            });
            if let Err(error) = made {
                tracing::error!(%error, "a connection is opened anew");
                // One that broke may break once more when it is put away: the thread goes on all the same.
                let broken = self.live.take();
                let _ = caught(|| {
                    drop(broken);
                    Ok(())
                });
            }
        }
    }

    fn once(&mut self, body: &mut Body) -> Result<Value> {
        let mut is_sent = false;
        let tried = self.often_enough(|connection| {
            let (client, statements) = connection.open()?;
            is_sent = true;
            body.run(Tx::postgres(client, statements, None))
        });
        tried.map_err(|error| match error {
            Error::Unavailable { message, .. } => Error::Unavailable { message, in_doubt: is_sent },
            error => error,
        })
    }

    fn read(&mut self, body: &mut Body) -> Result<Value> {
        self.often_enough(|connection| {
            let (client, statements) = connection.open()?;
            let (clock, []) = begin(client, READ)?;
            let run = |client: &mut Client| body.run(Tx::postgres(client, statements, Some(clock)));
            let value = ran(client, run)?;
            client.batch_execute("COMMIT")?;
            Ok(value)
        })
    }

    fn write(&mut self, body: &mut Body) -> Ended {
        let tried = self.often_enough(|connection| {
            let (client, statements) = connection.open()?;
            let (clock, [number]) = begin(client, WRITE)?;
            let run = |client: &mut Client| body.run(Tx::postgres(client, statements, Some(clock)));
            let value = ran(client, run)?;
            Ok(match client.batch_execute("COMMIT").map_err(Error::from) {
                Ok(()) => Ended::Known(Ok(value)),
                Err(Error::Unavailable { message, .. }) => Ended::InDoubt { value, number, message },
                Err(error) => return Err(error),
            })
        });
        let ended = tried.unwrap_or_else(|error| Ended::Known(Err(error)));
        if matches!(ended, Ended::InDoubt { .. }) {
            self.live = None;
        }
        ended
    }

    fn often_enough<T>(&mut self, mut once: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let (mut tries, mut collisions) = (1, 0);
        loop {
            match once(self) {
                Err(Error::Collided(_)) if collisions < COLLISIONS => {
                    collisions += 1;
                    thread::sleep(pause_after(collisions, fastrand::f64()));
                }
                Err(Error::Unavailable { .. }) if tries < TRIES && began.elapsed() < LONG => {
                    // A connection notices only when it is used that it was cut, so it is not used again.
                    self.live = None;
                    thread::sleep(PAUSE * tries);
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    fn open(&mut self) -> Result<(&mut Client, &mut Statements)> {
        if self.live.as_ref().is_none_or(|(client, _)| client.is_closed()) {
            self.live = Some((connect(&self.url)?, Statements::default()));
        }
        self.live.as_mut().map(|(client, statements)| (client, statements)).ok_or(Error::Closed)
    }
}

/// How long the loser of its n-th collision stays away; `luck` is between 0 and 1.
fn pause_after(collisions: u32, luck: f64) -> Duration {
    PAUSE.mul_f64(luck * f64::from(collisions + 1))
}

macro_rules! clock {
    () => {
        "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}

/// Every transaction learns the time of the database, in milliseconds.
const READ: &str = concat!("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; ", clock!());
/// One that writes also learns its number, by which it is asked after if its commit stays unanswered.
const WRITE: &str = concat!("BEGIN; ", clock!(), ", txid_current()");

/// Begins a transaction and returns the time and what else it learns. All go over the wire together.
fn begin<const N: usize>(client: &mut Client, sql: &str) -> Result<((Millis, Instant), [i64; N])> {
    // A transaction that failed at its beginning would be the beginning of the next, too.
    let said = ran(client, |client| Ok(client.simple_query(sql)?))?;
    // Behind the database by the way here, never ahead of it: a lease ends too early rather than too late.
    let told = Instant::now();
    let row = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let number = |index: usize| row?.get(index)?.parse::<i64>().ok();
    let more = (1..=N).map(number).collect::<Option<Vec<_>>>().and_then(|more| more.try_into().ok());
    let began = number(0).zip(more).map(|(clock, more)| ((Millis(clock), told), more));
    began.ok_or_else(|| Error::Other("a transaction began without a time or a number".into()))
}

/// Runs what a transaction is to do; what fails is undone.
fn ran<T>(client: &mut Client, run: impl FnOnce(&mut Client) -> Result<T>) -> Result<T> {
    let value = run(client);
    if value.is_err() {
        // If this fails too, the connection is gone and the transaction with it.
        let _ = client.batch_execute("ROLLBACK");
    }
    value
}

fn connect(url: &str) -> Result<Client> {
    let mut config: postgres::Config =
        url.parse().map_err(|_| Error::Other("store.url is not a postgres:// address".into()))?;
    config.connect_timeout(Duration::from_secs(5)).application_name("polyclaw");
    // A machine that vanished says nothing: these notice it within half a minute instead of hours.
    config.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3).tcp_user_timeout(Duration::from_secs(20));
    let mut client = config.connect(NoTls)?;
    // And should this machine vanish, its locks do not outlive it by more than this.
    client.batch_execute("SET idle_in_transaction_session_timeout = '30s'")?;
    Ok(client)
}

fn listen(url: &str, sender: &signal::UnboundedSender<Signal>) -> Result<()> {
    let mut client = connect(url)?;
    client.batch_execute("LISTEN polyclaw")?;
    // What was said before this node listened, or while its connection was gone, it did not hear.
    let _ = sender.send(Signal(CONNECTED.to_owned()));
    while !client.is_closed() && !sender.is_closed() {
        let mut notifications = client.notifications();
        // The pause only bounds how long a closed receiver goes unnoticed.
        let mut batch = notifications.timeout_iter(Duration::from_secs(5));
        while let Some(notification) = batch.next()? {
            if sender.send(Signal(notification.payload().to_owned())).is_err() {
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
        let mut connection = Connection { url: String::new(), live: None };
        let mut tries = 0;
        let told = connection.often_enough(|_| {
            tries += 1;
            Err::<(), _>(error.clone())
        });
        (tries, told.unwrap_err())
    }

    #[test]
    fn a_transaction_that_fails_at_its_beginning_leaves_a_connection_that_works() {
        let url = polyclaw_testkit::postgres::Cluster::of_process().fresh_database().unwrap();
        let mut client = connect(&url).unwrap();
        assert!(begin::<0>(&mut client, "BEGIN; SELECT 1 / 0").is_err());
        assert!(begin::<1>(&mut client, WRITE).is_ok());
    }

    #[test]
    fn what_fails_is_tried_so_often_and_then_told() {
        let away = Error::Unavailable { message: "away".into(), in_doubt: false };
        let (tries, told) = tried(&away);
        assert_eq!((tries, told.to_string()), (TRIES, away.to_string()));
        let met = Error::Collided("met".into());
        let (tries, told) = tried(&met);
        assert_eq!((tries, told.to_string()), (COLLISIONS + 1, met.to_string()));
        assert_eq!(tried(&Error::Conflict("there".into())).0, 1, "what will not change is not tried again");
    }

    #[test]
    fn the_loser_stays_away_longer_each_time() {
        assert_eq!(pause_after(1, 0.0), Duration::ZERO);
        assert_eq!(pause_after(1, 0.5), PAUSE);
        assert_eq!(pause_after(9, 1.0), PAUSE * 10);
        assert_eq!(pause_after(COLLISIONS, 1.0), Duration::from_millis(420), "and never for long");
    }
}
