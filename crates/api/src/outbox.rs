//! Outbound messages of channels, including held ones that a person must decide about.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::OutboxState;
use polyclaw_domain::id::{OutboxId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListOutboxQuery {
    /// Only messages in this state: `pending`, `sending`, `sent`, `unknown` or `failed`.
    #[param(value_type = Option<String>)]
    pub state: Option<OutboxState>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct OutboxList {
    /// The messages of this page.
    pub outbox: Vec<OutboxMessageView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct OutboxMessageView {
    /// The id of the message.
    #[schema(value_type = String)]
    pub id: OutboxId,
    /// The session that sends it.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The turn that sends it.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// The part number. Long replies are split into several messages.
    pub part: usize,
    /// The destination (channel, account, peer and thread), copied from the message this one answers.
    #[schema(value_type = Object)]
    pub address: ChatAddress,
    /// The text of the message.
    pub text: String,
    /// `pending`, `sending`, `sent`, `unknown` (it may or may not have arrived) or `failed`.
    #[schema(value_type = String)]
    pub state: OutboxState,
    /// How often sending was attempted.
    pub attempts: u32,
    /// The platform's id of the message, once known.
    pub platform_id: Option<String>,
    /// The last error.
    pub error: Option<String>,
    /// When sending is given up.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Millis,
    /// When the message was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the message was last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
}
