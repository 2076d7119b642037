//! No id escapes its folder: tests every path parameter of both documents with traversal names.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::plane::{PATIENCE, Plane};

/// Sent verbatim: no client normalizes them.
const CLIMBING: [&str; 8] = [
    "..",
    "%2e%2e",
    "..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e%2fcp%2ftoken",
    "..%5c..%5ctoken",
    "%2fetc%2fpasswd",
    "....%2f%2f....%2f%2ftoken",
    "one%2f..%2f..%2f..%2ftoken",
];

/// The status and the rest of a response.
fn raw(port: u16, method: &str, path: &str, token: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let answer = String::from_utf8_lossy(&bytes).into_owned();
    (answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

/// Every path of a document with one parameter replaced at a time, and existing names for the others.
fn hostile(document: &Value) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let parts: Vec<&str> = path.split('/').collect();
        let holes = (0..parts.len()).filter(|at| parts[*at].starts_with('{'));
        for (hole, word) in holes.flat_map(|hole| CLIMBING.map(|word| (hole, word))) {
            let filled = |(at, part): (usize, &&str)| match part.starts_with('{') {
                true if at == hole => word.to_owned(),
                true => "one".to_owned(),
                false => (*part).to_owned(),
            };
            let path = parts.iter().enumerate().map(filled).collect::<Vec<_>>().join("/");
            let methods = item.as_object().unwrap().keys().map(|method| method.to_uppercase());
            calls.extend(methods.map(|method| (method, path.clone())));
        }
    }
    calls
}

fn refuses(port: u16, token: &str, document: &Value, secrets: &[&str]) -> usize {
    let calls = hostile(document);
    for (method, path) in &calls {
        let (status, answer) = raw(port, method, path, token);
        assert!((400..500).contains(&status), "{method} {path}: {answer}");
        let is_notified = secrets.iter().any(|secret| answer.contains(secret));
        assert!(!is_notified, "{method} {path}: {answer}");
    }
    calls.len()
}

#[test]
fn path_parameters_cannot_traverse_folders() {
    let plane = Plane::new();
    let made = plane.started("one");
    let own = std::fs::read_to_string(plane.folder(&made).join("token")).unwrap().trim().to_owned();
    let (operator, port) = (plane.token(), u16::try_from(made["port"].as_u64().unwrap()).unwrap());
    let secrets = ["root:x:0", operator.as_str(), own.as_str()];
    let document = plane.get("/openapi.json").ok();
    assert!(document["paths"]["/api/instances/{id}/gateway/{path}"]["post"].is_object());
    assert!(refuses(plane.port, &operator, &document, &secrets) > 200);
    let document = plane.get("/instances/one/gateway/openapi.json").ok();
    assert!(refuses(port, &own, &document, &secrets) > 200);
    assert_eq!(plane.status("one"), "running", "it is unchanged");
}
