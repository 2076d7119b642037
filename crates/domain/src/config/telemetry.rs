//! `[telemetry]`: export of traces.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ConfigReport;
use super::secret::Secret;

/// Traces for an OpenTelemetry collector: when turns, model calls and tool calls began and ended, and what caused them.
/// They never contain message text. Disabled unless an endpoint is set here or in `OTEL_EXPORTER_OTLP_ENDPOINT`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// The collector's URL for OTLP over HTTP, such as `http://127.0.0.1:4318`; `/v1/traces` is appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Headers of every request, such as an API key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// The service name of the spans. Defaults to `polyclaw`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
}

impl TelemetryConfig {
    pub(super) fn report_errors(&self, report: &mut ConfigReport) {
        let fits = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if self.endpoint.as_ref().is_some_and(|url| !fits(url)) {
            let hint = "use a URL like http://127.0.0.1:4318";
            report.add_error("telemetry.endpoint", "this is not an http:// or https:// URL", hint);
        }
    }
}
