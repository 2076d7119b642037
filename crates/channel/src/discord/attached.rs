//! What is attached to a message. Discord's addresses of files hold no secret of ours, so they are passed on.

use polyclaw_domain::channel::AttachmentRef;
use reqwest::Url;

use super::api::Api;
use super::event::File;
use crate::attachment::{self, Content, MAX_COUNT};

pub(super) fn attached(files: &[File]) -> Vec<AttachmentRef> {
    let attached = |file: &File| {
        let url = Url::parse(&file.url).ok().map(String::from);
        AttachmentRef {
            name: file.filename.clone(),
            media_type: file.content_type.clone(),
            size: file.size,
            handle: url.clone(),
            url,
        }
    };
    files.iter().take(MAX_COUNT).map(attached).collect()
}

pub(super) async fn fetch(api: &Api, attached: &AttachmentRef) -> Option<Content> {
    let url = Url::parse(attached.handle.as_ref()?).ok().filter(|url| api.hosts(url))?;
    attachment::read(attached, api.download(url)).await
}
