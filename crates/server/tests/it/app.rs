use reqwest::Method;

use crate::instance::{Answer, Instance};

/// The page, where it was built before the tests were; what to do, where it was not.
#[tokio::test]
async fn command_center_is_served_or_explains_build() {
    let instance = Instance::start().await;
    let folder = instance.bare(Method::GET, "/app").send().await.unwrap();
    assert_eq!((folder.status().as_u16(), &folder.headers()["location"]), (308, &"/app/".parse().unwrap()));
    let page = Answer::of(instance.bare(Method::GET, "/app/")).await;
    if page.status == 503 {
        assert!(page.text.contains("make web"), "{}", page.text);
        return;
    }
    page.ok();
    assert_eq!(page.headers["cache-control"], "no-cache");
    assert!(page.text.contains("<div id=\"app\">") && !page.text.contains("<script>"), "{}", page.text);
    let script = page.text.split("src=\"./").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let plain = Answer::of(instance.bare(Method::GET, &format!("/app/{script}"))).await;
    plain.ok();
    assert!(plain.headers["cache-control"].to_str().unwrap().contains("immutable"));
    let packed = instance.bare(Method::GET, &format!("/app/{script}")).header("accept-encoding", "gzip");
    // Of itself the client unpacks what it gets.
    let client = reqwest::Client::builder().no_gzip().build().unwrap();
    let packed = client.execute(packed.build().unwrap()).await.unwrap();
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert!(packed.bytes().await.unwrap().len() < plain.text.len());
    for one in [&page, &plain] {
        let policy = one.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
    }
}

#[tokio::test]
async fn unknown_page_files_are_not_served() {
    let instance = Instance::start().await;
    for none in ["/app/none.js", "/app/assets/", "/app/..%2fchat.js", "/app/index.html.gz"] {
        Answer::of(instance.bare(Method::GET, none)).await.refuses(404, "unknown_route");
    }
}
