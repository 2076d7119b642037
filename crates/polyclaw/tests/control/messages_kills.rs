//! The broker under kills: the server by SIGKILL, senders and recipients in the middle of a call. The latter are threads
//! of the test, so that there can be many messages; `messages_daemons` uses real daemons. The number of messages can be
//! raised, for example to the hundred thousand of the plan:
//!
//! `POLYCLAW_BROKER_MESSAGES=100000 cargo nextest run -p polyclaw --test control messages_kills`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::plane::{Plane, until};

pub const SENDERS: usize = 8;
const KILLS: usize = 4;
/// How far a killed sender may fall back: it resends everything since.
const FORGOTTEN: usize = 5;

pub fn stated(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// A client of a server that is killed and restarted.
#[derive(Clone)]
pub struct Talker {
    client: reqwest::Client,
    url: String,
    token: String,
}

impl Talker {
    pub fn of(plane: &Plane) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        Self { client, url: format!("{}/api", plane.url()), token: plane.token() }
    }

    /// Returns the status and the response. Repeats the call until there is one.
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

/// Makes a call and sometimes dies in the middle, without reading the response.
async fn die_or<T>(random: &mut fastrand::Rng, call: impl Future<Output = T>) -> Option<T> {
    match random.u32(..200) {
        0 => tokio::time::timeout(Duration::from_micros(random.u64(..3_000)), call).await.ok(),
        _ => Some(call.await),
    }
}

/// Sends its share, each message with its own key, with as many retries as needed.
pub async fn send(talker: Talker, first: usize, (total, instances): (usize, usize)) {
    let mut random = fastrand::Rng::with_seed(first as u64);
    let mut n = first;
    while n < total {
        let (from, to) = (n % instances, (n + 1) % instances);
        let body = json!({
            "from": format!("i{from}"), "to": format!("i{to}"), "type": "task.handoff",
            "payload": { "n": n }, "idempotency_key": format!("k{n}"),
        });
        n = match die_or(&mut random, talker.call("POST", "/messages", &body)).await {
            Some((status, reply)) => {
                assert!(matches!(status, 200 | 201), "{status} {reply}");
                n + SENDERS
            }
            None => n.saturating_sub(random.usize(..=FORGOTTEN) * SENDERS).max(first),
        };
    }
}

/// Fetches and acknowledges for one instance, and sometimes dies with all leased messages.
async fn fetch(talker: Talker, name: String, is_over: Arc<AtomicBool>) {
    let mut random = fastrand::Rng::with_seed(name.bytes().map(u64::from).sum());
    let (mut life, mut asked) = (0, 0);
    while !is_over.load(Ordering::SeqCst) {
        asked += 1;
        let path = format!(
            "/instances/{name}/messages/pending?wait=1&limit=100&process_epoch={life}&lease={name}-{asked}"
        );
        let (status, reply) = talker.call("GET", &path, &json!({})).await;
        assert_eq!(status, 200, "{reply}");
        for message in reply["messages"].as_array().unwrap() {
            let path = format!("/messages/{}/ack", message["id"].as_str().unwrap());
            let body = json!({ "lease": message["lease"] });
            match die_or(&mut random, talker.call("POST", &path, &body)).await {
                Some((200, _)) => {}
                // Another caller has it by now, or an earlier acknowledgement arrived.
                Some((status, reply)) => assert_eq!(reply["error"]["code"], "lease_lost", "{status}"),
                None => {
                    life += 1;
                    break;
                }
            }
        }
    }
}

#[test]
fn random_kills_lose_no_message_and_acknowledge_each_once() {
    let total = stated("POLYCLAW_BROKER_MESSAGES", 20_000);
    let instances = stated("POLYCLAW_BROKER_INSTANCES", 10);
    let mut plane = Plane::new();
    for n in 0..instances {
        plane.create(&format!("i{n}"));
    }
    for n in 0..instances {
        let (from, to) = (format!("i{n}"), format!("i{}", (n + 1) % instances));
        let rule = json!({ "from": from, "to": to, "type": "task.*", "max_retries": 100 });
        plane.post("/routing-rules", rule).ok();
    }
    let (talker, is_over) = (Talker::of(&plane), Arc::new(AtomicBool::new(false)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let sending: Vec<_> =
        (0..SENDERS).map(|n| runtime.spawn(send(talker.clone(), n, (total, instances)))).collect();
    let fetching: Vec<_> = (0..instances)
        .map(|n| runtime.spawn(fetch(talker.clone(), format!("i{n}"), Arc::clone(&is_over))))
        .collect();
    // Only the committed state counts, because the calls of a killed caller may have succeeded.
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    registry.busy_timeout(Duration::from_secs(30)).unwrap();
    let count = |sql: &str| {
        let counted: i64 = registry.query_row(sql, [], |row| row.get(0)).unwrap();
        usize::try_from(counted).unwrap()
    };
    let done = || count("SELECT COUNT(*) FROM messages WHERE state = 'acknowledged'");
    // Waits in steps, so that the limit does not depend on the number of messages.
    let reach = |wanted: usize| {
        while done() < wanted {
            let next = wanted.min(done() + 1_000);
            until(&|| format!("{next} of {total} are acknowledged, and {} are", done()), || done() >= next);
        }
    };
    let mut random = fastrand::Rng::with_seed(7);
    for kill in 1..=KILLS {
        // At a random moment in each share of the work.
        reach(total * (kill - 1) / KILLS + random.usize(..total / KILLS));
        plane.kill();
        plane.serve();
    }
    reach(total);
    is_over.store(true, Ordering::SeqCst);
    for one in sending.into_iter().chain(fetching) {
        runtime.block_on(one).unwrap();
    }
    plane.kill();
    assert_eq!(count("SELECT COUNT(*) FROM messages"), total, "none lost, none duplicated");
    assert_eq!(count("SELECT COUNT(DISTINCT payload) FROM messages WHERE state = 'acknowledged'"), total);
    let words = "SELECT COUNT(*) FROM message_events WHERE kind = 'acknowledged'";
    assert_eq!(count(words), total, "each acknowledged once");
    assert_eq!(count("SELECT COUNT(*) FROM message_events WHERE kind = 'created'"), total);
    assert_eq!(count("SELECT COUNT(*) FROM audit WHERE action = 'message.send'"), total);
}
