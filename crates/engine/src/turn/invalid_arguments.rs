//! Calls with invalid arguments. They are stored as the model wrote them, and the model gets the error so that it
//! can try again.

use polyclaw_domain::tool::ToolCall;
use serde_json::Value;

/// Whether the arguments are not a JSON object.
pub(crate) fn has_invalid_arguments(call: &ToolCall) -> bool {
    !matches!(call.arguments, Value::Object(_) | Value::Null)
}

/// Returns the error for a call with invalid arguments.
pub(crate) fn invalid_arguments_message(call: &ToolCall) -> Option<String> {
    has_invalid_arguments(call).then(|| {
        format!(
            "Not run: the arguments {}. Call the tool again with one JSON object.",
            json_fault(&call.arguments)
        )
    })
}

fn json_fault(arguments: &Value) -> String {
    let Value::String(text) = arguments else { return "are not a JSON object".to_owned() };
    match serde_json::from_str::<Value>(text) {
        Ok(_) => "are not a JSON object".to_owned(),
        Err(error) => format!("are not valid JSON ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_arguments_message_gives_position_but_no_content() {
        let text_of = |arguments: Value| {
            invalid_arguments_message(&ToolCall { id: "c".into(), name: "f".into(), arguments })
                .unwrap_or_default()
        };
        assert_eq!(text_of(json!({ "a": 1 })), "");
        assert_eq!(text_of(Value::Null), "");
        let broken = "Not run: the arguments are not valid JSON (EOF while parsing a value at line 1 column 11). \
                      Call the tool again with one JSON object.";
        assert_eq!(text_of(json!("{\"sk-key\": ")), broken);
        let other = "Not run: the arguments are not a JSON object. Call the tool again with one JSON object.";
        assert_eq!(text_of(json!("[1]")), other);
        assert_eq!(text_of(json!([1])), other);
    }
}
