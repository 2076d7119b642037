//! What was changed, and by whom.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::audit::AuditRecord;
use polyclaw_domain::time::Millis;
use serde::Serialize;
use utoipa::ToSchema;

use super::state::ControlState;
use crate::error::Result;
use crate::extract::QueryParams;
use crate::paging::{PagePosition, PageQuery};

#[derive(Serialize, ToSchema)]
pub struct AuditEntryList {
    entries: Vec<AuditEntryView>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryView {
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

impl From<AuditRecord> for AuditEntryView {
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
pub struct AuditChainView {
    intact: bool,
    entries: i64,
    /// Of the last entry: written down elsewhere, it shows whether the end was cut off.
    head: String,
    broken_at: Option<i64>,
    reason: Option<String>,
}

/// The newest entries first.
#[utoipa::path(get, path = "/audit", tag = "access", params(PageQuery), responses((status = 200, body = AuditEntryList)))]
pub async fn list_audit_entries(
    State(app): State<ControlState>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<AuditEntryList>> {
    let paging = page.to_request("audit")?;
    let before = paging.after.as_ref().map(|place| place.at);
    let mut links = app.control.list_audit(before, paging.row_limit()).await?;
    let next_cursor = paging.cut_page(&mut links, |link| PagePosition { at: link.seq, id: String::new() });
    Ok(Json(AuditEntryList { entries: links.into_iter().map(AuditEntryView::from).collect(), next_cursor }))
}

/// Counts every hash again.
#[utoipa::path(get, path = "/audit/verify", tag = "access", responses((status = 200, body = AuditChainView)))]
pub async fn verify_audit_chain(State(app): State<ControlState>) -> Result<Json<AuditChainView>> {
    let (chain, broken) = app.control.verify_audit().await?;
    Ok(Json(AuditChainView {
        intact: broken.is_none(),
        entries: chain.len(),
        head: chain.head_hash().to_owned(),
        broken_at: broken.as_ref().map(|broken| broken.seq),
        reason: broken.map(|broken| broken.reason.to_owned()),
    }))
}
