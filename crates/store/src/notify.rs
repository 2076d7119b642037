//! What other nodes say through the database: LISTEN/NOTIFY on PostgreSQL, nothing on SQLite.

/// A wake-up from another node. Losing one costs time, never a message: loops also look by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSignal(pub String);

/// Said by no node: this one listens from now on, and has not heard what was said before.
pub const CONNECTED_SIGNAL: &str = "connected";
