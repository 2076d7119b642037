//! Who gets the next piece of work: the worker that rested last. Where one is enough, one stays warm: each connection has
//! caches and prepared statements of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

pub(super) struct Pool<W>(Arc<Mutex<State<W>>>);

struct State<W> {
    waiting: VecDeque<W>,
    resting: Vec<mpsc::Sender<W>>,
    is_closed: bool,
}

/// Where a worker gets its work.
pub(super) struct Worker<W>(Arc<Mutex<State<W>>>);

impl<W> Pool<W> {
    pub fn new() -> Self {
        let state = State { waiting: VecDeque::new(), resting: Vec::new(), is_closed: false };
        Self(Arc::new(Mutex::new(state)))
    }

    pub fn worker(&self) -> Worker<W> {
        Worker(Arc::clone(&self.0))
    }

    pub fn give(&self, mut work: W) {
        let mut state = lock(&self.0);
        while let Some(worker) = state.resting.pop() {
            match worker.send(work) {
                Ok(()) => return,
                // Its thread is gone.
                Err(mpsc::SendError(back)) => work = back,
            }
        }
        state.waiting.push_back(work);
    }
}

/// What waits is still done; then the workers go.
impl<W> Drop for Pool<W> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.is_closed = true;
        state.resting.clear();
    }
}

impl<W> Worker<W> {
    /// Waits for work. `None`: there will be none.
    pub fn next(&self) -> Option<W> {
        let mut state = lock(&self.0);
        if let Some(work) = state.waiting.pop_front() {
            return Some(work);
        }
        if state.is_closed {
            return None;
        }
        let (sender, given) = mpsc::channel();
        state.resting.push(sender);
        drop(state);
        given.recv().ok()
    }
}

fn lock<W>(state: &Mutex<State<W>>) -> MutexGuard<'_, State<W>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn whoever_rested_last_works_first_and_what_waits_is_done_before_the_end() {
        let pool = Pool::new();
        let (say, said) = mpsc::channel();
        let worker = |name: &'static str| {
            let (worker, say) = (pool.worker(), say.clone());
            thread::spawn(move || {
                while let Some(work) = worker.next() {
                    say.send((name, work)).unwrap();
                }
            })
        };
        let rested = |count: usize| while lock(&pool.0).resting.len() < count {};
        let first = worker("first");
        rested(1);
        let second = worker("second");
        for n in 0..3 {
            rested(2);
            pool.give(n);
            let (name, work) = said.recv().unwrap();
            assert_eq!(work, n);
            assert!(n == 0 || name == "second", "{name} is warm");
        }
        rested(2);
        drop(pool);
        first.join().unwrap();
        second.join().unwrap();

        let pool = Pool::new();
        pool.give(4);
        let late = pool.worker();
        drop(pool);
        assert_eq!((late.next(), late.next()), (Some(4), None));
    }
}
