//! Posts the messages of people on the platform to a Polyclaw at `/hooks/<name>`.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::signature;

/// A platform account that posts to a Polyclaw. Generates platform IDs, counting from 1.
pub struct WebhookSender {
    url: String,
    secret: String,
    client: reqwest::Client,
    count: AtomicU64,
}

/// A message as the platform stores it, ready for repeated delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct PlatformPost {
    /// The platform's message ID.
    pub id: String,
    body: String,
}

/// Polyclaw's response to a post.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookAnswer {
    pub status: u16,
    /// Null if it is not JSON.
    pub body: Value,
}

impl PlatformPost {
    /// Builds a post with the body `{id, peer, thread, text}`: the fields of an answer, with the platform's ID as the
    /// key.
    pub fn new(id: &str, peer: &str, text: &str) -> Self {
        let body = json!({ "id": id, "peer": peer, "thread": null, "text": text });
        Self { id: id.to_owned(), body: body.to_string() }
    }

    /// Builds a post with any body, such as one of a faulty platform.
    pub fn from_body(id: &str, body: &Value) -> Self {
        Self { id: id.to_owned(), body: body.to_string() }
    }
}

impl WebhookSender {
    /// `root` is the Polyclaw's `http://host:port`.
    ///
    /// # Panics
    /// If no HTTP client can be created.
    pub fn new(root: &str, name: &str, secret: &str) -> Self {
        Self {
            url: format!("{root}/hooks/{name}"),
            secret: secret.to_owned(),
            client: reqwest::Client::builder().no_proxy().build().expect("an HTTP client"),
            count: AtomicU64::new(0),
        }
    }

    /// Sends a new message.
    pub async fn send_text(
        &self,
        peer: &str,
        text: &str,
    ) -> Result<(PlatformPost, WebhookAnswer), reqwest::Error> {
        let id = format!("in-{}", self.count.fetch_add(1, Ordering::Relaxed) + 1);
        let post = PlatformPost::new(&id, peer, text);
        let answer = self.deliver_post(&post).await?;
        Ok((post, answer))
    }

    /// Posts a message, for the first time or again, as platforms do when they received no response.
    pub async fn deliver_post(&self, post: &PlatformPost) -> Result<WebhookAnswer, reqwest::Error> {
        self.deliver_signed(post, &signature::sign(&self.secret, post.body.as_bytes())).await
    }

    /// Posts with the given signature.
    pub async fn deliver_signed(
        &self,
        post: &PlatformPost,
        signature: &str,
    ) -> Result<WebhookAnswer, reqwest::Error> {
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header(signature::SIGNATURE_HEADER, signature)
            .body(post.body.clone());
        let response = request.send().await?;
        let status = response.status().as_u16();
        let body = response.bytes().await?;
        Ok(WebhookAnswer { status, body: serde_json::from_slice(&body).unwrap_or_default() })
    }
}
