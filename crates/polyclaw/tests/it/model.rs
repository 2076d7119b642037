//! The embedded models: pulling their weights, and answering with them if no other model is available.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread::JoinHandle;

use sha2::{Digest, Sha256};

use crate::fixture::{Home, Ran, command, ran, until};

/// Downloaded once for the tests of the whole workspace.
fn weights() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.tools/model");
    for file in ["smollm2.gguf", "minilm.safetensors", "minilm.vocab.txt"] {
        assert!(folder.join(file).exists(), "{file} is missing: `scripts/need.sh rust` fetches it");
    }
    folder
}

/// Files other than the lock, which stays.
fn files(folder: &std::path::Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_name() != "lock");
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

#[test]
fn model_file_with_wrong_hash_is_refused_and_removed() {
    let home = Home::new();
    let wrong = tempfile::tempdir().unwrap();
    let file = wrong.path().join("model.gguf");
    fs::File::create(&file).unwrap().set_len(98_362_432).unwrap();
    let refused = home.run(&["--json", "model", "pull", "smollm2-135m", "--from", file.to_str().unwrap()]);
    assert_eq!(refused.error(), (1, "model_file_hash".to_owned()));
    assert_eq!(files(&home.path().join("models")), 0, "nothing of it is left");
    assert_eq!(home.run(&["--json", "model", "pull", "gpt-9"]).error(), (3, "unknown_model_file".to_owned()));
}

/// A hub that serves one file and closes each connection after this many bytes. Returns the requests.
fn hub(file: PathBuf, most: Vec<u64>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serve = move |most: u64| {
        let (mut socket, _) = listener.accept().unwrap();
        let lines = BufReader::new(socket.try_clone().unwrap()).lines().map_while(Result::ok);
        let request = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n").to_lowercase();
        let from =
            request.split("range: bytes=").nth(1).and_then(|range| range.split('-').next()?.parse().ok());
        let mut file = fs::File::open(&file).unwrap();
        let left = file.metadata().unwrap().len() - from.unwrap_or(0_u64);
        let size = file.metadata().unwrap().len();
        let status = match from {
            Some(from) => {
                format!("206 Partial Content\r\ncontent-range: bytes {from}-{}/{size}", size - 1)
            }
            None => "200 OK".to_owned(),
        };
        file.seek(SeekFrom::Start(from.unwrap_or(0))).unwrap();
        write!(socket, "HTTP/1.1 {status}\r\ncontent-length: {left}\r\nconnection: close\r\n\r\n").unwrap();
        io::copy(&mut file.take(most), &mut socket).unwrap();
        request
    };
    (address, std::thread::spawn(move || most.into_iter().map(serve).collect()))
}

/// Pulls from this hub only: PATH contains no Python.
fn pull_from(home: &Home, hub: &str) -> Ran {
    let mut pull = home.command(&["--json", "model", "pull", "smollm2-135m"]);
    pull.env("POLYCLAW_MODEL_HUB", hub).env("PATH", "/nowhere");
    ran(pull)
}

#[test]
fn interrupted_model_pull_resumes() {
    let (home, half) = (Home::new(), 50_000_000);
    let (address, requests) = hub(weights().join("smollm2.gguf"), vec![half, u64::MAX]);
    let broken = pull_from(&home, &address);
    assert_eq!(broken.error(), (5, "model_file_unavailable".to_owned()));
    assert!(broken.stdout.contains("the download resumes"), "{}", broken.stdout);
    let shown = home.run(&["--json", "model", "list"]).ok();
    assert!(
        shown.as_array().unwrap().iter().all(|model| model["here"] == false),
        "half a file is not installed: {shown}"
    );
    pull_from(&home, &address).ok();
    let requests = requests.join().unwrap();
    assert!(!requests[0].contains("range:") && requests[1].contains(&format!("range: bytes={half}-")));
    assert_eq!(files(&home.path().join("models")), 1);
}

#[test]
fn wrong_file_from_the_hub_is_refused_and_removed() {
    let (home, folder) = (Home::new(), tempfile::tempdir().unwrap());
    let file = folder.path().join("other");
    fs::File::create(&file).unwrap().set_len(98_362_432).unwrap();
    let (address, requests) = hub(file, vec![u64::MAX]);
    let refused = pull_from(&home, &address);
    assert_eq!(refused.error(), (5, "model_file_unavailable".to_owned()));
    assert!(refused.stdout.contains("not the expected file and was discarded"), "{}", refused.stdout);
    assert!(!refused.stdout.contains("the download resumes"), "nothing is left of it: {}", refused.stdout);
    assert_eq!(files(&home.path().join("models")), 0, "nothing of it is left");
    requests.join().unwrap();
}

#[test]
fn full_disk_ends_a_model_pull() {
    let home = Home::new();
    let partial = home.path().join("models/partial");
    fs::create_dir_all(&partial).unwrap();
    let full = partial.join("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53");
    std::os::unix::fs::symlink("/dev/full", full).unwrap();
    let (address, requests) = hub(weights().join("smollm2.gguf"), vec![1_000]);
    assert_eq!(pull_from(&home, &address).error(), (5, "disk_full".to_owned()));
    requests.join().unwrap();
}

#[test]
fn damaged_weights_and_invalid_model_settings_are_reported() {
    let home = Home::new();
    let sha = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
    let file = home.path().join("models").join(sha).join("smollm2-135m.gguf");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "x").unwrap();
    let listed = home.run(&["--json", "model", "list"]).ok();
    assert_eq!((&listed[0]["here"], &listed[0]["state"]), (&false.into(), &"damaged".into()), "{listed}");
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains("damaged: smollm2-135m"), "{doctor}");
    assert_eq!(pull_from(&home, "nonsense").error(), (2, "usage".to_owned()));
    let mut pull = home.command(&["--json", "model", "pull", "smollm2-135m"]);
    pull.env("POLYCLAW_MODELS", &file);
    assert_eq!(ran(pull).error(), (1, "models_unusable".to_owned()));
}

/// Python runs a `pip.py` in its working directory, here the folder of a project.
#[test]
fn pip_module_in_the_current_folder_is_not_run() {
    let (home, project) = (Home::new(), tempfile::tempdir().unwrap());
    let mark = project.path().join("ran");
    fs::write(project.path().join("pip.py"), format!("open({:?}, 'w').close()", mark.display())).unwrap();
    let mut pull = command(&home.path(), &["--json", "model", "pull", "smollm2-135m"]);
    pull.current_dir(project.path()).env("POLYCLAW_MODEL_HUB", "http://127.0.0.1:1");
    pull.env("PIP_INDEX_URL", "http://127.0.0.1:1").env("PIP_CONFIG_FILE", "/dev/null");
    assert_eq!(ran(pull).error(), (5, "model_file_unavailable".to_owned()));
    assert!(!mark.exists(), "it was run");
}

#[test]
fn missing_pull_source_is_unavailable() {
    let refused = Home::new().run(&["--json", "model", "pull", "smollm2-135m", "--from", "/nope"]);
    assert_eq!(refused.error(), (5, "model_file_unavailable".to_owned()));
}

#[test]
fn pull_fails_without_network_and_daemon_still_starts() {
    let home = Home::new();
    let mut pull = command(&home.path(), &["--json", "model", "pull", "smollm2-135m"]);
    // Nothing listens on the first address, and PATH contains no Python.
    pull.env("POLYCLAW_MODEL_HUB", "http://127.0.0.1:1").env("PATH", "/nowhere");
    assert_eq!(ran(pull).error(), (5, "model_file_unavailable".to_owned()));
    let _daemon = home.daemon();
    let status = home.run(&["models", "status"]);
    assert!(status.stdout.contains("polyclaw model pull"), "{}", status.stdout);
    let bench = home.run(&["--json", "model", "bench"]);
    assert_eq!(bench.error(), (3, "model_file_missing".to_owned()));
}

/// Whether stderr says once that the model is a demo, and how to add a real one.
fn mentions_demo_model_once(stderr: &str) -> bool {
    stderr.matches("demo model").count() == 1
        && stderr.contains("often wrong")
        && stderr.contains("OPENAI_API_KEY")
}

#[test]
fn weights_pulled_while_the_daemon_runs_are_loaded() {
    let (home, weights) = (Home::new(), weights());
    let _daemon = home.daemon();
    let status = || home.run(&["models", "status"]).stdout;
    assert!(status().contains("polyclaw model pull"), "{}", status());
    home.run(&["--json", "model", "pull", "smollm2-135m", "--from", weights.to_str().unwrap()]).ok();
    until("the model is in use", || status().contains("embedded/smollm2-135m (ready, demo)"));
}

#[test]
fn pulled_weights_answer_as_demo_model() {
    let (home, weights) = (Home::new(), weights());
    let from = weights.to_str().unwrap();
    let pulled = home.run(&["--json", "model", "pull", "--from", from]).ok();
    assert_eq!(pulled.as_array().unwrap().len(), 2);
    assert_eq!(files(&home.path().join("models")), 2, "no part is left over");
    let mode = fs::metadata(home.path().join("models")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "accessible to its owner only");
    let chat = fs::read_dir(home.path().join("models")).unwrap().flatten();
    let chat =
        chat.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("/b179c952")).unwrap();
    let chat = fs::read_dir(chat).unwrap().flatten().next().unwrap().path();
    fs::File::options().write(true).open(&chat).unwrap().set_len(1_000).unwrap();
    home.run(&["--json", "model", "pull", "--from", from]).ok();
    assert!(fs::metadata(&chat).unwrap().len() > 1_000, "a damaged file is downloaded again");
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
    let asked = home.run(&["--json", "agent", "--message", "Hello!"]);
    assert!(mentions_demo_model_once(&asked.stderr), "{}", asked.stderr);
    assert_eq!(asked.ok()["reply"]["model"], "embedded/smollm2-135m");
    let lines = home.path().join("lines");
    fs::write(&lines, "Hello!\nThanks!\n").unwrap();
    let mut chat = home.command(&["chat"]);
    chat.stdin(fs::File::open(&lines).unwrap());
    let piped = ran(chat);
    assert!(
        mentions_demo_model_once(&piped.stderr) && !piped.stdout.contains("built-in demo model"),
        "{}",
        piped.stderr
    );

    assert_eq!(home.run(&["--json", "model", "remove", "all-minilm-l6-v2"]).ok()["removed"], true);
    assert_eq!(files(&home.path().join("models")), 1);
}

/// The one file of these weights.
fn kept(home: &Home, name: &str) -> PathBuf {
    let listed = home.run(&["--json", "model", "list"]).ok();
    let mut models = listed.as_array().unwrap().iter();
    models.find(|model| model["model"] == name).unwrap()["path"].as_str().unwrap().into()
}

fn damage(file: &std::path::Path, at: u64) {
    let mut file = fs::File::options().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(b"damage").unwrap();
}

#[test]
fn damaged_weights_of_right_size_are_reported_everywhere() {
    let (home, weights) = (Home::new(), weights());
    let pull = || {
        home.run(&["--json", "model", "pull", "smollm2-135m", "--from", weights.to_str().unwrap()]).ok();
    };
    pull();
    // In a tensor: the file is as well-formed as before.
    damage(&kept(&home, "smollm2-135m"), 50_000_000);
    assert_eq!(home.run(&["--json", "model", "list"]).ok()[0]["state"], "damaged");
    assert_eq!(home.run(&["--json", "model", "bench"]).error(), (1, "model_file_corrupt".to_owned()));

    let _daemon = home.daemon();
    let text_of = |args: &[&str]| home.run(args).stdout;
    until("the model is loaded", || text_of(&["models", "status"]).contains("smollm2-135m (damaged, demo)"));
    for args in [&["models", "status"][..], &["status"], &["doctor"]] {
        assert!(text_of(args).contains("polyclaw model pull"), "{args:?}: {}", text_of(args));
    }
    let doctor = home.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("cannot load"), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("damaged: smollm2-135m"), "{}", doctor.stdout);

    pull();
    assert!(text_of(&["models", "status"]).contains("(ready, demo)"), "{}", text_of(&["models", "status"]));
    assert_eq!(home.run(&["doctor"]).code, 0);
    home.run(&["--json", "agent", "--message", "Hello!"]).ok();
}

/// It has the right size, is well-formed, and contains a matching hash of itself.
#[test]
fn forged_embeddings_file_is_detected_and_replaced() {
    let (home, weights) = (Home::new(), weights());
    let pull = || {
        home.run(&["--json", "model", "pull", "all-minilm-l6-v2", "--from", weights.to_str().unwrap()]).ok();
    };
    pull();
    let file = kept(&home, "all-minilm-l6-v2");
    let mut made_up = fs::read(&file).unwrap();
    *made_up.last_mut().unwrap() ^= 1;
    let hash = Sha256::digest(&made_up[44..]);
    made_up[12..44].copy_from_slice(&hash);
    fs::write(&file, made_up).unwrap();
    assert_eq!(home.run(&["--json", "model", "list"]).ok()[1]["state"], "damaged");
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains("damaged: all-minilm-l6-v2"), "{doctor}");
    pull();
    assert_eq!(home.run(&["--json", "model", "list"]).ok()[1]["state"], "here");
}

#[test]
fn pulled_embeddings_are_loaded_and_damage_is_repaired() {
    let (home, weights) = (Home::new(), weights());
    let pull = || {
        home.run(&["--json", "model", "pull", "all-minilm-l6-v2", "--from", weights.to_str().unwrap()]).ok();
    };
    let _daemon = home.daemon();
    let note = home.path().join("note.md");
    fs::write(&note, "- The ferry leaves at nine.\n- Ana lives in Porto.\n").unwrap();
    home.run(&["--json", "memory", "import", note.to_str().unwrap(), "--agent", "main"]).ok();
    let status = || home.run(&["memory"]).stdout;
    assert!(status().contains("polyclaw model pull all-minilm-l6-v2"), "{}", status());
    assert_eq!(home.run(&["--json", "memory", "embed"]).error(), (1, "no_embeddings".to_owned()));
    pull();
    until("the embeddings are computed", || status().contains("keyword and semantic search"));

    damage(&kept(&home, "all-minilm-l6-v2"), 10_000_000);
    let mut text = 0;
    until("the damaged file is in use", || {
        text += 1;
        fs::write(&note, format!("- The harbour closes at {text}.\n")).unwrap();
        home.run(&["--json", "memory", "import", note.to_str().unwrap(), "--agent", "main"]).ok();
        status().contains("cannot be used")
    });
    let refused = home.run(&["--json", "memory", "embed"]);
    assert_eq!(refused.error(), (1, "embedding_failed".to_owned()));
    assert!(refused.stdout.contains("polyclaw model pull"), "{}", refused.stdout);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("cannot be used"), "{}", doctor.stdout);

    pull();
    until("the embeddings are computed again", || status().contains("keyword and semantic search"));
    home.run(&["--json", "memory", "embed"]).ok();
}
