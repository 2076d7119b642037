//! Reasons why a turn ended without an answer.

use polyclaw_domain::budget::{self, BudgetScope, NanoUsd, ReachedLimit};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::localized;
use polyclaw_domain::time::Millis;
use polyclaw_domain::turn::StopReason;

/// Why a turn ended early, for the people who wait for its answer.
#[derive(Clone, Debug)]
pub(crate) enum TurnFailure {
    UnknownAgent(AgentId),
    UnsafeWorkspace(String),
    Model(ModelFailure),
    Budget(BudgetFailure),
    Stopped,
    StoppedByRule(StopReason),
    Stalled { seconds: u64 },
    TimedOut { minutes: u64 },
    TooManyAttempts(u32),
    Unreadable(String),
    Internal,
}

/// Why no model answered.
#[derive(Clone, Debug)]
pub(crate) enum ModelFailure {
    NotConfigured { hint: String },
    EmptyAnswer { model: String },
    OutOfDescriptors,
    Failed { error: String, advice: Option<ModelAdvice> },
}

/// What a person can do about a failed model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelAdvice {
    StartNewConversation,
    WaitMinutes(u64),
}

/// Why a budget does not allow the next model call.
#[derive(Clone, Debug)]
pub(crate) enum BudgetFailure {
    UnpricedModel(String),
    TurnLimit { used: NanoUsd, limit: NanoUsd },
    DailyLimit { scope: BudgetScope, reached: ReachedLimit, resets: Millis },
}

impl From<ModelFailure> for TurnFailure {
    fn from(failure: ModelFailure) -> Self {
        Self::Model(failure)
    }
}

impl From<BudgetFailure> for TurnFailure {
    fn from(failure: BudgetFailure) -> Self {
        Self::Budget(failure)
    }
}

impl TurnFailure {
    pub fn text(&self, locale: Locale) -> String {
        match self {
            Self::UnknownAgent(agent) => localized!(
                locale,
                "The agent '{agent}' no longer exists. /agents lists the agents, /agent <id> selects one for this \
                 conversation.",
                "智能体 {agent} 已不存在。用 /agents 查看所有智能体，用 /agent <id> 为此对话选择一个。",
            ),
            Self::UnsafeWorkspace(reason) => {
                localized!(locale, "The agent cannot run: {reason}", "智能体无法运行：{reason}")
            }
            Self::Model(failure) => failure.text(locale),
            Self::Budget(failure) => failure.text(locale),
            Self::Stopped => localized!(locale, "Stopped.", "已停止。"),
            Self::StoppedByRule(reason) => reason.user_message(locale),
            Self::Stalled { seconds } => localized!(
                locale,
                "The turn stopped because nothing happened for {seconds} seconds.",
                "此回合已停止：{seconds} 秒内没有任何进展。",
            ),
            Self::TimedOut { minutes } => localized!(
                locale,
                "The turn stopped after {minutes} minutes without finishing.",
                "此回合在 {minutes} 分钟内未完成，已停止。",
            ),
            Self::TooManyAttempts(deaths) => localized!(
                locale,
                "The turn was given up after {deaths} attempts that were all interrupted before a step completed.",
                "已放弃此回合：{deaths} 次尝试都在完成一步之前中断。",
            ),
            Self::Unreadable(what) => localized!(
                locale,
                "The stored data of this conversation cannot be read: {what}",
                "此对话存储的内容无法读取：{what}",
            ),
            Self::Internal => localized!(
                locale,
                "The turn stopped because of an internal error. The log has the details.",
                "由于内部错误，此回合已停止，详见日志。",
            ),
        }
    }
}

impl ModelFailure {
    fn text(&self, locale: Locale) -> String {
        match self {
            Self::NotConfigured { hint } => localized!(
                locale,
                "{hint}",
                "没有可用的模型。请设置 OPENAI_API_KEY 等密钥并重启，或在 config.toml 的 [agents.defaults] 中设置 model。\
                 详情请运行 “polyclaw doctor”。",
            ),
            Self::EmptyAnswer { model } => {
                localized!(
                    locale,
                    "The model {model} returned an empty answer.",
                    "模型 {model} 没有给出回复。"
                )
            }
            Self::OutOfDescriptors => localized!(
                locale,
                "The model could not be called: this machine has no free file descriptor (too many open files). Raise \
                 the limit of open files, or close programs that are not needed.",
                "无法调用模型：本机的文件描述符已用尽。请提高打开文件数的上限，或关闭不需要的程序。",
            ),
            Self::Failed { error, advice } => {
                let advice = advice.map(|advice| advice.text(locale)).unwrap_or_default();
                localized!(
                    locale,
                    "The model did not answer ({error}).{advice}",
                    "未能从模型获得回复（{error}）。{advice}",
                )
            }
        }
    }
}

impl ModelAdvice {
    fn text(self, locale: Locale) -> String {
        match self {
            Self::StartNewConversation => localized!(
                locale,
                " Start a new conversation with /new, or select a model with a larger window.",
                "请用 /new 开始新对话，或换一个上下文更大的模型。",
            ),
            Self::WaitMinutes(minutes) => localized!(
                locale,
                " It asks to wait for {minutes} minutes. /model selects another.",
                "模型要求等待 {minutes} 分钟，可用 /model 更换模型。",
            ),
        }
    }
}

impl BudgetFailure {
    fn text(&self, locale: Locale) -> String {
        match self {
            Self::UnpricedModel(model) => budget::unpriced_model_refusal(locale, model),
            Self::TurnLimit { used, limit } => budget::turn_refusal(locale, *used, *limit),
            Self::DailyLimit { scope, reached, resets } => {
                budget::daily_refusal(locale, scope, *reached, *resets)
            }
        }
    }
}
