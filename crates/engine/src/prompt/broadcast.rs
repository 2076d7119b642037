//! A turn that is one of several agents' answers to the same message.

use polyclaw_domain::delivery::is_silence;

use super::TurnContext;
use crate::core::Engine;
use crate::inbound::broadcast_position_of;
use crate::turn::{TurnAbort, TurnResult};

impl TurnContext {
    /// Where several agents answer one message, or one speaks in a conversation that is not its own, each reply says
    /// whose it is. Silence stays silence.
    pub fn sign_reply(&self, text: &str) -> String {
        if is_silence(text) { text.to_owned() } else { format!("{}{text}", self.signature()) }
    }

    /// What stands before such a reply; nothing before others.
    pub fn signature(&self) -> String {
        let is_signed = self.mirror.is_some() || self.broadcast_position().is_some();
        if is_signed { format!("{}: ", self.face) } else { String::new() }
    }

    /// The round this turn answers in, and its place in it.
    fn broadcast_position(&self) -> Option<(&str, usize)> {
        self.resumed_messages
            .iter()
            .chain(self.inputs())
            .rev()
            .find_map(|message| broadcast_position_of(message.meta.as_ref()))
    }

    /// Looks up what agents before it have said, for this turn only.
    pub async fn load_earlier_replies(&mut self, engine: &Engine) -> TurnResult<()> {
        let Some((round, position)) = self.broadcast_position().filter(|(_, position)| *position > 0) else {
            return Ok(());
        };
        let text = engine.earlier_replies(round, position).await;
        self.earlier_replies = text.map_err(TurnAbort::Lost)?;
        Ok(())
    }
}
