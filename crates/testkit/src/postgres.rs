//! A private PostgreSQL cluster in a temporary folder on a free loopback port, run from the Debian package's
//! binaries. It is removed when the process that started it ends, however it ends.

use std::fs;
use std::io::{self, BufRead, BufReader, Error};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::free_port;

/// Names a running server to use instead of a private one, so that the processes of one test run share a cluster. Set
/// by `with_postgres`.
pub const SHARED_SERVER_VARIABLE: &str = "POLYCLAW_TEST_POSTGRES";

/// Starts the server, reports that, and stops it when its input closes. The kernel closes the input even after
/// SIGKILL.
const KEEPER_SCRIPT: &str = r#"
dir=$1 bin=$2 port=$3 locale=$4
shift 4
exec 3>&1 >"$dir/log" 2>&1
settings="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=500 \
  -c shared_buffers=32MB -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c autovacuum=off"
if "$@" "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 $locale --no-sync --no-instructions 3>&- &&
   "$@" "$bin/pg_ctl" start -w -t 60 -D "$dir/data" -l "$dir/data/log" -o "$settings" 3>&-
then echo ready >&3
else cat "$dir/data/log"
fi
exec 3>&-
read -r _
[ -e "$dir/data/postmaster.pid" ] && "$@" "$bin/pg_ctl" stop -m immediate -D "$dir/data"
rm -rf "$dir"
"#;

pub struct PostgresCluster {
    url: String,
    bin: PathBuf,
    keeper: Option<Child>,
}

impl PostgresCluster {
    /// Uses the server named by `POLYCLAW_TEST_POSTGRES`, else starts a private one.
    pub fn start() -> io::Result<Self> {
        let bin = find_binaries()?;
        if let Ok(url) = std::env::var(SHARED_SERVER_VARIABLE) {
            return Ok(Self { url, bin, keeper: None });
        }
        Self::start_private(&bin)
    }

    fn start_private(bin: &Path) -> io::Result<Self> {
        let port = free_port();
        let dir = tempfile::Builder::new().prefix("polyclaw-postgres-").tempdir()?;
        let user = run_as_prefix(dir.path())?;
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER_SCRIPT, "keeper"])
            .arg(dir.path())
            .arg(bin)
            .args([&port.to_string(), sort_locale(bin)])
            .args(user)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // In its own process group, because a signal that stops the tests (Ctrl-C, a time limit) must not stop
            // the cleanup.
            .process_group(0)
            .spawn()?;
        let dir = dir.keep();
        let mut text = String::new();
        if let Some(stdout) = keeper.stdout.take() {
            BufReader::new(stdout).read_line(&mut text)?;
        }
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let cluster = Self { url, bin: bin.to_owned(), keeper: Some(keeper) };
        if text.trim() == "ready" {
            return Ok(cluster);
        }
        let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
        Err(Error::other(format!("PostgreSQL did not start:\n{log}")))
    }

    /// Returns the process's cluster. Its keeper stops it when the process ends.
    pub fn for_process() -> &'static Self {
        static PROCESS_CLUSTER: LazyLock<PostgresCluster> =
            LazyLock::new(|| PostgresCluster::start().unwrap_or_else(|error| panic!("{error}")));
        &PROCESS_CLUSTER
    }

    /// Returns the URL of the maintenance database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Creates an empty database and returns its URL.
    pub fn fresh_database(&self) -> io::Result<String> {
        static NEXT_DATABASE: AtomicU64 = AtomicU64::new(0);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let name =
            format!("test_{}_{nanos}_{}", process::id(), NEXT_DATABASE.fetch_add(1, Ordering::Relaxed));
        self.run_sql(&format!("CREATE DATABASE {name}"))?;
        let (address, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let (server, _) =
            address.rsplit_once('/').ok_or_else(|| Error::other("the address names no database"))?;
        Ok(if query.is_empty() { format!("{server}/{name}") } else { format!("{server}/{name}?{query}") })
    }

    /// Runs a statement in the maintenance database.
    pub fn run_sql(&self, statement: &str) -> io::Result<()> {
        let psql = Command::new(self.bin.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command", statement, &self.url])
            .output()?;
        if psql.status.success() {
            return Ok(());
        }
        Err(Error::other(format!("{statement}: {}", String::from_utf8_lossy(&psql.stderr))))
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}

/// Finds the newest installed version.
fn find_binaries() -> io::Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .map(|entry| entry.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .max_by_key(|bin| binary_version(bin));
    newest.ok_or_else(|| {
        Error::other("these tests need PostgreSQL and start their own: apt-get install postgresql")
    })
}

fn binary_version(bin: &Path) -> u32 {
    let name = bin.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}

/// Uses a language's sort order where available, so that a query without `COLLATE "C"` is noticed.
fn sort_locale(bin: &Path) -> &'static str {
    if binary_version(bin) >= 15 {
        "--locale=C.UTF-8 --locale-provider=icu --icu-locale=en"
    } else {
        "--locale=C.UTF-8"
    }
}

/// Returns the command prefix that runs PostgreSQL as its own user. PostgreSQL refuses to run as root, so for root
/// that user also gets the folder.
fn run_as_prefix(dir: &Path) -> io::Result<Vec<String>> {
    if fs::metadata(dir)?.uid() != 0 {
        return Ok(Vec::new());
    }
    let id = |which| -> io::Result<u32> {
        let reply = Command::new("id").args([which, "postgres"]).output()?;
        let text = String::from_utf8_lossy(&reply.stdout);
        text.trim().parse().map_err(|_| Error::other("there is no user 'postgres' to run the server as"))
    };
    let (user, group) = (id("-u")?, id("-g")?);
    chown(dir, Some(user), Some(group))?;
    let user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", "--"];
    Ok(user.map(str::to_owned).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(cluster: &PostgresCluster) -> bool {
        cluster.run_sql("SELECT 1").is_ok()
    }

    #[test]
    fn cluster_stops_when_it_is_dropped() {
        let bin = find_binaries().unwrap();
        let cluster = PostgresCluster::start_private(&bin).unwrap();
        let database = cluster.fresh_database().unwrap();
        assert_ne!(database, cluster.fresh_database().unwrap());
        let elsewhere = PostgresCluster { url: database, bin, keeper: None };
        assert!(answers(&elsewhere));
        drop(cluster);
        assert!(!answers(&elsewhere));
    }
}
