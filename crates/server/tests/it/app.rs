use reqwest::Method;

use crate::instance::{Answer, Instance};

/// The page, where it was built before the tests were; what to do, where it was not.
#[tokio::test]
async fn the_command_center_is_served_or_says_how_to_build_it() {
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
async fn a_link_opens_the_command_center_and_a_file_that_is_none_does_not() {
    let instance = Instance::start().await;
    let link = instance.login().await.replace("/?", "/app/?");
    let opened = instance.bare(Method::GET, &link).send().await.unwrap();
    assert_eq!((opened.status().as_u16(), &opened.headers()["location"]), (303, &"/app/".parse().unwrap()));
    assert!(opened.headers()["set-cookie"].to_str().unwrap().contains("HttpOnly"));
    assert_eq!(instance.bare(Method::GET, &link).send().await.unwrap().status(), 401, "once");
    for none in ["/app/none.js", "/app/assets/", "/app/..%2fchat.js", "/app/index.html.gz"] {
        Answer::of(instance.bare(Method::GET, none)).await.refuses(404, "unknown_route");
    }
}
