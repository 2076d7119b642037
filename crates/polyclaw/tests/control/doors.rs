//! The address of an instance: where it listens, even if its config has changed since.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::plane::{Answer, Plane, free_port};

fn patch(plane: &Plane, gateway: Value) -> Answer {
    let etag = plane.get("/instances/one/config").etag.unwrap();
    let body = json!({ "gateway": gateway });
    plane.call("PATCH", "/instances/one/config", Some(body), &[("if-match", &etag)])
}

#[test]
fn new_bind_address_gets_no_token_before_restart() {
    let mut plane = Plane::new();
    let port = u16::try_from(plane.started("one")["port"].as_u64().unwrap()).unwrap();
    let stranger = TcpListener::bind(("127.0.0.3", port)).unwrap();
    stranger.set_nonblocking(true).unwrap();
    let changed = patch(&plane, json!({ "bind": "127.0.0.3" })).ok();
    assert_eq!(
        (&changed["outcome"], &changed["restart_required"]),
        (&json!("restart_required"), &json!(["gateway"]))
    );
    plane.get("/instances/one/gateway/sessions").ok();
    // The next server finds it only by its address file.
    plane.kill();
    plane.serve();
    plane.get("/instances/one/gateway/sessions").ok();
    patch(&plane, json!({ "allowed_hosts": ["chat.example.com"] })).ok();
    assert_eq!(plane.get("/health").ok()["instances"][0]["health"], "ok");
    let came = stranger.accept().map_err(|error| error.kind());
    assert_eq!(came.err(), Some(std::io::ErrorKind::WouldBlock), "no request reached the other address");
    drop(stranger);
    plane.post("/instances/one/restart", json!({})).ok();
    plane.get("/instances/one/gateway/sessions").ok();
    assert!(TcpListener::bind(("127.0.0.3", port)).is_err(), "it listens there now");
}

#[test]
fn forged_daemon_url_file_is_not_trusted() {
    let mut plane = Plane::new();
    let made = plane.started("one");
    plane.kill();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    let note = format!("http://{}\n", stranger.local_addr().unwrap());
    std::fs::write(plane.folder(&made).join("daemon.url"), note).unwrap();
    plane.serve();
    assert_eq!(plane.get("/instances/one/gateway/sessions").refusal(), (502, "instance_unreachable"));
    let came = stranger.accept().map_err(|error| error.kind());
    assert_eq!(came.err(), Some(std::io::ErrorKind::WouldBlock));
}

#[test]
fn changed_port_is_validated_and_applies_after_restart() {
    let plane = Plane::new();
    let first = plane.started("one")["port"].clone();
    assert_eq!(patch(&plane, json!({ "port": 80 })).refusal(), (400, "bad_port"));
    assert_eq!(patch(&plane, json!({ "port": plane.port })).refusal(), (400, "bad_port"));
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = occupied.local_addr().unwrap().port();
    assert_eq!(patch(&plane, json!({ "port": port })).refusal(), (409, "port_in_use"));
    let port = free_port();
    let changed = patch(&plane, json!({ "port": port })).ok();
    assert_eq!(
        (&changed["outcome"], &changed["restart_required"]),
        (&json!("restart_required"), &json!(["gateway"]))
    );
    assert_eq!(plane.get("/instances/one").ok()["port"], first, "its address is unchanged");
    plane.get("/instances/one/gateway/sessions").ok();
    assert_eq!(plane.post("/instances/one/restart", json!({})).ok()["port"], port);
    plane.get("/instances/one/gateway/sessions").ok();
}
