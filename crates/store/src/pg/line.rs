//! Lines: what many ask of one place at the same time is written in one transaction, as the one writer of SQLite does it
//! for everybody. Only transactions that never wait for each other's rows may stand in one, or two lines could meet.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use tokio::sync::oneshot;

use super::{Connection, Ended, Work};
use crate::body::Body;
use crate::error::{Error, Result, caught};

/// Written in one transaction at most.
const MOST: usize = 64;

/// A transaction and whoever waits for it. The body goes back too: it may be wanted again.
pub(super) struct Asked {
    body: Body,
    caller: oneshot::Sender<(Ended, Body)>,
}

impl Asked {
    pub fn new(body: Body) -> (Self, oneshot::Receiver<(Ended, Body)>) {
        let (caller, answer) = oneshot::channel();
        (Self { body, caller }, answer)
    }
}

/// Who waits where. A line is there for as long as somebody serves it.
#[derive(Default)]
pub(super) struct Lines(Mutex<HashMap<String, Vec<Asked>>>);

impl Lines {
    /// Whether nobody serves the line: then whoever came sees to it.
    pub fn join(&self, line: &str, asked: Asked) -> bool {
        match self.lock().entry(line.to_owned()) {
            Entry::Occupied(mut waiting) => {
                waiting.get_mut().push(asked);
                false
            }
            Entry::Vacant(empty) => {
                empty.insert(vec![asked]);
                true
            }
        }
    }

    fn next(&self, line: &str) -> Vec<Asked> {
        let mut lines = self.lock();
        let Some(waiting) = lines.get_mut(line).filter(|waiting| !waiting.is_empty()) else {
            lines.remove(line);
            return Vec::new();
        };
        let many = waiting.len().min(MOST);
        waiting.drain(..many).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Asked>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves a line until nobody waits. In between it stands behind what others want of the database.
pub(super) fn serve(queue: &mpsc::Sender<Work>, lines: Arc<Lines>, line: String) -> Result<()> {
    let behind = queue.clone();
    let work = move |connection: &mut Connection| {
        let asked = lines.next(&line);
        if asked.is_empty() {
            return Ok(());
        }
        // Whatever happens to these, those behind them are served.
        let answered = caught(|| {
            answer(connection, asked);
            Ok(())
        });
        serve(&behind, lines, line).and(answered)
    };
    queue.send(Box::new(work)).map_err(|_| Error::Closed)
}

/// Writes what was asked for together. While the database is away callers give up: what nobody waits for is not begun.
pub(super) fn answer(connection: &mut Connection, asked: Vec<Asked>) {
    let waited_for = asked.into_iter().filter(|asked| !asked.caller.is_closed());
    let (mut bodies, callers): (Vec<_>, Vec<_>) = waited_for.map(|asked| (asked.body, asked.caller)).unzip();
    if bodies.is_empty() {
        return;
    }
    let endings = connection.write(&mut bodies);
    for ((ended, body), caller) in endings.into_iter().zip(bodies).zip(callers) {
        let _ = caller.send((ended, body));
    }
}
