//! The chat as a state machine without I/O: keys, frames and responses in, effects out.

use std::collections::HashMap;

use polyclaw_api::approvals::ApprovalView;
use polyclaw_api::messages::SessionMessageReceipt;
use polyclaw_api::sessions::SessionView;
use polyclaw_api::teams::TeamDetail;
use polyclaw_api::transcript::SessionMessageView;
use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::command;

use super::completion::CommandCompletion;
use super::entry::{ApprovalCard, NoteTone, TranscriptEntry, UserMessage, UserMessageState};
use super::input::InputLine;
use super::reload::{StoredTurns, TranscriptReload};
use crate::stream::StreamFrame;

/// An event for the chat.
#[derive(Clone, Debug)]
pub enum ChatEvent {
    /// The stored session and its state. A session that does not exist yet is `None`.
    Loaded {
        session: Option<Box<SessionView>>,
        messages: Vec<SessionMessageView>,
        approvals: Vec<ApprovalView>,
    },
    Frame(StreamFrame),
    /// The live stream connected or disconnected.
    Link(LinkState),
    /// A message was accepted.
    Posted {
        key: String,
        answer: SessionMessageReceipt,
    },
    Refused {
        key: String,
        reason: String,
    },
    /// The session could not be loaded.
    NotLoaded(String),
    /// A command's reply. `changes` is set if it changed the stored session.
    CommandAnswered {
        text: String,
        changes: bool,
    },
    /// All teams with their members and tasks.
    Teams(Vec<TeamDetail>),
    Failed(String),
}

/// An action for the connection to perform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatEffect {
    Send {
        key: String,
        text: String,
    },
    Command(String),
    Decide {
        id: String,
        decision: ApprovalDecision,
    },
    Stop,
    /// Load the stored session again.
    Reload,
    FetchTeams,
    Remember(String),
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    Connecting,
    Live,
    Lost,
}

pub struct ChatState {
    pub session: String,
    pub agent: String,
    /// Display names of agents, by ID.
    pub faces: HashMap<String, String>,
    pub model: String,
    pub link: LinkState,
    pub entries: Vec<TranscriptEntry>,
    pub input: InputLine,
    pub completion: CommandCompletion,
    /// Lines scrolled up from the end.
    pub scroll: usize,
    /// The running turn.
    pub running: Option<String>,
    pub quit_armed: bool,
    /// The teams panel, if it is open.
    pub teams: Option<Vec<TeamDetail>>,
    /// The key that answered an approval request, until the next Enter.
    pub answered: Option<char>,
    pub(super) reload: TranscriptReload,
    /// Facts from the last load of the session.
    pub(super) stored_turns: StoredTurns,
    /// Turns that have ended. Replayed frames about them are outdated.
    ended: Vec<String>,
    sent: u64,
}

impl ChatState {
    pub fn new(session: String, history: Vec<String>) -> Self {
        Self {
            session,
            agent: String::new(),
            faces: HashMap::new(),
            model: String::new(),
            link: LinkState::Connecting,
            entries: Vec::new(),
            input: InputLine::with_history(history),
            completion: CommandCompletion::default(),
            scroll: 0,
            running: None,
            quit_armed: false,
            teams: None,
            answered: None,
            reload: TranscriptReload::default(),
            stored_turns: StoredTurns::default(),
            ended: Vec::new(),
            sent: 0,
        }
    }

    pub fn handle_event(&mut self, event: ChatEvent) -> Vec<ChatEffect> {
        match event {
            ChatEvent::Loaded { session, messages, approvals } => {
                self.load_conversation(session.as_deref(), &messages, &approvals);
                return self.replay_deferred();
            }
            ChatEvent::NotLoaded(reason) => {
                self.reload.is_due = true;
                self.add_note(reason, NoteTone::Bad);
                return self.replay_deferred();
            }
            ChatEvent::Link(link) => {
                self.link = link;
                let is_due = self.reload.is_due && link == LinkState::Live;
                return if is_due { self.request_reload() } else { Vec::new() };
            }
            ChatEvent::Teams(teams) => self.show_teams(teams),
            other => return self.defer_event(other).map_or_else(Vec::new, |event| self.apply_event(event)),
        }
        Vec::new()
    }

    /// Applies an event while no load is pending.
    fn apply_event(&mut self, event: ChatEvent) -> Vec<ChatEffect> {
        match event {
            ChatEvent::Frame(frame) => return self.apply_frame(&frame),
            ChatEvent::Posted { key, answer } => self.confirm_sent(&key, &answer),
            ChatEvent::Refused { key, reason } => self.mark_refused(&key, reason),
            ChatEvent::CommandAnswered { text, changes: true } => {
                let effects = self.request_reload();
                self.defer_event(ChatEvent::CommandAnswered { text, changes: false });
                return effects;
            }
            ChatEvent::CommandAnswered { text, .. } => self.add_note(text, NoteTone::Plain),
            ChatEvent::Failed(text) => self.add_note(text, NoteTone::Bad),
            ChatEvent::Loaded { .. } | ChatEvent::NotLoaded(_) | ChatEvent::Link(_) | ChatEvent::Teams(_) => {
            }
        }
        Vec::new()
    }

    /// Returns the number of messages that wait for the running turn.
    pub fn waiting_count(&self) -> usize {
        let waits = |entry: &&TranscriptEntry| matches!(entry, TranscriptEntry::User(message) if message.state == UserMessageState::Waiting);
        self.entries.iter().filter(waits).count()
    }

    /// Returns the oldest open approval request.
    pub fn open_question(&self) -> Option<&ApprovalCard> {
        self.entries.iter().find_map(|entry| match entry {
            TranscriptEntry::Approval(question) if question.is_open() => Some(question),
            _ => None,
        })
    }

    /// Sends the input: as a command, or as a message.
    pub fn submit_input(&mut self) -> Vec<ChatEffect> {
        let text = self.input.take_text();
        let line = text.trim();
        self.completion.close();
        self.scroll = 0;
        let remember = ChatEffect::Remember(text.clone());
        match line {
            "" => Vec::new(),
            "/quit" | "/exit" => vec![remember, ChatEffect::Quit],
            "/stop" => vec![remember, ChatEffect::Stop],
            _ if command::parse(line).is_some() => vec![remember, ChatEffect::Command(line.to_owned())],
            _ => vec![remember, self.queue_message(text.trim_end().to_owned())],
        }
    }

    pub fn add_note(&mut self, text: String, tone: NoteTone) {
        self.entries.push(TranscriptEntry::Note { text, tone });
    }

    fn queue_message(&mut self, text: String) -> ChatEffect {
        self.sent += 1;
        let key = format!("chat-{}-{}", std::process::id(), self.sent);
        let state = UserMessageState::Sending;
        self.entries.push(TranscriptEntry::User(UserMessage {
            text: text.clone(),
            key: key.clone(),
            id: None,
            turn: None,
            state,
        }));
        ChatEffect::Send { key, text }
    }

    fn confirm_sent(&mut self, key: &str, answer: &SessionMessageReceipt) {
        let id = answer.message_id.as_str();
        if self.find_user_message(|message| message.id.as_deref() == Some(id) && message.key != key).is_some()
        {
            // It was read with the conversation already.
            self.entries
                .retain(|entry| !matches!(entry, TranscriptEntry::User(message) if message.key == key));
            return;
        }
        let Some(message) = self.find_user_message(|message| message.key == key) else { return };
        message.id = Some(id.to_owned());
        message.turn = Some(answer.turn_id.to_string());
        if message.state == UserMessageState::Sending {
            message.state =
                if answer.waiting { UserMessageState::Waiting } else { UserMessageState::Accepted };
        }
    }

    fn mark_refused(&mut self, key: &str, reason: String) {
        if let Some(message) = self.find_user_message(|message| message.key == key) {
            message.state = UserMessageState::Refused;
        }
        self.add_note(reason, NoteTone::Bad);
    }

    pub(super) fn find_user_message(
        &mut self,
        test: impl Fn(&UserMessage) -> bool,
    ) -> Option<&mut UserMessage> {
        self.entries.iter_mut().find_map(|entry| match entry {
            TranscriptEntry::User(message) if test(message) => Some(message),
            _ => None,
        })
    }

    pub(super) fn has_ended(&self, turn: &str) -> bool {
        self.ended.iter().any(|ended| ended == turn) || self.stored_turns.has_ended(turn)
    }

    pub(super) fn remember_end(&mut self, turn: &str) {
        const RETAINED_ENDED_TURNS: usize = 200;
        if self.ended.len() == RETAINED_ENDED_TURNS {
            self.ended.remove(0);
        }
        self.ended.push(turn.to_owned());
    }
}
