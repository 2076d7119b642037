//! The chat as a machine without I/O: keys, frames and answers in, effects out.

use std::collections::HashMap;

use serde_json::Value;

use super::complete::Completion;
use super::entry::{Entry, Question, Said, SaidState, Tone, from_transcript};
use super::input::Input;
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
    /// A command answered.
    Told(String),
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
            ended: Vec::new(),
            sent: 0,
        }
    }

    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Loaded { session, messages, approvals } => self.load(&session, &messages, &approvals),
            Event::Frame(frame) => return self.apply(&frame),
            Event::Link(link) => self.link = link,
            Event::Posted { key, answer } => self.posted(&key, &answer),
            Event::Refused { key, reason } => self.refused(&key, reason),
            Event::Teams(teams) => self.show_teams(teams),
            Event::Told(text) => self.note(text, Tone::Plain),
            Event::Failed(text) => self.note(text, Tone::Bad),
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
            _ if Completion::is_command(line) => vec![remember, Effect::Command(line.to_owned())],
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

    fn load(&mut self, session: &Value, messages: &[Value], approvals: &[Value]) {
        let stored = from_transcript(messages);
        // What another agent says is stored with the result of the call that asked it: until then it is only here.
        let is_only_here = |entry: &Entry| match entry {
            Entry::Speech { run, .. } => {
                !stored.iter().any(|known| matches!(known, Entry::Speech { run: own, .. } if own == run))
            }
            other => is_unsent(other),
        };
        let (only_here, _): (Vec<Entry>, Vec<Entry>) = self.entries.drain(..).partition(is_only_here);
        self.entries = stored;
        self.entries.extend(only_here);
        self.running = session["running_turn_id"].as_str().map(str::to_owned);
        if let Some(agent) = session["active_agent_id"].as_str() {
            agent.clone_into(&mut self.agent);
        }
        if let Some(model) = session["model"].as_str() {
            model.clone_into(&mut self.model);
        }
        for one in approvals.iter().filter(|one| one["state"] == "pending") {
            if one["session_key"] == *self.session {
                self.ask(one["id"].as_str().unwrap_or_default(), one);
            }
        }
    }

    fn posted(&mut self, key: &str, answer: &Value) {
        let waiting = answer["waiting"].as_bool();
        let Some(said) = self.said(|said| said.key == key) else { return };
        said.id = answer["message_id"].as_str().map(str::to_owned);
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
        self.ended.iter().any(|ended| ended == turn)
    }

    pub(super) fn remember_end(&mut self, turn: &str) {
        const KEPT: usize = 200;
        if self.ended.len() == KEPT {
            self.ended.remove(0);
        }
        self.ended.push(turn.to_owned());
    }
}

/// What the server has not confirmed is not in its transcript yet.
fn is_unsent(entry: &Entry) -> bool {
    matches!(entry, Entry::User(said) if said.id.is_none() && said.state != SaidState::Refused)
}
