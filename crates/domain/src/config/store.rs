//! `[store]`: where the instance keeps its state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ConfigReport;
use super::secret::Secret;

/// Where the instance keeps its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// `postgres://user:password@host/database`, best as a reference: `env:DATABASE_URL`. Without it the state is
    /// in SQLite files below the instance's home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Secret>,
    /// How long a start waits for PostgreSQL when it can not be reached; it exits then. Without it a start waits until
    /// PostgreSQL is there, and `/ready` says so meanwhile. 0 exits at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u32>,
}

impl StoreConfig {
    pub(super) fn report_errors(&self, report: &mut ConfigReport) {
        let known = |url: &Secret| {
            ["postgres://", "postgresql://"].iter().any(|scheme| url.expose().starts_with(scheme))
        };
        if self.url.as_ref().is_some_and(|url| !known(url)) {
            let hint = "leave it out to use SQLite below the instance's home";
            report.add_error("store.url", "this is not a postgres:// address", hint);
        }
    }
}
