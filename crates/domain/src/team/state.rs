//! The team state shown to a lead and its members in every turn. It is rendered from the rows each time and never
//! stored, so that no compaction can lose it.

use crate::sanitize;
use crate::task::{TeamTask, TeamTaskState};

use super::failures::FailureStreak;
use super::{MemberState, Team, TeamMember};

/// Maximum number of tasks shown: enough to work with, never the whole list.
const MAX_SHOWN_TASKS: usize = 12;
const MAX_SHOWN_ENDED_TASKS: usize = 5;

/// A member and its current activity.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    pub member: TeamMember,
    /// A turn of its session runs or is about to.
    pub is_working: bool,
    /// Its claimed tasks.
    pub tasks: Vec<String>,
    /// Set while its turns fail.
    pub failures: Option<FailureStreak>,
    /// Number of unread messages to it.
    pub unread: usize,
}

impl MemberStatus {
    pub fn status_word(&self) -> &'static str {
        match self.member.state {
            MemberState::Closed => "closed",
            MemberState::Lost => "lost",
            MemberState::Active if self.is_working => "working",
            MemberState::Active => "idle",
        }
    }
}

/// Number of tasks by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct TaskCounts {
    pub pending: usize,
    pub blocked: usize,
    pub in_progress: usize,
    pub completed: usize,
    pub failed: usize,
}

impl TaskCounts {
    pub fn from_tasks(tasks: &[TeamTask]) -> Self {
        let mut counts = Self::default();
        for task in tasks {
            match task.state {
                TeamTaskState::Pending if !task.blocked_by.is_empty() => counts.blocked += 1,
                TeamTaskState::Pending => counts.pending += 1,
                TeamTaskState::Claimed | TeamTaskState::InProgress => counts.in_progress += 1,
                TeamTaskState::Completed => counts.completed += 1,
                TeamTaskState::Failed => counts.failed += 1,
            }
        }
        counts
    }

    pub fn total_count(&self) -> usize {
        self.pending + self.blocked + self.in_progress + self.completed + self.failed
    }

    /// Returns the number of unfinished tasks.
    pub fn open(&self) -> usize {
        self.pending + self.blocked + self.in_progress
    }

    pub fn summary_line(&self) -> String {
        format!(
            "{} pending, {} in progress, {} blocked, {} done, {} failed of {}",
            self.pending,
            self.in_progress,
            self.blocked,
            self.completed,
            self.failed,
            self.total_count()
        )
    }
}

/// To whom the team state is shown.
#[derive(Clone, Copy, Debug)]
pub enum TeamStateReader<'a> {
    Lead,
    /// A member, by name.
    Member(&'a str),
    /// A person, who needs no reminder of their role.
    Person,
}

/// Renders the team state. `tasks` are unfinished, `ended` are the most recently ended.
pub fn render_team_state(
    team: &Team,
    reader: TeamStateReader<'_>,
    members: &[MemberStatus],
    counts: TaskCounts,
    (tasks, ended): (&[TeamTask], &[TeamTask]),
) -> String {
    let mut lines = Vec::new();
    if !matches!(reader, TeamStateReader::Person) {
        lines.push("=== TEAM STATE ===".to_owned());
    }
    lines.push(format!("Team: {} ({})", team.name, team.status.as_str()));
    if !team.description.is_empty() {
        lines.push(format!("Purpose: {}", sanitize::to_single_line(&team.description, 300)));
    }
    if !matches!(reader, TeamStateReader::Person) {
        lines.push(format!("Team id: {}", team.id));
    }
    if matches!(reader, TeamStateReader::Lead) {
        lines.push("Role: Team Lead".to_owned());
    }
    lines.push(match reader {
        TeamStateReader::Person => match team.lead.agent_id() {
            Some(agent) => format!("Led by the agent {agent}"),
            None => "Led by a session without an agent".to_owned(),
        },
        TeamStateReader::Lead => "You are the lead. Your teammates see only what you send with SendMessage.".to_owned(),
        TeamStateReader::Member(name) => format!(
            "You are the member '{name}'. The team sees only what you send with SendMessage. TaskList shows the \
             tasks."
        ),
    });
    if let TeamStateReader::Member(name) = reader {
        let own = members.iter().find(|status| status.member.name == name);
        lines.extend(
            own.and_then(|own| own.member.plan.as_ref()).map(|plan| plan.member_instruction().to_owned()),
        );
    }
    let active = members.iter().filter(|status| status.member.state == MemberState::Active).count();
    lines.push(format!("Active Members ({active}):"));
    lines.extend(members.iter().map(|status| member_line(status, reader)));
    lines.push(format!("Open tasks: {}", counts.open()));
    lines.push(format!("Tasks: {}", counts.summary_line()));
    lines.extend(tasks.iter().take(MAX_SHOWN_TASKS).map(task_line));
    if tasks.len() > MAX_SHOWN_TASKS {
        let more = tasks.len() - MAX_SHOWN_TASKS;
        lines.push(match reader {
            TeamStateReader::Person => format!("  … {more} more"),
            TeamStateReader::Lead | TeamStateReader::Member(_) => format!("  … {more} more, see TaskList"),
        });
    }
    if !ended.is_empty() {
        lines.push("Recently ended:".to_owned());
        lines.extend(ended.iter().take(MAX_SHOWN_ENDED_TASKS).map(task_line));
    }
    if !matches!(reader, TeamStateReader::Person) {
        lines.push("=== END TEAM STATE ===".to_owned());
    }
    lines.join("\n")
}

fn member_line(status: &MemberStatus, reader: TeamStateReader<'_>) -> String {
    let MemberStatus { member, tasks, .. } = status;
    let doing = if tasks.is_empty() {
        String::new()
    } else {
        format!(": {}", sanitize::to_single_line(&tasks.join("; "), 160))
    };
    let plan = member.plan.as_ref().map(|plan| format!(", {}", plan.label())).unwrap_or_default();
    let fails =
        status.failures.as_ref().map(|streak| format!("; {}", streak.summary_line())).unwrap_or_default();
    let role = sanitize::to_single_line(&member.role, 60);
    let about = match reader {
        TeamStateReader::Person => role,
        TeamStateReader::Lead | TeamStateReader::Member(_) => format!("{role}, {}", member.session),
    };
    format!("- {} ({about}) {}{plan}{doing}{fails}", member.name, status.status_word())
}

fn task_line(task: &TeamTask) -> String {
    let mut line = format!(
        "  #{} [{}] {}",
        task.no,
        task.state.as_str(),
        sanitize::to_single_line(task.display_title(), 100)
    );
    if let Some(owner) = task.lease.as_ref().map(|lease| &lease.owner).or(task.ended_by.as_ref()) {
        line.push_str(&format!(" by {owner}"));
    }
    if !task.blocked_by.is_empty() {
        let needs: Vec<String> = task.blocked_by.iter().map(|no| format!("#{no}")).collect();
        line.push_str(&format!(" blocked by {}", needs.join(", ")));
    }
    if let Some(summary) = task.summary.as_deref().filter(|_| task.state.has_ended()) {
        line.push_str(&format!(": {}", sanitize::to_single_line(summary, 160)));
    }
    line
}
