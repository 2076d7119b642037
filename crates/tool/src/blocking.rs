//! Runs blocking work off the async threads. It ends after a timeout, and soon after its caller is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

const BLOCKING_WORK_TIMEOUT: Duration = Duration::from_secs(20);

/// Checked between the steps of long work.
pub struct WorkBudget {
    ends: Instant,
    abandoned: Arc<AtomicBool>,
}

impl WorkBudget {
    pub fn is_spent(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.ends
    }

    pub fn check_budget(&self) -> Result<()> {
        if self.is_spent() { Err(Error::OutOfTime(BLOCKING_WORK_TIMEOUT.as_secs())) } else { Ok(()) }
    }
}

/// Sets the flag when the waiting future is dropped. A blocking thread cannot be stopped from outside, only asked.
struct CancelWorkOnDrop(Arc<AtomicBool>);

impl Drop for CancelWorkOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub async fn run_blocking<T, F>(work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(&WorkBudget) -> Result<T> + Send + 'static,
{
    let waiting = CancelWorkOnDrop(Arc::new(AtomicBool::new(false)));
    let abandoned = Arc::clone(&waiting.0);
    let task = tokio::task::spawn_blocking(move || {
        let budget = WorkBudget { ends: Instant::now() + BLOCKING_WORK_TIMEOUT, abandoned };
        budget.check_budget()?;
        work(&budget)
    });
    task.await.unwrap_or(Err(Error::Broken))
}

#[cfg(test)]
impl WorkBudget {
    pub fn ample() -> Self {
        Self { ends: Instant::now() + BLOCKING_WORK_TIMEOUT, abandoned: Arc::default() }
    }

    pub fn empty() -> Self {
        Self { ends: Instant::now(), abandoned: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn abandoned_blocking_work_is_stopped() {
        let (tell, receiver) = std::sync::mpsc::channel();
        let started = run_blocking(move |budget| {
            let started_at = Instant::now();
            while !budget.is_spent() && started_at.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(5));
            }
            tell.send(started_at.elapsed()).ok();
            Ok(())
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), started).await.is_err());
        let took = tokio::task::spawn_blocking(move || receiver.recv().unwrap()).await.unwrap();
        assert!(took < Duration::from_secs(5), "{took:?}");
    }

    #[tokio::test]
    async fn panic_in_blocking_work_is_an_error() {
        let outcome = run_blocking(|_| -> Result<()> { panic!("a bug") }).await;
        assert!(matches!(outcome, Err(Error::Broken)));
    }
}
