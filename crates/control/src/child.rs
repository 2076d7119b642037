//! Child processes of this server. They are reaped as soon as they end, so that none stays a zombie. They keep
//! running when the server ends.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use polyclaw_domain::id::InstanceId;
use polyclaw_store::registry::InstanceRecord;
use tokio::process::Command;
use tokio::sync::watch;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::file::FILE_MODE;
use crate::instance_paths::InstancePaths;
use crate::log;

/// Environment variables that concern only this process and are not passed to instances.
const CONTROL_PLANE_VARIABLES: [&str; 9] = [
    "POLYCLAW_TOKEN",
    "POLYCLAW_URL",
    "POLYCLAW_CP_ALLOWED_HOSTS",
    "POLYCLAW_CP_BIND",
    "POLYCLAW_CP_FOLDER",
    "POLYCLAW_CP_IDLE_SECS",
    "POLYCLAW_CP_PORT",
    "POLYCLAW_CP_URL",
    "POLYCLAW_CP_TOKEN",
];

pub(crate) struct ChildProcess {
    pub number: i32,
    /// The exit status, once the process has ended.
    ended: watch::Receiver<Option<ExitStatus>>,
}

impl ChildProcess {
    /// Waits for the end of the process.
    pub async fn wait(&mut self) -> Option<ExitStatus> {
        // An error means that the reaping task is gone, which happens only with the server.
        self.ended.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }
}

#[derive(Default)]
pub(crate) struct ChildProcesses(Mutex<HashMap<InstanceId, ChildState>>);

enum ChildState {
    Running(i32),
    /// The process ended and its exit status was not read yet.
    Ended(i32, ExitStatus),
}

impl ChildProcesses {
    fn set_state(&self, id: &InstanceId, known: ChildState) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), known);
    }

    /// Returns the exit status of the process with this number, once. Returns `None` if it was no child of this
    /// server, because the end of another process says nothing about it.
    pub fn take_exit_status(&self, id: &InstanceId, number: Option<i32>) -> Option<ExitStatus> {
        let mut children = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ChildState::Ended(ended, status)) = children.get(id) else { return None };
        let found = (number == Some(*ended)).then_some(*status);
        children.remove(id);
        found
    }

    /// Lists the instances started by this server that are still running.
    pub fn list_running(&self) -> Vec<InstanceId> {
        let children = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        children
            .iter()
            .filter(|(_, known)| matches!(known, ChildState::Running(_)))
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn record_exit(&self, id: &InstanceId, number: i32, status: ExitStatus) {
        let mut children = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another process may have been started meanwhile.
        if matches!(children.get(id), Some(ChildState::Running(running)) if *running == number) {
            children.insert(id.clone(), ChildState::Ended(number, status));
        }
    }
}

impl Control {
    /// Starts the daemon of an instance in its own process group, with its log as stdout and stderr.
    pub(crate) async fn spawn_daemon(
        &self,
        one: &InstanceRecord,
        place: &InstancePaths,
    ) -> Result<ChildProcess> {
        let own = self.create_instance_token(&one.id).await?;
        let failed = |why: String| Error::StartFailed { name: one.name.to_string(), why, lines: Vec::new() };
        let (out, err) = open_log(place)?;
        let mut command = Command::new(&self.program);
        command.arg("daemon").args(["--port", &one.port.to_string()]);
        for name in CONTROL_PLANE_VARIABLES {
            command.env_remove(name);
        }
        command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("POLYCLAW_HOME", place.path())
            .env("POLYCLAW_INSTANCE_ID", one.id.as_str())
            .env("POLYCLAW_CP_TOKEN", own)
            .env(log::LOG_FILE_VARIABLE, place.log_file())
            .envs(self.home_instance_token(one).map(|token| ("POLYCLAW_TOKEN", token)))
            .envs(self.listen_url().map(|url| ("POLYCLAW_CP_URL", url)))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        let mut process = command.spawn().map_err(|error| failed(error.to_string()))?;
        let number = process.id().and_then(|pid| i32::try_from(pid).ok());
        let number = number.ok_or_else(|| failed("it exited immediately".to_owned()))?;
        self.children.set_state(&one.id, ChildState::Running(number));
        let ends = self.ends_children.load(Ordering::Relaxed);
        if let Err(error) = place.write_ending_pid(ends.then_some(number)) {
            tracing::warn!(instance = %one.name, %error, "could not update ends.pid; instance may outlive a killed server");
        }
        let (tell, ended) = watch::channel(None);
        let (control, id) = (self.clone(), one.id.clone());
        tokio::spawn(async move {
            if let Ok(status) = process.wait().await {
                control.children.record_exit(&id, number, status);
                let _ = tell.send(Some(status));
                control.wake_supervisor.notify_one();
            }
        });
        Ok(ChildProcess { number, ended })
    }
}

fn open_log(place: &InstancePaths) -> Result<(std::fs::File, std::fs::File)> {
    let path = place.log_file();
    let opened = || {
        crate::file::make_private(&place.log_folder())?;
        log::rotate_if_full(&path)?;
        let file = OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(&path)?;
        Ok((file.try_clone()?, file))
    };
    opened().map_err(|error: std::io::Error| Error::from_io(&path, &error))
}
