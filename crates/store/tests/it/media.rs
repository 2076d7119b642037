use polyclaw_domain::media::{AttachmentImage, Image, MediaHash};
use polyclaw_domain::message::{MessageAttachment, MessagePart, attached_images, to_stored_parts};
use polyclaw_store::broadcasts::{self, Broadcast};
use polyclaw_store::messages::{self, SessionMessage};
use polyclaw_store::{Db, Result, media, sessions};

use crate::rounds::round;
use crate::rows::{key, message, with_sessions};

on_every_engine!(
    image_of_several_messages_is_stored_once,
    image_is_removed_with_its_last_message,
    refused_message_leaves_no_image,
    message_can_reference_an_image_of_another_message,
    broadcast_image_is_kept_until_the_broadcast_is_closed,
);

fn image(content: &str) -> Image {
    Image::from_bytes(format!("GIF89a{content}").into_bytes()).unwrap()
}

fn showing(id: &str, peer: &str, ticket: i64, shown: &[Image]) -> SessionMessage {
    let parts = shown
        .iter()
        .map(|one| MessagePart::Attachment(MessageAttachment::from_image("a.gif", one.clone())))
        .collect();
    SessionMessage { parts, ..message(id, peer, ticket, "t") }
}

async fn store(db: &Db, rows: Vec<SessionMessage>) -> Result<()> {
    db.write(move |tx| rows.iter().try_for_each(|row| messages::insert(tx, row))).await
}

async fn is_kept(db: &Db, image: &Image) -> Result<bool> {
    let hash = image.hash().clone();
    let found = db.read(move |tx| media::load_image(tx, &hash)).await?;
    assert!(found.as_ref().is_none_or(|found| found == image));
    Ok(found.is_some())
}

async fn image_of_several_messages_is_stored_once(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    let (cat, dog) = (image("cat"), image("dog"));
    let rows = vec![
        showing("m1", "p", 1, &[cat.clone(), cat.clone(), dog.clone()]),
        showing("m2", "q", 1, std::slice::from_ref(&cat)),
    ];
    store(&db, rows).await?;
    assert!(is_kept(&db, &cat).await? && is_kept(&db, &dog).await?);
    let found = db.read(|tx| messages::list_all(tx, &key("p"), 0, 9)).await?;
    let hashes: Vec<MediaHash> = attached_images(&found[0].parts).map(|media| media.hash().clone()).collect();
    assert_eq!(hashes, [cat.hash().clone(), cat.hash().clone(), dog.hash().clone()]);
    assert!(attached_images(&found[0].parts).all(|media| matches!(media, AttachmentImage::Stored(_))));
    assert_eq!(db.write(media::remove_unused).await?, 0);
    Ok(())
}

async fn image_is_removed_with_its_last_message(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    let (shared, own) = (image("shared"), image("own"));
    let rows = vec![
        showing("m1", "p", 1, &[shared.clone(), own.clone()]),
        showing("m2", "q", 1, std::slice::from_ref(&shared)),
    ];
    store(&db, rows).await?;
    db.write(|tx| sessions::delete(tx, &key("p"))).await?;
    assert_eq!(db.write(media::remove_unused).await?, 1);
    assert!(is_kept(&db, &shared).await? && !is_kept(&db, &own).await?);
    db.write(|tx| sessions::delete(tx, &key("q"))).await?;
    assert_eq!(db.write(media::remove_unused).await?, 1);
    assert!(!is_kept(&db, &shared).await?);
    Ok(())
}

async fn refused_message_leaves_no_image(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let cat = image("cat");
    store(&db, vec![message("m1", "p", 1, "t")]).await?;
    assert!(
        store(&db, vec![showing("m2", "p", 1, std::slice::from_ref(&cat))]).await.is_err(),
        "same ticket"
    );
    assert!(!is_kept(&db, &cat).await?);
    Ok(())
}

async fn message_can_reference_an_image_of_another_message(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    let cat = image("cat");
    let first = showing("m1", "p", 1, std::slice::from_ref(&cat));
    let again = SessionMessage { parts: to_stored_parts(&first.parts), ..message("m2", "q", 1, "t") };
    store(&db, vec![first, again]).await?;
    db.write(|tx| sessions::delete(tx, &key("p"))).await?;
    assert_eq!(db.write(media::remove_unused).await?, 0);
    assert!(is_kept(&db, &cat).await?);
    Ok(())
}

async fn broadcast_image_is_kept_until_the_broadcast_is_closed(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    let cat = image("cat");
    let shown = Broadcast { parts: showing("m", "p", 1, &[cat.clone(), cat.clone()]).parts, ..round("r") };
    db.write(move |tx| broadcasts::insert(tx, &shown)).await?;
    for (id, peer) in [("m1", "p"), ("m2", "q")] {
        let parts = db.read(|tx| broadcasts::get(tx, "r")).await?.unwrap().parts;
        store(&db, vec![SessionMessage { parts, ..message(id, peer, 1, "t") }]).await?;
        db.write(move |tx| sessions::delete(tx, &key(peer))).await?;
        assert_eq!(db.write(media::remove_unused).await?, 0, "{peer}");
        assert!(is_kept(&db, &cat).await?, "{peer}");
    }
    db.write(|tx| broadcasts::close(tx, "r")).await?;
    assert_eq!(db.write(media::remove_unused).await?, 1);
    Ok(())
}
