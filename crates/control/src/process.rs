//! Processes as the kernel sees them. A process is signalled only through a descriptor opened before it was
//! identified as ours, so that a reused pid cannot be hit.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use polyclaw_domain::instance::ProcessState;
use polyclaw_store::registry::ProcessId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Distinguishes a daemon from other programs that use its home.
const DAEMON_ARGUMENT: &[u8] = b"daemon";
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the state of a pid. `started` is the recorded start time of its process.
pub fn inspect_process(number: i32, started: Option<i64>, home: &Path) -> ProcessState {
    let Some(stat) = ProcessStat::for_pid(number) else { return inspect_hidden(number) };
    if stat.is_dead() {
        return ProcessState::Gone;
    }
    if started.is_some_and(|started| started != stat.started) {
        return ProcessState::Foreign;
    }
    match fs::read(format!("/proc/{number}/environ")) {
        Ok(environment) if works_on_home(&environment, home) && is_daemon(number) => ProcessState::Ours,
        Ok(_) => ProcessState::Foreign,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => ProcessState::Hidden,
        // The process ended between the two reads.
        Err(_) => ProcessState::Gone,
    }
}

/// If `/proc` hides the processes of others, EPERM on a signal shows that the process exists.
fn inspect_hidden(number: i32) -> ProcessState {
    let pid = rustix::process::Pid::from_raw(number);
    match pid.map(rustix::process::test_kill_process) {
        Some(Err(rustix::io::Errno::PERM)) => ProcessState::Hidden,
        _ => ProcessState::Gone,
    }
}

/// Returns the start time of a process.
pub fn start_time(number: i32) -> Option<i64> {
    ProcessStat::for_pid(number).filter(|stat| !stat.is_dead()).map(|stat| stat.started)
}

struct ProcessStat {
    state: char,
    started: i64,
}

impl ProcessStat {
    fn for_pid(number: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
    }

    /// Parses `/proc/<pid>/stat`. The name may contain anything, even brackets; only the fields after the last
    /// bracket are safe.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some(Self { state, started: fields.nth(18)?.parse().ok()? })
    }

    /// A process that has ended but is not reaped counts as dead.
    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Whether the process uses this home. Without `POLYCLAW_HOME` a daemon uses `~/.polyclaw`.
fn works_on_home(environment: &[u8], home: &Path) -> bool {
    let value = |name: &[u8]| {
        let mut entries = environment.split(|byte| *byte == 0);
        entries.find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
    };
    match value(b"POLYCLAW_HOME").filter(|value| !value.is_empty()) {
        Some(named) => named == home.as_os_str().as_bytes(),
        None => {
            value(b"HOME").is_some_and(|user| [user, b"/.polyclaw"].concat() == home.as_os_str().as_bytes())
        }
    }
}

fn is_daemon(number: i32) -> bool {
    let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).skip(1).any(|argument| argument == DAEMON_ARGUMENT)
}

/// Whether the process itself listens on this address, or on this port of every address.
pub fn listens_on(number: i32, address: SocketAddr) -> bool {
    let sockets: HashSet<String> = fs::read_dir(format!("/proc/{number}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/{number}/net/{name}")));
    tables.iter().flatten().flat_map(|table| table.lines().skip(1)).any(|line| {
        parse_listener(line).is_some_and(|(ip, port, inode)| {
            let serves = ip == address.ip() || ip.is_unspecified();
            serves && port == address.port() && sockets.contains(inode)
        })
    })
}

/// Parses the address and inode of a listening socket from a line of `/proc/net/tcp` or `tcp6`.
fn parse_listener(line: &str) -> Option<(IpAddr, u16, &str)> {
    const LISTEN_STATE: &str = "0A";
    let mut fields = line.split_whitespace();
    let (ip, port) = fields.nth(1)?.split_once(':')?;
    if fields.nth(1)? != LISTEN_STATE {
        return None;
    }
    // Each group of four bytes is a number in native byte order.
    let groups = ip
        .as_bytes()
        .chunks(8)
        .map(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().map(u32::to_ne_bytes));
    let bytes = groups.collect::<Option<Vec<_>>>()?.concat();
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::from(four),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?),
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?, fields.nth(5)?))
}

/// A process that was identified as ours.
pub struct ProcessHandle {
    pub number: i32,
    descriptor: OwnedFd,
}

impl ProcessHandle {
    /// Opens the process. Returns `None` if it is not ours, or no longer.
    pub fn open(pid: ProcessId, home: &Path) -> Option<Self> {
        let number = rustix::process::Pid::from_raw(pid.number)?;
        let descriptor = pidfd_open(number, PidfdFlags::empty()).ok()?;
        let ours = inspect_process(pid.number, Some(pid.started), home) == ProcessState::Ours;
        ours.then_some(Self { number: pid.number, descriptor })
    }

    pub fn terminate(&self) {
        self.send_signal(Signal::TERM);
    }

    pub fn kill(&self) {
        self.send_signal(Signal::KILL);
    }

    fn send_signal(&self, signal: Signal) {
        if let Err(error) = pidfd_send_signal(&self.descriptor, signal) {
            tracing::debug!(pid = self.number, %error, "could not signal a process; it had already ended");
        }
    }

    /// Waits for the end of the process. Returns whether it ended in time.
    pub async fn wait_for_exit(&self, timeout: Duration) -> bool {
        let began = Instant::now();
        while !self.has_ended() {
            if began.elapsed() >= timeout {
                return false;
            }
            tokio::time::sleep(EXIT_POLL_INTERVAL).await;
        }
        true
    }

    /// The descriptor of a process becomes readable when it ends, reaped or not.
    fn has_ended(&self) -> bool {
        let mut looked = [PollFd::new(&self.descriptor, PollFlags::IN)];
        poll(&mut looked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn process_stat_is_parsed_with_any_process_name() {
        let line =
            format!("7 (a) b) S 1 {} 4242 0", (0..17).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
        let stat = ProcessStat::parse(&line).unwrap();
        assert_eq!((stat.state, stat.started, stat.is_dead()), ('S', 4242, false));
        assert!(ProcessStat::parse("7 (a) Z").is_none());
    }

    #[test]
    fn process_home_is_matched_exactly_or_by_default() {
        let home = Path::new("/home/ada/.polyclaw");
        for (environment, expected) in [
            ("A=1\0POLYCLAW_HOME=/home/ada/.polyclaw\0", true),
            ("HOME=/home/ada\0", true),
            ("HOME=/home/ada\0POLYCLAW_HOME=/elsewhere\0", false),
            ("POLYCLAW_HOME=/home/ada/.polyclaw/cp/instances/x\0", false),
            ("NOT_POLYCLAW_HOME=/home/ada/.polyclaw\0", false),
            ("", false),
        ] {
            assert_eq!(works_on_home(environment.as_bytes(), home), expected, "{environment:?}");
        }
    }

    #[test]
    fn zombie_process_counts_as_gone() {
        let mut child = Command::new("true").spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        let began = std::time::Instant::now();
        while ProcessStat::for_pid(number).is_some_and(|stat| !stat.is_dead()) {
            assert!(began.elapsed() < Duration::from_secs(5), "it did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(ProcessStat::for_pid(number).is_some(), "it is a zombie now");
        assert_eq!(inspect_process(number, None, Path::new("/")), ProcessState::Gone);
        child.wait().unwrap();
    }

    #[test]
    fn listening_address_is_matched_to_its_own_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        for (bind, asked) in
            [("127.0.0.1", "127.0.0.1"), ("127.0.0.3", "127.0.0.3"), ("0.0.0.0", "127.0.0.1"), ("::1", "::1")]
        {
            let Ok(listener) = std::net::TcpListener::bind((bind, 0)) else {
                assert_eq!(bind, "::1", "a machine may be without the new addresses");
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let asked = SocketAddr::new(asked.parse().unwrap(), port);
            assert!(listens_on(own, asked), "{bind}");
            assert!(!listens_on(1, asked), "it is not of another process");
            let elsewhere = SocketAddr::new("127.0.0.9".parse().unwrap(), port);
            assert_eq!(listens_on(own, elsewhere), bind == "0.0.0.0", "{bind}");
            drop(listener);
            assert!(!listens_on(own, asked), "{bind} is closed");
        }
    }

    #[test]
    fn other_processes_and_reused_pids_are_foreign() {
        let own = i32::try_from(std::process::id()).unwrap();
        let since = start_time(own).unwrap();
        assert_eq!(inspect_process(own, Some(since), Path::new("/nowhere")), ProcessState::Foreign);
        assert_eq!(inspect_process(own, Some(since - 1), Path::new("/nowhere")), ProcessState::Foreign);
        assert_eq!(inspect_process(i32::MAX, None, Path::new("/")), ProcessState::Gone);
    }
}
