//! Pairing of chat users: pending codes and approved senders.

use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct PairingList {
    /// Pending pairings, then approved senders.
    pub pairings: Vec<PairingView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct PairingView {
    /// The channel, such as `telegram`.
    pub channel: String,
    /// The account the sender wrote to.
    pub account: String,
    /// The platform's id of the sender.
    pub sender: String,
    /// The sender's display name, chosen by the sender.
    pub sender_name: Option<String>,
    /// `pending` or `approved`.
    pub state: String,
    /// The pairing code that the sender got. Null once approved.
    pub code: Option<String>,
    /// When the sender first wrote.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the code expires. Null once approved.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Millis>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovePairingBody {
    /// The code that the sender shows, in upper or lower case.
    pub code: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RevokePairingBody {
    /// The channel, such as `telegram`.
    pub channel: String,
    /// The account the sender wrote to.
    pub account: String,
    /// The platform's id of the sender.
    pub sender: String,
}
