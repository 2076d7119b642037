//! Approval requests and the answers to them.

use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::localized;

/// Notice to the requester of a call that only an owner can approve.
pub(crate) fn waiting_for_owner(locale: Locale) -> String {
    localized!(
        locale,
        "This needs an owner's approval. The owner was asked. The task continues after the answer. Another message \
         from you withdraws the request.",
        "此操作需要所有者批准。已向所有者发出请求，得到答复后继续。如果你再发一条消息，请求会被撤回。",
    )
}

/// The same if no owner has written to the instance in a chat yet.
pub(crate) fn waiting_in_command_center(locale: Locale) -> String {
    localized!(
        locale,
        "This needs an owner's approval. The request waits in the owner's command center. The task continues after \
         the answer. Another message from you withdraws the request.",
        "此操作需要所有者批准。请求正在所有者的管理页面中等待处理，得到答复后继续。如果你再发一条消息，请求会被撤回。",
    )
}

/// A request as owners read it in another conversation.
pub(crate) fn question_for_owner(locale: Locale, requesters: &str, session: &str, question: &str) -> String {
    localized!(
        locale,
        "Requested by {requesters}, in the session {session}.\n{question}",
        "由 {requesters} 在会话 {session} 中请求。\n{question}",
    )
}

pub(crate) fn id_missing(locale: Locale) -> String {
    localized!(
        locale,
        "Name the request: /approve <id> or /deny <id>.",
        "请写明请求的 id：/approve <id> 或 /deny <id>。",
    )
}

pub(crate) fn request_decided(locale: Locale, decision: ApprovalDecision) -> String {
    match decision {
        ApprovalDecision::Approve => localized!(locale, "Approved. It runs now.", "已批准，现在开始运行。"),
        ApprovalDecision::Deny => {
            localized!(locale, "Denied. The agent is notified.", "已拒绝，智能体会得知结果。")
        }
    }
}

pub(crate) fn requested_elsewhere(locale: Locale) -> String {
    localized!(locale, "This was not requested in this chat.", "该请求不是在此对话中提出的。")
}
