//! Named points at which a process may die. In production each costs one virtual call; the crash simulator and the
//! SIGKILL tests stop the process there.

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
    /// The message is stored and nobody was notified.
    IngressCommitted = "ingress.committed",
    /// A message was answered without being accepted, and no record of that is stored.
    ReplyOnceBefore = "reply_once.before",
    /// The outcome of a message is stored, and its platform was not notified.
    ReplyOnceCommitted = "reply_once.committed",
    /// A broadcast is stored, and no target has its message.
    BroadcastStored = "broadcast.stored",
    /// One target of a broadcast has its message, and no record says so.
    BroadcastTargetAccepted = "broadcast.target_accepted",
    /// A turn is claimed and has done nothing.
    TurnClaimed = "turn.claimed",
    /// The prompt is built; the model is not called yet.
    PromptBuilt = "prompt.built",
    /// The model is streaming its answer.
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
    /// The turn has yielded to a newer message.
    Steered = "turn.steered",
    /// The final text is about to be stored.
    FinishBefore = "finish.before",
    /// The turn is done in the database and nobody was notified.
    FinishCommitted = "finish.committed",
    /// A team's task list has changed, and no session was notified.
    LedgerWritten = "ledger.written",
    /// Sessions were notified of task events, and the task database has no record of that.
    LedgerNotified = "ledger.notified",
    /// Team messages are stored, and no recipient was woken to read them.
    TeamMessageStored = "team_message.stored",
    /// A shutdown of a team was requested, and nothing more was done.
    ShutdownRequested = "shutdown.requested",
    /// A member's answer to a shutdown is stored but not yet processed for its team.
    ShutdownAnswered = "shutdown.answered",
    /// A team has ended, and its folder was not moved yet.
    ShutdownEnded = "shutdown.ended",
    /// An outbox row is marked as being sent, nothing went out.
    OutboxSending = "outbox.sending",
    /// The platform accepted the message and nothing records it.
    OutboxAccepted = "outbox.accepted",
    /// The send is recorded.
    OutboxRecorded = "outbox.recorded",
}

impl KillPoint {
    /// Returns whether only teams pass this point.
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
    /// Returns immediately in production. If a fault is planned here, the process ends or this never returns.
    fn hit_kill_point(&self, point: KillPoint) -> BoxFuture<'_, ()>;
}
