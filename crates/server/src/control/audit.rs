//! The audit log of changes.

use axum::Json;
use axum::extract::State;
use polyclaw_api::control::audit::{AuditChainView, AuditEntryList, AuditEntryView};
use polyclaw_api::paging::PageQuery;

use super::state::ControlState;
use crate::error::Result;
use crate::extract::QueryParams;
use crate::paging::{PagePosition, PageRequest};

/// Lists audit entries, newest first.
#[utoipa::path(get, path = "/audit", tag = "access", params(PageQuery), responses((status = 200, body = AuditEntryList)))]
pub async fn list_audit_entries(
    State(app): State<ControlState>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<AuditEntryList>> {
    let paging = PageRequest::from_page_query("audit", &page)?;
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
