//! The setup of an escape: the targets, the listeners, and the initial state.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polyclaw_testkit::model_server::ModelServer;

use crate::fixture::{Daemon, Home};

/// In the daemon's environment, in files of the user and of the other agent: none may leak.
pub const CANARY: &str = "canary-9f31c7";

pub struct Ground {
    pub home: Home,
    pub daemon: Daemon,
    pub mark: String,
    words: Vec<(&'static str, String)>,
    /// Forbidden connections and packets.
    heard: Arc<AtomicUsize>,
    before: BTreeMap<PathBuf, String>,
    /// The process that starts a daemon may leave descriptors open.
    _left_open: OwnedFd,
}

impl Ground {
    /// A daemon with an agent under these rules, another agent, and a user with secrets.
    pub fn new(model: &ModelServer, isolation: &str, mode: &str) -> Self {
        // Digits only: some attempts sleep this long, and a rejected sleep would prove nothing.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let mark = format!("7{}{}", std::process::id(), now.subsec_nanos());
        // Not below /tmp: that is another folder in the sandbox, and attempts there would prove nothing.
        let home = Home::in_folder(Path::new("/var/tmp")).served_by(model, &config(isolation, mode));
        let user = home.path().parent().unwrap().join("user");
        plant(&home.path(), &user);
        let heard = Arc::new(AtomicUsize::new(0));
        let listening = listen(&user, &mark, &heard);
        fs::write(format!("/tmp/{mark}"), "").unwrap();
        fs::write(format!("/dev/shm/outside-{mark}"), "").unwrap();
        let secret = [("LAB_SECRET", CANARY), ("HOME", user.to_str().unwrap())];
        let left_open = rustix::io::dup(fs::File::open(user.join("secret")).unwrap()).unwrap();
        let daemon = home.daemon_with(&secret);
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut words = vec![
            ("{home}", path(&home.path())),
            ("{user}", path(&user)),
            ("{other}", path(&home.path().join("workspace/other"))),
            ("{binary}", env!("CARGO_BIN_EXE_polyclaw").to_owned()),
            ("{pid}", daemon.pid().to_string()),
            ("{port}", home.port.to_string()),
            ("{mark}", mark.clone()),
        ];
        words.extend(listening);
        let before = protected(&home, &user);
        Self { home, daemon, mark, words, heard, before, _left_open: left_open }
    }

    pub fn fill(&self, text: &str) -> String {
        self.words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }

    pub fn workspace(&self) -> PathBuf {
        self.home.path().join("workspace/lab")
    }

    pub fn token(&self) -> String {
        fs::read_to_string(self.home.path().join("token")).unwrap().trim().to_owned()
    }

    /// Asserts that nothing forbidden happened. `network`: whether internet sockets are allowed.
    pub fn assert_untouched(&self, network: bool) {
        let user = self.home.path().parent().unwrap().join("user");
        let after = protected(&self.home, &user);
        for (path, was) in &self.before {
            assert_eq!(after.get(path), Some(was), "{} was changed", path.display());
        }
        let new: Vec<_> = after.keys().filter(|path| !self.before.contains_key(*path)).collect();
        assert!(new.is_empty(), "new files outside: {new:?}");
        let mark = &self.mark;
        let planted = ["/", "/usr/bin/", "/etc/cron.d/", "/var/spool/cron/", "/dev/shm/"]
            .map(|at| format!("{at}{mark}"));
        let planted: Vec<_> = planted.iter().filter(|path| Path::new(path).exists()).collect();
        assert!(planted.is_empty(), "planted: {planted:?}");
        assert_eq!(marked_processes(mark), Vec::<String>::new(), "outlived its call");
        if !network {
            assert_eq!(self.heard.load(Ordering::SeqCst), 0, "a listener outside was reached");
        }
        assert_eq!(self.home.run(&["status", "--json"]).code, 0, "the daemon has ended");
        assert!(Path::new(&format!("/proc/{}", self.daemon.pid())).exists());
        for entry in walk(&self.workspace()) {
            let Ok(meta) = fs::symlink_metadata(&entry) else { continue };
            assert_eq!(meta.permissions().mode() & 0o6000, 0, "{} escalates", entry.display());
            assert!(!meta.file_type().is_symlink() && meta.rdev() == 0 || meta.file_type().is_symlink());
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_file(format!("/tmp/{}", self.mark));
        let _ = fs::remove_file(format!("/dev/shm/outside-{}", self.mark));
    }
}

fn config(isolation: &str, mode: &str) -> String {
    format!(
        "[turns]\nrepeat_limit = 1000\n[agents]\ndefault = \"lab\"\n[[agents.list]]\nid = \"lab\"\nworkspace = \"lab\"\n\
         isolation = \"{isolation}\"\n[agents.list.sandbox]\nmode = \"{mode}\"\nmemory_mb = 512\ncpu_seconds = 3\n\
         processes = 100\nfile_mb = 64\n[[agents.list]]\nid = \"other\"\nworkspace = \"other\"\n"
    )
}

fn plant(home: &Path, user: &Path) {
    for folder in [
        user.join(".ssh"),
        user.join("repo/.git/hooks"),
        home.join("workspace/lab"),
        home.join("workspace/other"),
    ] {
        fs::create_dir_all(folder).unwrap();
    }
    for file in ["secret", ".ssh/id", ".ssh/authorized_keys", ".bashrc", ".gitconfig"] {
        fs::write(user.join(file), format!("# {CANARY}\n")).unwrap();
    }
    fs::write(home.join("workspace/other/notes"), CANARY).unwrap();
}

/// Counts who reaches one of these.
fn listen(user: &Path, mark: &str, heard: &Arc<AtomicUsize>) -> Vec<(&'static str, String)> {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = user.join("socket");
    let unix = UnixListener::bind(&at).unwrap();
    let name = format!("{mark}-abstract");
    let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let ports = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let counter = || {
        let heard = Arc::clone(heard);
        move || {
            heard.fetch_add(1, Ordering::SeqCst);
        }
    };
    let (one, two, three, four) = (counter(), counter(), counter(), counter());
    std::thread::spawn(move || tcp.incoming().flatten().for_each(|_| one()));
    std::thread::spawn(move || {
        while udp.recv(&mut [0; 8]).is_ok() {
            two();
        }
    });
    std::thread::spawn(move || unix.incoming().flatten().for_each(|_| three()));
    std::thread::spawn(move || hidden.incoming().flatten().for_each(|_| four()));
    vec![
        ("{tcp}", ports.0.to_string()),
        ("{udp}", ports.1.to_string()),
        ("{unix}", at.to_string_lossy().into_owned()),
        ("{abstract}", name),
    ]
}

/// Content and mode of everything that must not change.
fn protected(home: &Home, user: &Path) -> BTreeMap<PathBuf, String> {
    let home = home.path();
    let mut files = walk(user);
    files.extend(walk(&home.join("workspace/other")));
    files.extend([home.join("token"), home.join("config.toml"), home.join("node")]);
    files.extend(
        ["/etc/passwd", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname"].map(PathBuf::from),
    );
    let mut seen: BTreeMap<PathBuf, String> =
        files.into_iter().map(|path| (path.clone(), state(&path))).collect();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_polyclaw"));
    let meta = fs::metadata(&binary).unwrap();
    seen.insert(binary, format!("{} {:?}", meta.len(), meta.modified().unwrap()));
    let names = |folder: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
        names.retain(|name| name != "tmp" && name != "daemon.log" && name != "daemon.url");
        names.sort();
        format!("{names:?}")
    };
    seen.insert(home.clone(), names(&home));
    seen.insert(home.join("workspace"), names(&home.join("workspace")));
    seen
}

fn state(path: &Path) -> String {
    let Ok(meta) = fs::symlink_metadata(path) else { return "gone".to_owned() };
    let content = if meta.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
    format!("{:o} {} {}", meta.mode(), meta.uid(), String::from_utf8_lossy(&content))
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

/// Sleeping processes that carry the mark, seen from outside.
pub fn marked_processes(mark: &str) -> Vec<String> {
    let command = |entry: fs::DirEntry| {
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        (command.starts_with("sleep ") && command.contains(mark)).then_some(command)
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(command).collect()
}
