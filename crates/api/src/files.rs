//! Bootstrap files of agents. An agent's own file replaces the one shared by all agents.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AgentFile {
    /// The name of the file.
    pub name: String,
    /// The content of the agent's own file. Null if it has none.
    pub own: Option<String>,
    /// The content used without an own file: from the agent's workspace or shared by all agents.
    pub shared: Option<String>,
    /// Whether the agent uses its own files, as `workspace.overlay` of its spec says.
    pub in_use: bool,
    /// The version of the own file, for `If-Match`.
    pub etag: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentFileBody {
    /// The new content, at most 256 KiB. Null deletes the agent's own file.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required)]
    pub text: Option<String>,
}
