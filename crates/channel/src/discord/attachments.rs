//! Attachments of Discord messages. Discord's file URLs hold no secret of ours, so messages include them.

use polyclaw_domain::channel::AttachmentRef;
use reqwest::Url;

use super::api::DiscordApi;
use super::event::DiscordAttachment;
use crate::attachment::{self, AttachmentContent, MAX_ATTACHMENTS};

pub(super) fn attachment_refs(files: &[DiscordAttachment]) -> Vec<AttachmentRef> {
    let attached = |file: &DiscordAttachment| {
        let url = Url::parse(&file.url).ok().map(String::from);
        AttachmentRef {
            name: file.filename.clone(),
            media_type: file.content_type.clone(),
            size: file.size,
            handle: url.clone(),
            url,
        }
    };
    files.iter().take(MAX_ATTACHMENTS).map(attached).collect()
}

pub(super) async fn fetch_attachment(
    api: &DiscordApi,
    attached: &AttachmentRef,
) -> Option<AttachmentContent> {
    let url = Url::parse(attached.handle.as_ref()?).ok().filter(|url| api.is_trusted_file_url(url))?;
    attachment::read_attachment(attached, api.download_request(url)).await
}
