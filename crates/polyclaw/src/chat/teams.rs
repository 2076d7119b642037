//! The section that shows teams beside the conversation: who is in them, what they do, and what there is to do.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Paragraph};
use serde_json::Value;

use super::markdown::dim;
use super::model::{Effect, Model};

/// Columns the section takes, where the terminal has room for it beside the conversation.
const WIDTH: u16 = 44;
/// Narrower than this the conversation would be hard to read: the section takes its place.
const LEAST: u16 = 40;
const SHOWN_TASKS: usize = 12;

impl Model {
    /// Opens the section, or closes it.
    pub(super) fn toggle_teams(&mut self) -> Vec<Effect> {
        match self.teams.take() {
            Some(_) => Vec::new(),
            None => {
                self.teams = Some(Vec::new());
                vec![Effect::LookAtTeams]
            }
        }
    }

    /// Something happened in a team: looked at again where somebody looks.
    pub(super) fn team_changed(&self) -> Vec<Effect> {
        if self.teams.is_some() { vec![Effect::LookAtTeams] } else { Vec::new() }
    }

    /// An answer that comes after the section was closed does not open it.
    pub(super) fn show_teams(&mut self, teams: Vec<Value>) {
        if self.teams.is_some() {
            self.teams = Some(teams);
        }
    }
}

/// Draws the section if it is open; returns what is left for the conversation.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model) -> Rect {
    let Some(teams) = &model.teams else { return area };
    let is_beside = area.width >= WIDTH + LEAST;
    let width = if is_beside { WIDTH } else { area.width };
    let own = Rect { x: area.right() - width, width, ..area };
    let block =
        Block::bordered().border_type(BorderType::Rounded).border_style(dim()).title(" teams (Ctrl+T) ");
    let room = usize::from(block.inner(own).height);
    let lines: Vec<Line<'_>> = lines(teams).into_iter().take(room).collect();
    frame.render_widget(Paragraph::new(lines).block(block), own);
    Rect { width: area.width - width, ..area }
}

fn lines(teams: &[Value]) -> Vec<Line<'static>> {
    if teams.is_empty() {
        return vec![Line::styled("There is no team.", dim())];
    }
    teams.iter().flat_map(team_lines).collect()
}

fn team_lines(team: &Value) -> Vec<Line<'static>> {
    let counts = |name: &str| team["counts"][name].as_u64().unwrap_or_default();
    let all = ["pending", "blocked", "in_progress", "completed", "failed"].map(counts).iter().sum::<u64>();
    let head = vec![
        Span::raw(text(&team["name"])).bold(),
        Span::styled(format!(" {} ", text(&team["status"])), dim()),
        Span::raw(format!("{}/{all} done", counts("completed"))),
    ];
    let mut lines = vec![Line::from(head)];
    lines.extend(array(&team["members"]).iter().map(member_line));
    let open = array(&team["open"]);
    lines.extend(open.iter().take(SHOWN_TASKS).map(task_line));
    if open.len() > SHOWN_TASKS {
        lines.push(Line::styled(format!("  … {} more", open.len() - SHOWN_TASKS), dim()));
    }
    lines.extend(array(&team["ended"]).iter().take(3).map(task_line));
    lines.push(Line::default());
    lines
}

fn member_line(member: &Value) -> Line<'static> {
    let status = text(&member["status"]);
    let color = if status == "working" { Color::Green } else { Color::Reset };
    let tasks: Vec<String> = array(&member["tasks"]).iter().map(text).collect();
    Line::from(vec![
        Span::raw(format!(" @{} ", text(&member["name"]))),
        Span::styled(status, Style::new().fg(color)),
        Span::styled(format!(" {}", tasks.join("; ")), dim()),
    ])
}

fn task_line(task: &Value) -> Line<'static> {
    let waits: Vec<String> = array(&task["blocked_by"]).iter().map(|no| format!("#{no}")).collect();
    let after = match (task["owner"].as_str(), waits.is_empty()) {
        (_, false) => format!(" waits for {}", waits.join(", ")),
        (Some(owner), _) => format!(" @{owner}"),
        _ => String::new(),
    };
    Line::from(vec![
        Span::styled(format!("  #{} {} ", task["task_id"], text(&task["status"])), dim()),
        Span::raw(text(&task["title"])),
        Span::styled(after, dim()),
    ])
}

/// What others wrote, without anything a terminal would obey.
fn text(value: &Value) -> String {
    super::markdown::plain(value.as_str().unwrap_or_default())
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
