//! Reads local files as message attachments.

use std::path::Path;

use polyclaw_api::attachments::AttachmentBody;
use polyclaw_domain::media::{Image, UnsupportedImage};

use crate::failure::CommandFailure;

/// Reads a file into the API's attachment format: an image, or text.
pub fn read_attachment(path: &Path) -> Result<AttachmentBody, CommandFailure> {
    let refuse = |why: String| CommandFailure::usage(format!("cannot attach {}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let attachment = |media_type: &str| AttachmentBody {
        name: name.clone(),
        media_type: media_type.to_owned(),
        text: None,
        url: None,
        data: None,
    };
    match Image::from_bytes(bytes.as_slice()) {
        Ok(image) => Ok(AttachmentBody { data: Some(image.to_base64()), ..attachment(image.media_type()) }),
        Err(refusal) => match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => {
                Ok(AttachmentBody { text: Some(text), ..attachment("text/plain") })
            }
            _ => Err(refuse(match refusal {
                UnsupportedImage::TooLarge(_) => format!("it is {refusal}"),
                _ => "it is neither text nor a PNG, JPEG, GIF or WebP image".to_owned(),
            })),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attachment_type_comes_from_content_not_file_name() {
        let home = tempfile::tempdir().unwrap();
        let attach = |name: &str, content: &[u8]| {
            std::fs::write(home.path().join(name), content).unwrap();
            read_attachment(&home.path().join(name)).map(|attached| json!(attached))
        };
        let image = attach("notes.txt", b"GIF89a").unwrap();
        let expected = json!({ "name": "notes.txt", "media_type": "image/gif", "data": "R0lGODlh" });
        assert_eq!(image, expected);
        let text = attach("cat.png", "a cat".as_bytes()).unwrap();
        assert_eq!(text, json!({ "name": "cat.png", "media_type": "text/plain", "text": "a cat" }));
        assert!(attach("song.mp3", b"ID3\xff\0").unwrap_err().message.contains("neither text"));
        assert!(read_attachment(&home.path().join("gone")).is_err());
    }
}
