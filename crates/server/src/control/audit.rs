//! What was changed, and by whom.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::audit::AuditRecord;
use polyclaw_domain::time::Millis;
use serde::Serialize;
use utoipa::ToSchema;

use super::state::ControlState;
use crate::error::Result;
use crate::extract::Query;
use crate::paging::{Page, Place};

#[derive(Serialize, ToSchema)]
pub struct Audit {
    entries: Vec<EntryView>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct EntryView {
    seq: i64,
    /// `operator`, `token:<id>`, `instance:<id>` or `supervisor`.
    who: String,
    action: String,
    target: String,
    before: Option<String>,
    after: Option<String>,
    detail: String,
    #[schema(value_type = String, format = DateTime)]
    at: Millis,
    /// Of this entry and, through the one before it, of all before it.
    hash: String,
}

impl From<AuditRecord> for EntryView {
    fn from(link: AuditRecord) -> Self {
        let entry = link.entry;
        Self {
            seq: link.seq,
            who: entry.who,
            action: entry.action,
            target: entry.target,
            before: entry.before,
            after: entry.after,
            detail: entry.detail,
            at: entry.at,
            hash: link.hash,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ChainVerdict {
    whole: bool,
    entries: i64,
    /// Of the last entry: written down elsewhere, it shows whether the end was cut off.
    head: String,
    broken_at: Option<i64>,
    why: Option<String>,
}

/// The newest entries first.
#[utoipa::path(get, path = "/audit", tag = "access", params(Page), responses((status = 200, body = Audit)))]
pub async fn list(State(app): State<ControlState>, Query(page): Query<Page>) -> Result<Json<Audit>> {
    let paging = page.of("audit")?;
    let before = paging.after.as_ref().map(|place| place.at);
    let mut links = app.control.audit(before, paging.wanted()).await?;
    let next_cursor = paging.cut(&mut links, |link| Place { at: link.seq, id: String::new() });
    Ok(Json(Audit { entries: links.into_iter().map(EntryView::from).collect(), next_cursor }))
}

/// Counts every hash again.
#[utoipa::path(get, path = "/audit/verify", tag = "access", responses((status = 200, body = ChainVerdict)))]
pub async fn verify(State(app): State<ControlState>) -> Result<Json<ChainVerdict>> {
    let (chain, broken) = app.control.verify_audit().await?;
    Ok(Json(ChainVerdict {
        whole: broken.is_none(),
        entries: chain.len(),
        head: chain.head_hash().to_owned(),
        broken_at: broken.as_ref().map(|broken| broken.seq),
        why: broken.map(|broken| broken.why.to_owned()),
    }))
}
