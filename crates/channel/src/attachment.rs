//! What people attach. A small text file is read into the message; of anything else the message says what it is, and
//! where, if that address is no secret.

use std::time::Duration;

use polyclaw_domain::message::{Attachment, Part};
use reqwest::RequestBuilder;

use crate::answer;

/// Largest file that is read into a message, in bytes.
pub(crate) const MAX_TEXT: usize = 64 * 1024;
/// Longest wait for a file: whatever is written next waits for it too.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most attachments of one message that are looked at.
pub(crate) const MAX_COUNT: usize = 10;

const TEXT_TYPES: [&str; 7] = ["json", "xml", "yaml", "toml", "javascript", "x-sh", "sql"];
const TEXT_ENDINGS: [&str; 22] = [
    "txt", "md", "csv", "tsv", "log", "json", "jsonl", "xml", "yaml", "yml", "toml", "ini", "rs", "py", "js",
    "ts", "go", "c", "h", "java", "sh", "sql",
];

/// A file as its platform describes it.
pub(crate) struct File {
    pub name: String,
    /// Empty where the platform does not say.
    pub media_type: String,
    /// In bytes, where the platform says.
    pub size: Option<u64>,
    /// Where everybody may fetch it.
    pub url: Option<String>,
}

impl File {
    /// Whether it is worth fetching: text by its type, or by its name where the type says nothing; and not too large.
    pub fn is_short_text(&self) -> bool {
        let short = self.size.is_none_or(|size| usize::try_from(size).is_ok_and(|size| size <= MAX_TEXT));
        short && is_text(&self.media_type, &self.name)
    }

    /// `text`: what it says, if it was fetched.
    pub fn into_part(self, text: Option<String>) -> Part {
        let media_type = match self.media_type.is_empty() {
            true => "application/octet-stream".to_owned(),
            false => self.media_type,
        };
        Part::Attachment(Attachment { name: self.name, media_type, url: self.url, text })
    }
}

fn is_text(media_type: &str, name: &str) -> bool {
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    match media_type.split_once('/') {
        Some(("text", _)) => true,
        Some(("application", kind)) if kind != "octet-stream" => {
            TEXT_TYPES.iter().any(|text| kind == *text || kind.ends_with(&format!("+{text}")))
        }
        Some(("application", _)) | None => {
            let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
            ending.is_some_and(|ending| TEXT_ENDINGS.contains(&ending.as_str()))
        }
        Some(_) => false,
    }
}

/// The file as text; nothing if it does not come whole, is too large, or is no text after all.
pub(crate) async fn fetch(request: RequestBuilder) -> Option<String> {
    // A platform that wants somebody to log in answers with another address, and a page there.
    let response =
        request.timeout(PATIENCE).send().await.ok().filter(|response| response.status().is_success())?;
    let text = String::from_utf8(answer::bounded(response, MAX_TEXT).await?).ok()?;
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_known_by_its_type_or_else_by_its_name() {
        let table = [
            ("text/plain", "x", true),
            ("text/csv; charset=utf-8", "x", true),
            ("application/json", "x", true),
            ("application/ld+json", "x", true),
            ("application/pdf", "notes.txt", false),
            ("image/png", "notes.txt", false),
            ("application/octet-stream", "main.RS", true),
            ("", "notes.md", true),
            ("", "notes", false),
            ("", "photo.jpg", false),
        ];
        for (media_type, name, expected) in table {
            assert_eq!(is_text(media_type, name), expected, "{media_type} {name}");
        }
    }
}
