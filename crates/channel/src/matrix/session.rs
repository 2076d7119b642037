//! Login. A configured token is used as it is. With a password, a device named after the account logs in, the same one
//! after every start, so that the homeserver still recognises transaction ids.

use polyclaw_domain::config::{self, Secret};
use reqwest::{Client, Url};
use serde_json::json;
use tokio::sync::Mutex;

use super::api::{endpoint_url, read_response};
use crate::response::{self, PlatformCallError, PlatformResponse};

#[derive(Clone)]
pub(super) struct MatrixSession {
    pub token: Secret,
    pub user: String,
    pub device: String,
}

pub(super) struct MatrixLogin {
    client: Client,
    base: Url,
    device: String,
    settings: config::MatrixConfig,
    session: Mutex<Option<MatrixSession>>,
}

impl MatrixLogin {
    pub fn new(account: &str, settings: config::MatrixConfig, client: Client, base: Url) -> Self {
        let device = format!("POLYCLAW_{}", account.to_uppercase());
        Self { client, base, device, settings, session: Mutex::new(None) }
    }

    /// Returns the session and logs in first if needed.
    pub async fn session(&self) -> Result<MatrixSession, String> {
        let mut session = self.session.lock().await;
        if let Some(session) = &*session {
            return Ok(session.clone());
        }
        let made = match (&self.settings.access_token, &self.settings.password) {
            (Some(token), _) => self.look_up_session(token).await?,
            (None, Some(password)) => self.log_in(password).await?,
            (None, None) => return Err("neither access_token nor password is set".to_owned()),
        };
        Ok(session.insert(made).clone())
    }

    /// Discards a token that the homeserver rejected. Returns whether a new one can be requested.
    pub async fn forget_token(&self, token: &Secret) -> bool {
        let mut session = self.session.lock().await;
        if session.as_ref().is_some_and(|session| session.token == *token) {
            *session = None;
        }
        self.settings.password.is_some()
    }

    async fn look_up_session(&self, token: &Secret) -> Result<MatrixSession, String> {
        let url = endpoint_url(&self.base, &["v3", "account", "whoami"]);
        let response = self
            .client
            .get(url)
            .bearer_auth(token.expose())
            .send()
            .await
            .map_err(response::transport_error_message)?;
        self.session_from_response(read_response(response).await, Some(token.clone()))
    }

    async fn log_in(&self, password: &Secret) -> Result<MatrixSession, String> {
        let body = json!({
            "type": "m.login.password",
            "identifier": { "type": "m.id.user", "user": self.settings.user_id },
            "password": password.expose(),
            "device_id": self.device,
            "initial_device_display_name": "Polyclaw",
        });
        let url = endpoint_url(&self.base, &["v3", "login"]);
        let response =
            self.client.post(url).json(&body).send().await.map_err(response::transport_error_message)?;
        self.session_from_response(read_response(response).await, None)
    }

    fn session_from_response(
        &self,
        answer: PlatformResponse,
        token: Option<Secret>,
    ) -> Result<MatrixSession, String> {
        let setting = if token.is_some() { "access_token" } else { "password" };
        let body = answer.into_result().map_err(|refusal| login_refusal_reason(&refusal, setting))?;
        let text = |name: &str| body[name].as_str().map(str::to_owned).filter(|text| !text.is_empty());
        let token = token.or_else(|| text("access_token").map(Secret::new));
        let (Some(token), Some(user), Some(device)) = (token, text("user_id"), text("device_id")) else {
            return Err("login failed: the homeserver did not return the session's user".to_owned());
        };
        if user != self.settings.user_id {
            let named = &self.settings.user_id;
            return Err(format!(
                "the token belongs to {user}, but the config names {named}: correct the user_id"
            ));
        }
        Ok(MatrixSession { token, user, device })
    }
}

/// Describes why login failed and names the setting to correct.
fn login_refusal_reason(refusal: &PlatformCallError, setting: &str) -> String {
    let reason = &refusal.reason;
    match refusal.status.map(|status| status.as_u16()) {
        Some(401 | 403) => format!("login failed: {reason}: correct the {setting}"),
        Some(404) => format!("login failed: {reason}: correct the homeserver"),
        _ => format!("login failed: {reason}"),
    }
}

/// Whether the response reports an unknown token.
pub(super) fn is_unknown_token(answer: &PlatformResponse) -> bool {
    answer.status == 401 && answer.body["errcode"] == "M_UNKNOWN_TOKEN"
}
