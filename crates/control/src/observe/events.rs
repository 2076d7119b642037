//! What happens in the instances, as each of them records it.

use std::collections::HashMap;

use polyclaw_domain::envelope::Pattern;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::Name;
use polyclaw_domain::key::SessionKey;
use polyclaw_store::events::{self, Recorded};
use polyclaw_store::registry;

use crate::control::Control;
use crate::error::Result;

/// How much of what happened a reader is shown first, of each instance.
const FIRST: usize = 50;
/// Read at a time; what is more comes with the next look.
const MOST: usize = 256;

/// Which events somebody reads; all where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    /// By id or name.
    pub instance: Option<String>,
    pub session: Option<SessionKey>,
    pub kind: Option<Pattern>,
}

impl Interest {
    fn is_in(&self, event: &Recorded) -> bool {
        let session = self.session.as_ref().map(SessionKey::as_str);
        session.is_none_or(|wanted| event.session.as_deref() == Some(wanted))
            && self.kind.as_ref().is_none_or(|kind| kind.fit(&event.kind).is_some())
    }
}

/// How far a reader has come in each instance.
pub type Places = HashMap<InstanceId, i64>;

#[derive(Clone, Debug)]
pub struct Happened {
    pub instance: InstanceId,
    pub name: Name,
    pub event: Recorded,
}

impl Control {
    /// What happened since the last look: at the first, the last of it. Instances whose events are not in a file of
    /// their own are left out.
    pub async fn happened(&self, interest: &Interest, places: &mut Places) -> Result<Vec<Happened>> {
        let rows = match &interest.instance {
            Some(word) => vec![self.row(word).await?],
            None => self.db.read(registry::list).await?,
        };
        let mut found = Vec::new();
        for one in rows.into_iter().filter(|one| one.archived_at.is_none()) {
            let place = places.get(&one.id).copied();
            let looked = self.look_into(&one, move |tx| match place {
                Some(seq) => events::list(tx, seq, None, None, MOST),
                None => events::last(tx, FIRST),
            });
            // One that is just being made, or whose file another build wrote, has nothing to say now.
            let Ok(Ok(recorded)) = looked.await else { continue };
            let last = recorded.last().map_or(place.unwrap_or(0), |event| event.seq);
            places.insert(one.id.clone(), last);
            let wanted = recorded.into_iter().filter(|event| interest.is_in(event));
            found.extend(wanted.map(|event| Happened {
                instance: one.id.clone(),
                name: one.name.clone(),
                event,
            }));
        }
        found.sort_by_key(|happened| happened.event.created_at);
        Ok(found)
    }
}
