//! Calls that wait for an answer of another instance, in this process. The control plane keeps an answer until the
//! result of the call is stored, so what is here may be lost.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::letter::Letter;

#[derive(Default)]
pub struct Waiters(Mutex<HashMap<String, UnboundedSender<News>>>);

pub enum News {
    /// The task is worked on.
    Progress,
    Answer(Box<Letter>),
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, UnboundedSender<News>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on answers under this correlation come here.
    pub fn wait(&self, correlation: &str) -> UnboundedReceiver<News> {
        let (line, news) = unbounded_channel();
        self.lock().insert(correlation.to_owned(), line);
        news
    }

    /// Nobody waits for it any more.
    pub fn leave(&self, correlation: &str) {
        self.lock().remove(correlation);
    }

    pub fn progress(&self, letter: &Letter) {
        if let Some(line) = self.lock().get(letter.thread()) {
            let _ = line.send(News::Progress);
        }
    }

    /// Hands an answer to the call that waits for it: one call is given one answer.
    pub fn give(&self, letter: &Letter) {
        if let Some(line) = self.lock().remove(letter.thread()) {
            let _ = line.send(News::Answer(Box::new(letter.clone())));
        }
    }
}
