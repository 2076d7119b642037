//! The chat in the terminal. `model` decides, `view` draws, `net` talks; this loop carries between them.

mod card;
mod complete;
mod entry;
mod frame;
mod history;
mod input;
mod keys;
mod markdown;
mod model;
mod net;
mod place;
pub mod plain;
mod reload;
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
use polyclaw_domain::hex::encode_hex;
use tokio::sync::mpsc;

use crate::client::Client;
use crate::home::Home;
use crate::ids::random;
use crate::redaction;
pub use entry::CUT;
use model::{Effect, Event, Model};
use net::Net;
use terminal::Screen;
use view::View;

/// Frames that arrive together are drawn together.
const DRAW_EVERY: Duration = Duration::from_millis(33);

pub struct Chat {
    pub client: Client,
    pub home: Home,
    pub session: String,
    /// Whose session it becomes, if it is new.
    pub agent: Option<String>,
    /// The model that answers unless the session picked another.
    pub model: String,
    /// How agents show themselves, by id.
    pub faces: HashMap<String, String>,
}

impl Chat {
    pub async fn run(self) -> anyhow::Result<()> {
        let (events, mut inbox) = mpsc::unbounded_channel();
        let net = Net {
            client: self.client,
            session: self.session.clone(),
            agent: self.agent.clone(),
            run: encode_hex(&random::<8>()),
            events,
        };
        let mut model = Model::new(self.session, history::read(&self.home.chat_history()));
        model.model = self.model;
        model.faces = self.faces;
        model.agent =
            self.agent.or_else(|| model.session.split(':').nth(1).map(str::to_owned)).unwrap_or_default();
        // The lines of a person who pastes a key are a file, too.
        let redactor = redaction::redactor(&self.home.read_config().unwrap_or_default(), &self.home);
        tokio::spawn(net.clone().follow());
        let mut screen = Screen::open()?;
        let mut view = View::default();
        let mut keys = EventStream::new();
        loop {
            screen.terminal.draw(|frame| view.draw(frame, &mut model))?;
            let effects = tokio::select! {
                key = keys.next() => match key {
                    Some(key) => typed(&mut model, key?),
                    None => vec![Effect::Quit],
                },
                Some(event) = inbox.recv() => arrived(&mut model, event, &mut inbox).await,
            };
            for effect in effects {
                match effect {
                    Effect::Quit => return Ok(()),
                    Effect::Remember(line) => {
                        history::append(&self.home.chat_history(), &redactor.redact_text(&line));
                    }
                    effect => drop(tokio::spawn(net.clone().perform(effect))),
                }
            }
        }
    }
}

fn typed(model: &mut Model, input: Input) -> Vec<Effect> {
    match input {
        Input::Key(key) => model.key(key),
        Input::Paste(text) => {
            model.paste(&text);
            Vec::new()
        }
        // A resize is drawn like everything else.
        _ => Vec::new(),
    }
}

/// Takes everything that has arrived, and a moment more where tokens stream, so that a burst is one drawing.
async fn arrived(model: &mut Model, first: Event, inbox: &mut mpsc::UnboundedReceiver<Event>) -> Vec<Effect> {
    let streams = matches!(&first, Event::Frame(frame) if frame.kind.ends_with(".delta"));
    let mut effects = model.update(first);
    if streams {
        tokio::time::sleep(DRAW_EVERY).await;
    }
    while let Ok(event) = inbox.try_recv() {
        effects.extend(model.update(event));
    }
    effects
}
