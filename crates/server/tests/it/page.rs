use reqwest::Method;

use crate::instance::{Answer, Instance, ONE, TOKEN};

#[tokio::test]
async fn the_page_is_served_with_a_strict_policy() {
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

#[tokio::test]
async fn a_link_lets_one_browser_in_once() {
    let instance = Instance::start().await;
    let link = instance.login().await;
    assert!(!link.contains("horse"), "the token is in no address");
    Answer::of(instance.bare(Method::HEAD, &link)).await.ok();
    let opened = Answer::of(instance.bare(Method::GET, &link)).await;
    assert_eq!((opened.status.as_u16(), &opened.headers["location"]), (303, &"/".parse().unwrap()));
    let cookie = opened.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains("horse"));
    let port = instance.url.rsplit(':').next().unwrap();
    assert!(cookie.starts_with(&format!("polyclaw_{port}=")), "two instances on one host: {cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let with = |path: &str, cookie: &str| {
        instance.bare(Method::GET, path).header("cookie", format!("a=b; {cookie}"))
    };
    Answer::of(with("/api/v1/sessions", &cookie)).await.ok();
    assert_eq!(Answer::of(with(&link, &cookie)).await.status, 303, "who is in stays in");
    let (other, forged) = (cookie.replace(port, "1"), format!("polyclaw_{port}=x"));
    for wrong in [other, forged] {
        Answer::of(with("/api/v1/sessions", &wrong)).await.refuses(401, "unauthorized");
    }
    for used_up in [link.as_str(), "/?code=wrong", "/?code="] {
        let refused = instance.bare(Method::GET, used_up).send().await.unwrap();
        assert_eq!(refused.status(), 401);
        let kind = refused.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/html"), "the page says so");
        assert!(refused.headers().get("set-cookie").is_none());
    }
}

#[tokio::test]
async fn the_token_in_an_address_opens_nothing() {
    let instance = Instance::start().await;
    let token = TOKEN.replace(' ', "%20");
    let page = Answer::of(instance.bare(Method::GET, &format!("/?token={token}"))).await;
    assert!(page.status == 200 && page.headers.get("set-cookie").is_none());
    let stream = format!("/api/v1/sessions/{ONE}/stream?token={token}");
    Answer::of(instance.bare(Method::GET, &stream)).await.refuses(401, "unauthorized");
}
