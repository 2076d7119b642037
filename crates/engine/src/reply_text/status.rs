//! `/status`, `/queue`, `/usage` and `/context`.

use polyclaw_domain::budget;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::localized;
use polyclaw_domain::session::Session;
use polyclaw_store::usage::GroupedUsage;

use super::count_noun;
use crate::context_usage::ContextUsage;

/// The model that a session uses.
#[derive(Clone, Debug)]
pub(crate) enum ShownModel {
    /// A person selected it.
    Selected(String),
    OfAgent(String),
    Missing,
}

/// `waiting` counts messages and interrupted tasks.
pub(crate) fn session_status(
    locale: Locale,
    session: &Session,
    model: &ShownModel,
    (is_running, waiting): (bool, usize),
) -> String {
    let (key, agent) = (&session.key, &session.active_agent);
    let model = match model {
        ShownModel::Selected(model) => localized!(locale, "{model} (selected)", "{model}（已选择）"),
        ShownModel::OfAgent(model) => model.clone(),
        ShownModel::Missing => localized!(locale, "none", "无"),
    };
    let activity = match (is_running, waiting) {
        (false, 0) => localized!(locale, "idle", "空闲"),
        (false, waiting) => localized!(locale, "{waiting} waiting", "{waiting} 条等待中"),
        (true, 0) => localized!(locale, "answering", "正在回答"),
        (true, waiting) => {
            localized!(locale, "answering, {waiting} waiting", "正在回答，{waiting} 条等待中")
        }
    };
    localized!(
        locale,
        "session {key}\nagent {agent}\nmodel {model}\n{activity}",
        "会话 {key}\n智能体 {agent}\n模型 {model}\n{activity}",
    )
}

pub(crate) fn whoami(locale: Locale, session: &Session) -> String {
    let (key, agent) = (&session.key, &session.active_agent);
    localized!(locale, "session {key}, agent {agent}", "会话 {key}，智能体 {agent}")
}

/// Work that waits in a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueState {
    pub is_running: bool,
    pub messages: usize,
    pub tasks: usize,
    /// Results of sub-agents that wait until a person writes.
    pub held: usize,
}

pub(crate) fn queue_state(locale: Locale, queue: QueueState) -> String {
    let QueueState { is_running, messages, tasks, held } = queue;
    let running = if is_running {
        localized!(locale, "A turn is running", "有回合正在运行")
    } else {
        localized!(locale, "No turn is running", "没有回合在运行")
    };
    let (counted_messages, counted_tasks) =
        (count_noun(messages, "message"), count_noun(tasks, "interrupted task"));
    let waiting = localized!(
        locale,
        "{running}; {counted_messages} and {counted_tasks} are waiting.",
        "{running}；{messages} 条消息和 {tasks} 个中断的任务等待中。",
    );
    let results = count_noun(held, "result");
    let held = match held {
        0 => String::new(),
        held => localized!(
            locale,
            " Held until you write: {results} of sub-agents.",
            "{held} 个子智能体的结果已搁置，待你写消息后处理。",
        ),
    };
    localized!(
        locale,
        "{waiting}{held} A message sent during a turn is answered first; then the task continues. The queue mode is \
         steer-backlog.",
        "{waiting}{held}回合运行期间收到的消息会先处理，之后任务继续。队列模式为 steer-backlog。",
    )
}

pub(crate) fn unknown_queue_mode(locale: Locale, mode: &str) -> String {
    localized!(
        locale,
        "'{mode}' is not a queue mode. The only mode is steer-backlog.",
        "没有队列模式“{mode}”，只有 steer-backlog。",
    )
}

pub(crate) fn no_usage(locale: Locale) -> String {
    localized!(locale, "Nothing was used in this session yet.", "此会话还没有用量。")
}

/// Reports unknown usage as unknown instead of guessing.
pub(crate) fn session_usage(locale: Locale, total: &GroupedUsage) -> String {
    let known = |tokens: Option<i64>| {
        tokens.map_or_else(|| localized!(locale, "unknown", "未知"), |tokens| tokens.to_string())
    };
    let (calls, input, output) = (total.calls, known(total.input_tokens), known(total.output_tokens));
    let mut text = localized!(
        locale,
        "{calls} model call(s), {input} tokens in, {output} out",
        "{calls} 次模型调用，输入 {input} Token，输出 {output} Token",
    );
    if let Some(cost) = total.cost_nanos.map(budget::nanos_to_usd) {
        text += &localized!(locale, ", ${cost:.4}", "，费用 ${cost:.4}");
    }
    if let count @ 1.. = total.unknown_calls {
        text += &localized!(locale, "; the usage of {count} is unknown", "；{count} 次调用的用量未知");
    }
    if let count @ 1.. = total.unpriced_calls {
        text += &localized!(locale, "; the cost of {count} is unknown", "；{count} 次调用的费用未知");
    }
    text
}

pub(crate) fn context_usage(locale: Locale, usage: &ContextUsage) -> String {
    let model =
        usage.model.as_ref().map_or_else(|| localized!(locale, "no model", "没有模型"), ToString::to_string);
    let (total, window) = (usage.total_tokens(), usage.window);
    let share = (total * 100).checked_div(window).unwrap_or_default();
    let free = window.saturating_sub(total);
    let ContextUsage { system, tools, summary, history, messages, recalled, memories, .. } = usage;
    localized!(
        locale,
        "{model}: about {total} of {window} tokens ({share} %)\n\
         system    {system}\ntools     {tools}\nsummary   {summary}\nhistory   {history} in {messages} message(s)\n\
         recalled  {recalled} in {memories} memories\nfree      {free}",
        "{model}：约 {total} / {window} Token（{share}%）\n\
         系统提示：{system}\n工具：{tools}\n摘要：{summary}\n历史：{history}（{messages} 条消息）\n\
         召回：{recalled}（{memories} 条记忆）\n剩余：{free}",
    )
}
