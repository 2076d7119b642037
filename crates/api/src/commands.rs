//! Chat commands over the API.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandBody {
    /// The command line. `/help` lists the commands.
    pub text: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct CommandReply {
    /// The reply of the command.
    pub text: String,
}
