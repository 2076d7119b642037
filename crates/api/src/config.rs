//! Reloads the config of the running instance.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ConfigReloadResult {
    /// Sections that take effect at the next start. All others apply from the next turn.
    pub restart_required: Vec<String>,
}
