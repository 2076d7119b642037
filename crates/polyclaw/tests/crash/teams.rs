//! Teams on the real binary: killed at every kill point of teams, and a scenario from the first task to the end.

mod kills;
mod nodes;
mod story;

use std::path::{Path, PathBuf};

use polyclaw_store::{Db, DbTarget};
use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use polyclaw_testkit::postgres::PostgresCluster;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::daemon::Home;

const TEAM: &str = "web";
const LEAD: &str = "agent:main:web:dm:lead";

fn config(model: &ModelServer, rest: &str) -> String {
    format!(
        "[providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [agents.defaults]\nmodel = \"scripted/m\"\n[teams]\nshutdown_seconds = 5\n{rest}",
        model.url()
    )
}

/// The whole prompt, one line per message.
fn said(request: &ReceivedRequest) -> String {
    let line = |message: &Value| {
        let role = match message["role"].as_str().unwrap_or_default() {
            "tool" => "result",
            role => role,
        };
        format!("{role} {}\n", message["content"].as_str().unwrap_or_default())
    };
    request.messages().iter().filter(|message| message["role"] != "system").map(line).collect()
}

/// The member that a prompt is for, from its team block.
fn who(text: &str) -> String {
    match text.split("You are the member '").nth(1) {
        Some(rest) => rest.split('\'').next().unwrap_or_default().to_owned(),
        None => "lead".to_owned(),
    }
}

/// The ID of the shutdown request in a prompt.
fn stop_request(text: &str) -> Option<&str> {
    text.split("request_id=\"").nth(1)?.split('"').next()
}

/// A call with a unique ID in its turn.
fn call(request: &ReceivedRequest, name: &str, given: Value) -> ReplyScript {
    ReplyScript::new().call(&format!("c{}", request.messages().len()), name, given)
}

/// Where daemons store their data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Files,
    Server,
}

/// The homes of the daemons of one gateway, and access to their databases.
struct Stage {
    _folder: tempfile::TempDir,
    homes: Vec<Home>,
    server: Option<Db>,
}

impl Stage {
    /// `rest` is the remaining config, created for the first home.
    async fn new(keeps: Keeps, model: &ModelServer, rest: &str, homes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut rest, mut server) = (rest.to_owned(), None);
        if keeps == Keeps::Server {
            let url = PostgresCluster::for_process().fresh_database().unwrap();
            rest += &format!("[store]\nurl = \"{url}\"\n[turns]\nlease_seconds = 2\n");
            let open = move || Db::open(&DbTarget::Postgres { url, connections: 1 }).unwrap();
            server = Some(tokio::task::spawn_blocking(open).await.unwrap());
        }
        let home = |n: usize| {
            let place = folder.path().join(["home", "other"][n]);
            let rest = rest.replace("WORKSPACE", &place.join("workspace").display().to_string());
            Home::new(&place, &config(model, &rest))
        };
        let homes = (0..homes).map(home).collect();
        Self { _folder: folder, homes, server }
    }

    fn home(&self) -> &Home {
        &self.homes[0]
    }

    fn sessions(&self) -> Book {
        self.book(|| self.home().0.join("memory/sessions.db"))
    }

    /// The ledger of the active team.
    fn ledger(&self) -> Book {
        self.book(|| self.home().0.join("teams").join(TEAM).join("ledger.db"))
    }

    /// The ledger of the ended team.
    fn last_ledger(&self) -> Book {
        self.book(|| self.trash().join("ledger.db"))
    }

    fn book(&self, file: impl FnOnce() -> PathBuf) -> Book {
        match &self.server {
            Some(db) => Book::Server(db.clone()),
            None => Book::File(open(&file())),
        }
    }

    /// The folder of the one team that has ended.
    fn trash(&self) -> PathBuf {
        let found = entries(&self.home().0.join("teams/.trash"));
        assert_eq!(found.len(), 1, "one team that has ended: {found:?}");
        found[0].clone()
    }

    /// Whether nothing runs or waits, the team has ended and its folder is archived.
    fn is_over(&self) -> bool {
        let is_aside = self.homes.iter().any(|home| !entries(&home.0.join("teams/.trash")).is_empty());
        let database = self.sessions();
        is_aside
            && database.count("SELECT COUNT(*) FROM teams WHERE status <> 'shutdown'") == 0
            && database.count("SELECT COUNT(*) FROM jobs WHERE state IN ('queued', 'running')") == 0
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn open(path: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).unwrap()
}

/// A database opened next to the daemon.
enum Book {
    File(Connection),
    Server(Db),
}

impl Book {
    fn count(&self, sql: &str) -> i64 {
        match self {
            Self::File(file) => file.query_row(sql, [], |row| row.get(0)).unwrap(),
            Self::Server(db) => asked(db, sql, |row| row.int(0))[0],
        }
    }

    /// The first column.
    fn rows(&self, sql: &str) -> Vec<String> {
        match self {
            Self::File(file) => {
                let mut rows = file.prepare(sql).unwrap();
                let lines = rows.query_map([], |row| row.get(0)).unwrap();
                lines.map(Result::unwrap).collect()
            }
            Self::Server(db) => asked(db, sql, |row| row.text(0)),
        }
    }
}

fn asked<T: Send + 'static>(
    db: &Db,
    sql: &str,
    read: fn(&polyclaw_store::Row<'_>) -> polyclaw_store::Result<T>,
) -> Vec<T> {
    let sql: &'static str = sql.to_owned().leak();
    block_in_place(|| Handle::current().block_on(db.read(move |tx| tx.query(sql, &[], read)))).unwrap()
}
