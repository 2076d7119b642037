//! Paged lists. Cursors are opaque.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::control::audit::{AuditEntryList, AuditEntryView};
use crate::control::imports::{ImportRun, ImportRuns};
use crate::control::instances::{InstanceList, InstanceView};
use crate::control::messages::{EnvelopeList, EnvelopeView};
use crate::control::rules::{RuleList, RuleView};
use crate::control::tokens::{TokenList, TokenView};
use crate::events::{EventList, EventView};
use crate::history::{PastTurnList, PastTurnView};
use crate::memory::{MemoryList, MemoryListItem};
use crate::outbox::{OutboxList, OutboxMessageView};
use crate::sessions::{SessionList, SessionView};
use crate::teams::{TeamTaskList, TeamTaskView};
use crate::turns::{TurnList, TurnView};

/// The query of a list without other parameters.
#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// A response with one page of a list.
pub trait Page {
    type Item;

    /// Returns the items and the cursor of the next page.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! pages {
    ($($list:ty { $field:ident: $item:ty })*) => {
        $(impl Page for $list {
            type Item = $item;

            fn into_parts(self) -> (Vec<$item>, Option<String>) {
                (self.$field, self.next_cursor)
            }
        })*
    };
}

pages! {
    AuditEntryList { entries: AuditEntryView }
    EnvelopeList { messages: EnvelopeView }
    EventList { events: EventView }
    ImportRuns { runs: ImportRun }
    InstanceList { instances: InstanceView }
    MemoryList { memories: MemoryListItem }
    OutboxList { outbox: OutboxMessageView }
    PastTurnList { tasks: PastTurnView }
    RuleList { rules: RuleView }
    SessionList { sessions: SessionView }
    TeamTaskList { tasks: TeamTaskView }
    TokenList { tokens: TokenView }
    TurnList { turns: TurnView }
}
