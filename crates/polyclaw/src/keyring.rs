//! Access to the system's keyring through its standard program: `secret-tool` (libsecret) on Linux, `security` on
//! macOS. Values go through pipes, never through arguments, which other users can read.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const KEYRING_SERVICE: &str = "polyclaw";
/// Bounds the wait for a keyring that asks a person to unlock it on an unattended machine.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(10);
const IS_MACOS: bool = cfg!(target_os = "macos");

/// Returns whether a keyring is available. On Linux it is reached over the session bus.
pub fn is_available() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let program = if IS_MACOS { "security" } else { "secret-tool" };
    let paths = std::env::var_os("PATH").unwrap_or_default();
    (IS_MACOS || set("DBUS_SESSION_BUS_ADDRESS"))
        && std::env::split_paths(&paths).any(|dir| dir.join(program).is_file())
}

/// Returns the value of an entry, or `None` if there is no such entry.
pub fn find_entry(name: &str) -> Result<Option<String>, String> {
    let mut command = if IS_MACOS {
        keyring_command("security", &["find-generic-password", "-s", KEYRING_SERVICE, "-a", name, "-w"])
    } else {
        keyring_command("secret-tool", &["lookup", "service", KEYRING_SERVICE, "name", name])
    };
    let (ok, value) = run_program(&mut command, "")?;
    let value = value.trim_end_matches(['\r', '\n']);
    Ok(Some(value.to_owned()).filter(|value| ok && !value.is_empty()))
}

pub fn store_entry(name: &str, value: &str) -> Result<(), String> {
    let label = format!("Polyclaw: {name}");
    let (mut command, input) = if IS_MACOS {
        let line = format!("add-generic-password -U -s {KEYRING_SERVICE} -a {name} -w {value}\n");
        (keyring_command("security", &["-i"]), line)
    } else {
        let label = format!("--label={label}");
        (
            keyring_command("secret-tool", &["store", &label, "service", KEYRING_SERVICE, "name", name]),
            value.to_owned(),
        )
    };
    let (ok, _) = run_program(&mut command, &input)?;
    // Reads the value back, because the keyring may be locked or discard it.
    if ok && find_entry(name)?.as_deref() == Some(value) {
        Ok(())
    } else {
        Err("the keyring did not store it".to_owned())
    }
}

pub fn remove_entry(name: &str) -> Result<(), String> {
    let mut command = if IS_MACOS {
        keyring_command("security", &["delete-generic-password", "-s", KEYRING_SERVICE, "-a", name])
    } else {
        keyring_command("secret-tool", &["clear", "service", KEYRING_SERVICE, "name", name])
    };
    run_program(&mut command, "").map(drop)
}

fn keyring_command(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(args);
    command
}

/// Runs a program to its end. Returns whether it succeeded, and its output.
fn run_program(command: &mut Command, input: &str) -> Result<(bool, String), String> {
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(|error| {
        format!("no keyring is available ({}: {error})", command.get_program().to_string_lossy())
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input reports that with its exit status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let began = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if began.elapsed() > KEYRING_TIMEOUT => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("the keyring does not respond: it may be locked".to_owned());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut output = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        // A value is far smaller than a pipe's buffer, so the program never blocked on this.
        stdout.read_to_string(&mut output).map_err(|error| error.to_string())?;
    }
    Ok((status.success(), output))
}
