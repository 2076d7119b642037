//! The teams panel next to the conversation: members, their status and the tasks.

use polyclaw_api::teams::{FailureStreakView, MemberView, TeamDetail, TeamTaskView, TeamTurnsView};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Paragraph};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::command::teams::status_words;

use super::markdown::{dim_style, strip_control_chars};
use super::state::{ChatEffect, ChatState};

/// Columns of the panel, if the terminal is wide enough for it next to the conversation.
const TEAMS_PANEL_WIDTH: u16 = 44;
/// Minimum columns of the conversation. In a narrower terminal the panel replaces it.
const MIN_CHAT_WIDTH: u16 = 40;
const MAX_SHOWN_TASKS: usize = 12;
/// Maximum columns of a name.
const MAX_NAME: usize = 14;

impl ChatState {
    /// Opens or closes the panel.
    pub(super) fn toggle_teams(&mut self) -> Vec<ChatEffect> {
        match self.teams.take() {
            Some(_) => Vec::new(),
            None => {
                self.teams = Some(Vec::new());
                vec![ChatEffect::FetchTeams]
            }
        }
    }

    /// Reloads the teams if the panel is open.
    pub(super) fn team_changed(&self) -> Vec<ChatEffect> {
        if self.teams.is_some() { vec![ChatEffect::FetchTeams] } else { Vec::new() }
    }

    /// Shows loaded teams. Ignored if the panel was closed meanwhile.
    pub(super) fn show_teams(&mut self, teams: Vec<TeamDetail>) {
        if self.teams.is_some() {
            self.teams = Some(teams);
        }
    }
}

/// Draws the panel if it is open. Returns the area left for the conversation.
pub(super) fn draw_teams(frame: &mut Frame<'_>, area: Rect, model: &ChatState) -> Rect {
    let Some(teams) = &model.teams else { return area };
    let is_sibling = area.width >= TEAMS_PANEL_WIDTH + MIN_CHAT_WIDTH;
    let width = if is_sibling { TEAMS_PANEL_WIDTH } else { area.width };
    let own = Rect { x: area.right() - width, width, ..area };
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(dim_style())
        .title(" teams (Ctrl+T) ");
    let inner = block.inner(own);
    let lines = within(panel_lines(teams), usize::from(inner.height));
    let lines: Vec<Line<'_>> = lines.into_iter().map(|line| cut(line, usize::from(inner.width))).collect();
    frame.render_widget(Paragraph::new(lines).block(block), own);
    Rect { width: area.width - width, ..area }
}

/// Limits the lines to the available height. If some are hidden, the last line counts them.
fn within(mut lines: Vec<Line<'static>>, room: usize) -> Vec<Line<'static>> {
    while lines.last().is_some_and(|line| line.width() == 0) {
        lines.pop();
    }
    if lines.len() > room {
        let shown = room.saturating_sub(1);
        let hidden = lines.len() - shown;
        lines.truncate(shown);
        lines.push(Line::styled(format!("… {hidden} more"), dim_style()));
    }
    lines
}

/// Cuts a line to a width, with an ellipsis if it was cut.
fn cut(line: Line<'static>, width: usize) -> Line<'static> {
    if line.width() <= width {
        return line;
    }
    let mut left = width.saturating_sub(1);
    let mut spans = Vec::new();
    for span in line.spans {
        let shown = beginning(&span.content, left);
        left -= shown.width();
        let is_whole = shown.len() == span.content.len();
        spans.push(Span::styled(shown.to_owned(), span.style));
        if !is_whole {
            break;
        }
    }
    spans.push(Span::styled("…", dim_style()));
    Line::from(spans).style(line.style)
}

/// Returns the longest prefix of a text that is at most `most` columns wide.
fn beginning(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken > most
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Shortens a name to leave room for the text after it.
fn short(name: &str) -> String {
    match beginning(name, MAX_NAME) {
        whole if whole.len() == name.len() => name.to_owned(),
        _ => format!("{}…", beginning(name, MAX_NAME - 1)),
    }
}

fn panel_lines(teams: &[TeamDetail]) -> Vec<Line<'static>> {
    if teams.is_empty() {
        return vec![Line::styled("No teams.", dim_style())];
    }
    teams.iter().flat_map(team_lines).collect()
}

fn team_lines(team: &TeamDetail) -> Vec<Line<'static>> {
    let counts = &team.counts;
    let all = counts.pending + counts.blocked + counts.in_progress + counts.completed + counts.failed;
    let head = vec![
        Span::raw(short(&strip_control_chars(&team.team.name))).bold(),
        Span::styled(format!(" {} ", strip_control_chars(&team.team.status)), dim_style()),
        Span::raw(format!("{}/{all} done", counts.completed)),
    ];
    let mut lines = vec![Line::from(head)];
    lines.extend(spent_lines(&team.turns));
    let lead_status = status_span(strip_control_chars(&team.lead_status));
    lines.push(Line::from(vec![Span::raw(" @lead "), lead_status]));
    lines.extend(team.failure_streak.as_ref().map(failure_line));
    for member in &team.members {
        lines.push(member_line(member));
        lines.extend(member.failure_streak.as_ref().map(failure_line));
    }
    let open = &team.open;
    lines.extend(open.iter().take(MAX_SHOWN_TASKS).map(task_line));
    if open.len() > MAX_SHOWN_TASKS {
        lines.push(Line::styled(format!("  … {} more", open.len() - MAX_SHOWN_TASKS), dim_style()));
    }
    lines.extend(team.ended.iter().take(3).map(task_line));
    lines.push(Line::default());
    lines
}

/// Warns that the team has used its budget of turns, and says what to do.
fn spent_lines(turns: &TeamTurnsView) -> Vec<Line<'static>> {
    if turns.used < turns.limit {
        return Vec::new();
    }
    let mut lines = vec![warning(format!(" All {} automatic turns are used.", turns.limit))];
    if turns.is_waiting {
        lines.push(warning(" The team is paused: write to its lead."));
    }
    lines
}

/// Warns that turns of the member above fail.
fn failure_line(FailureStreakView { failures, code, .. }: &FailureStreakView) -> Line<'static> {
    let turns = if *failures == 1 { "turn" } else { "turns" };
    warning(format!("   {failures} {turns} failed: {}", strip_control_chars(code)))
}

fn warning(words: impl Into<String>) -> Line<'static> {
    Line::styled(words.into(), Style::new().fg(Color::Yellow))
}

fn status_span(status: String) -> Span<'static> {
    let color = match status.as_str() {
        "working" => Color::Green,
        "idle" => Color::Reset,
        _ => Color::Yellow,
    };
    Span::styled(status, Style::new().fg(color))
}

fn member_line(member: &MemberView) -> Line<'static> {
    let tasks: Vec<String> = member.tasks.iter().map(|task| strip_control_chars(task)).collect();
    Line::from(vec![
        Span::raw(format!(" @{} ", short(&strip_control_chars(&member.name)))),
        status_span(strip_control_chars(&status_words(&member.status, member.plan.as_deref()))),
        Span::styled(format!(" {}", tasks.join("; ")), dim_style()),
    ])
}

fn task_line(task: &TeamTaskView) -> Line<'static> {
    let waits: Vec<String> = task.blocked_by.iter().map(|no| format!("#{no}")).collect();
    let after = match (&task.owner, waits.is_empty()) {
        (_, false) => format!(" waits for {}", waits.join(", ")),
        (Some(owner), _) => format!(" @{}", short(&strip_control_chars(owner))),
        _ => String::new(),
    };
    Line::from(vec![
        Span::styled(format!("  #{} {} ", task.task_id, strip_control_chars(&task.status)), dim_style()),
        Span::raw(strip_control_chars(&task.title)),
        Span::styled(after, dim_style()),
    ])
}
