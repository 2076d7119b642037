//! `/subagents`.

use polyclaw_domain::locale::Locale;
use polyclaw_domain::localized;
use polyclaw_domain::run::{RunStatus, SubagentRun};
use polyclaw_domain::sanitize;
use polyclaw_domain::session_key::SessionKey;

/// Maximum length of a task or result in a reply.
const MAX_LINE_CHARS: usize = 300;

pub(crate) fn usage_line(locale: Locale) -> String {
    localized!(
        locale,
        "/subagents list | info <which> | log <which> | kill <which>|all | send <which> <text> | \
         steer <which> <text> | spawn [@agent] <task>. <which> is its number, its label or its run id.",
        "/subagents list | info <哪个> | log <哪个> | kill <哪个>|all | send <哪个> <文本> | steer <哪个> <文本> | \
         spawn [@智能体] <任务>。<哪个> 为编号、标签或运行 id。",
    )
}

pub(crate) fn none_here(locale: Locale) -> String {
    localized!(locale, "This session has no sub-agents.", "此会话没有子智能体。")
}

pub(crate) fn status_word(locale: Locale, status: RunStatus) -> &'static str {
    match (locale, status) {
        (Locale::English, status) => status.as_str(),
        (Locale::Chinese, RunStatus::Running) => "运行中",
        (Locale::Chinese, RunStatus::Ok) => "已完成",
        (Locale::Chinese, RunStatus::Error) => "失败",
        (Locale::Chinese, RunStatus::Timeout) => "超时",
        (Locale::Chinese, RunStatus::Cancelled) => "已停止",
    }
}

/// One line of the list. `prefix` has the number and the indentation.
pub(crate) fn list_line(locale: Locale, prefix: &str, run: &SubagentRun, age: &str) -> String {
    let (label, agent) = (sanitize::to_single_line(&run.task.label, 60), &run.agent);
    let status = status_word(locale, run.status);
    localized!(
        locale,
        "{prefix}{label} ({agent}) {status}, {age} ago",
        "{prefix}{label}（{agent}）{status}，{age} 前",
    )
}

pub(crate) fn run_details(locale: Locale, run: &SubagentRun) -> String {
    let SubagentRun { id, trace, child, agent, created_at, .. } = run;
    let (kind, status) = (run.kind.as_str(), status_word(locale, run.status));
    let task = sanitize::to_single_line(&run.task.prompt, MAX_LINE_CHARS);
    let result = run.result.as_ref();
    let tokens = result.and_then(|result| result.tokens).map(|tokens| tokens.to_string());
    let tokens = tokens.unwrap_or_else(|| localized!(locale, "unknown", "未知"));
    let text = result.map(|result| sanitize::to_single_line(&result.text, MAX_LINE_CHARS));
    let text = text.unwrap_or_default();
    let ended =
        run.ended_at.map_or_else(|| localized!(locale, "not yet", "尚未"), |ended_at| ended_at.to_string());
    localized!(
        locale,
        "run {id} ({kind}), trace {trace}\nsession {child}, agent {agent}\ntask {task}\n\
         {status}, started {created_at}, ended {ended}\ntokens {tokens}\nresult {text}",
        "运行 {id}（{kind}），trace {trace}\n会话 {child}，智能体 {agent}\n任务 {task}\n\
         {status}，开始于 {created_at}，结束于 {ended}\nToken {tokens}\n结果 {text}",
    )
}

pub(crate) fn transcript_deleted(locale: Locale) -> String {
    localized!(locale, "Its transcript was deleted when it ended.", "它的记录在结束时已删除。",)
}

/// `None`: the run no longer exists.
pub(crate) fn run_ended(locale: Locale, status: Option<RunStatus>) -> String {
    match status.map(|status| status_word(locale, status)) {
        Some(status) => localized!(locale, "It has ended: {status}.", "它已结束：{status}。"),
        None => localized!(locale, "It no longer exists.", "它已不存在。"),
    }
}

pub(crate) fn none_running(locale: Locale) -> String {
    localized!(locale, "No sub-agent is running.", "没有子智能体在运行。")
}

pub(crate) fn subagents_stopped(locale: Locale, labels: &str) -> String {
    localized!(locale, "Stopped: {labels}.", "已停止：{labels}。")
}

pub(crate) fn message_delivered(locale: Locale, is_waiting: bool) -> String {
    if is_waiting {
        localized!(locale, "The message is delivered at its next step.", "消息将在它的下一步送达。")
    } else {
        localized!(locale, "The message was delivered.", "消息已送达。")
    }
}

pub(crate) fn subagent_started(locale: Locale, child: &SessionKey) -> String {
    localized!(
        locale,
        "Started in {child}. Its result is reported here.",
        "已在 {child} 中启动，结果会在此处告知。",
    )
}
