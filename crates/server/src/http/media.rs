//! Images in messages.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use polyclaw_domain::media::MediaHash;
use polyclaw_store::media;

use crate::error::{Error, Result};
use crate::extract::PathId;
use crate::state::AppState;

/// Private and short-lived, because access is checked per caller and an image may be deleted.
const MEDIA_CACHE_CONTROL: &str = "private, max-age=3600";

/// Returns an image by its hash, as in `media` of an attachment in a transcript.
#[utoipa::path(get, path = "/media/{hash}", tag = "sessions",
    params(("hash" = String, Path, description = "SHA-256 of the image, in hexadecimal digits")),
    responses((status = 200, description = "The image, with the type detected from its data", body = Vec<u8>, content_type = "image/*")))]
pub async fn show_media(State(app): State<AppState>, PathId(hash): PathId) -> Result<Response> {
    let known = MediaHash::parse(&hash)
        .ok_or_else(|| Error::invalid_field("hash", "must be 64 lower-case hexadecimal digits"))?;
    let found = app.engine.db().read(move |tx| media::load_image(tx, &known)).await?;
    let image = found.ok_or(Error::UnknownMedia(hash))?;
    // A browser must treat the response as an image only, whatever is hidden in it.
    let headers = [
        (CONTENT_TYPE, image.media_type()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "sandbox"),
        (CACHE_CONTROL, MEDIA_CACHE_CONTROL),
    ];
    Ok((headers, image.bytes().to_vec()).into_response())
}
