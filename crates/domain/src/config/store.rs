//! `[store]`: the database of the instance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ConfigReport;
use super::secret::Secret;

/// The database of the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// `postgres://user:password@host/database`, preferably as a reference: `env:DATABASE_URL`. If omitted, the state
    /// is in SQLite files below the instance's home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Secret>,
    /// How long startup waits for an unreachable PostgreSQL before it exits, in seconds. If omitted, it waits until
    /// PostgreSQL is available, and `/ready` reports that. 0 exits immediately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u32>,
}

impl StoreConfig {
    pub(super) fn report_errors(&self, report: &mut ConfigReport) {
        let known = |url: &Secret| {
            ["postgres://", "postgresql://"].iter().any(|scheme| url.expose().starts_with(scheme))
        };
        if self.url.as_ref().is_some_and(|url| !known(url)) {
            let hint = "omit it to use SQLite in the instance's home";
            report.add_error("store.url", "this is not a postgres:// URL", hint);
        }
    }
}
