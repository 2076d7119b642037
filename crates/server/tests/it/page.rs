use reqwest::Method;

use crate::instance::{Answer, Instance, TOKEN};

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
async fn a_link_with_the_token_leaves_a_cookie_that_lets_in() {
    let instance = Instance::start().await;
    let link = format!("/?token={}", TOKEN.replace(' ', "%20"));
    let opened = Answer::of(instance.bare(Method::GET, &link)).await;
    assert_eq!((opened.status.as_u16(), &opened.headers["location"]), (303, &"/".parse().unwrap()));
    let cookie = opened.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains("horse"));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let call = instance.bare(Method::GET, "/api/v1/sessions").header("cookie", format!("a=b; {cookie}"));
    Answer::of(call).await.ok();
    let forged = instance.bare(Method::GET, "/api/v1/sessions").header("cookie", "polyclaw_token=x");
    Answer::of(forged).await.refuses(401, "unauthorized");
    let refused = instance.bare(Method::GET, "/?token=wrong").send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert!(refused.headers()["content-type"].to_str().unwrap().starts_with("text/html"), "the page says so");
    assert!(refused.headers().get("set-cookie").is_none());
}
