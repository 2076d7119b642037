//! Downloads a file from the model hub, resuming an earlier partial download.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Response, StatusCode, Url};

use crate::failure::CommandFailure;
use crate::progress::ProgressDisplay;
use crate::weights::{WeightsPart, source, unusable_path};

const DEFAULT_HUB_URL: &str = "https://huggingface.co";
const MODEL_HUB_ENV: &str = "POLYCLAW_MODEL_HUB";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum pause between two chunks of a download.
const DOWNLOAD_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

fn download_failure(what: impl std::fmt::Display) -> CommandFailure {
    source::source_unavailable(format!("the model hub: {what}"))
}

/// Returns the hub's URL. `POLYCLAW_MODEL_HUB` names a mirror.
pub fn hub_url() -> Result<String, CommandFailure> {
    match std::env::var(MODEL_HUB_ENV) {
        Ok(stated) if !stated.is_empty() => check_mirror_url(&stated),
        _ => Ok(DEFAULT_HUB_URL.to_owned()),
    }
}

/// Checks the URL. Errors do not show it, because it may contain a password.
fn check_mirror_url(stated: &str) -> Result<String, CommandFailure> {
    let is_web = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if Url::parse(stated).is_ok_and(is_web) {
        Ok(stated.trim_end_matches('/').to_owned())
    } else {
        Err(CommandFailure::usage(format!("{MODEL_HUB_ENV} is not an HTTP URL"))
            .hint(format!("it must start with https:// or http://; the default is {DEFAULT_HUB_URL}")))
    }
}

/// Downloads a part, resuming where an earlier download stopped.
pub async fn download_part(
    hub: &str,
    part: &WeightsPart,
    to: &Path,
    progress: &ProgressDisplay,
) -> Result<(), CommandFailure> {
    let mut done = fs::metadata(to).map_or(0, |meta| meta.len());
    if done >= part.size {
        let _ = fs::remove_file(to);
        done = 0;
    }
    let response = request_part(hub, part, done).await?;
    let append = is_resumed(&response, part, done)?;
    let written = |error: std::io::Error| unusable_path(to, &error);
    let mut options = OpenOptions::new();
    let file = if append { options.append(true) } else { options.write(true).truncate(true) };
    let mut file = file.create(true).open(to).map_err(written)?;
    done = if append { done } else { 0 };
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let broke = |error| {
            download_failure(format!("the download stopped at {done} bytes ({})", describe_error(&error)))
        };
        let piece = piece.map_err(broke)?;
        done += piece.len() as u64;
        // Too many bytes: this is another file, and it could fill the disk.
        if done > part.size {
            break;
        }
        file.write_all(&piece).map_err(written)?;
        progress.show_bytes(part.name, done, part.size);
    }
    progress.finish_line();
    if done == part.size {
        return Ok(());
    }
    // The download ended normally with the wrong size, so a later one must not resume it.
    let _ = fs::remove_file(to);
    Err(size_mismatch(part, done))
}

async fn request_part(hub: &str, part: &WeightsPart, done: u64) -> Result<Response, CommandFailure> {
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(DOWNLOAD_IDLE_TIMEOUT)
        .build();
    let mut request = client.map_err(download_failure)?.get(format!("{hub}/{}", part.hub));
    if done > 0 {
        request = request.header(RANGE, format!("bytes={done}-"));
    }
    request.send().await.map_err(|error| download_failure(describe_error(&error)))
}

/// Returns whether the response resumes the download instead of sending the whole file. Detects other files by their
/// size, such as a hotel's login page, before anything is written.
fn is_resumed(response: &Response, part: &WeightsPart, done: u64) -> Result<bool, CommandFailure> {
    match response.status() {
        StatusCode::OK => match response.content_length() {
            Some(length) if length != part.size => Err(size_mismatch(part, length)),
            _ => Ok(false),
        },
        StatusCode::PARTIAL_CONTENT => {
            let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
            let wanted = format!("bytes {done}-{}/{}", part.size - 1, part.size);
            if range == Some(wanted.as_str()) {
                Ok(true)
            } else {
                Err(download_failure("it sent the wrong part of the file"))
            }
        }
        status => Err(download_failure(format!("it responded with {status}"))),
    }
}

fn size_mismatch(part: &WeightsPart, length: u64) -> CommandFailure {
    let than = if length > part.size { "more" } else { "less" };
    download_failure(format!("it sent {than} than the {} bytes of {}", part.size, part.name))
}

fn describe_error(error: &reqwest::Error) -> &'static str {
    match error {
        error if error.is_connect() => "no connection",
        error if error.is_timeout() => "timed out",
        _ => "connection lost",
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    const PART: WeightsPart = WeightsPart { name: "x", ending: ".x", sha256: "0", size: 10, hub: "a/b" };

    /// Answers each connection with the next text and closes it. Returns the received requests.
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

    fn answer(head: &str, announced: usize, body: &str) -> String {
        format!("HTTP/1.1 {head}\r\ncontent-length: {announced}\r\nconnection: close\r\n\r\n{body}")
    }

    fn rest(range: &str, body: &str) -> String {
        answer(&format!("206 Partial Content\r\ncontent-range: bytes {range}"), body.len(), body)
    }

    /// A response without a content length.
    fn response_without_length(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")
    }

    #[tokio::test]
    async fn interrupted_download_resumes_with_a_range_request() {
        let answers = vec![answer("200 OK", 10, "01234"), rest("5-9/10", "56789")];
        let (address, requests) = server(answers);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("part");
        let progress = ProgressDisplay::new(true);
        assert!(
            download_part(&address, &PART, &to, &progress)
                .await
                .unwrap_err()
                .message
                .contains("stopped at 5")
        );
        download_part(&address, &PART, &to, &progress).await.unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"0123456789");
        let requests = requests.join().unwrap();
        assert!(!requests[0].contains("range:") && requests[1].contains("range: bytes=5-"), "{requests:?}");
    }

    /// The partial file before, the response, the error message, and the partial file after.
    #[tokio::test]
    async fn wrong_response_is_refused_and_keeps_partial_file() {
        let page = "<html>Welcome</html>";
        let cases = [
            (None, answer("200 OK", 4, "<ht>"), "less than the 10 bytes", None),
            (None, answer("200 OK", page.len(), page), "more than the 10 bytes", None),
            (None, response_without_length("<ht>"), "less than the 10 bytes", None),
            (None, response_without_length(page), "more than the 10 bytes", None),
            (Some("012"), answer("200 OK", 4, "<ht>"), "less than the 10 bytes", Some("012")),
            (Some("012"), rest("0-9/10", "0123456789"), "wrong part", Some("012")),
            (Some("012"), rest("3-9/27", "3456789"), "wrong part", Some("012")),
            (Some("012"), answer("206 Partial Content", 7, "3456789"), "wrong part", Some("012")),
            (Some("012"), answer("404 Not Found", 0, ""), "404", Some("012")),
        ];
        for (before, answer, reply, after) in cases {
            let (address, requests) = server(vec![answer.clone()]);
            let folder = tempfile::tempdir().unwrap();
            let to = folder.path().join("part");
            before.iter().for_each(|text| fs::write(&to, text).unwrap());
            let failure = download_part(&address, &PART, &to, &ProgressDisplay::new(true)).await.unwrap_err();
            assert!(failure.message.contains(reply), "{answer}: {}", failure.message);
            assert_eq!(fs::read_to_string(&to).ok().as_deref(), after, "{answer}");
            requests.join().unwrap();
        }
    }

    #[tokio::test]
    async fn server_without_range_support_restarts_download() {
        let (address, requests) = server(vec![answer("200 OK", 10, "abcdefghij")]);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("part");
        fs::write(&to, "012").unwrap();
        download_part(&address, &PART, &to, &ProgressDisplay::new(true)).await.unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"abcdefghij");
        requests.join().unwrap();
    }

    #[test]
    fn mirror_must_be_an_http_url() {
        assert_eq!(check_mirror_url("https://hub.example/models/").unwrap(), "https://hub.example/models");
        for stated in ["nonsense", "hub.example", "ftp://hub.example", "http://", "file:///x"] {
            let failure = check_mirror_url(stated).unwrap_err();
            assert!(failure.message.contains(MODEL_HUB_ENV) && !failure.message.contains(stated), "{stated}");
        }
    }
}
