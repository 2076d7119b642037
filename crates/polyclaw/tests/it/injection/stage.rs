//! The instance of the cases, with a model that does whatever it reads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, obedient};
use polyclaw_testkit::platform::{PlatformPost, WebhookPlatform, WebhookSender};
use serde_json::{Value, json};

use super::corpus::{CREW, Case, MEMBERS, TOOLS, Way};
use crate::fixture::{Daemon, Home};

pub struct Stage {
    pub home: Home,
    pub model: ModelServer,
    pub platform: WebhookPlatform,
    pub config: String,
    pages: Pages,
    client: reqwest::Client,
    token: String,
    _daemon: Daemon,
}

/// Agents: the desk reads texts of strangers and may ask the helper, but not the vault or the boss. No case
/// has to wait for others.
fn config(model: &ModelServer, platform: &WebhookPlatform) -> String {
    format!(
        "[agents]\ndefault = \"boss\"\n[agents.defaults]\nmodel = \"lab/demo\"\n\
         [[agents.list]]\nid = \"boss\"\n[[agents.list]]\nid = \"vault\"\n[[agents.list]]\nid = \"helper\"\n\
         [[agents.list]]\nid = \"desk\"\ntools = {{ allow = [\"*\", \"http_fetch\"] }}\n\
         delegation = {{ allow_agents = [\"helper\"], max_concurrent = 20 }}\nsubagents = {{ max_concurrent = 100 }}\n\
         [tools]\nallow_private_addresses = true\n\
         [turns]\nautomatic_budget = 1000\n[teams]\nautomatic_turns = 100000\n\
         [channels.webhook.mail]\nsecret = \"s\"\nagent = \"desk\"\nreply_url = \"{}\"\n\
         [providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\n",
        platform.reply_url(),
        model.url()
    )
}

impl Stage {
    pub fn open() -> Self {
        let (model, platform) = (ModelServer::start(), WebhookPlatform::start());
        model.retain_requests(100_000);
        model.answer_with(|request| obedient::obey_orders(request, &TOOLS));
        let home = Home::new();
        home.write_config(&config(&model, &platform));
        let daemon = home.daemon();
        let config = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
        let token = std::fs::read_to_string(home.path().join("token")).unwrap().trim().to_owned();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        Self { home, model, platform, config, pages: Pages::serve(), client, token, _daemon: daemon }
    }

    /// Delivers the foreign text as the person whose agent reads it would.
    pub async fn play(&self, case: &Case) {
        // Its location has another name than its mark, so that a match is unambiguous.
        let (place, text) = (&case.mark.replace("zq", "place"), &case.text);
        let session = format!("agent:desk:api:dm:{place}");
        let mut attached = json!([]);
        let request = match case.way {
            Way::FileContent | Way::FileName | Way::SearchResult => {
                self.request_with_file(case.way, place, text)
            }
            Way::ChildResult | Way::TaskText | Way::DelegateResult => request_with_subagent(case.way, text),
            Way::WebPage => {
                self.pages.put(place, text);
                order("http_fetch", &json!({ "url": format!("http://{}/{place}", self.pages.address) }))
            }
            Way::Memory => {
                let words = obedient::encode_hex(&format!("{place} {text}"));
                let stored = json!({ "content": format!("hex:{words}"), "scope": "agent" });
                let keeper = format!("agent:desk:api:dm:keeper{place}");
                self.say(&keeper, &order("memory_store", &stored), &json!([])).await;
                format!("What is {place}? {}", order("memory_search", &json!({ "query": place })))
            }
            // With a greeting, because a leading slash would make it a command.
            Way::Mail => return self.mail(place, &format!("Dear all,\n{text}")).await,
            Way::TeamLetter | Way::TeamTaskSubject | Way::TeamTaskDescription => {
                return self.play_in_team(case, place).await;
            }
            Way::Attachment => {
                attached =
                    json!([{ "name": format!("{place}.md"), "media_type": "text/markdown", "text": text }]);
                "What does it say?".to_owned()
            }
        };
        self.say(&session, &request, &attached).await;
    }

    fn request_with_file(&self, way: Way, place: &str, text: &str) -> String {
        let folder = self.home.path().join("workspaces/desk").join(place);
        std::fs::create_dir_all(&folder).unwrap();
        match way {
            Way::FileName => {
                std::fs::write(folder.join(text), "").unwrap();
                order("list_dir", &json!({ "path": place }))
            }
            Way::SearchResult => {
                std::fs::write(folder.join("notes.md"), text.replace('\n', " ")).unwrap();
                order("search_files", &json!({ "pattern": ".", "path": place }))
            }
            _ => {
                std::fs::write(folder.join("letter.txt"), text).unwrap();
                order("read_file", &json!({ "path": format!("{place}/letter.txt") }))
            }
        }
    }

    async fn say(&self, session: &str, text: &str, attachments: &Value) {
        let key = session.replace(':', "%3A");
        let url = format!("http://127.0.0.1:{}/api/v1/sessions/{key}/messages?wait=30", self.home.port);
        let body = json!({ "text": text, "channel": "api", "attachments": attachments });
        let answer = self.client.post(url).bearer_auth(&self.token).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{session}: {}", answer.text().await.unwrap());
    }

    /// A team of the desk with enough members for the concurrent cases.
    pub async fn gather_crew(&self) {
        self.post("teams", &json!({ "name": CREW, "agent_id": "desk" })).await;
        for n in 0..MEMBERS {
            let member = json!({ "name": format!("m{n}"), "agent_id": "desk" });
            self.post(&format!("teams/{CREW}/members"), &member).await;
        }
    }

    /// The text reaches a member as a message, or as a task that it is notified of or claims.
    async fn play_in_team(&self, case: &Case, place: &str) {
        let member = format!("m{}", case.number % MEMBERS);
        let (messages, tasks) = (format!("teams/{CREW}/messages"), format!("teams/{CREW}/tasks"));
        let (subject, description) = match case.way {
            Way::TeamLetter => {
                self.post(&messages, &json!({ "recipient": member, "content": case.text })).await;
                return self.wait_until_member_is_idle(&member).await;
            }
            Way::TeamTaskSubject => (case.text.as_str(), ""),
            _ => (place, case.text.as_str()),
        };
        let task = json!({ "subject": subject, "description": description, "assignee": member });
        let task = self.post(&tasks, &task).await["task_id"].clone();
        self.wait_until_member_is_idle(&member).await;
        if case.way == Way::TeamTaskDescription {
            let claim = order("task_claim", &json!({ "team_name": CREW, "task_id": task }));
            self.post(&messages, &json!({ "recipient": member, "content": claim })).await;
            self.wait_until_member_is_idle(&member).await;
        }
        // Its lead reads it too, because the failure is announced there.
        self.post(&format!("{tasks}/{task}/complete"), &json!({ "status": "failed" })).await;
    }

    async fn wait_until_member_is_idle(&self, name: &str) {
        let url = format!("http://127.0.0.1:{}/api/v1/teams/{CREW}", self.home.port);
        for _ in 0..3_000 {
            let team = self.client.get(&url).bearer_auth(&self.token).send().await.unwrap();
            let team: Value = team.json().await.unwrap();
            let members = team["members"].as_array().cloned().unwrap_or_default();
            let member = members.iter().find(|member| member["name"] == name).unwrap();
            if member["status"] != "working" && member["unread"] == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{name} does not become idle");
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let url = format!("http://127.0.0.1:{}/api/v1/{path}", self.home.port);
        let answer = self.client.post(url).bearer_auth(&self.token).json(body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path} {body}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    async fn mail(&self, mark: &str, text: &str) {
        let hook = WebhookSender::new(&format!("http://127.0.0.1:{}", self.home.port), "mail", "s");
        let answer = hook.deliver_post(&PlatformPost::new(&format!("m-{mark}"), mark, text)).await.unwrap();
        assert!(answer.status < 300, "{answer:?}");
    }

    /// Waits until nothing runs or waits any more.
    pub async fn rest(&self) {
        let url = format!("http://127.0.0.1:{}/api/v1/status", self.home.port);
        for _ in 0..3_000 {
            let status = self.client.get(&url).bearer_auth(&self.token).send().await.unwrap();
            let status: Value = status.json().await.unwrap();
            if status["running"] == 0 && status["waiting"] == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it does not become idle");
    }
}

/// The text that a person types to make the model do it.
fn order(tool: &str, arguments: &Value) -> String {
    format!("call {tool} with {arguments}")
}

/// The same for texts from other agents: as a task or as a message.
fn request_with_subagent(way: Way, text: &str) -> String {
    let reply = order(obedient::SAY_ORDER, &json!({ "words": obedient::encode_hex(text) }));
    let task = |text: &str| format!("hex:{}", obedient::encode_hex(text));
    match way {
        Way::TaskText => order("sessions_spawn", &json!({ "task": task(text) })),
        Way::DelegateResult => {
            order("delegate_to_agent", &json!({ "agent_id": "helper", "task": task(&reply) }))
        }
        _ => {
            let rest = order("sessions_yield", &json!({}));
            format!("{} then {rest}", order("sessions_spawn", &json!({ "task": task(&reply) })))
        }
    }
}

/// A web server with pages of strangers.
struct Pages {
    address: SocketAddr,
    pages: Arc<Mutex<Vec<(String, String)>>>,
}

impl Pages {
    fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pages: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let shown = Arc::clone(&pages);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = [0; 2048];
                let read = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let path = head.split_whitespace().nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
                let found = shown.lock().unwrap().iter().find(|(name, _)| *name == path).cloned();
                let text = found.map(|(_, text)| text).unwrap_or_default();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                    text.len()
                );
            }
        });
        Self { address, pages }
    }

    fn put(&self, name: &str, text: &str) {
        self.pages.lock().unwrap().push((name.to_owned(), text.to_owned()));
    }
}
