//! The collector that spans are sent to, from the config or the standard environment variables.

use polyclaw_domain::config::{Secret, TelemetryConfig};

use crate::failure::CommandFailure;

pub struct CollectorTarget {
    pub url: String,
    pub headers: Vec<(String, Secret)>,
    pub service: String,
}

impl CollectorTarget {
    /// Returns `None` if no collector is configured.
    pub fn from_settings(
        settings: &TelemetryConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, CommandFailure> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let below = |url: String| format!("{}/v1/traces", url.trim_end_matches('/'));
        let url = (settings.endpoint.clone().map(below))
            .or_else(|| variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
            .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(below));
        let Some(url) = url else { return Ok(None) };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(CommandFailure::failed("telemetry", "the collector's address is not an HTTP URL")
                .hint("OTEL_EXPORTER_OTLP_ENDPOINT must start with http:// or https://"));
        }
        let service = settings.service_name.clone().or_else(|| variable("OTEL_SERVICE_NAME"));
        let listed = variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
        let own = settings.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        let headers = if settings.headers.is_empty() { parse_headers(&listed) } else { own.collect() };
        Ok(Some(Self { url, headers, service: service.unwrap_or_else(|| "polyclaw".to_owned()) }))
    }
}

/// Parses `name=value,name=value`.
fn parse_headers(text: &str) -> Vec<(String, Secret)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim().to_owned(), Secret::new(value.trim())))
    };
    text.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(settings: &TelemetryConfig, variables: &[(&str, &str)]) -> Option<CollectorTarget> {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
        CollectorTarget::from_settings(settings, |name| value(name).map(|(_, value)| (*value).to_owned()))
            .unwrap()
    }

    #[test]
    fn collector_is_disabled_without_an_endpoint() {
        assert!(find(&TelemetryConfig::default(), &[]).is_none());
        let named = TelemetryConfig { endpoint: Some("http://a:4318/".into()), ..TelemetryConfig::default() };
        assert_eq!(find(&named, &[]).unwrap().url, "http://a:4318/v1/traces");
        assert!(find(&named, &[("OTEL_SDK_DISABLED", "true")]).is_none());
    }

    #[test]
    fn standard_otel_variables_are_read() {
        let found = find(
            &TelemetryConfig::default(),
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "x-key = k1, other=2"),
                ("OTEL_SERVICE_NAME", "claw"),
            ],
        );
        let CollectorTarget { url, headers, service } = found.unwrap();
        assert_eq!((url.as_str(), service.as_str()), ("https://c.example/v1/traces", "claw"));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("x-key", "k1"), ("other", "2")]);
        let traces = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/own")];
        assert_eq!(find(&TelemetryConfig::default(), &traces).unwrap().url, "http://t/own");
    }
}
