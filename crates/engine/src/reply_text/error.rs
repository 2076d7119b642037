//! Errors as a part of a sentence: without a period at the end.

use polyclaw_domain::approval::ApprovalState;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::localized;
use polyclaw_domain::relay::RelayRefusal;
use polyclaw_domain::run::{RunKind, SpawnLimitExceeded};
use polyclaw_domain::team::TeamRefusal;
use polyclaw_store::Error as StoreError;

use crate::error::{Error, StateConflict};

/// Describes an error. English is the text that the API returns, too.
pub(crate) fn error_text(error: &Error, locale: Locale) -> String {
    match locale {
        Locale::English => error.to_string(),
        Locale::Chinese => chinese_error(error),
    }
}

// One arm for each error, so that an error without a translation does not compile.
#[allow(clippy::too_many_lines)]
fn chinese_error(error: &Error) -> String {
    match error {
        Error::UnknownAgent(agent) => format!("没有智能体“{agent}”"),
        Error::AgentExists(agent) => format!("已有智能体“{agent}”"),
        Error::AgentNameTaken { name, id } => format!("名称“{name}”已被智能体 {id} 使用"),
        Error::AgentNotAllowed(agent) => format!("你在此处无法使用智能体 {agent}"),
        Error::AgentInConfig(agent) => format!("智能体“{agent}”写在 config.toml 中，请在那里修改"),
        Error::DefaultAgent(agent) => format!("“{agent}”是默认智能体，不能删除"),
        Error::AgentInRules(agent, path) => format!("配置的 {path} 引用了智能体“{agent}”"),
        Error::InvalidAgent(detail) => format!("智能体的设置无效：{detail}"),
        Error::UnsafeWorkspace(detail) => format!("智能体无法运行：{detail}"),
        Error::AmbiguousAgent(name, ids) => format!("“{name}”可能指多个智能体：{ids}"),
        Error::UnknownProvider(provider) => format!("没有提供方“{provider}”"),
        Error::UnknownModel(model) => format!("提供方没有模型“{model}”"),
        Error::UnknownCronJob(job) => format!("没有定时任务“{job}”"),
        Error::CronJobExists(job) => format!("已有定时任务“{job}”"),
        Error::CronJobInConfig(job) => format!("定时任务“{job}”写在 config.toml 中，请在那里修改"),
        Error::InvalidCronJob(detail) => format!("该定时任务的内容无效：{detail}"),
        Error::UnknownSession(session) => format!("没有会话“{session}”"),
        Error::UnknownTurn(turn) => format!("没有回合“{turn}”"),
        Error::UnknownApproval(id) => format!("没有请求“{id}”"),
        Error::UnknownOutbox(id) => format!("没有待发送的消息“{id}”"),
        Error::UnknownTool(tool) => format!("没有工具“{tool}”"),
        Error::UnknownMemory(id) => format!("没有记忆“{id}”"),
        Error::UnknownPairing(code) => format!("没有发送者使用配对码或名称“{code}”"),
        Error::UnknownRun(run) => format!("此会话没有子智能体“{run}”"),
        Error::ServerNotNamed { tool, agent } => {
            format!("智能体 {agent} 未列出工具“{tool}”所属的 MCP 服务器")
        }
        Error::InvalidMemory(invalid) => format!("该记忆的内容无效：{invalid}"),
        Error::NotYours(invalid) => invalid.user_message(Locale::Chinese).to_owned(),
        Error::EmptyMessage => "消息为空".to_owned(),
        Error::OnlyAName(agent) => format!("请在名称后写上消息：/{agent} <消息>"),
        Error::UnknownCommand(unknown) => {
            unknown.user_message(Locale::Chinese).trim_end_matches('。').to_owned()
        }
        Error::TooLong(chars, limit) => format!("消息有 {chars} 个字符，最多 {limit} 个"),
        Error::KeyTooLong(bytes, limit) => format!("该消息的标识有 {bytes} 字节，最多 {limit} 字节"),
        Error::SecretInKey => "名称或标识中含有密钥".to_owned(),
        Error::BacklogFull(count) => format!("此会话已有 {count} 条消息等待，请等待回复后再发"),
        Error::Deleted => "该消息已处理过，其会话已被删除".to_owned(),
        Error::Relay(refusal) => chinese_relay(refusal),
        Error::Subagent(detail) => format!("无法启动子智能体：{detail}"),
        Error::TooMany(kind, limit) => chinese_limit(*kind, limit),
        Error::DelegationDenied(from, to) => format!("智能体 {from} 不可将工作交给 {to}"),
        Error::SendDenied { from, to, missing } => {
            format!("智能体 {from} 不可向 {to} 的会话发消息（{missing}）")
        }
        Error::WaitDeadlock(session) => format!("{session} 已在等待此会话，两者会永远互相等待"),
        Error::Team(refusal) => chinese_team(refusal),
        Error::Task(refusal) => format!("任务操作被拒绝：{refusal}"),
        Error::StateConflict(conflict) => conflict.text(Locale::Chinese),
        Error::InvalidState(detail) => format!("现在无法执行：{detail}"),
        Error::Archive(detail) => format!("对话无法归档，因此没有删除：{detail}"),
        Error::TeamFiles(detail) => format!("无法写入团队文件：{detail}"),
        Error::AgentFiles(detail) => format!("无法读取或写入智能体的文件：{detail}"),
        Error::Draining => "实例正在关闭，不再接受新的消息".to_owned(),
        Error::Store(error) => chinese_store(error),
    }
}

fn chinese_store(error: &StoreError) -> String {
    match error {
        StoreError::Full(_) => "磁盘已满".to_owned(),
        StoreError::ReadOnly(_) => "数据库无法写入".to_owned(),
        StoreError::FilesReplaced(_) => "数据库文件被移除或替换，请重启实例".to_owned(),
        StoreError::Corrupt(_) => "数据库已损坏".to_owned(),
        StoreError::Unreadable(_) => "存储的内容无法读取，请开始新的对话".to_owned(),
        error => format!("数据库没有响应（{}）", error.code()),
    }
}

fn chinese_relay(refusal: &RelayRefusal) -> String {
    match refusal {
        RelayRefusal::SelfSend => "会话不能给自己发消息".to_owned(),
        RelayRefusal::TooManyHops(_) => "该消息经过的智能体过多".to_owned(),
        RelayRefusal::BudgetSpent(_) => "智能体之间的自动往来已达上限，请写一条消息继续".to_owned(),
    }
}

fn chinese_limit(kind: RunKind, limit: &SpawnLimitExceeded) -> String {
    let what = match kind {
        RunKind::Subagent => "子智能体",
        RunKind::Delegate => "转交的工作",
    };
    match limit {
        SpawnLimitExceeded::Depth(depth, most) => format!("{what}的层级将为 {depth}，上限为 {most}"),
        SpawnLimitExceeded::Children(count, most) => {
            format!("此会话已有 {count} 个{what}在运行，上限为 {most}")
        }
        SpawnLimitExceeded::Concurrent(count, most) => {
            format!("此智能体已有 {count} 个{what}在运行，上限为 {most}")
        }
    }
}

fn chinese_team(refusal: &TeamRefusal) -> String {
    match refusal {
        TeamRefusal::Name(invalid) => format!("团队或成员不能使用名称“{}”", invalid.0),
        TeamRefusal::Reserved(name) => format!("成员不能使用保留的名称“{name}”"),
        TeamRefusal::Unknown(team) => format!("没有团队“{team}”"),
        TeamRefusal::Exists(team) => format!("已有团队“{team}”"),
        TeamRefusal::NotActive(team, _) => format!("团队“{team}”已结束或正在解散"),
        TeamRefusal::TooManyTeams(limit) | TeamRefusal::TooManyTeamsOfOthers(limit) => {
            format!("团队数量已达上限 {limit}")
        }
        TeamRefusal::TooManyMembers(limit) => format!("团队成员数量已达上限 {limit}"),
        TeamRefusal::MemberExists(name) => format!("团队已有成员“{name}”"),
        TeamRefusal::NotAMember(name) => format!("“{name}”不是该团队的成员"),
        TeamRefusal::NotInTeam(team) => format!("此会话不在团队“{team}”中"),
        TeamRefusal::NotLead => "只有团队负责人可以这样做".to_owned(),
        TeamRefusal::TooLong(bytes, limit) => format!("信件有 {bytes} 字节，最多 {limit} 字节"),
        TeamRefusal::Message(detail) => format!("这封信无法按现状发送：{detail}"),
        TeamRefusal::UnknownRequest(request) => format!("没有等待你答复的请求“{request}”"),
        TeamRefusal::NoPlan(member) => format!("“{member}”没有等待批准的计划"),
    }
}

impl StateConflict {
    /// Describes the conflict, as a part of a sentence.
    pub(crate) fn text(&self, locale: Locale) -> String {
        match self {
            Self::TurnRunning => localized!(
                locale,
                "a turn is running; compact after it has ended",
                "有回合正在运行，请在它结束后再压缩",
            ),
            Self::FocusMissing(session) => {
                localized!(locale, "there is no session {session}", "没有会话 {session}")
            }
            Self::FocusRefused(session) => {
                localized!(locale, "{session} cannot be the target of a focus", "不能将此对话转到 {session}",)
            }
            Self::SubagentGone => localized!(
                locale,
                "the sub-agent is archived or deleted; start another",
                "该子智能体已归档或删除，请另启动一个",
            ),
            Self::AmbiguousLabel(label) => localized!(
                locale,
                "several sub-agents have the label {label:?}; use the number",
                "多个子智能体的标签为 {label:?}，请使用编号",
            ),
            Self::AmbiguousMember(sessions) => {
                let named: Vec<String> = sessions
                    .iter()
                    .map(|(team, key)| localized!(locale, "{key} (team {team})", "{key}（团队 {team}）"))
                    .collect();
                let named = super::join_list(locale, &named);
                localized!(
                    locale,
                    "several of your teams have a member of this name; use the session key: {named}",
                    "你的多个团队都有同名成员，请使用会话地址：{named}",
                )
            }
            Self::ResultNotHeld => {
                localized!(locale, "the result of this run is not held", "该子智能体的结果没有被搁置",)
            }
            Self::MemberClosed => localized!(
                locale,
                "this member has left its team; its session is archived and answers nothing",
                "该成员已离开团队，其会话已归档，不再回答",
            ),
            Self::NoAgentAccepted => {
                localized!(locale, "none of the agents here accepted the message", "这里没有智能体接受该消息",)
            }
            Self::ApprovalClosed => localized!(
                locale,
                "this request is closed because its turn has ended",
                "该请求已关闭，因为它的回合已经结束",
            ),
            Self::ApprovalDecided(state) => match state {
                ApprovalState::Pending => {
                    localized!(locale, "this request is still pending", "该请求仍在等待处理")
                }
                ApprovalState::Approved => {
                    localized!(locale, "this request was already approved", "该请求已被批准")
                }
                ApprovalState::Denied => {
                    localized!(locale, "this request was already denied", "该请求已被拒绝")
                }
                ApprovalState::Expired => {
                    localized!(locale, "this request has already expired", "该请求已失效")
                }
            },
        }
    }
}
