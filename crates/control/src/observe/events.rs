//! Events of instances, as each instance records them.

use std::collections::HashMap;

use polyclaw_domain::envelope::EnvelopeKindPattern;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::InstanceName;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::events::{self, EventRecord};
use polyclaw_store::registry::{self, InstanceRecord};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::control::Control;
use crate::error::Result;

/// Recent events per instance that a reader gets first.
const MAX_INITIAL_EVENTS: usize = 50;
/// Events read at a time; the rest follows with the next poll.
const EVENT_BATCH_SIZE: usize = 256;

/// Selects events. An empty filter matches all.
#[derive(Clone, Debug, Default)]
pub struct InstanceEventFilter {
    /// The id or name of an instance.
    pub instance: Option<String>,
    pub session: Option<SessionKey>,
    pub kind: Option<EnvelopeKindPattern>,
}

impl InstanceEventFilter {
    fn matches_event(&self, event: &EventRecord) -> bool {
        let session = self.session.as_ref().map(SessionKey::as_str);
        session.is_none_or(|wanted| event.session.as_deref() == Some(wanted))
            && self.kind.as_ref().is_none_or(|kind| kind.match_specificity(&event.kind).is_some())
    }
}

/// The last event read of each instance.
pub type EventPositions = HashMap<InstanceId, i64>;

#[derive(Clone, Debug)]
pub struct InstanceEvent {
    pub instance: InstanceId,
    pub name: InstanceName,
    pub event: EventRecord,
}

/// An event as reported by an instance's API.
#[derive(Deserialize)]
struct ReportedEvent {
    seq: i64,
    kind: String,
    session_key: Option<String>,
    turn_id: Option<String>,
    agent_id: Option<String>,
    trace_id: Option<String>,
    data: Value,
    created_at: Millis,
}

impl From<ReportedEvent> for EventRecord {
    fn from(event: ReportedEvent) -> Self {
        Self {
            seq: event.seq,
            kind: event.kind,
            session: event.session_key,
            turn: event.turn_id,
            agent: event.agent_id,
            trace: event.trace_id,
            data: event.data,
            created_at: event.created_at,
        }
    }
}

impl Control {
    /// Returns the events since the last call. The first call returns the most recent ones.
    pub async fn read_new_events(
        &self,
        interest: &InstanceEventFilter,
        places: &mut EventPositions,
    ) -> Result<Vec<InstanceEvent>> {
        let rows = match &interest.instance {
            Some(word) => vec![self.find_instance(word).await?],
            None => self.db.read(registry::list).await?,
        };
        // Asks all instances concurrently, so that a slow one does not delay the others.
        let mut asked = JoinSet::new();
        for one in rows.into_iter().filter(|one| one.archived_at.is_none()) {
            let (control, place) = (self.clone(), places.get(&one.id).copied());
            asked.spawn(async move { (control.read_instance_events(&one, place).await, one, place) });
        }
        let mut found = Vec::new();
        while let Some(events) = asked.join_next().await {
            // An instance that is being created, is stopped, or has a database of another version yields no events
            // now.
            let Ok((Some(recorded), one, place)) = events else { continue };
            let last = recorded.last().map_or(place.unwrap_or(0), |event| event.seq);
            places.insert(one.id.clone(), last);
            let wanted = recorded.into_iter().filter(|event| interest.matches_event(event));
            found.extend(wanted.map(|event| InstanceEvent {
                instance: one.id.clone(),
                name: one.name.clone(),
                event,
            }));
        }
        found.sort_by_key(|happened| happened.event.created_at);
        Ok(found)
    }

    /// Reads the events of an instance after a position, from its database file or its API.
    async fn read_instance_events(
        &self,
        one: &InstanceRecord,
        place: Option<i64>,
    ) -> Option<Vec<EventRecord>> {
        if !self.has_db_file(one).await {
            if self.liveness.is_unresponsive(&one.id) {
                return None;
            }
            let path = match place {
                Some(seq) => format!("/api/v1/events?after={seq}&limit={EVENT_BATCH_SIZE}"),
                None => format!("/api/v1/events?last={MAX_INITIAL_EVENTS}"),
            };
            let body = self.fetch_json(one, &path).await.ok()?;
            let events: Vec<ReportedEvent> = serde_json::from_value(body["events"].clone()).ok()?;
            return Some(events.into_iter().map(EventRecord::from).collect());
        }
        let looked = self.query_instance_db(one, move |tx| match place {
            Some(seq) => events::list(tx, seq, None, None, EVENT_BATCH_SIZE),
            None => events::list_latest(tx, MAX_INITIAL_EVENTS),
        });
        looked.await.ok()?.ok()
    }
}
