//! Encodes spans as OTLP JSON: IDs in hexadecimal, times in nanoseconds as text, typed attribute values.

use polyclaw_domain::span::{Span, SpanAttribute, SpanKind};
use polyclaw_domain::time::Millis;
use serde_json::{Value, json};

/// Builds one export request.
pub fn export_request(service: &str, spans: &[Span]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            attribute_json("service.name", &SpanAttribute::from(service)),
            attribute_json("service.version", &SpanAttribute::from(version)),
        ] },
        "scopeSpans": [{
            "scope": { "name": "polyclaw", "version": version },
            "spans": spans.iter().map(span_json).collect::<Vec<_>>(),
        }],
    }] })
}

fn span_json(span: &Span) -> Value {
    let mut attributes: Vec<Value> =
        span.attributes.iter().map(|(name, fact)| attribute_json(name, fact)).collect();
    attributes.extend(
        span.error.iter().map(|code| attribute_json("error.type", &SpanAttribute::from(code.as_str()))),
    );
    let links = span.links.iter().map(|(trace, mark)| {
        json!({ "traceId": format!("{:032x}", trace.0), "spanId": format!("{:016x}", mark.0) })
    });
    json!({
        "traceId": format!("{:032x}", span.trace.0),
        "spanId": format!("{:016x}", span.id.0),
        "parentSpanId": span.parent.map(|mark| format!("{:016x}", mark.0)).unwrap_or_default(),
        "name": span.name,
        "kind": span_kind(span.kind),
        "startTimeUnixNano": unix_nanos(span.began),
        "endTimeUnixNano": unix_nanos(span.ended),
        "attributes": attributes,
        "links": links.collect::<Vec<_>>(),
        "status": if span.error.is_some() { json!({ "code": 2 }) } else { json!({}) },
    })
}

fn span_kind(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Client => 3,
        SpanKind::Consumer => 5,
    }
}

fn unix_nanos(time: Millis) -> String {
    (i128::from(time.0) * 1_000_000).to_string()
}

fn attribute_json(name: &str, fact: &SpanAttribute) -> Value {
    json!({ "key": name, "value": attribute_value(fact) })
}

fn attribute_value(fact: &SpanAttribute) -> Value {
    match fact {
        SpanAttribute::Text(text) => json!({ "stringValue": text }),
        SpanAttribute::Count(count) => json!({ "intValue": count.to_string() }),
        SpanAttribute::Texts(texts) => {
            let values: Vec<Value> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::id::TraceId;
    use polyclaw_domain::span::{OtelSpanId, OtelTraceId};

    use super::*;

    #[test]
    fn span_is_encoded_as_otlp_json() {
        let one = Span {
            trace: OtelTraceId(0xab),
            id: OtelSpanId(0xcd),
            parent: Some(OtelSpanId(0xef)),
            links: vec![(OtelTraceId(1), OtelSpanId::for_message(&TraceId::new("x")))],
            name: "chat m".to_owned(),
            kind: SpanKind::Client,
            began: Millis(1_700_000_000_123),
            ended: Millis(1_700_000_000_124),
            attributes: vec![("gen_ai.usage.input_tokens", SpanAttribute::Count(7))],
            error: Some("timeout".to_owned()),
        };
        let written = span_json(&one);
        assert_eq!(written["traceId"], format!("{}ab", "0".repeat(30)));
        assert_eq!(
            (&written["spanId"], &written["parentSpanId"]),
            (&json!("00000000000000cd"), &json!("00000000000000ef"))
        );
        assert_eq!(written["startTimeUnixNano"], "1700000000123000000");
        assert_eq!(
            written["attributes"],
            json!([
                { "key": "gen_ai.usage.input_tokens", "value": { "intValue": "7" } },
                { "key": "error.type", "value": { "stringValue": "timeout" } },
            ])
        );
        assert_eq!((&written["kind"], &written["status"]["code"]), (&json!(3), &json!(2)));
        assert_eq!(written["links"][0]["spanId"].as_str().unwrap().len(), 16);
    }
}
