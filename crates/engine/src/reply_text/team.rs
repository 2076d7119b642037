//! `/team`.

use polyclaw_domain::locale::Locale;
use polyclaw_domain::localized;
use polyclaw_domain::sanitize;
use polyclaw_domain::task::{TeamTask, TeamTaskState};
use polyclaw_domain::team::failures::FailureStreak;
use polyclaw_domain::team::state::{MemberStatus, TaskCounts, TeamStateReader};
use polyclaw_domain::team::{MemberState, PlanApproval, TeamStatus};

use super::{count_noun, join_list};
use crate::team::{MemberPlan, TeamSnapshot, TurnBudget};

const MAX_SHOWN_TASKS: usize = 12;
const MAX_SHOWN_ENDED_TASKS: usize = 5;

/// Reply to a command that writes to a member for somebody who is no owner.
pub(crate) fn owners_only(locale: Locale) -> String {
    localized!(
        locale,
        "Only owners can write to members here, because members act for the people who asked their lead. Write to the \
         lead.",
        "只有所有者可以在这里给成员写信，因为成员为向负责人提出请求的人工作。请写给负责人。",
    )
}

pub(crate) fn unknown_team(locale: Locale, name: &str) -> String {
    localized!(
        locale,
        "There is no team '{name}'. /team lists the teams.",
        "没有团队“{name}”。用 /team 查看所有团队。",
    )
}

pub(crate) fn not_a_member(locale: Locale, name: &str) -> String {
    localized!(
        locale,
        "'{name}' is not a member of that team. /team <team> lists its members.",
        "“{name}”不是该团队的成员。用 /team <团队> 查看成员。",
    )
}

pub(crate) fn no_teams(locale: Locale) -> String {
    localized!(locale, "There are no teams.", "还没有团队。")
}

pub(crate) fn send_usage(locale: Locale) -> String {
    localized!(
        locale,
        "Name the recipient: /team send [team] <member, lead or all> <text>.",
        "请写明收件人：/team send [团队] <成员、lead 或 all> <文本>。",
    )
}

pub(crate) fn message_sent(locale: Locale, recipients: &[String]) -> String {
    let recipients = join_list(locale, recipients);
    localized!(locale, "Sent to {recipients}.", "已发送给 {recipients}。")
}

pub(crate) fn plan_usage(locale: Locale) -> String {
    localized!(
        locale,
        "Name the member: /team plan [team] <member> [approve | reject <what to change>].",
        "请写明成员：/team plan [团队] <成员> [approve | reject <需要修改的内容>]。",
    )
}

pub(crate) fn plan_decided(locale: Locale, member: &str, is_approved: bool) -> String {
    if is_approved {
        localized!(locale, "The plan of {member} is approved.", "{member} 的计划已批准。")
    } else {
        localized!(locale, "{member} is asked for another plan.", "已要求 {member} 修改计划。")
    }
}

pub(crate) fn plan_text(locale: Locale, (team, member): (&str, &str), plan: Option<&MemberPlan>) -> String {
    match plan {
        Some(MemberPlan { content: Some(content), .. }) => {
            let content = sanitize::visible_controls(content);
            localized!(
                locale,
                "{content}\n\nAnswer with /team plan {team} {member} approve, or with reject and what to change.",
                "{content}\n\n用 /team plan {team} {member} approve 批准，或用 reject 加上需要修改的内容退回。",
            )
        }
        Some(_) => localized!(
            locale,
            "{member} has not sent a plan yet. Until a plan is approved, it can only read.",
            "{member} 还没有提交计划。计划获批之前只能读取。",
        ),
        None => localized!(locale, "{member} needs no approval.", "{member} 不需要批准。"),
    }
}

pub(crate) fn several_teams(locale: Locale, teams: &[String], member: &str) -> String {
    let teams = join_list(locale, teams);
    localized!(
        locale,
        "You lead several teams: {teams}. Write the name of the team before '{member}'.",
        "你负责多个团队：{teams}。请在“{member}”之前写明团队名称。",
    )
}

/// One line for each team.
pub(crate) fn team_line(locale: Locale, view: &TeamSnapshot) -> String {
    let working = view.members.iter().filter(|status| status.is_working).count();
    let is_waiting = |status: &&MemberStatus| {
        status.member.state == MemberState::Active
            && matches!(status.member.plan, Some(PlanApproval::Submitted { .. }))
    };
    let plans = match view.members.iter().filter(is_waiting).count() {
        0 => String::new(),
        1 => localized!(locale, "; 1 plan waits for approval", "；1 个计划等待批准"),
        count => localized!(locale, "; {count} plans wait for approval", "；{count} 个计划等待批准"),
    };
    let limit = view.turns.limit;
    let spent = match (view.turns.is_spent(), view.turns.is_waiting) {
        (false, _) => String::new(),
        (true, false) => {
            localized!(locale, "; all {limit} automatic turns are used", "；全部 {limit} 个自动轮次已用完")
        }
        (true, true) => localized!(
            locale,
            "; all {limit} automatic turns are used: write to its lead to continue",
            "；全部 {limit} 个自动轮次已用完，给负责人写信即可继续",
        ),
    };
    let (name, status) = (&view.team.name, team_status(locale, view.team.status));
    let (total, counts) = (view.members.len(), task_counts(locale, view.counts));
    let members = count_noun(total, "member");
    localized!(
        locale,
        "{name} ({status}): {members}, {working} working; {counts}{plans}{spent}",
        "{name}（{status}）：{total} 名成员，{working} 名工作中；{counts}{plans}{spent}",
    )
}

/// The state of one team, with problems of its lead.
pub(crate) fn team_details(locale: Locale, view: &TeamSnapshot) -> String {
    let name = &view.team.name;
    let mut lines = vec![match locale {
        Locale::English => view.prompt_block(TeamStateReader::Person),
        Locale::Chinese => chinese_state(view),
    }];
    if view.is_lead_lost {
        lines.push(localized!(
            locale,
            "The lead's session no longer exists. `polyclaw teams lead {name} <session>` gives the team another.",
            "负责人的会话已不存在。用 `polyclaw teams lead {name} <会话>` 为团队指定新的负责人。",
        ));
    }
    lines.extend(turns_spent(locale, view.turns));
    if let Some(streak) = &view.lead_failure_streak {
        let failures = failure_streak(locale, streak);
        lines.push(localized!(locale, "The lead's {failures}.", "负责人：{failures}。"));
    }
    lines.join("\n")
}

/// The notice that people read when a team has used its automatic turns.
fn turns_spent(locale: Locale, turns: TurnBudget) -> Option<String> {
    let limit = turns.limit;
    turns.is_spent().then(|| match turns.is_waiting {
        true => localized!(
            locale,
            "All {limit} automatic turns are used. The team is waiting: write to its lead to continue.",
            "全部 {limit} 个自动轮次已用完。团队正在等待：给负责人写信即可继续。",
        ),
        false => {
            localized!(locale, "All {limit} automatic turns are used.", "全部 {limit} 个自动轮次已用完。")
        }
    })
}

fn task_counts(locale: Locale, counts: TaskCounts) -> String {
    let TaskCounts { pending, blocked, in_progress, completed, failed } = counts;
    match locale {
        Locale::English => counts.summary_line(),
        Locale::Chinese => format!(
            "{pending} 个待办，{in_progress} 个进行中，{blocked} 个受阻，{completed} 个已完成，{failed} 个失败，共 {} 个",
            counts.total_count()
        ),
    }
}

fn team_status(locale: Locale, status: TeamStatus) -> &'static str {
    match (locale, status) {
        (Locale::English, status) => status.as_str(),
        (Locale::Chinese, TeamStatus::Active) => "工作中",
        (Locale::Chinese, TeamStatus::ShuttingDown) => "正在解散",
        (Locale::Chinese, TeamStatus::Shutdown) => "已结束",
    }
}

fn failure_streak(locale: Locale, streak: &FailureStreak) -> String {
    let FailureStreak { since, code, failures, retry_at } = streak;
    match locale {
        Locale::English => streak.summary_line(),
        Locale::Chinese => {
            let retry = retry_at.map(|at| format!("，{} 再试", at.to_minute())).unwrap_or_default();
            format!("自 {} 起连续 {failures} 个回合失败（{code}）{retry}", since.to_minute())
        }
    }
}

fn chinese_state(view: &TeamSnapshot) -> String {
    let team = &view.team;
    let mut lines = vec![format!("团队：{}（{}）", team.name, team_status(Locale::Chinese, team.status))];
    if !team.description.is_empty() {
        lines.push(format!("用途：{}", sanitize::to_single_line(&team.description, 300)));
    }
    lines.push(match team.lead.agent_id() {
        Some(agent) => format!("负责人：智能体 {agent}"),
        None => "负责人：没有智能体的会话".to_owned(),
    });
    let active = view.members.iter().filter(|status| status.member.state == MemberState::Active).count();
    lines.push(format!("在职成员（{active}）："));
    lines.extend(view.members.iter().map(chinese_member));
    lines.push(format!("未完成任务：{}", view.counts.open()));
    lines.push(format!("任务：{}", task_counts(Locale::Chinese, view.counts)));
    lines.extend(view.open.iter().take(MAX_SHOWN_TASKS).map(chinese_task));
    if let more @ 1.. = view.open.len().saturating_sub(MAX_SHOWN_TASKS) {
        lines.push(format!("  … 另有 {more} 个"));
    }
    if !view.ended.is_empty() {
        lines.push("最近结束：".to_owned());
        lines.extend(view.ended.iter().take(MAX_SHOWN_ENDED_TASKS).map(chinese_task));
    }
    lines.join("\n")
}

fn chinese_member(status: &MemberStatus) -> String {
    let MemberStatus { member, tasks, failures, .. } = status;
    let state = match member.state {
        MemberState::Closed => "已结束",
        MemberState::Lost => "已丢失",
        MemberState::Active if status.is_working => "工作中",
        MemberState::Active => "空闲",
    };
    let plan = match &member.plan {
        Some(PlanApproval::Submitted { .. }) => "，计划等待批准",
        Some(_) => "，计划获批之前只能读取",
        None => "",
    };
    let tasks = match tasks.as_slice() {
        [] => String::new(),
        tasks => format!("：{}", sanitize::to_single_line(&tasks.join("；"), 160)),
    };
    let failures = failures.as_ref().map(|streak| format!("；{}", failure_streak(Locale::Chinese, streak)));
    let role = sanitize::to_single_line(&member.role, 60);
    format!("- {}（{role}）{state}{plan}{tasks}{}", member.name, failures.unwrap_or_default())
}

fn chinese_task(task: &TeamTask) -> String {
    let state = match task.state {
        TeamTaskState::Pending => "待办",
        TeamTaskState::Claimed => "已认领",
        TeamTaskState::InProgress => "进行中",
        TeamTaskState::Completed => "已完成",
        TeamTaskState::Failed => "失败",
    };
    let mut line =
        format!("  #{} [{state}] {}", task.no, sanitize::to_single_line(task.display_title(), 100));
    if let Some(owner) = task.lease.as_ref().map(|lease| &lease.owner).or(task.ended_by.as_ref()) {
        line.push_str(&format!("，执行者 {owner}"));
    }
    if !task.blocked_by.is_empty() {
        let needs: Vec<String> = task.blocked_by.iter().map(|no| format!("#{no}")).collect();
        line.push_str(&format!("，等待 {}", needs.join("、")));
    }
    if let Some(summary) = task.summary.as_deref().filter(|_| task.state.has_ended()) {
        line.push_str(&format!("：{}", sanitize::to_single_line(summary, 160)));
    }
    line
}
