//! Every table of an earlier version, compared row by row with the tables of this one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polyclaw_store::{Db, DbTarget};
use postgres::{Client, NoTls};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;
use serde_json::Value;

use crate::fixture::{EarlierHome, Engine, FOLDER};

type Row = BTreeMap<String, String>;
type Tables = BTreeMap<String, Vec<Row>>;

/// How one table of the earlier version is named and filled now. A table without an entry has kept every name.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TableChange {
    name: Option<String>,
    /// The new name of a column.
    columns: BTreeMap<String, String>,
    dropped: Vec<String>,
    /// By the old name of a column: the new value of an old one.
    values: BTreeMap<String, BTreeMap<String, String>>,
    /// The engine that leaves the table empty. All other tables of the fixtures have rows.
    empty: Option<Engine>,
}

type DatabaseChanges = BTreeMap<String, TableChange>;

fn changes_of(database: &str) -> DatabaseChanges {
    let text = std::fs::read_to_string(Path::new(FOLDER).join("changes.json")).unwrap();
    let mut all: BTreeMap<String, DatabaseChanges> = serde_json::from_str(&text).unwrap();
    all.remove(database).unwrap()
}

fn sqlite_tables(path: &Path) -> Tables {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut statement = connection.prepare(names).unwrap();
    let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    names.into_iter().map(|name| (name.clone(), sqlite_rows(&connection, &name))).collect()
}

fn sqlite_rows(connection: &Connection, table: &str) -> Vec<Row> {
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let rows = statement.query_map([], |row| {
        let value = |at| row.get::<_, SqlValue>(at).map(sqlite_text);
        columns.iter().enumerate().map(|(at, column)| Ok((column.clone(), value(at)?))).collect()
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn sqlite_text(value: SqlValue) -> String {
    match value {
        SqlValue::Text(text) => text,
        other => format!("{other:?}"),
    }
}

fn postgres_tables(url: &str) -> Tables {
    let mut client = Client::connect(url, NoTls).unwrap();
    let names = "SELECT tablename::TEXT FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
    let names: Vec<String> = client.query(names, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    names.into_iter().map(|name| (name.clone(), postgres_rows(&mut client, &name))).collect()
}

fn postgres_rows(client: &mut Client, table: &str) -> Vec<Row> {
    let sql = format!("SELECT to_jsonb(t)::TEXT FROM public.\"{table}\" t");
    let row = |row: &postgres::Row| -> Row {
        let columns: BTreeMap<String, Value> = serde_json::from_str(row.get(0)).unwrap();
        columns.into_iter().map(|(column, value)| (column, json_text(&value))).collect()
    };
    client.query(&sql, &[]).unwrap().iter().map(row).collect()
}

fn json_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a restored home holds before this version opens it.
pub struct StoredConversations {
    /// Role and text of each message of each session's current conversation. Left out are sessions that are deleted when
    /// their run ends, and announces held for a person, which no transcript shows before the person writes.
    pub lines: BTreeMap<String, Vec<(String, String)>>,
    /// Sessions in which a message waits: it moves behind what is stored before its turn starts.
    pub waiting: BTreeSet<String>,
}

pub fn stored_conversations(home: &EarlierHome) -> StoredConversations {
    let tables = match home.database() {
        Some(url) => postgres_tables(url),
        None => sqlite_tables(&home.path().join("memory/sessions.db")),
    };
    let column = |table: &str, column: &str, test: &dyn Fn(&Row) -> bool| -> BTreeSet<String> {
        tables[table].iter().filter(|row| test(row)).map(|row| row[column].clone()).collect()
    };
    let deleted = column("runs", "child_key", &|row| digits(&row["is_deleted_after"]) == 1);
    let waiting = column("jobs", "session_key", &|row| row["state"] == "queued");
    let held = column("jobs", "turn_id", &|row| row["state"] == "queued" && digits(&row["held"]) == 2);
    let current: BTreeMap<_, _> =
        tables["sessions"].iter().map(|row| (&row["session_key"], &row["session_id"])).collect();
    let mut messages: Vec<&Row> = tables["messages"].iter().collect();
    messages.retain(|row| current[&row["session_key"]] == &row["session_id"]);
    messages.retain(|row| !deleted.contains(&row["session_key"]) && !held.contains(&row["turn_id"]));
    messages.sort_by_key(|row| digits(&row["ticket"]));
    let mut lines: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for row in messages {
        lines.entry(row["session_key"].clone()).or_default().push((row["role"].clone(), row["text"].clone()));
    }
    StoredConversations { lines, waiting }
}

/// The number in the text of a value: `Integer(7)` and `7`.
fn digits(text: &str) -> i64 {
    text.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

impl TableChange {
    /// Returns the columns that this row must have now.
    fn expected_row(&self, row: &Row) -> Row {
        let is_kept = |column: &String| !self.dropped.contains(column);
        let value = |column: &String, value: &String| {
            self.values.get(column).and_then(|values| values.get(value)).unwrap_or(value).clone()
        };
        let name = |column: &String| self.columns.get(column).unwrap_or(column).clone();
        let kept = row.iter().filter(|(column, _)| is_kept(column));
        kept.map(|(column, old)| (name(column), value(column, old))).collect()
    }
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

/// Compares all columns that the earlier version had; this one may have more.
#[track_caller]
fn assert_nothing_lost(engine: Engine, before: &Tables, after: &Tables, changes: &DatabaseChanges) {
    for table in changes.keys() {
        assert!(before.contains_key(table), "the earlier version had no table {table}");
    }
    for (table, rows) in before.iter().filter(|(table, _)| !table.starts_with("schema_version")) {
        let kept = TableChange::default();
        let change = changes.get(table).unwrap_or(&kept);
        assert_eq!(rows.is_empty(), change.empty == Some(engine), "rows of {table} in the fixture");
        let name = change.name.as_ref().unwrap_or(table);
        let now = after.get(name).unwrap_or_else(|| panic!("{table} has no table {name} now"));
        let expected = sorted(rows.iter().map(|row| change.expected_row(row)).collect());
        assert_eq!(now.len(), expected.len(), "rows of {table}, now {name}");
        let Some(columns) = expected.first().map(|row| row.keys().cloned().collect::<Vec<_>>()) else {
            continue;
        };
        let project = |row: &Row| {
            let value = |column: &String| row.get(column).map(|value| (column.clone(), value.clone()));
            columns.iter().filter_map(value).collect::<Row>()
        };
        let found = sorted(now.iter().map(project).collect());
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(found, expected, "a row of {table}, now {name}");
        }
    }
}

#[track_caller]
fn check_file(file: &Path, database: &str, open: impl FnOnce(&Path) -> polyclaw_store::Result<Db>) {
    let before = sqlite_tables(file);
    drop(open(file).unwrap());
    assert_nothing_lost(Engine::Sqlite, &before, &sqlite_tables(file), &changes_of(database));
}

#[test]
fn every_row_of_an_earlier_sqlite_home_is_carried_over() {
    let home = EarlierHome::restore(Engine::Sqlite);
    let main = |file: &Path| Db::open(&DbTarget::Sqlite(file.to_owned()));
    check_file(&home.path().join("memory/sessions.db"), "main", main);
    check_file(&home.path().join("memory/brain.db"), "memory", Db::open_memory_db);
    check_file(&home.path().join("teams/site/ledger.db"), "ledger", Db::open_ledger);
    check_file(&home.path().join("cp/registry.db"), "registry", Db::open_registry);
}

#[test]
fn every_row_of_an_earlier_postgresql_database_is_carried_over() {
    let home = EarlierHome::restore(Engine::Postgres);
    let url = home.database().unwrap().to_owned();
    let before = postgres_tables(&url);
    drop(Db::open(&DbTarget::Postgres { url: url.clone(), connections: 2 }).unwrap());
    let mut changes = changes_of("main");
    changes.extend(changes_of("ledger"));
    changes.retain(|table, _| before.contains_key(table));
    assert_nothing_lost(Engine::Postgres, &before, &postgres_tables(&url), &changes);
}
