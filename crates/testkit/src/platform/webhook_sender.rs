//! The other direction: what people on the platform write is posted to a Polyclaw at `/hooks/<name>`.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::signature;

/// One platform account that posts to a Polyclaw. It makes platform ids by itself, counting from 1.
pub struct WebhookSender {
    url: String,
    secret: String,
    client: reqwest::Client,
    count: AtomicU64,
}

/// A message as the platform keeps it, ready to be delivered once more.
#[derive(Clone, Debug, PartialEq)]
pub struct PlatformPost {
    /// The platform's message id.
    pub id: String,
    body: String,
}

/// What the Polyclaw said to a post.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookAnswer {
    pub status: u16,
    /// Null when it is not JSON.
    pub body: Value,
}

impl PlatformPost {
    /// The body is `{id, peer, thread, text}`: the fields of an answer, with the platform's id for a key.
    pub fn new(id: &str, peer: &str, text: &str) -> Self {
        let body = json!({ "id": id, "peer": peer, "thread": null, "text": text });
        Self { id: id.to_owned(), body: body.to_string() }
    }

    /// Any body at all, for what a faulty platform might post.
    pub fn from_body(id: &str, body: &Value) -> Self {
        Self { id: id.to_owned(), body: body.to_string() }
    }
}

impl WebhookSender {
    /// `root` is the Polyclaw's `http://host:port`.
    ///
    /// # Panics
    /// When no HTTP client can be made.
    pub fn new(root: &str, name: &str, secret: &str) -> Self {
        Self {
            url: format!("{root}/hooks/{name}"),
            secret: secret.to_owned(),
            client: reqwest::Client::builder().no_proxy().build().expect("an HTTP client"),
            count: AtomicU64::new(0),
        }
    }

    /// A person writes something new.
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

    /// Posts a message, for the first time or, as platforms do when they saw no answer, once more.
    pub async fn deliver_post(&self, post: &PlatformPost) -> Result<WebhookAnswer, reqwest::Error> {
        self.deliver_signed(post, &signature::sign(&self.secret, post.body.as_bytes())).await
    }

    /// Posts with a signature of the test's choice.
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
