//! A turn whose agent is one of several that answer the same broadcast.

use polyclaw_domain::delivery::is_silence;

use super::TurnContext;
use crate::core::Engine;
use crate::inbound::broadcast_position_of;
use crate::turn::{TurnAbort, TurnResult};

impl TurnContext {
    /// Prefixes a reply with the agent's name if several agents answer one message, or if it appears in another
    /// session's conversation. Silence stays silence.
    pub fn sign_reply(&self, text: &str) -> String {
        if is_silence(text) { text.to_owned() } else { format!("{}{text}", self.signature()) }
    }

    /// Returns the prefix of a signed reply; empty for other replies.
    pub fn signature(&self) -> String {
        let is_signed = self.mirror.is_some() || self.broadcast_position().is_some();
        if is_signed { format!("{}: ", self.face) } else { String::new() }
    }

    /// Returns the broadcast this turn answers, and its position in it.
    fn broadcast_position(&self) -> Option<(&str, usize)> {
        self.resumed_messages
            .iter()
            .chain(self.inputs())
            .rev()
            .find_map(|message| broadcast_position_of(message.meta.as_ref()))
    }

    /// Loads the replies of agents before it in the broadcast, for this turn only.
    pub async fn load_earlier_replies(&mut self, engine: &Engine) -> TurnResult<()> {
        let Some((round, position)) = self.broadcast_position().filter(|(_, position)| *position > 0) else {
            return Ok(());
        };
        let text = engine.earlier_replies(round, position).await;
        self.earlier_replies = text.map_err(TurnAbort::Lost)?;
        Ok(())
    }
}
