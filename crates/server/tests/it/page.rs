use reqwest::Method;
use serde_json::json;

use crate::instance::{Answer, Instance, ONE, TOKEN};

#[tokio::test]
async fn chat_page_is_served_with_strict_security_policy() {
    let instance = Instance::start().await;
    for (path, kind) in [("/", "text/html"), ("/chat.js", "text/javascript"), ("/chat.css", "text/css")] {
        let page = Answer::of(instance.bare(Method::GET, path)).await;
        page.ok();
        assert!(page.headers["content-type"].to_str().unwrap().starts_with(kind));
        assert!(page.headers["content-security-policy"].to_str().unwrap().contains("default-src 'self'"));
        assert_eq!(page.headers["x-content-type-options"], "nosniff");
        assert_eq!(page.headers["cache-control"], "no-store");
        assert!(!page.text.contains(TOKEN));
    }
}

/// Both halves of a browser's login.
struct Browser {
    id: String,
    cookie: String,
    key: String,
}

impl Browser {
    async fn log_in(instance: &Instance) -> Self {
        let link = instance.login().await;
        let answer = redeem(instance, code_of(&link)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        let cookie = answer.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let text = |field: &str| answer.body[field].as_str().unwrap().to_owned();
        Self { id: text("id"), cookie, key: text("key") }
    }

    async fn call(&self, instance: &Instance, method: Method, path: &str) -> Answer {
        let request = instance.bare(method, path).header("cookie", format!("a=b; {}", self.cookie));
        Answer::of(request.header("polyclaw-login", &self.key)).await
    }
}

fn code_of(link: &str) -> &str {
    link.split_once("code=").unwrap().1
}

async fn redeem(instance: &Instance, code: &str) -> Answer {
    Answer::of(instance.bare(Method::POST, "/login").json(&json!({ "code": code }))).await
}

#[tokio::test]
async fn login_link_works_for_one_browser_once() {
    let instance = Instance::start().await;
    let link = instance.login().await;
    assert!(!link.contains("horse"), "the token is in no address");
    for looked in [Method::HEAD, Method::GET] {
        let page = Answer::of(instance.bare(looked, &link)).await;
        assert!(page.status == 200 && page.headers.get("set-cookie").is_none(), "a look does not use it up");
    }
    let opened = redeem(&instance, code_of(&link)).await;
    assert_eq!(opened.status, 201);
    let cookie = opened.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Max-Age="));
    let port = instance.url.rsplit(':').next().unwrap();
    assert!(cookie.starts_with(&format!("polyclaw_{port}=")), "two instances on one host: {cookie}");
    assert!(!opened.text.contains("horse") && !cookie.contains("horse"));
    for used_up in [code_of(&link), "wrong", ""] {
        let refused = redeem(&instance, used_up).await;
        assert!(refused.headers.get("set-cookie").is_none());
        refused.refuses(401, "code_already_used");
    }
}

#[tokio::test]
async fn cookie_without_login_key_is_refused() {
    let instance = Instance::start().await;
    let browser = Browser::log_in(&instance).await;
    browser.call(&instance, Method::GET, "/api/v1/sessions").await.ok();
    // Browsers send the cookie to every port of the host; whoever listens there replays it.
    let stolen = |method: Method, path: &str| instance.bare(method, path).header("cookie", &browser.cookie);
    for (method, path) in [
        (Method::GET, "/api/v1/sessions"),
        (Method::GET, "/api/v1/agents"),
        (Method::POST, "/api/v1/agents"),
        (Method::POST, "/api/v1/logins"),
        (Method::GET, "/api/v1/logins"),
        (Method::DELETE, "/api/v1/logins/current"),
        (Method::GET, "/v1/models"),
        (Method::GET, "/metrics"),
    ] {
        Answer::of(stolen(method, path)).await.refuses(401, "unauthorized");
    }
    let from_elsewhere = stolen(Method::GET, "/api/v1/sessions").header("origin", "http://127.0.0.1:1");
    Answer::of(from_elsewhere).await.refuses(403, "origin_not_allowed");
    for key in ["", "wrong", browser.cookie.as_str()] {
        let guessed = stolen(Method::GET, "/api/v1/sessions").header("polyclaw-login", key);
        Answer::of(guessed).await.refuses(401, "unauthorized");
    }
    let link = instance.login().await;
    let opened = stolen(Method::GET, &link).send().await.unwrap();
    assert!(opened.headers().get("set-cookie").is_none(), "nor is another login made of it");
    let alone = instance.bare(Method::GET, "/api/v1/sessions").header("polyclaw-login", &browser.key);
    Answer::of(alone).await.refuses(401, "unauthorized");
    browser.call(&instance, Method::GET, "/api/v1/sessions").await.ok();
}

#[tokio::test]
async fn logins_are_listed_and_end_by_logout_or_revocation() {
    let instance = Instance::start().await;
    let (one, other) = (Browser::log_in(&instance).await, Browser::log_in(&instance).await);
    let listed = one.call(&instance, Method::GET, "/api/v1/logins").await.ok().clone();
    let logins = listed["logins"].as_array().unwrap();
    let current: Vec<_> = logins.iter().filter(|login| login["current"] == true).collect();
    assert_eq!((logins.len(), current.len()), (2, 1), "{listed}");
    assert_eq!(current[0]["id"], one.id.as_str());
    assert!(current[0]["expires_at"].is_string() && !listed.to_string().contains(&one.key));
    let left = one.call(&instance, Method::DELETE, "/api/v1/logins/current").await;
    assert_eq!(left.status, 204);
    assert!(left.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    one.call(&instance, Method::GET, "/api/v1/sessions").await.refuses(401, "unauthorized");
    other.call(&instance, Method::GET, "/api/v1/sessions").await.ok();
    let revoke = format!("/api/v1/logins/{}", other.id);
    assert_eq!(instance.delete(&revoke).await.status, 204);
    other.call(&instance, Method::GET, "/api/v1/sessions").await.refuses(401, "unauthorized");
    instance.delete(&revoke).await.refuses(404, "unknown_login");
    instance.delete("/api/v1/logins/current").await.refuses(404, "unknown_login");
}

#[tokio::test]
async fn websocket_with_login_key_closes_when_login_ends() {
    use futures_util::StreamExt as _;
    use tokio_tungstenite::connect_async;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
    let instance = Instance::start().await;
    let browser = Browser::log_in(&instance).await;
    let request = |protocols: &str| {
        let address = format!("{}/api/v1/ws", instance.url.replace("http", "ws"));
        let mut request = address.into_client_request().unwrap();
        request.headers_mut().insert("cookie", browser.cookie.parse().unwrap());
        request.headers_mut().insert("sec-websocket-protocol", protocols.parse().unwrap());
        request
    };
    assert!(connect_async(request("polyclaw")).await.is_err(), "the cookie alone opens none");
    let named = format!("polyclaw, polyclaw.login.{}", browser.key);
    let (mut socket, answer) = connect_async(request(&named)).await.unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], "polyclaw");
    browser.call(&instance, Method::DELETE, "/api/v1/logins/current").await;
    let closed = tokio::time::timeout(std::time::Duration::from_secs(10), async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| u16::from(frame.code)),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    });
    assert_eq!(closed.await.unwrap(), Some(4401));
}

#[tokio::test]
async fn token_in_query_string_is_ignored() {
    let instance = Instance::start().await;
    let token = TOKEN.replace(' ', "%20");
    let page = Answer::of(instance.bare(Method::GET, &format!("/?token={token}"))).await;
    assert!(page.status == 200 && page.headers.get("set-cookie").is_none());
    let stream = format!("/api/v1/sessions/{ONE}/stream?token={token}");
    Answer::of(instance.bare(Method::GET, &stream)).await.refuses(401, "unauthorized");
}
