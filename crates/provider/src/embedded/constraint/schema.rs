//! Compiles the part of JSON Schema that tools use into a graph of bytes. Fixes what a schema leaves open: properties
//! are in schema order, a space follows each comma and colon, and strings, arrays and numbers are bounded.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::{CharCount, ConstraintGraph, GraphEdge, GraphNode, SchemaConstraint};

/// Maximum string length if the schema sets none, and the upper limit of what it can set.
const DEFAULT_MAX_TEXT_CHARS: u64 = 300;
const MAX_TEXT_CHARS: u64 = 2000;
const MAX_LIST_ITEMS: u64 = 6;
const MAX_INTEGER_DIGITS: usize = 12;
const MAX_DECIMAL_DIGITS: usize = 6;
/// Integer ranges up to this size are enumerated.
const MAX_INTEGER_CHOICES: i64 = 128;
/// Limits on depth and size, above those of real tool schemas.
const MAX_SCHEMA_DEPTH: usize = 12;
const MAX_GRAPH_NODES: usize = 40_000;

/// The reason why a schema is not supported for constrained decoding.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this schema is not supported: {0}")]
pub(in super::super) struct UnsupportedSchema(pub String);

/// Compiles a schema into a constraint at its start.
pub(in super::super) fn compile_schema(
    schema: &Value,
    writable: &dyn Fn(u8) -> bool,
) -> Result<SchemaConstraint, UnsupportedSchema> {
    let mut builder = GraphBuilder { root: schema, places: vec![GraphNode::default()] };
    let start = builder.add_value(schema, 0, 0)?;
    let mut graph = ConstraintGraph { places: builder.places, end: 0 };
    graph.measure_distances(start, writable)?;
    Ok(SchemaConstraint::new(Rc::new(graph), start))
}

/// Builds the graph back to front: each method takes the node that follows and returns the node where its part starts.
struct GraphBuilder<'a> {
    root: &'a Value,
    places: Vec<GraphNode>,
}

impl GraphBuilder<'_> {
    fn add_node(&mut self) -> Result<usize, UnsupportedSchema> {
        if self.places.len() == MAX_GRAPH_NODES {
            return Err(UnsupportedSchema("it is too large".to_owned()));
        }
        self.places.push(GraphNode::default());
        Ok(self.places.len() - 1)
    }

    fn add_edge(&mut self, from: usize, bytes: (u8, u8), to: usize, count: CharCount) {
        self.places[from].edges.push(GraphEdge { first: bytes.0, last: bytes.1, to, count });
    }

    fn add_step(&mut self, bytes: (u8, u8), next: usize) -> Result<usize, UnsupportedSchema> {
        let place = self.add_node()?;
        self.add_edge(place, bytes, next, CharCount::Keep);
        Ok(place)
    }

    fn add_literal(&mut self, text: &str, next: usize) -> Result<usize, UnsupportedSchema> {
        text.bytes().rev().try_fold(next, |next, byte| self.add_step((byte, byte), next))
    }

    fn add_choice(&mut self, starts: Vec<usize>) -> Result<usize, UnsupportedSchema> {
        match starts[..] {
            [] => Err(UnsupportedSchema("it has no alternatives".to_owned())),
            [only] => Ok(only),
            _ => {
                let place = self.add_node()?;
                self.places[place].free = starts;
                Ok(place)
            }
        }
    }

    fn add_value(&mut self, schema: &Value, depth: usize, next: usize) -> Result<usize, UnsupportedSchema> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(UnsupportedSchema("it is too deep".to_owned()));
        }
        if let Some(target) = schema["$ref"].as_str() {
            let root = self.root;
            let found = target.strip_prefix('#').and_then(|path| root.pointer(path));
            let found = found.ok_or_else(|| UnsupportedSchema(format!("it does not contain {target}")))?;
            return self.add_value(found, depth + 1, next);
        }
        if let Some(value) = schema.get("const") {
            return self.add_literal(&to_spaced_json(value), next);
        }
        for key in ["enum", "anyOf", "oneOf"] {
            if let Some(choices) = schema[key].as_array() {
                let start = |choice| match key {
                    "enum" => self.add_literal(&to_spaced_json(choice), next),
                    _ => self.add_value(choice, depth + 1, next),
                };
                let starts = choices.iter().map(start).collect::<Result<_, _>>()?;
                return self.add_choice(starts);
            }
        }
        if let [only] = schema["allOf"].as_array().map_or(&[][..], Vec::as_slice) {
            return self.add_value(only, depth + 1, next);
        }
        let kinds = schema_types(schema);
        let starts =
            kinds.iter().map(|kind| self.add_kind(kind, schema, depth, next)).collect::<Result<_, _>>()?;
        self.add_choice(starts)
    }

    fn add_kind(
        &mut self,
        kind: &str,
        schema: &Value,
        depth: usize,
        next: usize,
    ) -> Result<usize, UnsupportedSchema> {
        match kind {
            "object" => self.add_object(schema, depth, next),
            "array" => self.add_list(schema, depth, next),
            "string" => self.add_text(schema, next),
            "integer" => self.add_integer(schema, next),
            "number" => self.add_number(schema, next),
            "boolean" => {
                let choices = vec![self.add_literal("true", next)?, self.add_literal("false", next)?];
                self.add_choice(choices)
            }
            "null" => self.add_literal("null", next),
            other => Err(UnsupportedSchema(format!("its type is {other}"))),
        }
    }

    /// Adds the properties in schema order. Optional ones may be omitted.
    fn add_object(&mut self, schema: &Value, depth: usize, next: usize) -> Result<usize, UnsupportedSchema> {
        let none = Map::new();
        let members = schema["properties"].as_object().unwrap_or(&none);
        let required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let close = self.add_literal("}", next)?;
        // Continuations with and without a preceding property.
        let (mut after, mut first) = (close, close);
        for (name, member) in members.iter().rev() {
            let value = self.add_value(member, depth + 1, after)?;
            let named = self.add_literal(&format!("{}: ", Value::from(name.as_str())), value)?;
            let more = self.add_literal(", ", named)?;
            (after, first) = match required(name) {
                true => (more, named),
                false => (self.add_choice(vec![more, after])?, self.add_choice(vec![named, first])?),
            };
        }
        self.add_literal("{", first)
    }

    fn add_list(&mut self, schema: &Value, depth: usize, next: usize) -> Result<usize, UnsupportedSchema> {
        let most = schema["maxItems"].as_u64().unwrap_or(MAX_LIST_ITEMS).min(MAX_LIST_ITEMS);
        let least = schema["minItems"].as_u64().unwrap_or(0);
        if least > most {
            return Err(UnsupportedSchema(format!(
                "it requires {least} items; at most {most} are supported"
            )));
        }
        let items = schema.get("items").cloned().unwrap_or(Value::Null);
        let close = self.add_literal("]", next)?;
        let mut after = close;
        for index in (0..most).rev() {
            let item = self.add_value(&items, depth + 1, after)?;
            let item = if index > 0 { self.add_literal(", ", item)? } else { item };
            after = if index < least { item } else { self.add_choice(vec![item, close])? };
        }
        self.add_literal("[", after)
    }

    /// A string of bounded length: any UTF-8 and the short escapes.
    fn add_text(&mut self, schema: &Value, next: usize) -> Result<usize, UnsupportedSchema> {
        let most = schema["maxLength"].as_u64().unwrap_or(DEFAULT_MAX_TEXT_CHARS).min(MAX_TEXT_CHARS);
        let least = schema["minLength"].as_u64().unwrap_or(0);
        if least > most {
            return Err(UnsupportedSchema(format!(
                "it requires {least} characters; at most {most} are supported"
            )));
        }
        let inside = self.add_node()?;
        self.add_edge(inside, (b'"', b'"'), next, CharCount::Keep);
        self.add_character(inside, inside)?;
        let mut start = inside;
        for _ in 0..least {
            let before = self.add_node()?;
            self.add_character(before, start)?;
            start = before;
        }
        let open = self.add_node()?;
        self.add_edge(open, (b'"', b'"'), start, CharCount::Begin(u32::try_from(most).unwrap_or(u32::MAX)));
        Ok(open)
    }

    /// Adds one character between two nodes. The ranges are those of well-formed UTF-8.
    fn add_character(&mut self, from: usize, to: usize) -> Result<(), UnsupportedSchema> {
        let tail = (0x80, 0xbf);
        let escape = self.add_node()?;
        for byte in *b"\"\\nt" {
            self.add_edge(escape, (byte, byte), to, CharCount::Keep);
        }
        let one = self.add_step(tail, to)?;
        let two = self.add_step(tail, one)?;
        let narrow = [((0xe0, 0xe0), (0xa0, 0xbf), one), ((0xed, 0xed), (0x80, 0x9f), one)];
        let wide = [((0xf0, 0xf0), (0x90, 0xbf), two), ((0xf4, 0xf4), (0x80, 0x8f), two)];
        for (lead, second, rest) in narrow.into_iter().chain(wide) {
            let place = self.add_step(second, rest)?;
            self.add_edge(from, lead, place, CharCount::Spend);
        }
        let three = self.add_step(tail, two)?;
        let leads = [
            ((b' ', b'!'), to),
            ((b'#', b'['), to),
            ((b']', b'~'), to),
            ((b'\\', b'\\'), escape),
            ((0xc2, 0xdf), one),
            ((0xe1, 0xec), two),
            ((0xee, 0xef), two),
            ((0xf1, 0xf3), three),
        ];
        for (lead, place) in leads {
            self.add_edge(from, lead, place, CharCount::Spend);
        }
        Ok(())
    }

    /// Adds the digits that may follow a first digit, up to `most` digits in total.
    fn add_more_digits(&mut self, most: usize, next: usize) -> Result<usize, UnsupportedSchema> {
        (1..most).try_fold(next, |more, _| {
            let digit = self.add_step((b'0', b'9'), more)?;
            self.add_choice(vec![digit, next])
        })
    }

    /// Enumerates small ranges. For larger ones only the sign and the exclusion of zero are enforced.
    fn add_integer(&mut self, schema: &Value, next: usize) -> Result<usize, UnsupportedSchema> {
        let (least, most) = integer_bounds(schema);
        if let Some((least, most)) = least.zip(most)
            && (0..MAX_INTEGER_CHOICES).contains(&most.saturating_sub(least))
        {
            let start = |number: i64| self.add_literal(&number.to_string(), next);
            let starts = (least..=most).map(start).collect::<Result<_, _>>()?;
            return self.add_choice(starts);
        }
        let first = self.add_positive(next)?;
        let mut starts = vec![first];
        if least.is_none_or(|least| least <= 0) {
            starts.push(self.add_literal("0", next)?);
        }
        if least.is_none_or(|least| least < 0) {
            starts.push(self.add_literal("-", first)?);
        }
        self.add_choice(starts)
    }

    fn add_positive(&mut self, next: usize) -> Result<usize, UnsupportedSchema> {
        let more = self.add_more_digits(MAX_INTEGER_DIGITS, next)?;
        self.add_step((b'1', b'9'), more)
    }

    fn add_number(&mut self, schema: &Value, next: usize) -> Result<usize, UnsupportedSchema> {
        let more = self.add_more_digits(MAX_DECIMAL_DIGITS, next)?;
        let decimals = self.add_step((b'0', b'9'), more)?;
        let point = self.add_literal(".", decimals)?;
        let end = self.add_choice(vec![next, point])?;
        let (first, zero) = (self.add_positive(end)?, self.add_literal("0", end)?);
        let mut starts = vec![first, zero];
        let is_unsigned = |key: &str| schema[key].as_f64().is_some_and(|least| least >= 0.0);
        if !is_unsigned("minimum") && !is_unsigned("exclusiveMinimum") {
            starts.push(self.add_literal("-", first)?);
        }
        self.add_choice(starts)
    }
}

/// Returns the smallest and the largest integer that the schema allows.
fn integer_bounds(schema: &Value) -> (Option<i64>, Option<i64>) {
    let bound = |key: &str| schema[key].as_f64();
    let least = [bound("minimum").map(f64::ceil), bound("exclusiveMinimum").map(|least| least.floor() + 1.0)];
    let most = [bound("maximum").map(f64::floor), bound("exclusiveMaximum").map(|most| most.ceil() - 1.0)];
    let whole = |number: f64| number as i64;
    (least.into_iter().flatten().map(whole).max(), most.into_iter().flatten().map(whole).min())
}

fn schema_types(schema: &Value) -> Vec<String> {
    let named = |value: &Value| value.as_str().map(str::to_owned);
    match &schema["type"] {
        Value::String(kind) => vec![kind.clone()],
        Value::Array(kinds) => kinds.iter().filter_map(named).collect(),
        _ if schema.get("properties").is_some() => vec!["object".to_owned()],
        // Any type is allowed; scalars are enough.
        _ => ["string", "number", "boolean", "null"].map(str::to_owned).to_vec(),
    }
}

/// Writes JSON with a space after each comma and colon, as in most training texts.
pub(in super::super) fn to_spaced_json(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), to_spaced_json(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(to_spaced_json).collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}
