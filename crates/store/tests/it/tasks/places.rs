//! Where the ledgers of teams are, and how many doors each has.

use std::path::Path;

use polyclaw_domain::id::TeamId;
use polyclaw_store::{Db, DbTarget, Error, TeamDatabases};
use postgres::{Client, NoTls};

use super::some;
use crate::engines::{Shared, drive};

/// Files of this process that are open at a path.
#[cfg(target_os = "linux")]
fn open_at(path: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|one| std::fs::read_link(one.path()).is_ok_and(|file| file == path)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn ledger_file_of_a_team_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&DbTarget::Sqlite(folder.path().join("sessions.db"))).unwrap();
    let ledgers = TeamDatabases::for_db(&db, folder.path().join("teams"));
    let (web, app) = (TeamId::new("team-1"), TeamId::new("team-2"));
    let file = folder.path().canonicalize().unwrap().join("teams/web/ledger.db");
    drive(some(&ledgers.open(&web, "web").unwrap(), &[("a", &[])]));
    let once = open_at(&file);
    assert!(once > 0);
    for _ in 0..20 {
        drive(some(&ledgers.open(&web, "web").unwrap(), &[("b", &[])]));
    }
    assert_eq!(open_at(&file), once, "the same door each time");
    drive(some(&ledgers.open(&app, "app").unwrap(), &[("a", &[])]));
    assert_eq!(open_at(&file), once, "another team has its own file");
    assert!(folder.path().join("teams/app/ledger.db").exists());
    ledgers.close_for_good(&web);
    assert!(matches!(ledgers.open(&web, "web").map(drop), Err(Error::Closed)));
    ledgers.open(&app, "app").unwrap();
}

#[test]
fn postgres_ledgers_share_the_existing_connections() {
    const CONNECTED: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let shared = Shared::new();
    let db = Db::open(&DbTarget::Postgres { url: shared.url.clone(), connections: 1 }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ledgers = TeamDatabases::for_db(&db, folder.path().join("teams"));
    let mut client = Client::connect(&shared.url, NoTls).unwrap();
    for n in 0..5 {
        let team = TeamId::new(format!("team-{n}"));
        drive(some(&ledgers.open(&team, "web").unwrap(), &[("a", &[])]));
    }
    assert_eq!(client.query_one(CONNECTED, &[]).unwrap().get::<_, i64>(0), 1);
    assert!(!folder.path().join("teams").exists(), "and no files");
}
