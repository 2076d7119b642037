//! `image_view`: what it shows, and what it can not be led to.

use std::fs;
use std::os::unix::fs::symlink;

use polyclaw_domain::media::{Image, MAX_IMAGE_BYTES};
use serde_json::json;

use crate::Bench;

const GIF: &[u8] = b"GIF89a and so on";

#[tokio::test]
async fn workspace_image_is_shown_with_its_name() {
    let bench = Bench::new();
    fs::create_dir(bench.path("shots")).unwrap();
    fs::write(bench.path("shots/a.png"), GIF).unwrap();
    let outcome = bench.call("image_view", json!({ "path": "shots/a.png" })).await;
    assert!(!outcome.is_error, "{}", outcome.content);
    assert_eq!(outcome.content, "a.png: image/gif, 16 bytes");
    assert_eq!(outcome.images, [("a.png".to_owned(), Image::from_bytes(GIF).unwrap())]);
}

#[tokio::test]
async fn images_outside_workspace_are_refused() {
    let bench = Bench::new();
    let outside = bench.home.path().join("private.gif");
    fs::write(&outside, GIF).unwrap();
    symlink(&outside, bench.path("link.gif")).unwrap();
    symlink(bench.home.path(), bench.path("out")).unwrap();
    for path in ["link.gif", "out/private.gif", "../private.gif", outside.to_str().unwrap()] {
        let outcome = bench.call("image_view", json!({ "path": path })).await;
        assert!(outcome.is_error && outcome.images.is_empty(), "{path}");
        assert!(outcome.content.contains("outside the workspace"), "{}", outcome.content);
    }
}

#[tokio::test]
async fn image_name_with_line_break_stays_on_one_line() {
    let bench = Bench::new();
    fs::write(bench.path("a\nb.gif"), GIF).unwrap();
    let outcome = bench.call("image_view", json!({ "path": "a\nb.gif" })).await;
    assert_eq!(outcome.content.lines().count(), 1, "{}", outcome.content);
    assert_eq!(outcome.images[0].0, "a\u{fffd}b.gif");
}

#[tokio::test]
async fn invalid_or_oversized_images_are_refused() {
    let bench = Bench::new();
    fs::write(bench.path("page.png"), "<svg onload=alert(1)>").unwrap();
    fs::write(bench.path("huge.gif"), [GIF, &vec![0; MAX_IMAGE_BYTES]].concat()).unwrap();
    let text = bench.refused("image_view", json!({ "path": "page.png" })).await;
    assert!(text.contains("not a PNG, JPEG, GIF or WebP image"), "{text}");
    let text = bench.refused("image_view", json!({ "path": "huge.gif" })).await;
    assert!(text.contains("the limit is 5242880"), "{text}");
    bench.refused("image_view", json!({ "path": "." })).await;
    bench.refused("image_view", json!({ "path": "gone.png" })).await;
}
