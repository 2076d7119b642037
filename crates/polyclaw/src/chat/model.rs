//! The chat as a machine without I/O: keys, frames and answers in, effects out.

use std::collections::HashMap;

use polyclaw_domain::command;
use serde_json::Value;

use super::complete::Completion;
use super::entry::{Entry, Question, Said, SaidState, Tone};
use super::input::Input;
use super::reload::{Known, Reload};
use crate::stream::Frame;

/// What happens to the chat.
#[derive(Clone, Debug)]
pub enum Event {
    /// The conversation as it is stored, and its state.
    Loaded {
        session: Value,
        messages: Vec<Value>,
        approvals: Vec<Value>,
    },
    Frame(Frame),
    /// The live stream is there, or gone.
    Link(Link),
    /// A message was accepted.
    Posted {
        key: String,
        answer: Value,
    },
    Refused {
        key: String,
        reason: String,
    },
    /// The conversation could not be read.
    NotLoaded(String),
    /// A command answered; it may have changed what is stored.
    Told {
        text: String,
        changes: bool,
    },
    /// The teams there are, each with its members and tasks.
    Teams(Vec<Value>),
    Failed(String),
}

/// What the chat wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Send {
        key: String,
        text: String,
    },
    Command(String),
    Decide {
        id: String,
        decision: &'static str,
    },
    Stop,
    /// Read the conversation again.
    Reload,
    LookAtTeams,
    Remember(String),
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Connecting,
    Live,
    Lost,
}

pub struct Model {
    pub session: String,
    pub agent: String,
    /// How agents show themselves, by id.
    pub faces: HashMap<String, String>,
    pub model: String,
    pub link: Link,
    pub entries: Vec<Entry>,
    pub input: Input,
    pub completion: Completion,
    /// Lines scrolled up from the end.
    pub scroll: usize,
    /// The turn that is running.
    pub running: Option<String>,
    pub quit_armed: bool,
    /// The section of teams, where it is open.
    pub teams: Option<Vec<Value>>,
    /// The key that answered a question, until the next Enter.
    pub answered: Option<char>,
    pub(super) reload: Reload,
    /// What the conversation said when it was read last.
    pub(super) known: Known,
    /// Turns whose end has been seen: what a replay says about them is old.
    ended: Vec<String>,
    sent: u64,
}

impl Model {
    pub fn new(session: String, history: Vec<String>) -> Self {
        Self {
            session,
            agent: String::new(),
            faces: HashMap::new(),
            model: String::new(),
            link: Link::Connecting,
            entries: Vec::new(),
            input: Input::with_history(history),
            completion: Completion::default(),
            scroll: 0,
            running: None,
            quit_armed: false,
            teams: None,
            answered: None,
            reload: Reload::default(),
            known: Known::default(),
            ended: Vec::new(),
            sent: 0,
        }
    }

    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Loaded { session, messages, approvals } => {
                self.load(&session, &messages, &approvals);
                return self.catch_up();
            }
            Event::NotLoaded(reason) => {
                self.reload.is_due = true;
                self.note(reason, Tone::Bad);
                return self.catch_up();
            }
            Event::Link(link) => {
                self.link = link;
                let is_due = self.reload.is_due && link == Link::Live;
                return if is_due { self.read_again() } else { Vec::new() };
            }
            Event::Teams(teams) => self.show_teams(teams),
            other => return self.wait(other).map_or_else(Vec::new, |event| self.take_up(event)),
        }
        Vec::new()
    }

    /// What happens to the conversation, while none is on its way.
    fn take_up(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Frame(frame) => return self.apply(&frame),
            Event::Posted { key, answer } => self.posted(&key, &answer),
            Event::Refused { key, reason } => self.refused(&key, reason),
            Event::Told { text, changes: true } => {
                let effects = self.read_again();
                self.wait(Event::Told { text, changes: false });
                return effects;
            }
            Event::Told { text, .. } => self.note(text, Tone::Plain),
            Event::Failed(text) => self.note(text, Tone::Bad),
            Event::Loaded { .. } | Event::NotLoaded(_) | Event::Link(_) | Event::Teams(_) => {}
        }
        Vec::new()
    }

    /// Messages that wait for the running turn.
    pub fn waiting(&self) -> usize {
        let waits = |entry: &&Entry| matches!(entry, Entry::User(said) if said.state == SaidState::Waiting);
        self.entries.iter().filter(waits).count()
    }

    /// The oldest question nobody has answered.
    pub fn question(&self) -> Option<&Question> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Approval(question) if question.is_open() => Some(question),
            _ => None,
        })
    }

    /// Sends what was typed: a command to the instance, or a message.
    pub fn submit(&mut self) -> Vec<Effect> {
        let text = self.input.take();
        let line = text.trim();
        self.completion.close();
        self.scroll = 0;
        let remember = Effect::Remember(text.clone());
        match line {
            "" => Vec::new(),
            "/quit" | "/exit" => vec![remember, Effect::Quit],
            "/stop" => vec![remember, Effect::Stop],
            _ if command::parse(line).is_some() => vec![remember, Effect::Command(line.to_owned())],
            _ => vec![remember, self.say(text.trim_end().to_owned())],
        }
    }

    pub fn note(&mut self, text: String, tone: Tone) {
        self.entries.push(Entry::Note { text, tone });
    }

    fn say(&mut self, text: String) -> Effect {
        self.sent += 1;
        let key = format!("chat-{}-{}", std::process::id(), self.sent);
        let state = SaidState::Sending;
        self.entries.push(Entry::User(Said {
            text: text.clone(),
            key: key.clone(),
            id: None,
            turn: None,
            state,
        }));
        Effect::Send { key, text }
    }

    fn posted(&mut self, key: &str, answer: &Value) {
        let waiting = answer["waiting"].as_bool();
        let id = answer["message_id"].as_str();
        if id.is_some() && self.said(|said| said.id.as_deref() == id && said.key != key).is_some() {
            // It was read with the conversation already.
            self.entries.retain(|entry| !matches!(entry, Entry::User(said) if said.key == key));
            return;
        }
        let Some(said) = self.said(|said| said.key == key) else { return };
        said.id = id.map(str::to_owned);
        said.turn = answer["turn_id"].as_str().map(str::to_owned);
        if said.state == SaidState::Sending {
            said.state = if waiting == Some(true) { SaidState::Waiting } else { SaidState::Taken };
        }
    }

    fn refused(&mut self, key: &str, reason: String) {
        if let Some(said) = self.said(|said| said.key == key) {
            said.state = SaidState::Refused;
        }
        self.note(reason, Tone::Bad);
    }

    pub(super) fn said(&mut self, test: impl Fn(&Said) -> bool) -> Option<&mut Said> {
        self.entries.iter_mut().find_map(|entry| match entry {
            Entry::User(said) if test(said) => Some(said),
            _ => None,
        })
    }

    pub(super) fn has_ended(&self, turn: &str) -> bool {
        self.ended.iter().any(|ended| ended == turn) || self.known.has_ended(turn)
    }

    pub(super) fn remember_end(&mut self, turn: &str) {
        const KEPT: usize = 200;
        if self.ended.len() == KEPT {
            self.ended.remove(0);
        }
        self.ended.push(turn.to_owned());
    }
}
