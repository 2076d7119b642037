//! What is attached to a message. Discord's addresses of files hold no secret of ours, so they are passed on.

use polyclaw_domain::message::Part;
use reqwest::Url;

use super::api::Api;
use super::event::Attached;
use crate::attachment::{File, MAX_COUNT};

pub(super) async fn parts(api: &Api, attached: &[Attached]) -> Vec<Part> {
    let mut parts = Vec::new();
    for one in attached.iter().take(MAX_COUNT) {
        let url = Url::parse(&one.url).ok();
        let file = File {
            name: one.filename.clone(),
            media_type: one.content_type.clone(),
            size: one.size,
            url: url.as_ref().map(Url::to_string),
        };
        let content = match url.filter(|url| file.is_wanted() && api.hosts(url)) {
            Some(url) => file.fetch(api.download(url)).await,
            None => None,
        };
        parts.push(file.into_part(content));
    }
    parts
}
