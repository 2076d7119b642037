//! Teams on the real binary: killed at every point of what teams do, and a story from the first task to the last word.

mod kills;
mod story;

use std::path::PathBuf;

use polyclaw_testkit::model_server::{ModelServer, Request, Script};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

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

/// Everything a prompt holds, a line for each message.
fn said(request: &Request) -> String {
    let line = |message: &Value| {
        let role = match message["role"].as_str().unwrap_or_default() {
            "tool" => "result",
            role => role,
        };
        format!("{role} {}\n", message["content"].as_str().unwrap_or_default())
    };
    request.messages().iter().filter(|message| message["role"] != "system").map(line).collect()
}

/// Whom a prompt is for: the block of the team says so.
fn who(text: &str) -> String {
    match text.split("You are its member '").nth(1) {
        Some(rest) => rest.split('\'').next().unwrap_or_default().to_owned(),
        None => "lead".to_owned(),
    }
}

/// The number under which a prompt asks its reader to stop.
fn stop_request(text: &str) -> Option<&str> {
    text.split("request_id=\"").nth(1)?.split('"').next()
}

/// A call with an id that no other call of its turn has.
fn call(request: &Request, name: &str, given: Value) -> Script {
    Script::new().call(&format!("c{}", request.messages().len()), name, given)
}

fn open(path: &std::path::Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).unwrap()
}

fn sessions(home: &Home) -> Connection {
    open(&home.0.join("memory/sessions.db"))
}

/// The folder of the one team that has ended.
fn trash(home: &Home) -> PathBuf {
    let mut found =
        std::fs::read_dir(home.0.join("teams/.trash")).unwrap().map(|entry| entry.unwrap().path());
    let folder = found.next().expect("a team that has ended");
    assert!(found.next().is_none(), "only one");
    folder
}

fn count(database: &Connection, sql: &str) -> i64 {
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// What a table says, for whoever looks why a case failed.
fn rows(database: &Connection, sql: &str) -> Vec<String> {
    let mut rows = database.prepare(sql).unwrap();
    let lines = rows.query_map([], |row| row.get(0)).unwrap();
    lines.map(Result::unwrap).collect()
}

/// Nothing runs or waits, the team has ended and its folder is set aside.
fn is_over(home: &Home) -> bool {
    let Ok(entries) = std::fs::read_dir(home.0.join("teams/.trash")) else { return false };
    let database = sessions(home);
    entries.count() > 0
        && count(&database, "SELECT COUNT(*) FROM teams WHERE status <> 'shutdown'") == 0
        && count(&database, "SELECT COUNT(*) FROM jobs WHERE state IN ('queued', 'running')") == 0
}
