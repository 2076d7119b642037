//! One-time login codes and browser logins.

use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Deserialize, Serialize, ToSchema)]
pub struct LoginLink {
    /// A one-time code that logs in one browser.
    pub code: String,
    /// The path that logs in, relative to the address of the server.
    pub path: String,
    /// When the code expires.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct BrowserLoginList {
    /// The active logins.
    pub logins: Vec<BrowserLogin>,
}

/// A browser login.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct BrowserLogin {
    /// The id of the login.
    pub id: String,
    /// The id of the token that created the login. Null for the server's own token.
    pub token: Option<String>,
    /// The user agent of the browser.
    pub client: String,
    /// Whether this call is made with this login.
    pub current: bool,
    /// When the browser logged in.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the login was last used, to within ten minutes.
    #[schema(value_type = String, format = DateTime)]
    pub used_at: Millis,
    /// When the login expires.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Millis,
}

#[derive(Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedeemCodeBody {
    /// The one-time code.
    pub code: String,
}

#[derive(Clone, Deserialize, Serialize, ToSchema)]
pub struct StartedLogin {
    /// The id of the login.
    pub id: String,
    /// The half of the login that the page stores and sends in `Polyclaw-Login`.
    pub key: String,
    /// When the login expires.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Millis,
}
