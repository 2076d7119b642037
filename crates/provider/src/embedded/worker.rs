//! One thread per model. It loads the model on first use, runs one job after another, reloads the model if the file was
//! replaced, and unloads it when idle. Two threads on one model would only compete for memory bandwidth.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::CorruptModelFile;
use super::weights::FileIdentity;

/// Maximum queued jobs. Each takes seconds, so a longer queue would only make callers wait longer.
const MAX_QUEUED_JOBS: usize = 16;

type ModelJob<M> = Box<dyn FnOnce(Result<&mut M, CorruptModelFile>) + Send>;
type ModelLoader<M> = Box<dyn Fn(&Path) -> Result<M, CorruptModelFile> + Send + Sync>;

pub(super) struct ModelWorker<M> {
    name: &'static str,
    idle: Duration,
    source: Arc<ModelSource<M>>,
    /// The thread starts with the first job.
    queue: Mutex<Option<SyncSender<ModelJob<M>>>>,
}

struct ModelSource<M> {
    file: PathBuf,
    load: ModelLoader<M>,
}

/// A loaded model and the identity of its file.
struct LoadedModel<M> {
    model: M,
    mark: Option<FileIdentity>,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WorkerBusy;

impl<M: 'static> ModelWorker<M> {
    pub fn new(
        name: &'static str,
        idle: Duration,
        file: impl Into<PathBuf>,
        load: impl Fn(&Path) -> Result<M, CorruptModelFile> + Send + Sync + 'static,
    ) -> Self {
        let source = Arc::new(ModelSource { file: file.into(), load: Box::new(load) });
        Self { name, idle, source, queue: Mutex::new(None) }
    }

    pub fn submit(
        &self,
        job: impl FnOnce(Result<&mut M, CorruptModelFile>) + Send + 'static,
    ) -> Result<(), WorkerBusy> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut job: ModelJob<M> = Box::new(job);
        if let Some(open) = queue.as_ref() {
            match open.try_send(job) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(_)) => return Err(WorkerBusy),
                // The last job killed the thread. This one gets a new thread and a fresh model.
                Err(TrySendError::Disconnected(back)) => job = back,
            }
        }
        let fresh = self.start_thread();
        let sent = fresh.try_send(job);
        *queue = Some(fresh);
        sent.map_err(|_| WorkerBusy)
    }

    fn start_thread(&self) -> SyncSender<ModelJob<M>> {
        let (send, receive) = sync_channel(MAX_QUEUED_JOBS);
        let (source, idle) = (Arc::clone(&self.source), self.idle);
        let thread = std::thread::Builder::new().name(self.name.to_owned());
        let started = thread.spawn(move || run_jobs(&receive, &source, idle));
        if let Err(error) = started {
            tracing::error!(%error, "could not start the embedded model's thread");
        }
        send
    }
}

/// Runs jobs until the worker is dropped.
fn run_jobs<M>(queue: &Receiver<ModelJob<M>>, source: &ModelSource<M>, idle: Duration) {
    let mut kept: Option<LoadedModel<M>> = None;
    loop {
        let job = match kept {
            Some(_) => queue.recv_timeout(idle),
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match job {
            Ok(job) => match load_if_changed(&mut kept, source) {
                Ok(model) => job(Ok(model)),
                Err(damaged) => job(Err(damaged)),
            },
            Err(RecvTimeoutError::Timeout) => {
                tracing::debug!("unloaded the idle embedded model");
                kept = None;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn load_if_changed<'a, M>(
    kept: &'a mut Option<LoadedModel<M>>,
    source: &ModelSource<M>,
) -> Result<&'a mut M, CorruptModelFile> {
    // Taken before loading: if the file is replaced meanwhile, the next job reloads it.
    let mark = FileIdentity::from_path(&source.file);
    if kept.as_ref().is_some_and(|kept| kept.mark != mark) {
        tracing::info!("embedded model file changed; reloading");
        // Dropped before the next one is loaded, because two would need twice the memory.
        *kept = None;
    }
    match kept {
        Some(kept) => Ok(&mut kept.model),
        None => {
            let model = (source.load)(&source.file)?;
            Ok(&mut kept.insert(LoadedModel { model, mark }).model)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    const NO_FILE: &str = "/no/such/file";

    #[test]
    fn replaced_model_file_is_loaded_again() {
        let file = std::env::temp_dir().join(format!("polyclaw-worker-{}", std::process::id()));
        let put = |text: &str| {
            let writing = file.with_extension("writing");
            std::fs::write(&writing, text).unwrap();
            std::fs::rename(&writing, &file).unwrap();
        };
        let load = |path: &Path| std::fs::read_to_string(path).map_err(|_| CorruptModelFile::new("gone"));
        let worker = ModelWorker::new("test", Duration::from_secs(60), &file, load);
        let ask = || {
            let (send, receive) = channel();
            let job =
                move |model: Result<&mut String, CorruptModelFile>| send.send(model.cloned().ok()).unwrap();
            worker.submit(job).unwrap();
            receive.recv().unwrap()
        };
        for text in ["one", "two"] {
            put(text);
            assert_eq!(ask().as_deref(), Some(text));
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(ask(), None, "what was removed is not used any more");
    }

    #[test]
    fn model_is_loaded_on_demand_and_unloaded_when_idle() {
        let loads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&loads);
        let load = move |_: &Path| Ok(counted.fetch_add(1, Ordering::SeqCst));
        let worker = ModelWorker::new("test", Duration::from_millis(30), NO_FILE, load);
        assert_eq!(loads.load(Ordering::SeqCst), 0);
        let ask = || {
            let (send, receive) = channel();
            worker.submit(move |model| send.send(*model.unwrap()).unwrap()).unwrap();
            receive.recv().unwrap()
        };
        assert_eq!((ask(), ask()), (0, 0));
        // The thread does not report the unload; a job after the wait shows it.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(ask(), 1);
    }

    #[test]
    fn full_worker_queue_refuses_jobs() {
        let worker = ModelWorker::new("test", Duration::from_secs(1), NO_FILE, |_| Ok(()));
        let (gate, wait) = channel::<()>();
        worker
            .submit(move |_| {
                let _ = wait.recv();
            })
            .unwrap();
        let sent = (0..MAX_QUEUED_JOBS + 2).filter(|_| worker.submit(|_| {}).is_ok()).count();
        assert!(sent <= MAX_QUEUED_JOBS, "{sent} were taken");
        drop(gate);
    }

    #[test]
    fn panicking_job_does_not_stop_the_worker() {
        let worker = ModelWorker::new("test", Duration::from_secs(1), NO_FILE, |_| Ok(()));
        let (send, receive) = channel::<()>();
        let job = move |_: Result<&mut (), CorruptModelFile>| {
            let _alive = send;
            panic!("a defect");
        };
        worker.submit(job).unwrap();
        assert!(receive.recv().is_err());
        // The queue closes a moment after the panic; a job submitted in between is lost with its answer.
        let asked = || {
            let (send, receive) = channel();
            let _ = worker.submit(move |model| send.send(model.is_ok()).unwrap());
            receive.recv() == Ok(true)
        };
        assert!((0..1000).any(|_| asked()));
    }

    #[test]
    fn load_error_is_reported_to_each_job() {
        let worker = ModelWorker::<()>::new("test", Duration::from_secs(1), NO_FILE, |_| {
            Err(CorruptModelFile::new("no file"))
        });
        let (send, receive) = channel();
        for _ in 0..2 {
            let send = send.clone();
            worker.submit(move |model| send.send(model.unwrap_err().to_string()).unwrap()).unwrap();
            assert_eq!(receive.recv().unwrap(), "this model file cannot be used: no file");
        }
    }
}
