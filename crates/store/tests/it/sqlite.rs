//! What only SQLite has: group commit, a file that can be full, read-only or of a newer build.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use polyclaw_store::{Db, DbTarget, Error, Result, Tx, messages, sessions};
use rusqlite::Connection;
use tokio::task::{JoinHandle, yield_now};

use crate::engines::{File, drive};
use crate::rows::{key, message, session, with_sessions};

type Closure<T> = Box<dyn FnMut(&mut Tx<'_>) -> Result<T> + Send>;

fn ensure(peer: String) -> Closure<()> {
    Box::new(move |tx| sessions::ensure(tx, &session(&peer)).map(drop))
}

/// Has the writer run these as one group: it is kept busy until all of them wait for it.
async fn as_one_group<T: Send + 'static>(db: &Db, group: Vec<Closure<T>>) -> Vec<Result<T>> {
    let (go, wait) = mpsc::channel::<()>();
    let (begin, started_rx) = tokio::sync::oneshot::channel();
    let mut begin = Some(begin);
    let busy = spawn(db, move |_: &mut Tx<'_>| {
        begin.take().map(|begin| begin.send(()));
        let _ = wait.recv();
        Ok(())
    });
    started_rx.await.unwrap();
    let (sent, size) = (Arc::new(AtomicUsize::new(0)), group.len());
    let send = |body| {
        let (db, sent) = (db.clone(), Arc::clone(&sent));
        tokio::spawn(async move {
            sent.fetch_add(1, Ordering::SeqCst);
            db.write(body).await
        })
    };
    let waiting: Vec<_> = group.into_iter().map(send).collect();
    while sent.load(Ordering::SeqCst) < size {
        yield_now().await;
    }
    drop(go);
    busy.await.unwrap().unwrap();
    let mut answers = Vec::new();
    for one in waiting {
        answers.push(one.await.unwrap());
    }
    answers
}

/// On a thread of its own, which a body may keep waiting: whoever finds the writer free writes where it stands.
fn spawn<T: Send + 'static>(
    db: &Db,
    body: impl FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
) -> JoinHandle<Result<T>> {
    let (db, runtime) = (db.clone(), tokio::runtime::Handle::current());
    tokio::task::spawn_blocking(move || runtime.block_on(db.write(body)))
}

async fn count(db: &Db) -> Result<i64> {
    db.read(sessions::count).await
}

#[test]
fn concurrent_writes_are_committed_together_and_fail_alone() {
    let file = File::new();
    let (db, path) = (file.open().unwrap(), file.path());
    drive(async {
        let mut group: Vec<Closure<()>> = (0..64).map(|n| ensure(format!("p{n}"))).collect();
        group[7] = Box::new(|tx| {
            sessions::ensure(tx, &session("p7"))?;
            Err(Error::Corrupt("on purpose".into()))
        });
        group.push(Box::new(move |tx| {
            let seen =
                Connection::open(&path)?.query_row("SELECT COUNT(*) FROM sessions", [], |row| row.get(0));
            assert_eq!((sessions::count(tx)?, seen?), (63, 0), "the group is not committed one by one");
            Ok(())
        }));
        let answers = as_one_group(&db, group).await;
        let failed: Vec<_> = (0..65).filter(|&n| answers[n].is_err()).collect();
        assert_eq!(failed, [7]);
        assert_eq!(count(&db).await?, 63);
        Ok(())
    });
}

#[test]
fn reader_does_not_wait_for_the_writer() {
    let file = File::new();
    let db = file.open().unwrap();
    drive(async {
        let (go, wait) = mpsc::channel::<()>();
        let (begin, started_rx) = tokio::sync::oneshot::channel();
        let mut begin = Some(begin);
        let writing = spawn(&db, move |tx: &mut Tx<'_>| {
            sessions::ensure(tx, &session("p"))?;
            begin.take().map(|begin| begin.send(()));
            let _ = wait.recv();
            Ok(())
        });
        started_rx.await.unwrap();
        assert_eq!(count(&db).await?, 0);
        drop(go);
        writing.await.unwrap()?;
        assert_eq!(count(&db).await?, 1);
        Ok(())
    });
}

#[test]
fn written_rows_survive_a_restart() {
    let file = File::new();
    let db = file.open().unwrap();
    drive(async move { with_sessions(&db, &["p", "q"]).await });
    let again = file.open().unwrap();
    assert_eq!(again.sqlite_path(), Some(file.path().as_path()));
    drive(async move {
        assert_eq!(count(&again).await?, 2);
        with_sessions(&again, &["r"]).await
    });
}

fn limit_pages(pages: &'static str) -> Closure<()> {
    Box::new(move |tx| tx.query(pages, &[], |row| row.int(0)).map(drop))
}

const NO_MORE_PAGES: &str = "PRAGMA max_page_count = 1";
const ENOUGH_PAGES: &str = "PRAGMA max_page_count = 1000000";

fn huge(id: &'static str, ticket: i64) -> Closure<()> {
    Box::new(move |tx| {
        let text = "x".repeat(1 << 20);
        messages::insert(tx, &messages::SessionMessage { text, ..message(id, "p", ticket, "t") })
    })
}

#[test]
fn writes_fail_on_full_disk_and_recover_with_space() {
    let file = File::new();
    let db = file.open().unwrap();
    drive(async {
        with_sessions(&db, &["p"]).await?;
        db.write(limit_pages(NO_MORE_PAGES)).await?;
        let full = db.write(huge("m1", 1)).await;
        assert!(matches!(full, Err(Error::Full(_))), "{full:?}");
        assert_eq!(full.unwrap_err().code(), "disk_full");
        assert!(
            db.read(|tx| messages::load_history(tx, (&key("p"), &session("p").id), 0, None))
                .await?
                .is_empty(),
            "reading goes on"
        );
        db.write(limit_pages(ENOUGH_PAGES)).await?;
        db.write(huge("m1", 1)).await?;
        assert_eq!(db.read(|tx| messages::last_position(tx, &key("p"))).await?, 1);
        Ok(())
    });
}

#[test]
fn writes_undone_by_a_full_disk_are_not_reported_committed() {
    let file = File::new();
    let db = file.open().unwrap();
    drive(async {
        with_sessions(&db, &["p"]).await?;
        let mut group =
            vec![ensure("before".into()), limit_pages(NO_MORE_PAGES), huge("m1", 1), huge("m2", 2)];
        group.push(limit_pages(ENOUGH_PAGES));
        group.push(ensure("after".into()));
        let answers = as_one_group(&db, group).await;
        assert!(matches!(answers[2], Err(Error::Full(_))), "{answers:?}");
        for (at, peer) in [(0, "before"), (5, "after")] {
            let stored = db.read(move |tx| sessions::get(tx, &key(peer))).await?.is_some();
            assert_eq!(stored, answers[at].is_ok(), "{peer}: {:?}", answers[at]);
        }
        assert!(answers[5].is_ok());
        Ok(())
    });
}

/// The same through the system's own refusal, in a process of its own: the limit is the process's.
#[test]
fn write_refused_by_system_fails_and_later_ones_work() {
    const CHILD: &str = "POLYCLAW_TEST_FILE_LIMIT";
    if std::env::var_os(CHILD).is_some() {
        return check_under_file_limit();
    }
    let name = "sqlite::write_refused_by_system_fails_and_later_ones_work";
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
}

fn check_under_file_limit() {
    let file = File::new();
    let db = file.open().unwrap();
    let limit = |soft: String| {
        let me = std::process::id().to_string();
        let done =
            Command::new("prlimit").args(["--pid", &me, &format!("--fsize={soft}:")]).status().unwrap();
        assert!(done.success());
    };
    let log = file.path().with_extension("db-wal");
    drive(async {
        with_sessions(&db, &["p"]).await?;
        limit((std::fs::metadata(log).unwrap().len() + 64 * 1024).to_string());
        let refused = db.write(huge("m1", 1)).await;
        let error = refused.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(db.write(huge("m1", 1)).await.is_err());
        assert_eq!(count(&db).await?, 1, "reading goes on");
        limit("unlimited".into());
        db.write(huge("m1", 1)).await?;
        assert_eq!(db.read(|tx| messages::last_position(tx, &key("p"))).await?, 1);
        Ok(())
    });
    let whole: String = Connection::open(file.path())
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(whole, "ok");
}

#[test]
fn read_only_file_returns_read_only_error() {
    let file = File::new();
    let db = file.open().unwrap();
    drive(async { with_sessions(&db, &["p"]).await });
    // Also root, who may write any file, is bound by this.
    let locked = DbTarget::Sqlite(format!("file:{}?mode=ro", file.path().display()).into());
    let locked = Db::open(&locked).unwrap();
    drive(async {
        let refused = with_sessions(&locked, &["q"]).await;
        assert!(matches!(refused, Err(Error::ReadOnly(_))), "{refused:?}");
        assert_eq!(count(&locked).await?, 1, "reading goes on");
        Ok(())
    });
}

#[test]
fn database_of_a_newer_build_is_refused() {
    let file = File::new();
    drop(file.open().unwrap());
    Connection::open(file.path()).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let refused = file.open().map(drop).unwrap_err();
    assert_eq!(refused.code(), "newer_schema");
    let text = refused.to_string();
    assert!(text.starts_with("the database has schema 99, but this build supports only up to "), "{text}");
}

#[test]
fn file_that_is_not_a_database_is_refused() {
    let file = File::new();
    std::fs::write(file.path(), "a letter to my aunt, long enough to be taken for a header of a database")
        .unwrap();
    assert!(matches!(file.open().map(drop), Err(Error::Corrupt(_))));
}

/// Looked for in every file of the database, as whoever has the disk would.
fn is_on_disk(file: &File, text: &str) -> bool {
    let folder = std::fs::read_dir(file.path().parent().unwrap()).unwrap();
    folder.flatten().any(|entry| {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn deleted_text_is_erased_from_the_file() {
    let file = File::new();
    let db = file.open().unwrap();
    let secret = "wherethetreasurelies";
    drive(async {
        db.write(|tx| {
            tx.execute("CREATE TABLE said (id INTEGER PRIMARY KEY, text TEXT) STRICT", &[])?;
            tx.execute(
                "INSERT INTO said
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
                 SELECT i, replace(hex(zeroblob(500)), '00', 'wherethetreasurelies') FROM n",
                &[],
            )
        })
        .await?;
        assert!(is_on_disk(&file, secret));
        db.write(|tx| tx.execute("DELETE FROM said", &[])).await?;
        Ok(())
    });
    db.checkpoint_all().unwrap();
    drop(db);
    assert!(!is_on_disk(&file, secret));
}

#[test]
fn database_files_are_readable_by_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let file = File::new();
    std::fs::write(file.path(), "").unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let db = file.open().unwrap();
    drive(async { with_sessions(&db, &["p"]).await });
    for entry in std::fs::read_dir(file.path().parent().unwrap()).unwrap().flatten() {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.path());
    }
}
