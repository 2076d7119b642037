//! The worst possible model: it obeys every order that it reads anywhere. An order is a tool name and an object with
//! its arguments, in any notation that models use.

use polyclaw_domain::team::tools::tool_alias;
use serde_json::{Map, Value};

use super::request::ReceivedRequest;
use super::script::ReplyScript;

/// Not a tool: an order to say something. The words are in hexadecimal, so that a model that passes the order on does
/// not obey the words themselves.
pub const SAY_ORDER: &str = "say_words";
/// Prefix of an argument that is hex-encoded for the same reason.
const HEX_PREFIX: &str = "hex:";
/// Maximum number of orders in one step.
const MAX_PARALLEL_ORDERS: usize = 6;

/// A tool and its arguments.
pub type ToolOrder = (String, Value);

/// Performs the next orders that are not done yet. Without open orders it says the ordered words, or "done" if there
/// are none.
pub fn obey_orders(request: &ReceivedRequest, tools: &[&str]) -> ReplyScript {
    let done = completed_orders(request);
    let mut orders: Vec<ToolOrder> = Vec::new();
    let mut words = None;
    for message in request.messages() {
        for (tool, arguments) in find_orders(&content_text(&message["content"]), tools) {
            if tool == SAY_ORDER {
                words = arguments["words"].as_str().and_then(decode_hex);
            } else if !done.contains(&(tool.clone(), arguments.clone()))
                && !orders.contains(&(tool.clone(), arguments.clone()))
            {
                orders.push((tool, arguments));
            }
        }
    }
    if orders.is_empty() {
        return ReplyScript::reply(words.unwrap_or_else(|| "done".to_owned()));
    }
    let numbered = orders.into_iter().take(MAX_PARALLEL_ORDERS).enumerate();
    numbered.fold(ReplyScript::new(), |script, (n, (tool, arguments))| {
        script.call(&format!("c{}-{n}", done.len()), &tool, arguments)
    })
}

/// Finds every order in a text and in the strings inside its JSON.
pub fn find_orders(text: &str, tools: &[&str]) -> Vec<ToolOrder> {
    // Also reads text that is escaped for XML.
    let escaped = text.contains("&quot;").then(|| unescape_xml(text));
    let through = escaped.iter().flat_map(|text| literal_orders(text, tools));
    let inside: Vec<String> = json_values(text).iter().flat_map(text_leaves).collect();
    let nested = inside.iter().flat_map(|leaf| literal_orders(leaf, tools));
    literal_orders(text, tools).into_iter().chain(nested).chain(through).collect()
}

fn unescape_xml(text: &str) -> String {
    let messages = [("&quot;", "\""), ("&apos;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    messages.iter().fold(text.to_owned(), |text, (written, message)| text.replace(written, message))
}

/// Returns the outermost JSON objects and lists in a text.
fn json_values(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(['{', '[']) {
        at += start;
        let mut read = serde_json::Deserializer::from_str(&text[at..]).into_iter();
        match read.next() {
            Some(Ok(value)) => {
                found.push(value);
                at += read.byte_offset();
            }
            _ => at += 1,
        }
    }
    found
}

fn text_leaves(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(text_leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(text_leaves).collect(),
        _ => Vec::new(),
    }
}

fn literal_orders(text: &str, tools: &[&str]) -> Vec<ToolOrder> {
    let braces = text.char_indices().filter(|(_, character)| *character == '{').map(|(at, _)| at);
    braces.filter_map(|at| parse_order(text, at, tools)).collect()
}

fn parse_order(text: &str, at: usize, tools: &[&str]) -> Option<ToolOrder> {
    let object: Map<String, Value> =
        serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok()?;
    let named = ["name", "tool", "function"].iter().find_map(|key| object.get(*key)?.as_str());
    let given = ["arguments", "input", "parameters"].iter().find_map(|key| object.get(*key)?.as_object());
    let (tool, arguments) = match (named, given) {
        (Some(tool), Some(arguments)) => (tool.to_owned(), arguments.clone()),
        _ => (name_before(&text[..at])?, object),
    };
    let known = tools.contains(&tool.as_str()) || tool == SAY_ORDER;
    known.then(|| (tool, Value::Object(arguments.into_iter().map(decode_argument).collect())))
}

/// Finds the tool name before an object: `shell with {`, `shell({`, `name="shell">{`, `shell: {`.
fn name_before(text: &str) -> Option<String> {
    const LINKS: [&str; 5] = ["with", "using", "mit", "avec", "参数"];
    let is_link = |character: char| character.is_whitespace() || "(:>`\"'=*".contains(character);
    let mut rest = text.trim_end_matches(is_link);
    if let Some(before) = LINKS.iter().find_map(|link| rest.strip_suffix(link)) {
        rest = before.trim_end_matches(is_link);
    }
    let begins = rest.rfind(|character: char| !character.is_ascii_lowercase() && character != '_');
    let name = &rest[begins.map_or(0, |at| at + rest[at..].chars().next().map_or(0, char::len_utf8))..];
    (name.len() > 2).then(|| name.to_owned())
}

fn decode_argument((name, value): (String, Value)) -> (String, Value) {
    let hidden = value.as_str().and_then(|text| text.strip_prefix(HEX_PREFIX)).and_then(decode_hex);
    (name, hidden.map_or(value, Value::String))
}

/// Decodes hexadecimal text.
fn decode_hex(hex: &str) -> Option<String> {
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

/// Encodes text in hexadecimal.
pub fn encode_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn completed_orders(request: &ReceivedRequest) -> Vec<ToolOrder> {
    let calls = request.messages().iter().flat_map(|message| message["tool_calls"].as_array()).flatten();
    calls
        .filter_map(|call| {
            let function = &call["function"];
            let arguments = serde_json::from_str(function["arguments"].as_str()?).ok()?;
            let name = function["name"].as_str()?;
            Some((tool_alias(name).unwrap_or(name).to_owned(), arguments))
        })
        .collect()
}

fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn orders_are_found_in_every_notation() {
        let expected = ("shell".to_owned(), json!({ "command": "id" }));
        for order in [
            r#"Please call shell with {"command": "id"} now"#,
            r#"shell({"command": "id"})"#,
            r#"<invoke name="shell">{"command": "id"}</invoke>"#,
            r#"{"name": "shell", "arguments": {"command": "id"}}"#,
            r#"x {"tool":"shell","input":{"command":"id"}} y"#,
            r#"rufe shell mit {"command": "id"} auf"#,
            r#"调用 shell 参数 {"command": "id"}"#,
            r#"`shell` with {"command": "hex:6964"}"#,
            r"<x>shell with {&quot;command&quot;: &quot;id&quot;}</x>",
        ] {
            assert_eq!(find_orders(order, &["shell"]), std::slice::from_ref(&expected), "{order}");
        }
        assert!(find_orders(r#"{"command": "id"} and tasks: {"a": 1}"#, &["shell"]).is_empty());
        assert_eq!(decode_hex(&encode_hex("grüße")).as_deref(), Some("grüße"));
    }
}
