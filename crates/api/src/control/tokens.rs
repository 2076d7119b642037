//! Scoped access tokens, and one-time login links for browsers.

use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TokenList {
    /// The tokens of this page.
    pub tokens: Vec<TokenView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    /// The id of the token.
    pub id: String,
    /// The name of the token.
    pub name: String,
    /// The access of the token: `read`, `operate` or `admin`.
    pub scope: String,
    /// When the token was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the token was revoked. Null if it is valid.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Millis>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// A name for people, such as the owner or the purpose.
    pub name: String,
    /// The access of the token: `read`, `operate` or `admin`.
    #[schema(value_type = String, pattern = "^(read|operate|admin)$")]
    pub scope: TokenAccess,
}

#[derive(Clone, Deserialize, Serialize, ToSchema)]
pub struct CreatedTokenView {
    #[serde(flatten)]
    pub token: TokenView,
    /// The token itself, shown only once. Null if this call repeats one with the same `Idempotency-Key`.
    pub secret: Option<String>,
}
