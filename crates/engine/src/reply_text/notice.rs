//! Notices that nobody asked for.

use polyclaw_domain::id::AgentId;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::localized;

/// Marks the end of a text that was interrupted by a newer message.
pub(crate) fn interrupted_suffix(locale: Locale) -> String {
    localized!(locale, "\n\n(Interrupted. This continues later.)", "\n\n（已中断，稍后继续。）")
}

/// Why a text of a delegation ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutShortReason {
    TimeLimit,
    Stopped,
    Failed,
}

impl CutShortReason {
    pub fn text(self, locale: Locale) -> String {
        match self {
            Self::TimeLimit => {
                localized!(locale, "(Cut short: time limit reached.)", "（未完成：已达到时间上限。）")
            }
            Self::Stopped => localized!(locale, "(Cut short: stopped.)", "（未完成：已被停止。）"),
            Self::Failed => localized!(locale, "(Cut short: failed.)", "（未完成：出错。）"),
        }
    }
}

pub(crate) fn agent_removed(locale: Locale, removed: &AgentId, own: &AgentId) -> String {
    localized!(
        locale,
        "The agent {removed} was removed. {own} answers here again.",
        "智能体 {removed} 已被删除，这里重新由 {own} 回答。",
    )
}

/// Why the result of a run is held until a person writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldReason {
    TooManyHops,
    BudgetSpent,
}

pub(crate) fn result_held(locale: Locale, name: &str, reason: HeldReason) -> String {
    match reason {
        HeldReason::TooManyHops => localized!(
            locale,
            "The result of {name} is held: it passed through too many agents. Send any message to continue.",
            "{name} 的结果已搁置：经过的智能体过多。发送任意消息即可继续。",
        ),
        HeldReason::BudgetSpent => localized!(
            locale,
            "The result of {name} is held: agents have replied to each other too often without a person. Send any \
             message to continue.",
            "{name} 的结果已搁置：智能体之间的自动往来已达上限。发送任意消息即可继续。",
        ),
    }
}

pub(crate) fn team_budget_spent(locale: Locale, team: &str, limit: u32) -> String {
    localized!(
        locale,
        "Team '{team}' has used all of its {limit} automatic turns and is waiting. Write to its lead to continue.",
        "团队“{team}”的 {limit} 个自动轮次已用完，正在等待。给负责人写信即可继续。",
    )
}

pub(crate) fn rate_limited(locale: Locale, model: &str, seconds: u128) -> String {
    localized!(
        locale,
        "{model} limits the rate of requests. The next attempt is in {seconds} seconds.",
        "{model} 限制了请求频率，{seconds} 秒后重试。",
    )
}
