//! Posts events to an HTTP endpoint. Bodies are signed like webhook replies.

use std::fmt;
use std::time::Duration;

use polyclaw_domain::config::Secret;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};

use crate::Error;
use crate::client::{PlatformClients, parse_base_url};
use crate::signature;

pub struct EventHook {
    url: Url,
    secret: Option<Secret>,
    client: Client,
}

impl EventHook {
    pub fn new(url: &str, secret: Option<Secret>, timeout: Duration) -> Result<Self, Error> {
        let url = parse_base_url(url).ok_or(Error::HookUrl)?;
        let client = PlatformClients::new(timeout)?.client_for(&url);
        Ok(Self { url, secret, client })
    }

    /// Returns the reason if the endpoint did not accept the event.
    pub async fn post_event(&self, body: Vec<u8>) -> Result<(), String> {
        let mut request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(secret) = &self.secret {
            request =
                request.header(signature::SIGNATURE_HEADER, signature::signature_header_value(secret, &body));
        }
        // The URL may contain a secret.
        let answer = request.body(body).send().await.map_err(|error| error.without_url().to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the hook responded with status {status}")),
        }
    }
}

impl fmt::Debug for EventHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hook({})", self.url.host_str().unwrap_or_default())
    }
}
