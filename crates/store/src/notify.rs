//! Signals of other nodes through the database: LISTEN/NOTIFY on PostgreSQL, nothing on SQLite.

/// A wake-up from another node. A lost signal costs time but no message, because loops also poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSignal(pub String);

/// Sent locally when this node starts to listen. Signals sent before were missed.
pub const CONNECTED_SIGNAL: &str = "connected";
