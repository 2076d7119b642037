//! The audit log of changes.

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
    /// The entries of this page, newest first.
    entries: Vec<AuditEntryView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryView {
    /// The sequence number of the entry.
    seq: i64,
    /// Who made the change: `operator`, `token:<id>`, `instance:<id>` or `supervisor`.
    who: String,
    /// What was done, such as `instance.start`.
    action: String,
    /// The id of the changed object.
    target: String,
    /// The hash of the object before the change, if known.
    before: Option<String>,
    /// The hash of the object after the change, if known.
    after: Option<String>,
    /// Details, such as the name of the instance.
    detail: String,
    /// When the change was made.
    #[schema(value_type = String, format = DateTime)]
    at: Millis,
    /// A hash over this entry and the hash of the previous one, which covers all earlier entries.
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
    /// Whether the chain is intact.
    intact: bool,
    /// The number of verified entries.
    entries: i64,
    /// The hash of the last entry. A copy kept elsewhere shows whether entries at the end were removed.
    head: String,
    /// The sequence number of the first bad entry. Null if the chain is intact.
    broken_at: Option<i64>,
    /// What is wrong with it. Null if the chain is intact.
    reason: Option<String>,
}

/// Lists audit entries, newest first.
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

/// Verifies the audit log by recomputing its hash chain.
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
