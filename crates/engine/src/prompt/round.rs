//! A turn that is one of several agents' answers to the same message.

use polyclaw_domain::delivery::is_silence;

use super::Context;
use crate::core::Engine;
use crate::reception::seat_of;
use crate::turn::{Driven, Halt};

impl Context {
    /// Where several agents answer one message, or one speaks in a conversation that is not its own, each reply says
    /// whose it is. Silence stays silence.
    pub fn signed(&self, text: &str) -> String {
        if is_silence(text) { text.to_owned() } else { format!("{}{text}", self.signature()) }
    }

    /// What stands before such a reply; nothing before others.
    pub fn signature(&self) -> String {
        let is_signed = self.listeners.is_some() || self.seat().is_some();
        if is_signed { format!("{}: ", self.face) } else { String::new() }
    }

    /// The round this turn answers in, and its place in it.
    fn seat(&self) -> Option<(&str, usize)> {
        self.begun.iter().chain(self.inputs()).rev().find_map(|message| seat_of(message.meta.as_ref()))
    }

    /// Looks up what agents before it have said, for this turn only.
    pub async fn listen(&mut self, engine: &Engine) -> Driven<()> {
        let Some((round, seat)) = self.seat().filter(|(_, seat)| *seat > 0) else { return Ok(()) };
        let said = engine.said_before(round, seat).await;
        self.said_before = said.map_err(Halt::Lost)?;
        Ok(())
    }
}
