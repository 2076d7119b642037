//! The models inside Polyclaw: pulling their weights, and answering with them where nothing else can.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::fixture::{Home, command, ran};

/// Fetched once for the tests of the whole workspace.
fn weights() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.tools/model");
    for file in ["smollm2.gguf", "minilm.safetensors", "minilm.vocab.txt"] {
        assert!(folder.join(file).exists(), "{file} is missing: `scripts/need.sh weights` fetches it");
    }
    folder
}

/// Beside the lock, which stays.
fn files(folder: &std::path::Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_name() != "lock");
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

#[test]
fn a_file_with_another_hash_is_refused_and_removed() {
    let home = Home::new();
    let wrong = tempfile::tempdir().unwrap();
    let file = wrong.path().join("model.gguf");
    fs::File::create(&file).unwrap().set_len(98_362_432).unwrap();
    let refused = home.run(&["--json", "model", "pull", "smollm2-135m", "--from", file.to_str().unwrap()]);
    assert_eq!(refused.error(), (1, "weights_hash".to_owned()));
    assert_eq!(files(&home.path().join("models")), 0, "nothing of it is left");
    assert_eq!(home.run(&["--json", "model", "pull", "gpt-9"]).error(), (3, "unknown_weights".to_owned()));
}

/// Python runs a `pip.py` it finds where it stands, and this is the folder of somebody's project.
#[test]
fn a_pip_of_somebody_elses_is_not_run() {
    let (home, project) = (Home::new(), tempfile::tempdir().unwrap());
    let mark = project.path().join("ran");
    fs::write(project.path().join("pip.py"), format!("open({:?}, 'w').close()", mark.display())).unwrap();
    let mut pull = command(&home.path(), &["--json", "model", "pull", "smollm2-135m"]);
    pull.current_dir(project.path()).env("POLYCLAW_MODEL_HUB", "http://127.0.0.1:1");
    pull.env("PIP_INDEX_URL", "http://127.0.0.1:1").env("PIP_CONFIG_FILE", "/dev/null");
    assert_eq!(ran(pull).error(), (5, "weights_unavailable".to_owned()));
    assert!(!mark.exists(), "it was run");
}

#[test]
fn without_a_network_the_pull_says_so_and_the_daemon_starts_all_the_same() {
    let home = Home::new();
    let mut pull = command(&home.path(), &["--json", "model", "pull", "smollm2-135m"]);
    // Nobody listens on the first address, and there is no Python on the path.
    pull.env("POLYCLAW_MODEL_HUB", "http://127.0.0.1:1").env("PATH", "/nowhere");
    assert_eq!(ran(pull).error(), (5, "weights_unavailable".to_owned()));
    let _daemon = home.daemon();
    let status = home.run(&["models", "status"]);
    assert!(status.stdout.contains("polyclaw model pull"), "{}", status.stdout);
    let bench = home.run(&["--json", "model", "bench"]);
    assert_eq!(bench.error(), (3, "weights_missing".to_owned()));
}

#[test]
fn pulled_weights_answer_where_nothing_else_can_and_are_called_a_demo() {
    let (home, weights) = (Home::new(), weights());
    let from = weights.to_str().unwrap();
    let pulled = home.run(&["--json", "model", "pull", "--from", from]).ok();
    assert_eq!(pulled.as_array().unwrap().len(), 2);
    assert_eq!(files(&home.path().join("models")), 2, "no part is left over");
    let mode = fs::metadata(home.path().join("models")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "for its owner alone");
    let chat = fs::read_dir(home.path().join("models")).unwrap().flatten();
    let chat =
        chat.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("/b179c952")).unwrap();
    let chat = fs::read_dir(chat).unwrap().flatten().next().unwrap().path();
    fs::File::options().write(true).open(&chat).unwrap().set_len(1_000).unwrap();
    home.run(&["--json", "model", "pull", "--from", from]).ok();
    assert!(fs::metadata(&chat).unwrap().len() > 1_000, "a damaged file is fetched again");
    let listed = home.run(&["--json", "model", "list"]).ok();
    assert!(listed.as_array().unwrap().iter().all(|model| model["here"] == true), "{listed}");

    let _daemon = home.daemon();
    let wait = |text: &str| {
        (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            home.run(&["models", "status"]).stdout.contains(text)
        })
    };
    assert!(wait("embedded/smollm2-135m (ready, demo)"));
    let status = home.run(&["models", "status"]).stdout;
    assert!(status.contains("often wrong") && status.contains("OPENAI_API_KEY"), "{status}");
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains("degraded"), "{doctor}");
    let said = home.run(&["--json", "agent", "--message", "Hello!"]).ok();
    assert_eq!(said["reply"]["model"], "embedded/smollm2-135m", "{said}");

    assert_eq!(home.run(&["--json", "model", "remove", "all-minilm-l6-v2"]).ok()["removed"], true);
    assert_eq!(files(&home.path().join("models")), 1);
}
