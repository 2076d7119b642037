use serde_json::{Value, json};

use super::*;

fn start(schema: &Value) -> SchemaConstraint {
    compile_schema(schema, &|_| true).unwrap()
}

fn fits(schema: &Value, text: &str) -> bool {
    let mut constraint = start(schema);
    text.bytes().all(|byte| constraint.advance_byte(byte)) && constraint.is_complete()
}

#[test]
fn constraint_accepts_only_text_that_matches_schema() {
    let tool = json!({ "type": "object", "required": ["a"], "properties": {
        "a": { "type": "integer" }, "b": { "type": "string", "maxLength": 3 }, "c": { "type": "boolean" } } });
    for (schema, good, bad) in [
        (json!({ "const": "x y" }), vec!["\"x y\""], vec!["\"x\"", "x y"]),
        (json!({ "enum": ["a", 1, null] }), vec!["\"a\"", "1", "null"], vec!["2", "nul"]),
        (
            json!({ "type": "integer" }),
            vec!["0", "-7", "123456789012"],
            vec!["-0", "01", "1.5", "1234567890123", "-"],
        ),
        (json!({ "type": "integer", "minimum": 0 }), vec!["0", "3"], vec!["-3"]),
        (json!({ "type": "integer", "minimum": 1 }), vec!["1", "30"], vec!["0", "-3"]),
        (json!({ "type": "integer", "exclusiveMinimum": 0 }), vec!["1", "30"], vec!["0", "-3"]),
        (json!({ "type": "integer", "minimum": -1 }), vec!["-1", "0", "5"], vec!["-"]),
        (
            json!({ "type": "integer", "minimum": -1, "maximum": 12 }),
            vec!["-1", "0", "9", "12"],
            vec!["-2", "13", "120", "00"],
        ),
        (json!({ "type": "number", "minimum": 0 }), vec!["0", "0.5", "7.25"], vec!["-0.5", "-7"]),
        (json!({ "type": "number" }), vec!["0.5", "-12.25", "3"], vec![".5", "1.", "1e3"]),
        (json!({ "type": "boolean" }), vec!["true", "false"], vec!["True"]),
        (json!({ "type": ["string", "null"] }), vec!["null", "\"\""], vec!["1"]),
        (
            json!({ "type": "string", "maxLength": 2 }),
            vec!["\"\"", "\"é日\"", "\"\\n\\\"\""],
            vec!["\"abc\"", "\"\n\"", "\"\\x\""],
        ),
        (json!({ "type": "string", "minLength": 2 }), vec!["\"ab\"", "\"a🦀\""], vec!["\"a\"", "\"\""]),
        (
            json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 2 }),
            vec!["[]", "[1]", "[1, 2]"],
            vec!["[1, 2, 3]", "[1,2]", "[1, ]"],
        ),
        (json!({ "anyOf": [{ "const": 1 }, { "type": "object" }] }), vec!["1", "{}"], vec!["{1}"]),
        (json!({ "$ref": "#/$defs/n", "$defs": { "n": { "type": "null" } } }), vec!["null"], vec!["0"]),
        (
            tool,
            vec!["{\"a\": 1}", "{\"a\": 1, \"b\": \"x\", \"c\": true}", "{\"a\": 1, \"c\": false}"],
            vec!["{}", "{\"b\": \"x\"}", "{\"a\": 1, }"],
        ),
    ] {
        for text in good {
            assert!(fits(&schema, text), "{text} fits {schema}");
            assert!(serde_json::from_str::<Value>(text).is_ok());
        }
        for text in bad {
            assert!(!fits(&schema, text), "{text} does not fit {schema}");
        }
    }
}

#[test]
fn constraint_accepts_only_valid_utf8() {
    let mut constraint = start(&json!({ "type": "string" }));
    assert!(constraint.advance_byte(b'"'));
    for broken in
        [&[0x80][..], &[0xc0, 0x80], &[0xe0, 0x80], &[0xed, 0xa0], &[0xf0, 0x80], &[0xf4, 0x90], &[0xf5]]
    {
        assert!(!constraint.allows_bytes(broken, u32::MAX), "{broken:x?}");
    }
    assert!(constraint.allows_bytes("ü€𝄞\"".as_bytes(), 0));
}

#[test]
fn token_that_prevents_a_complete_end_is_refused() {
    let mut constraint =
        start(&json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } }));
    assert_eq!(constraint.distance_to_end(), "{\"a\": \"\"}".len() as u32);
    assert_eq!(constraint.forced_bytes(), b"{\"a\": \"");
    b"{\"a\": \"".iter().for_each(|byte| assert!(constraint.advance_byte(*byte)));
    assert!(constraint.allows_bytes(b"word", 2) && !constraint.allows_bytes(b"word", 1));
    assert!(constraint.allows_bytes(b"\"", 1) && !constraint.allows_bytes(b"\"", 0));
    assert_eq!(constraint.forced_bytes(), b"");
    b"\"".iter().for_each(|byte| assert!(constraint.advance_byte(*byte)));
    assert_eq!(constraint.forced_bytes(), b"}");
    assert!(constraint.advance_byte(b'}') && constraint.is_over());
}

/// Any allowed sequence of bytes ends in valid JSON within its room.
#[test]
fn any_allowed_path_ends_within_its_room() {
    let schema = json!({ "anyOf": [
        { "type": "object", "required": ["tool", "n"], "properties": {
            "tool": { "const": "add" }, "n": { "type": "array", "minItems": 1, "items": { "type": "number" } } } },
        { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } } ] });
    for seed in 0..200_u32 {
        let (mut constraint, mut text, mut state) = (start(&schema), Vec::new(), seed);
        for room in (0..60).rev() {
            let allowed: Vec<u8> = (0..=255).filter(|byte| constraint.allows_bytes(&[*byte], room)).collect();
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let Some(byte) = allowed.get(state as usize / 7 % allowed.len().max(1)) else { break };
            assert!(constraint.advance_byte(*byte));
            text.push(*byte);
        }
        assert!(constraint.is_complete(), "{}", String::from_utf8_lossy(&text));
        serde_json::from_slice::<Value>(&text).unwrap();
    }
}

#[test]
fn hostile_schemas_are_refused() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..50 {
        deep = json!({ "type": "array", "items": deep, "minItems": 6 });
    }
    let circle = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }] } } });
    let mut wide = json!({ "type": "string" });
    for _ in 0..8 {
        wide = json!({ "type": "array", "items": wide });
    }
    for schema in
        [deep, circle, wide, json!({ "type": "money" }), json!({ "$ref": "#/no" }), json!({ "enum": [] })]
    {
        assert!(compile_schema(&schema, &|_| true).is_err());
    }
    assert!(
        compile_schema(&json!({ "const": "a" }), &|byte| byte != b'a').is_err(),
        "a byte no token can write"
    );
}
