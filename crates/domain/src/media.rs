//! Images from people and tools. Their type is detected from their first bytes, never taken from the sender.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hex::encode_hex;

/// Maximum size of an image, in bytes.
pub const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;
/// Maximum number of images of one message.
pub const MAX_IMAGES_PER_MESSAGE: usize = 10;
/// Estimated tokens of one image. Providers differ, and scale large images down to about this.
pub const TOKENS_PER_IMAGE: usize = 1_600;
/// Maximum number of images in one model call; older ones are described in words.
pub const MAX_SHOWN_IMAGES: usize = 8;
/// Maximum total size of these images, in bytes.
pub const MAX_SHOWN_IMAGE_BYTES: usize = 20 * 1024 * 1024;

/// The hash of an image's bytes, so that the same image is stored once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct MediaHash(String);

impl MediaHash {
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(encode_hex(&Sha256::digest(bytes)))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 64 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for MediaHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an image hash"))
    }
}

/// Image types that every vision model accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl ImageKind {
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// Why bytes are rejected as an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedImage {
    #[error("unsupported image: only PNG, JPEG, GIF and WebP are supported")]
    Unknown,
    #[error("the image has {0} bytes; at most {MAX_IMAGE_BYTES} are allowed")]
    TooLarge(usize),
    #[error("invalid base64 data")]
    Encoding,
}

/// An image with its bytes. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    hash: MediaHash,
    kind: ImageKind,
    bytes: Arc<[u8]>,
}

impl Image {
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Self, UnsupportedImage> {
        let bytes = bytes.into();
        if bytes.len() > MAX_IMAGE_BYTES {
            return Err(UnsupportedImage::TooLarge(bytes.len()));
        }
        let kind = ImageKind::from_bytes(&bytes).ok_or(UnsupportedImage::Unknown)?;
        Ok(Self { hash: MediaHash::from_bytes(&bytes), kind, bytes })
    }

    /// Decodes base64 with or without padding.
    pub fn from_base64(text: &str) -> Result<Self, UnsupportedImage> {
        let most = MAX_IMAGE_BYTES.div_ceil(3) * 4;
        if text.len() > most {
            return Err(UnsupportedImage::TooLarge(text.len() / 4 * 3));
        }
        let bytes = STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text));
        Self::from_bytes(bytes.map_err(|_| UnsupportedImage::Encoding)?)
    }

    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }

    /// Returns `data:<type>;base64,…`.
    pub fn data_url(&self) -> String {
        let mut url = format!("data:{};base64,", self.kind.media_type());
        STANDARD.encode_string(&self.bytes, &mut url);
        url
    }

    pub fn hash(&self) -> &MediaHash {
        &self.hash
    }

    pub fn media_type(&self) -> &'static str {
        self.kind.media_type()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Logs show the type and size of an image, not its contents.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes)", self.kind.media_type(), self.bytes.len())
    }
}

impl Serialize for Image {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_base64(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The image of an attachment, before or after it is stored. It is serialised as its hash.
#[derive(Clone, Debug)]
pub enum AttachmentImage {
    Fresh(Image),
    Stored(MediaHash),
}

impl AttachmentImage {
    /// Returns the stored form, without the bytes.
    pub fn to_stored(&self) -> Self {
        Self::Stored(self.hash().clone())
    }

    pub fn hash(&self) -> &MediaHash {
        match self {
            Self::Fresh(image) => image.hash(),
            Self::Stored(hash) => hash,
        }
    }
}

impl PartialEq for AttachmentImage {
    fn eq(&self, other: &Self) -> bool {
        self.hash() == other.hash()
    }
}

impl Eq for AttachmentImage {}

impl Serialize for AttachmentImage {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.hash().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AttachmentImage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        MediaHash::deserialize(deserializer).map(Self::Stored)
    }
}

/// The images available for a prompt.
pub type ImageMap = HashMap<MediaHash, Image>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n a small one";

    #[test]
    fn image_type_is_detected_from_first_bytes() {
        let table: [(&[u8], Option<&str>); 9] = [
            (PNG, Some("image/png")),
            (b"\xff\xd8\xff\xe0 jfif", Some("image/jpeg")),
            (b"GIF89a...", Some("image/gif")),
            (b"GIF87a...", Some("image/gif")),
            (b"RIFF\x10\x00\x00\x00WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x10\x00\x00\x00WAVEfmt ", None),
            (b"<svg onload='alert(1)'>", None),
            (b"%PDF-1.7", None),
            (b"", None),
        ];
        for (bytes, media_type) in table {
            let read = Image::from_bytes(bytes).ok();
            assert_eq!(read.as_ref().map(Image::media_type), media_type, "{bytes:?}");
        }
    }

    #[test]
    fn image_size_limit_is_enforced() {
        let large = |bytes: usize| {
            let mut image = PNG.to_vec();
            image.resize(bytes, 0);
            image
        };
        assert!(Image::from_bytes(large(MAX_IMAGE_BYTES)).is_ok());
        assert_eq!(
            Image::from_bytes(large(MAX_IMAGE_BYTES + 1)),
            Err(UnsupportedImage::TooLarge(MAX_IMAGE_BYTES + 1))
        );
        let largest = STANDARD.encode(large(MAX_IMAGE_BYTES));
        assert!(Image::from_base64(&largest).is_ok());
        assert!(matches!(Image::from_base64(&(largest + "AAAA")), Err(UnsupportedImage::TooLarge(_))));
    }

    #[test]
    fn base64_image_parses_with_and_without_padding() {
        let image = Image::from_bytes(PNG).unwrap();
        let text = image.to_base64();
        assert_eq!(Image::from_base64(&text), Ok(image.clone()));
        assert_eq!(Image::from_base64(text.trim_end_matches('=')), Ok(image.clone()));
        assert_eq!(Image::from_base64("!!"), Err(UnsupportedImage::Encoding));
        assert_eq!(Image::from_base64("aGVsbG8="), Err(UnsupportedImage::Unknown));
        assert!(image.data_url().starts_with("data:image/png;base64,iVBORw0KGgo"));
    }

    #[test]
    fn image_serializes_as_hash_and_debug_hides_bytes() {
        let image = Image::from_bytes(PNG).unwrap();
        let text = serde_json::to_string(&AttachmentImage::Fresh(image.clone())).unwrap();
        assert_eq!(text, format!("\"{}\"", MediaHash::from_bytes(PNG).as_str()));
        assert_eq!(
            serde_json::from_str::<AttachmentImage>(&text).unwrap(),
            AttachmentImage::Fresh(image.clone())
        );
        assert!(serde_json::from_str::<AttachmentImage>("\"../secret\"").is_err());
        assert_eq!(format!("{image:?}"), format!("Image(image/png, {} bytes)", PNG.len()));
    }
}
