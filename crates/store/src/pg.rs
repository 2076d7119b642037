//! PostgreSQL: a pool of threads, each with a connection and its prepared statements, so that the same plain,
//! synchronous functions run here as on SQLite.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use postgres::{Client, NoTls, fallible_iterator::FallibleIterator};
use tokio::sync::{mpsc as signal, oneshot};

use crate::error::{Error, Result};
use crate::live::Signal;
use crate::migrate;
use crate::tx::{Statements, Tx};

/// Deadlocks and lost connections before commit are tried again this often.
const TRIES: u32 = 4;
/// The loser of a deadlock that came back at once would take the winner's row from under it, and meet it again.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Postgres {
    url: String,
    queue: mpsc::Sender<Work>,
}

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

struct Connection {
    url: String,
    live: Option<(Client, Statements)>,
}

impl Postgres {
    pub fn open(url: &str, connections: usize) -> Result<Self> {
        let mut client = connect(url)?;
        migrate::postgres(&mut client)?;
        let mut first = Some((client, Statements::default()));
        let (queue, work) = mpsc::channel::<Work>();
        let work = Arc::new(Mutex::new(work));
        for _ in 0..connections.max(1) {
            let mut connection = Connection { url: url.to_owned(), live: first.take() };
            let work = Arc::clone(&work);
            let body = move || {
                loop {
                    let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(call) = next else { return };
                    call(&mut connection);
                }
            };
            thread::Builder::new()
                .name("store-postgres".into())
                .spawn(body)
                .map_err(|e| Error::Other(format!("no thread: {e}")))?;
        }
        Ok(Self { url: url.to_owned(), queue })
    }

    pub async fn run<T, F>(&self, mut body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let call = Box::new(move |connection: &mut Connection| {
            let _ = caller.send(connection.transact(&mut body));
        });
        self.queue.send(call).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
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
    fn transact<T>(&mut self, body: &mut impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        let mut tries = 1;
        loop {
            match self.once(body) {
                Err(Error::Unavailable { in_doubt: false, .. }) if tries < TRIES => {
                    // A connection notices only when it is used that it was cut, so it is not used again.
                    self.live = None;
                    thread::sleep(PAUSE * tries);
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    fn once<T>(&mut self, body: &mut impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        if self.live.as_ref().is_none_or(|(client, _)| client.is_closed()) {
            self.live = Some((connect(&self.url)?, Statements::default()));
        }
        let Some((client, statements)) = self.live.as_mut() else { return Err(Error::Closed) };
        let mut tx = Tx::postgres(client.transaction()?, statements);
        let value = tx.run(body)?;
        tx.commit_postgres().map_err(|error| match error {
            // The commit was sent: it may have happened.
            Error::Unavailable { message, .. } => Error::Unavailable { message, in_doubt: true },
            other => other,
        })?;
        Ok(value)
    }
}

fn connect(url: &str) -> Result<Client> {
    let mut config: postgres::Config =
        url.parse().map_err(|_| Error::Other("store.url is not a postgres:// address".into()))?;
    config.connect_timeout(Duration::from_secs(5)).application_name("polyclaw");
    Ok(config.connect(NoTls)?)
}

fn listen(url: &str, sender: &signal::UnboundedSender<Signal>) -> Result<()> {
    let mut client = connect(url)?;
    client.batch_execute("LISTEN polyclaw")?;
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
