//! Distributes work to the worker that became idle last. If one worker is enough, its connection stays warm with its
//! caches and prepared statements.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

pub(super) struct WorkerPool<W>(Arc<Mutex<PoolState<W>>>);

struct PoolState<W> {
    waiting: VecDeque<W>,
    idle: Vec<mpsc::Sender<W>>,
    is_closed: bool,
}

/// A worker's source of work.
pub(super) struct PoolWorker<W> {
    state: Arc<Mutex<PoolState<W>>>,
    /// It has a connection. Workers without one are used last.
    is_warm: Cell<bool>,
}

/// Sends a result to its caller. The worker registers as idle first, so that the caller's next work finds it warm.
pub(super) type SendReply = Box<dyn FnOnce() + Send>;

impl<W> WorkerPool<W> {
    pub fn new() -> Self {
        let state = PoolState { waiting: VecDeque::new(), idle: Vec::new(), is_closed: false };
        Self(Arc::new(Mutex::new(state)))
    }

    pub fn new_worker(&self, is_warm: bool) -> PoolWorker<W> {
        PoolWorker { state: Arc::clone(&self.0), is_warm: Cell::new(is_warm) }
    }

    pub fn submit(&self, mut work: W) {
        let mut state = lock_state(&self.0);
        while let Some(worker) = state.idle.pop() {
            match worker.send(work) {
                Ok(()) => return,
                // Its thread is gone.
                Err(mpsc::SendError(back)) => work = back,
            }
        }
        state.waiting.push_back(work);
    }
}

/// Waiting work is still done before the workers exit.
impl<W> Drop for WorkerPool<W> {
    fn drop(&mut self) {
        let mut state = lock_state(&self.0);
        state.is_closed = true;
        state.idle.clear();
    }
}

impl<W> PoolWorker<W> {
    /// Sends the result of the last work and waits for more. `None` when the pool is closed.
    pub fn next(&self, tell: Option<SendReply>) -> Option<W> {
        let next = self.next_or_register();
        if let Some(tell) = tell {
            tell();
        }
        let work = next.unwrap_or_else(|given| given.recv().ok());
        self.is_warm.set(true);
        work
    }

    /// Returns waiting work, or the channel on which it will arrive.
    fn next_or_register(&self) -> Result<Option<W>, mpsc::Receiver<W>> {
        let mut state = lock_state(&self.state);
        let work = state.waiting.pop_front();
        if work.is_some() || state.is_closed {
            return Ok(work);
        }
        let (sender, given) = mpsc::channel();
        let place = if self.is_warm.get() { state.idle.len() } else { 0 };
        state.idle.insert(place, sender);
        Err(given)
    }
}

fn lock_state<W>(state: &Mutex<PoolState<W>>) -> MutexGuard<'_, PoolState<W>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn most_recently_idle_worker_runs_and_queue_drains_on_drop() {
        let pool = WorkerPool::new();
        let (say, text) = mpsc::channel();
        let worker = |name: &'static str, is_warm: bool| {
            let (worker, say) = (pool.new_worker(is_warm), say.clone());
            thread::spawn(move || {
                let mut tell = None;
                while let Some(work) = worker.next(tell.take()) {
                    let say = say.clone();
                    tell = Some(Box::new(move || say.send((name, work)).unwrap()) as SendReply);
                }
            })
        };
        let rested = |count: usize| while lock_state(&pool.0).idle.len() < count {};
        let warm = worker("warm", true);
        rested(1);
        let cold = worker("cold", false);
        rested(2);
        for n in 0..100 {
            pool.submit(n);
            assert_eq!(text.recv().unwrap(), ("warm", n), "who has told rests already");
        }
        drop(pool);
        warm.join().unwrap();
        cold.join().unwrap();

        let pool = WorkerPool::new();
        pool.submit(4);
        let late = pool.new_worker(false);
        drop(pool);
        assert_eq!((late.next(None), late.next(None)), (Some(4), None));
    }
}
