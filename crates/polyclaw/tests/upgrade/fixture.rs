//! The home of an earlier version, restored from text: SQL dumps of its databases and its other files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_testkit::postgres::PostgresCluster;
use postgres::{Client, NoTls};
use rusqlite::Connection;
use serde::Deserialize;
use tempfile::TempDir;

pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upgrade");

/// When the fixture was complete. Restoring moves every point in time by what has passed since.
const fn made_at(engine: Engine) -> i64 {
    match engine {
        Engine::Sqlite => 1_795_128_730_000,
        Engine::Postgres => 1_795_128_752_215,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    Sqlite,
    Postgres,
}

pub struct EarlierHome {
    folder: TempDir,
    database: Option<String>,
}

impl EarlierHome {
    pub fn restore(engine: Engine) -> Self {
        let database = (engine == Engine::Postgres).then(|| {
            let url = PostgresCluster::for_process().fresh_database().unwrap();
            let dump = fs::read_to_string(Path::new(FOLDER).join("database.sql")).unwrap();
            Client::connect(&url, NoTls).unwrap().batch_execute(&move_times(&dump, engine)).unwrap();
            url
        });
        let home = Self { folder: tempfile::tempdir().unwrap(), database };
        let name = if engine == Engine::Sqlite { "sqlite_home" } else { "postgres_home" };
        restore_folder(&Path::new(FOLDER).join(name), &home.path(), &home.path());
        home
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// Replaces a placeholder of the config, such as `{{PORT}}`.
    pub fn set(&self, placeholder: &str, value: &str) {
        let file = self.path().join("config.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(placeholder), "{placeholder}");
        fs::write(&file, text.replace(placeholder, value)).unwrap();
    }
}

/// Files that end in `.db.sql` become databases, all others are copied.
fn restore_folder(from: &Path, to: &Path, home: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            restore_folder(&path, &to.join(name), home);
            continue;
        }
        let mut text = String::new();
        fs::File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        let text = text.replace("{{HOME}}", home.to_str().unwrap());
        match name.strip_suffix(".sql") {
            Some(name) => restore_database(&to.join(name), &text),
            None => fs::write(to.join(name), text).unwrap(),
        }
    }
}

fn restore_database(file: &Path, dump: &str) {
    let connection = Connection::open(file).unwrap();
    connection.execute_batch(&move_times(dump, Engine::Sqlite)).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL;").unwrap();
}

/// Moves times in milliseconds, except in the audit: its hashes cover them.
fn move_times(dump: &str, engine: Engine) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let (now, made_at) = (i64::try_from(now).unwrap(), made_at(engine));
    let line = |line: &str| {
        if line.starts_with("INSERT INTO audit ") {
            line.to_owned()
        } else {
            move_times_of(line, now, made_at)
        }
    };
    dump.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A time is a number of thirteen digits that is near the moment at which the fixture was complete.
fn move_times_of(line: &str, now: i64, made_at: i64) -> String {
    const NEAR: i64 = 400 * 86_400_000;
    let mut moved = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        moved.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..end];
        match word.parse::<i64>() {
            Ok(time) if word.len() == 13 && (time - made_at).abs() < NEAR => {
                moved.push_str(&(time - made_at + now).to_string());
            }
            _ => moved.push_str(word),
        }
        rest = &rest[end..];
    }
    moved + rest
}
