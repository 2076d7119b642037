//! The terminal chat. `state` decides, `view` draws, `connection` talks to the instance; this loop connects them.

mod card;
mod completion;
mod connection;
mod entry;
mod frame;
mod history;
mod input;
mod keys;
mod markdown;
pub mod plain;
mod reload;
mod state;
mod stream_position;
mod teams;
mod terminal;
mod transcript;
mod view;
mod wrap;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use crossterm::event::{Event as Input, EventStream};
use futures_util::StreamExt;
use polyclaw_domain::frame::FrameKind;
use polyclaw_domain::hex::encode_hex;
use tokio::sync::mpsc;

use crate::client::ApiClient;
use crate::home::Home;
use crate::ids::random_bytes;
use crate::redaction;
use connection::ChatConnection;
pub use entry::TRUNCATED_NOTE;
use state::{ChatEffect, ChatEvent, ChatState};
use terminal::TerminalScreen;
use view::ChatView;

/// Frames that arrive within this time are drawn together.
const REDRAW_INTERVAL: Duration = Duration::from_millis(33);

pub struct TerminalChat {
    pub client: ApiClient,
    pub home: Home,
    pub session: String,
    /// Agent of the session, if the session is new.
    pub agent: Option<String>,
    /// Model that answers unless the session chose another.
    pub model: String,
    /// Display names of agents, by ID.
    pub faces: HashMap<String, String>,
}

impl TerminalChat {
    pub async fn run(self) -> anyhow::Result<()> {
        let (events, mut inbox) = mpsc::unbounded_channel();
        let net = ChatConnection {
            client: self.client,
            session: self.session.clone(),
            agent: self.agent.clone(),
            run: encode_hex(&random_bytes::<8>()),
            events,
        };
        let mut model = ChatState::new(self.session, history::read_history(&self.home.chat_history()));
        model.model = self.model;
        model.faces = self.faces;
        model.agent =
            self.agent.or_else(|| model.session.split(':').nth(1).map(str::to_owned)).unwrap_or_default();
        // The input history is stored in a file, so a pasted key is redacted there too.
        let redactor = redaction::build_redactor(&self.home.read_config().unwrap_or_default(), &self.home);
        tokio::spawn(net.clone().follow_session());
        let mut screen = TerminalScreen::open()?;
        let mut view = ChatView::default();
        let mut keys = EventStream::new();
        loop {
            screen.terminal.draw(|frame| view.draw_chat(frame, &mut model))?;
            let effects = tokio::select! {
                key = keys.next() => match key {
                    Some(key) => apply_input(&mut model, key?),
                    None => vec![ChatEffect::Quit],
                },
                Some(event) = inbox.recv() => drain_events(&mut model, event, &mut inbox).await,
            };
            for effect in effects {
                match effect {
                    ChatEffect::Quit => return Ok(()),
                    ChatEffect::Remember(line) => {
                        history::append_history(&self.home.chat_history(), &redactor.redact_text(&line));
                    }
                    effect => drop(tokio::spawn(net.clone().perform_effect(effect))),
                }
            }
        }
    }
}

fn apply_input(model: &mut ChatState, input: Input) -> Vec<ChatEffect> {
    match input {
        Input::Key(key) => model.handle_key(key),
        Input::Paste(text) => {
            model.paste_text(&text);
            Vec::new()
        }
        // A resize needs no action: the next draw handles it.
        _ => Vec::new(),
    }
}

/// Handles everything that has arrived. While tokens stream it waits a moment for more, so that a burst is one
/// redraw.
async fn drain_events(
    model: &mut ChatState,
    first: ChatEvent,
    inbox: &mut mpsc::UnboundedReceiver<ChatEvent>,
) -> Vec<ChatEffect> {
    let streams = match &first {
        ChatEvent::Frame(frame) => {
            matches!(frame.frame_kind(), Some(FrameKind::Delta { .. } | FrameKind::DelegateDelta { .. }))
        }
        _ => false,
    };
    let mut effects = model.handle_event(first);
    if streams {
        tokio::time::sleep(REDRAW_INTERVAL).await;
    }
    while let Ok(event) = inbox.try_recv() {
        effects.extend(model.handle_event(event));
    }
    effects
}
