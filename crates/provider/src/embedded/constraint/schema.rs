//! The part of JSON Schema that tools use, as a graph of bytes. What a schema leaves open is decided here: members
//! come in the schema's order, with one space after each comma and colon, and texts, lists and numbers have an end.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::{Constraint, Count, Edge, Graph, Place};

/// The longest text where the schema names no length, and the longest it can name.
const USUAL_TEXT: u64 = 300;
const LONGEST_TEXT: u64 = 2000;
const LONGEST_LIST: u64 = 6;
const DIGITS: usize = 12;
const DECIMALS: usize = 6;
/// So many whole numbers are offered one by one.
const MOST_CHOICES: i64 = 128;
/// A schema deeper or larger than this is no tool's.
const DEEPEST: usize = 12;
const MOST_PLACES: usize = 40_000;

/// Why a schema can not be kept.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this schema can not be kept: {0}")]
pub(in super::super) struct Unsupported(pub String);

/// What a text that fits this schema can begin with.
pub(in super::super) fn graph(
    schema: &Value,
    writable: &dyn Fn(u8) -> bool,
) -> Result<Constraint, Unsupported> {
    let mut builder = Builder { root: schema, places: vec![Place::default()] };
    let start = builder.value(schema, 0, 0)?;
    let mut graph = Graph { places: builder.places, end: 0 };
    graph.measure(start, writable)?;
    Ok(Constraint::new(Rc::new(graph), start))
}

/// Builds back to front: every part is given the place that follows it and returns the place it begins at.
struct Builder<'a> {
    root: &'a Value,
    places: Vec<Place>,
}

impl Builder<'_> {
    fn place(&mut self) -> Result<usize, Unsupported> {
        if self.places.len() == MOST_PLACES {
            return Err(Unsupported("it is too large".to_owned()));
        }
        self.places.push(Place::default());
        Ok(self.places.len() - 1)
    }

    fn edge(&mut self, from: usize, bytes: (u8, u8), to: usize, count: Count) {
        self.places[from].edges.push(Edge { first: bytes.0, last: bytes.1, to, count });
    }

    fn step(&mut self, bytes: (u8, u8), next: usize) -> Result<usize, Unsupported> {
        let place = self.place()?;
        self.edge(place, bytes, next, Count::Keep);
        Ok(place)
    }

    fn literal(&mut self, text: &str, next: usize) -> Result<usize, Unsupported> {
        text.bytes().rev().try_fold(next, |next, byte| self.step((byte, byte), next))
    }

    fn any(&mut self, starts: Vec<usize>) -> Result<usize, Unsupported> {
        match starts[..] {
            [] => Err(Unsupported("it offers no choice".to_owned())),
            [only] => Ok(only),
            _ => {
                let place = self.place()?;
                self.places[place].free = starts;
                Ok(place)
            }
        }
    }

    fn value(&mut self, schema: &Value, depth: usize, next: usize) -> Result<usize, Unsupported> {
        if depth > DEEPEST {
            return Err(Unsupported("it is too deep".to_owned()));
        }
        if let Some(target) = schema["$ref"].as_str() {
            let root = self.root;
            let found = target.strip_prefix('#').and_then(|path| root.pointer(path));
            let found = found.ok_or_else(|| Unsupported(format!("{target} is not in it")))?;
            return self.value(found, depth + 1, next);
        }
        if let Some(value) = schema.get("const") {
            return self.literal(&spaced(value), next);
        }
        for key in ["enum", "anyOf", "oneOf"] {
            if let Some(choices) = schema[key].as_array() {
                let start = |choice| match key {
                    "enum" => self.literal(&spaced(choice), next),
                    _ => self.value(choice, depth + 1, next),
                };
                let starts = choices.iter().map(start).collect::<Result<_, _>>()?;
                return self.any(starts);
            }
        }
        if let [only] = schema["allOf"].as_array().map_or(&[][..], Vec::as_slice) {
            return self.value(only, depth + 1, next);
        }
        let kinds = kinds(schema);
        let starts =
            kinds.iter().map(|kind| self.kind(kind, schema, depth, next)).collect::<Result<_, _>>()?;
        self.any(starts)
    }

    fn kind(&mut self, kind: &str, schema: &Value, depth: usize, next: usize) -> Result<usize, Unsupported> {
        match kind {
            "object" => self.object(schema, depth, next),
            "array" => self.list(schema, depth, next),
            "string" => self.text(schema, next),
            "integer" => self.integer(schema, next),
            "number" => self.number(schema, next),
            "boolean" => {
                let choices = vec![self.literal("true", next)?, self.literal("false", next)?];
                self.any(choices)
            }
            "null" => self.literal("null", next),
            other => Err(Unsupported(format!("it has the type {other}"))),
        }
    }

    /// Members in the schema's order; those that are not required may be left out.
    fn object(&mut self, schema: &Value, depth: usize, next: usize) -> Result<usize, Unsupported> {
        let none = Map::new();
        let members = schema["properties"].as_object().unwrap_or(&none);
        let required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let close = self.literal("}", next)?;
        // What may follow where a member came before, and where none did.
        let (mut after, mut first) = (close, close);
        for (name, member) in members.iter().rev() {
            let value = self.value(member, depth + 1, after)?;
            let named = self.literal(&format!("{}: ", Value::from(name.as_str())), value)?;
            let more = self.literal(", ", named)?;
            (after, first) = match required(name) {
                true => (more, named),
                false => (self.any(vec![more, after])?, self.any(vec![named, first])?),
            };
        }
        self.literal("{", first)
    }

    fn list(&mut self, schema: &Value, depth: usize, next: usize) -> Result<usize, Unsupported> {
        let most = schema["maxItems"].as_u64().unwrap_or(LONGEST_LIST).min(LONGEST_LIST);
        let least = schema["minItems"].as_u64().unwrap_or(0);
        if least > most {
            return Err(Unsupported(format!("it wants {least} items; {most} are kept")));
        }
        let items = schema.get("items").cloned().unwrap_or(Value::Null);
        let close = self.literal("]", next)?;
        let mut after = close;
        for index in (0..most).rev() {
            let item = self.value(&items, depth + 1, after)?;
            let item = if index > 0 { self.literal(", ", item)? } else { item };
            after = if index < least { item } else { self.any(vec![item, close])? };
        }
        self.literal("[", after)
    }

    /// A text with at most so many characters: whole UTF-8 and the short escapes.
    fn text(&mut self, schema: &Value, next: usize) -> Result<usize, Unsupported> {
        let most = schema["maxLength"].as_u64().unwrap_or(USUAL_TEXT).min(LONGEST_TEXT);
        let least = schema["minLength"].as_u64().unwrap_or(0);
        if least > most {
            return Err(Unsupported(format!("it wants {least} characters; {most} are kept")));
        }
        let inside = self.place()?;
        self.edge(inside, (b'"', b'"'), next, Count::Keep);
        self.character(inside, inside)?;
        let mut start = inside;
        for _ in 0..least {
            let before = self.place()?;
            self.character(before, start)?;
            start = before;
        }
        let open = self.place()?;
        self.edge(open, (b'"', b'"'), start, Count::Begin(u32::try_from(most).unwrap_or(u32::MAX)));
        Ok(open)
    }

    /// One character from one place to another; the ranges are those of well-formed UTF-8.
    fn character(&mut self, from: usize, to: usize) -> Result<(), Unsupported> {
        let tail = (0x80, 0xbf);
        let escape = self.place()?;
        for byte in *b"\"\\nt" {
            self.edge(escape, (byte, byte), to, Count::Keep);
        }
        let one = self.step(tail, to)?;
        let two = self.step(tail, one)?;
        let narrow = [((0xe0, 0xe0), (0xa0, 0xbf), one), ((0xed, 0xed), (0x80, 0x9f), one)];
        let wide = [((0xf0, 0xf0), (0x90, 0xbf), two), ((0xf4, 0xf4), (0x80, 0x8f), two)];
        for (lead, second, rest) in narrow.into_iter().chain(wide) {
            let place = self.step(second, rest)?;
            self.edge(from, lead, place, Count::Spend);
        }
        let three = self.step(tail, two)?;
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
            self.edge(from, lead, place, Count::Spend);
        }
        Ok(())
    }

    /// What may follow a first digit, if there are at most so many.
    fn more_digits(&mut self, most: usize, next: usize) -> Result<usize, Unsupported> {
        (1..most).try_fold(next, |more, _| {
            let digit = self.step((b'0', b'9'), more)?;
            self.any(vec![digit, next])
        })
    }

    /// A few numbers are choices; of more than that only the sign is kept, and that zero is none.
    fn integer(&mut self, schema: &Value, next: usize) -> Result<usize, Unsupported> {
        let (least, most) = bounds(schema);
        if let Some((least, most)) = least.zip(most)
            && (0..MOST_CHOICES).contains(&most.saturating_sub(least))
        {
            let start = |number: i64| self.literal(&number.to_string(), next);
            let starts = (least..=most).map(start).collect::<Result<_, _>>()?;
            return self.any(starts);
        }
        let first = self.positive(next)?;
        let mut starts = vec![first];
        if least.is_none_or(|least| least <= 0) {
            starts.push(self.literal("0", next)?);
        }
        if least.is_none_or(|least| least < 0) {
            starts.push(self.literal("-", first)?);
        }
        self.any(starts)
    }

    fn positive(&mut self, next: usize) -> Result<usize, Unsupported> {
        let more = self.more_digits(DIGITS, next)?;
        self.step((b'1', b'9'), more)
    }

    fn number(&mut self, schema: &Value, next: usize) -> Result<usize, Unsupported> {
        let more = self.more_digits(DECIMALS, next)?;
        let decimals = self.step((b'0', b'9'), more)?;
        let point = self.literal(".", decimals)?;
        let end = self.any(vec![next, point])?;
        let (first, zero) = (self.positive(end)?, self.literal("0", end)?);
        let mut starts = vec![first, zero];
        let is_unsigned = |key: &str| schema[key].as_f64().is_some_and(|least| least >= 0.0);
        if !is_unsigned("minimum") && !is_unsigned("exclusiveMinimum") {
            starts.push(self.literal("-", first)?);
        }
        self.any(starts)
    }
}

/// The smallest and the largest whole number a schema allows.
fn bounds(schema: &Value) -> (Option<i64>, Option<i64>) {
    let bound = |key: &str| schema[key].as_f64();
    let least = [bound("minimum").map(f64::ceil), bound("exclusiveMinimum").map(|least| least.floor() + 1.0)];
    let most = [bound("maximum").map(f64::floor), bound("exclusiveMaximum").map(|most| most.ceil() - 1.0)];
    let whole = |number: f64| number as i64;
    (least.into_iter().flatten().map(whole).max(), most.into_iter().flatten().map(whole).min())
}

fn kinds(schema: &Value) -> Vec<String> {
    let named = |value: &Value| value.as_str().map(str::to_owned);
    match &schema["type"] {
        Value::String(kind) => vec![kind.clone()],
        Value::Array(kinds) => kinds.iter().filter_map(named).collect(),
        _ if schema.get("properties").is_some() => vec!["object".to_owned()],
        // Anything goes; plain values will do.
        _ => ["string", "number", "boolean", "null"].map(str::to_owned).to_vec(),
    }
}

/// JSON with a space after each comma and colon, the way it stands in most texts a model has read.
pub(in super::super) fn spaced(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), spaced(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}
