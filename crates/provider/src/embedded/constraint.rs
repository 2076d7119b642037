//! Restricts the output of a model, byte by byte, so that it always matches a JSON Schema.
//!
//! `schema` compiles a schema into a graph of byte transitions. A [`SchemaConstraint`] is the set of nodes that the
//! text so far can be at. Every node knows the number of bytes of its shortest completion, so a text can always be
//! completed before the tokens run out: a byte takes at most one token.

mod schema;
#[cfg(test)]
mod tests;

use std::rc::Rc;

pub(super) use schema::{UnsupportedSchema, compile_schema, to_spaced_json};

/// The end cannot be reached.
const UNREACHABLE_END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharCount {
    Keep,
    /// A string starts; it may have this many characters.
    Begin(u32),
    /// Uses up one character of the string.
    Spend,
}

#[derive(Clone, Copy, Debug)]
struct GraphEdge {
    first: u8,
    last: u8,
    to: usize,
    count: CharCount,
}

#[derive(Clone, Debug, Default)]
struct GraphNode {
    edges: Vec<GraphEdge>,
    /// Nodes reached without a byte.
    free: Vec<usize>,
    distance: u32,
}

#[derive(Debug)]
pub(super) struct ConstraintGraph {
    places: Vec<GraphNode>,
    end: usize,
}

/// A node, with the number of characters that the open string may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GraphPosition {
    place: usize,
    left: u32,
}

#[derive(Clone, Debug)]
pub(super) struct SchemaConstraint {
    graph: Rc<ConstraintGraph>,
    spots: Vec<GraphPosition>,
}

/// Maximum concurrent positions. Without it, a schema with thousands of choices would make every byte a search.
const MAX_POSITIONS: usize = 256;

impl ConstraintGraph {
    /// Computes the shortest distance of each node to the end, backwards from the end. Only bytes that the model can
    /// write count.
    fn measure_distances(
        &mut self,
        start: usize,
        writable: &dyn Fn(u8) -> bool,
    ) -> Result<(), UnsupportedSchema> {
        for place in &mut self.places {
            place.distance = UNREACHABLE_END;
        }
        self.places[self.end].distance = 0;
        loop {
            let mut changed = false;
            // Nodes are created back to front, so the first pass finds most distances.
            for at in 0..self.places.len() {
                let place = &self.places[at];
                let free = place.free.iter().map(|to| self.places[*to].distance);
                let steps = place.edges.iter().filter(|edge| (edge.first..=edge.last).any(writable));
                let steps = steps.map(|edge| self.places[edge.to].distance.saturating_add(1));
                let shortest = free.chain(steps).min().unwrap_or(UNREACHABLE_END);
                if shortest < place.distance {
                    self.places[at].distance = shortest;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        match self.places[start].distance {
            UNREACHABLE_END => Err(UnsupportedSchema("no value matches it".to_owned())),
            _ => Ok(()),
        }
    }
}

impl SchemaConstraint {
    fn new(graph: Rc<ConstraintGraph>, start: usize) -> Self {
        let mut constraint = Self { graph, spots: Vec::new() };
        constraint.add_position(GraphPosition { place: start, left: 0 });
        constraint
    }

    fn add_position(&mut self, spot: GraphPosition) {
        // Dropping positions is safe: each remaining one leads to the end.
        if self.spots.len() >= MAX_POSITIONS || self.spots.contains(&spot) {
            return;
        }
        self.spots.push(spot);
        let graph = Rc::clone(&self.graph);
        for to in &graph.places[spot.place].free {
            self.add_position(GraphPosition { place: *to, left: spot.left });
        }
    }

    /// Advances by one byte. Returns `false` and changes nothing if the byte is not allowed.
    pub fn advance_byte(&mut self, byte: u8) -> bool {
        let before = std::mem::take(&mut self.spots);
        for spot in &before {
            let graph = Rc::clone(&self.graph);
            let fits = |edge: &&GraphEdge| (edge.first..=edge.last).contains(&byte);
            for edge in graph.places[spot.place].edges.iter().filter(fits) {
                let left = match edge.count {
                    CharCount::Keep => Some(spot.left),
                    CharCount::Begin(most) => Some(most),
                    CharCount::Spend => spot.left.checked_sub(1),
                };
                if let Some(left) = left {
                    self.add_position(GraphPosition { place: edge.to, left });
                }
            }
        }
        if self.spots.is_empty() {
            self.spots = before;
            return false;
        }
        true
    }

    /// Whether all bytes are allowed and the text can then be completed within `room` bytes.
    pub fn allows_bytes(&self, bytes: &[u8], room: u32) -> bool {
        let Some(first) = bytes.first() else { return false };
        // Most tokens fail at their first byte, so it is checked before anything is copied.
        let begins = |spot: &GraphPosition| {
            let fits = |edge: &GraphEdge| (edge.first..=edge.last).contains(first);
            self.graph.places[spot.place].edges.iter().any(fits)
        };
        if !self.spots.iter().any(begins) {
            return false;
        }
        let mut ahead = self.clone();
        bytes.iter().all(|byte| ahead.advance_byte(*byte)) && ahead.distance_to_end() <= room
    }

    /// Returns the minimum number of bytes to the end.
    pub fn distance_to_end(&self) -> u32 {
        self.spots.iter().map(|spot| self.graph.places[spot.place].distance).min().unwrap_or(UNREACHABLE_END)
    }

    /// Whether the text is complete as it is.
    pub fn is_complete(&self) -> bool {
        self.spots.iter().any(|spot| spot.place == self.graph.end)
    }

    /// Whether the text is complete and cannot be extended.
    pub fn is_over(&self) -> bool {
        self.is_complete() && self.spots.iter().all(|spot| self.graph.places[spot.place].edges.is_empty())
    }

    /// Returns the bytes that must come next in any case.
    pub fn forced_bytes(&self) -> Vec<u8> {
        let mut ahead = self.clone();
        let mut forced = Vec::new();
        while let Some(byte) = ahead.only_byte() {
            if !ahead.advance_byte(byte) {
                break;
            }
            forced.push(byte);
        }
        forced
    }

    fn only_byte(&self) -> Option<u8> {
        if self.is_complete() {
            return None;
        }
        let edges = self.spots.iter().flat_map(|spot| {
            let open = move |edge: &&GraphEdge| edge.count != CharCount::Spend || spot.left > 0;
            self.graph.places[spot.place].edges.iter().filter(open)
        });
        let mut only = None;
        for edge in edges {
            if edge.first != edge.last || only.is_some_and(|byte| byte != edge.first) {
                return None;
            }
            only = Some(edge.first);
        }
        only
    }
}
