//! Named points at which a process may die. Production passes through them at the cost of one virtual call;
//! the crash simulator and the SIGKILL tests stop the world there.

use crate::port::BoxFuture;

macro_rules! kill_points {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum KillPoint { $($(#[$doc])* $name,)* }

        impl KillPoint {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|point| point.as_str() == text)
            }
        }
    };
}

kill_points! {
    /// A message arrived and nothing is stored.
    IngressBefore = "ingress.before",
    /// The message is stored and nobody was told.
    IngressCommitted = "ingress.committed",
    /// A letter was answered without being a message, and nothing of that is stored.
    ReplyOnceBefore = "reply_once.before",
    /// What a letter came to is stored, and its platform was not told.
    ReplyOnceCommitted = "reply_once.committed",
    /// A message for several agents is stored, and none of them has it.
    BroadcastStored = "broadcast.stored",
    /// One of several agents has its message, and nothing says so.
    BroadcastTargetAccepted = "broadcast.target_accepted",
    /// A turn is claimed and has done nothing.
    TurnClaimed = "turn.claimed",
    /// The prompt is ready, the model not yet asked.
    PromptBuilt = "prompt.built",
    /// The model is answering.
    MidStream = "stream.mid",
    /// The model answered and nothing of it is stored.
    ReplyReceived = "reply.received",
    /// The model's tool calls are stored.
    StepStored = "step.stored",
    /// A tool's intent is stored and the tool has not run.
    IntentStored = "intent.stored",
    /// The tool has run and its result is not stored.
    ToolRan = "tool.ran",
    /// The tool's result is stored.
    ResultStored = "result.stored",
    /// The turn has given way to a newer message.
    Steered = "turn.steered",
    /// The final text is about to be stored.
    FinishBefore = "finish.before",
    /// The turn is done in the database and nobody was told.
    FinishCommitted = "finish.committed",
    /// A team's ledger has changed, and no session was told.
    LedgerWritten = "ledger.written",
    /// Sessions were told what a ledger says, and the ledger does not know it.
    LedgerNotified = "ledger.notified",
    /// Letters are stored, and nobody was woken to read them.
    TeamMessageStored = "team_message.stored",
    /// A team is asked to end, and nothing more was done.
    ShutdownRequested = "shutdown.requested",
    /// A member's answer is stored, and nobody has looked what it means to its team.
    ShutdownAnswered = "shutdown.answered",
    /// A team has ended, and its folder is still where it was.
    ShutdownEnded = "shutdown.ended",
    /// An outbox row is marked as being sent, nothing went out.
    OutboxSending = "outbox.sending",
    /// The platform accepted and nothing records it.
    OutboxAccepted = "outbox.accepted",
    /// The send is recorded.
    OutboxRecorded = "outbox.recorded",
}

impl KillPoint {
    /// Only what teams do passes there.
    pub fn is_team_point(self) -> bool {
        matches!(
            self,
            Self::LedgerWritten
                | Self::LedgerNotified
                | Self::TeamMessageStored
                | Self::ShutdownRequested
                | Self::ShutdownAnswered
                | Self::ShutdownEnded
        )
    }
}

pub trait FaultInjector: Send + Sync {
    /// Returns at once in production. Where a fault is planned, the process ends here or this never returns.
    fn hit_kill_point(&self, point: KillPoint) -> BoxFuture<'_, ()>;
}
