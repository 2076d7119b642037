//! The sessions waiting for each other on this node. Two sessions that would wait for each other get an error
//! immediately instead of a timeout.

use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::session_key::SessionKey;
use serde_json::json;

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::turn::turn_event;

/// A session whose turn waits, and the session it waits for.
type WaitEdge = (SessionKey, SessionKey);

#[derive(Default)]
pub(crate) struct WaitGraph(Mutex<Vec<WaitEdge>>);

/// A turn waits until this guard is dropped.
pub(crate) struct WaitGraphGuard {
    graph: Arc<WaitGraph>,
    edges: Vec<WaitEdge>,
}

impl WaitGraph {
    /// Records that one session waits for others. Fails with the first of them that already waits for it.
    fn add_wait(
        self: &Arc<Self>,
        from: &SessionKey,
        to: &[SessionKey],
    ) -> std::result::Result<WaitGraphGuard, SessionKey> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mutual) = to.iter().find(|to| has_path(&known, to, from)) {
            return Err(mutual.clone());
        }
        let edges: Vec<WaitEdge> = to.iter().map(|to| (from.clone(), to.clone())).collect();
        known.extend(edges.iter().cloned());
        Ok(WaitGraphGuard { graph: Arc::clone(self), edges })
    }
}

/// Whether one session waits for another, directly or indirectly. The graph has no cycles, so this terminates.
fn has_path(known: &[WaitEdge], from: &SessionKey, to: &SessionKey) -> bool {
    known.iter().any(|(waits, awaited)| waits == from && (awaited == to || has_path(known, awaited, to)))
}

impl Drop for WaitGraphGuard {
    fn drop(&mut self) {
        let mut known = self.graph.0.lock().unwrap_or_else(PoisonError::into_inner);
        for edge in &self.edges {
            if let Some(at) = known.iter().position(|known| known == edge) {
                known.swap_remove(at);
            }
        }
    }
}

impl Engine {
    /// Records that a turn of a session waits for others, until the returned guard is dropped. Fails if one of them
    /// waits for it.
    pub(crate) async fn begin_wait(
        &self,
        (from, turn): (&SessionKey, &TurnId),
        to: &[SessionKey],
    ) -> Result<WaitGraphGuard> {
        let mutual = match self.wait_graph.add_wait(from, to) {
            Ok(wait) => return Ok(wait),
            Err(mutual) => Error::WaitDeadlock(mutual.to_string()),
        };
        if let Some(running) = self.find_running_turn(turn) {
            let data = json!({ "code": mutual.code(), "reason": mutual.to_string() });
            self.record_event(turn_event(&running.claim, EventKind::ToolRefused, data)).await;
        }
        Err(mutual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclaw_domain::id::AgentId;

    fn key(name: &str) -> SessionKey {
        SessionKey::from_parts(&AgentId::main(), &[name])
    }

    #[test]
    fn wait_cycle_of_any_length_is_refused() {
        let waits = Arc::new(WaitGraph::default());
        let [a, b, c] = ["a", "b", "c"].map(key);
        let first = waits.add_wait(&a, std::slice::from_ref(&b)).ok().unwrap();
        assert_eq!(waits.add_wait(&b, std::slice::from_ref(&a)).err(), Some(a.clone()));
        let second = waits.add_wait(&b, std::slice::from_ref(&c)).ok().unwrap();
        assert_eq!(waits.add_wait(&c, &[key("d"), a.clone()]).err(), Some(a.clone()), "by way of another");
        assert!(waits.add_wait(&a, std::slice::from_ref(&c)).is_ok(), "two that wait for one are no circle");
        drop(second);
        assert!(waits.add_wait(&c, std::slice::from_ref(&a)).is_ok());
        drop(first);
        assert!(waits.add_wait(&b, &[a]).is_ok());
        assert!(waits.0.lock().unwrap().is_empty(), "nothing is left behind");
    }
}
