//! The broker while both sides die: the server by SIGKILL, those who fetch messages by forgetting what they hold. How
//! much is sent can be raised: `POLYCLAW_BROKER_MESSAGES`, `POLYCLAW_BROKER_INSTANCES`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::plane::{Plane, until};

const SENDERS: usize = 4;
const KILLS: usize = 4;

fn stated(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// Whoever talks to a server that comes and goes.
#[derive(Clone)]
struct Talker {
    client: reqwest::Client,
    url: String,
    token: String,
}

impl Talker {
    fn of(plane: &Plane) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        Self { client, url: format!("{}/api", plane.url()), token: plane.token() }
    }

    /// The status and the answer; asked again for as long as there is none.
    async fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        loop {
            let request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.url));
            let request = request.bearer_auth(&self.token);
            let request = if method == "GET" { request } else { request.json(body) };
            if let Ok(answer) = request.send().await
                && let status = answer.status().as_u16()
                && status < 500
                && let Ok(body) = answer.json().await
            {
                return (status, body);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Sends its share, each message with a key of its own, as often as it takes.
async fn send(talker: Talker, (first, step): (usize, usize), (total, instances): (usize, usize)) {
    for n in (first..total).step_by(step) {
        let (from, to) = (n % instances, (n + 1) % instances);
        let body = json!({
            "from": format!("i{from}"), "to": format!("i{to}"), "type": "task.handoff",
            "payload": { "n": n }, "idempotency_key": format!("k{n}"),
        });
        let (status, said) = talker.call("POST", "/messages", &body).await;
        assert!(matches!(status, 200 | 201), "{status} {said}");
    }
}

/// Fetches for one instance and acknowledges, and dies now and then with all it holds.
async fn fetch(talker: Talker, name: String, acknowledged: Arc<AtomicUsize>, total: usize) {
    let mut random = fastrand::Rng::with_seed(name.bytes().map(u64::from).sum());
    let (mut life, mut asked) = (0, 0);
    while acknowledged.load(Ordering::SeqCst) < total {
        asked += 1;
        let path =
            format!("/instances/{name}/messages/pending?wait=1&limit=20&life={life}&lease={name}-{asked}");
        let (status, said) = talker.call("GET", &path, &json!({})).await;
        assert_eq!(status, 200, "{said}");
        for message in said["messages"].as_array().unwrap() {
            if random.u32(..200) == 0 {
                life += 1;
                break;
            }
            let path = format!("/messages/{}/ack", message["id"].as_str().unwrap());
            let (status, said) = talker.call("POST", &path, &json!({ "lease": message["lease"] })).await;
            match status {
                200 => drop(acknowledged.fetch_add(1, Ordering::SeqCst)),
                // Somebody else has it by now, or an earlier word of ours was heard.
                _ => assert_eq!(said["error"]["code"], "lease_lost", "{status}"),
            }
        }
    }
}

#[test]
fn nothing_is_lost_or_acknowledged_twice_while_both_sides_are_killed() {
    let total = stated("POLYCLAW_BROKER_MESSAGES", 2_000);
    let instances = stated("POLYCLAW_BROKER_INSTANCES", 3);
    let mut plane = Plane::new();
    for n in 0..instances {
        plane.create(&format!("i{n}"));
    }
    for n in 0..instances {
        let (from, to) = (format!("i{n}"), format!("i{}", (n + 1) % instances));
        let rule = json!({ "from": from, "to": to, "type": "task.*", "max_retries": 100 });
        plane.post("/routing-rules", rule).ok();
    }
    let (talker, acknowledged) = (Talker::of(&plane), Arc::new(AtomicUsize::new(0)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for n in 0..SENDERS {
        runtime.spawn(send(talker.clone(), (n, SENDERS), (total, instances)));
    }
    let fetching: Vec<_> = (0..instances)
        .map(|n| runtime.spawn(fetch(talker.clone(), format!("i{n}"), Arc::clone(&acknowledged), total)))
        .collect();
    for kill in 1..=KILLS {
        // After each share of the work, wherever that is reached.
        let share = total * kill / (KILLS + 1);
        let done = || acknowledged.load(Ordering::SeqCst);
        until(&|| format!("{share} of {total} are acknowledged, and {} are", done()), || done() >= share);
        plane.kill();
        plane.serve();
    }
    for fetched in fetching {
        runtime.block_on(fetched).unwrap();
    }
    plane.kill();
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    let count = |sql: &str| {
        let counted: i64 = registry.query_row(sql, [], |row| row.get(0)).unwrap();
        usize::try_from(counted).unwrap()
    };
    assert_eq!(count("SELECT COUNT(*) FROM messages"), total, "none lost, none twice");
    assert_eq!(count("SELECT COUNT(DISTINCT payload) FROM messages WHERE state = 'acknowledged'"), total);
    let words = "SELECT COUNT(*) FROM message_events WHERE kind = 'acknowledged'";
    assert_eq!(count(words), total, "each acknowledged once");
    assert_eq!(count("SELECT COUNT(*) FROM message_events WHERE kind = 'created'"), total);
}
