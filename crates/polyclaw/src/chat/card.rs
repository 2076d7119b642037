//! Renders a transcript entry as styled lines.

use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};

use super::entry::{
    ApprovalCard, NoteTone, ToolCard, ToolState, TranscriptEntry, UserMessage, UserMessageState,
};
use super::markdown::{self, dim_style, strip_control_chars};
use super::wrap::wrap_line;

/// Maximum number of reasoning lines shown.
const MAX_SHOWN_REASONING_LINES: usize = 6;
const MAX_SHOWN_ARGUMENT_CHARS: usize = 600;

/// Renders an entry wrapped to a width, followed by an empty line.
pub fn entry_lines(entry: &TranscriptEntry, width: usize) -> Vec<Line<'static>> {
    let lines = match entry {
        TranscriptEntry::User(message) => user_lines(message),
        TranscriptEntry::InternalMessage { origin, text, .. } => internal_message_lines(origin, text),
        TranscriptEntry::Answer { text, open, .. } => answer_lines(text, *open),
        TranscriptEntry::DelegateText { name, text, open, .. } => delegate_lines(name, text, *open),
        TranscriptEntry::Reasoning { text, open, .. } => reasoning_lines(text, *open),
        TranscriptEntry::Tool(tool) => tool_lines(tool),
        TranscriptEntry::Approval(question) => question_lines(question),
        TranscriptEntry::Note { text, tone } => note_lines(text, *tone),
    };
    let mut wrapped: Vec<_> = lines.iter().flat_map(|line| wrap_line(line, width)).collect();
    wrapped.push(Line::default());
    wrapped
}

fn user_lines(message: &UserMessage) -> Vec<Line<'static>> {
    let mark =
        |first: bool| Span::styled(if first { "› " } else { "  " }, Style::new().fg(Color::Green).bold());
    let line = |(n, line): (usize, &str)| {
        Line::from(vec![mark(n == 0), Span::raw(strip_control_chars(line)).bold()])
    };
    let mut lines: Vec<_> = message.text.lines().enumerate().map(line).collect();
    let state = match message.state {
        UserMessageState::Sending => "sending…",
        UserMessageState::Waiting => "queued until the next step of the running turn",
        UserMessageState::Refused => "not accepted",
        UserMessageState::Accepted => return lines,
    };
    lines.push(Line::from(Span::styled(format!("  {state}"), dim_style())));
    lines
}

/// Renders an internal message with its author.
fn internal_message_lines(origin: &str, text: &str) -> Vec<Line<'static>> {
    text.lines()
        .enumerate()
        .map(|(n, line)| match n {
            0 => Line::styled(
                format!("◦ {}: {}", strip_control_chars(origin), strip_control_chars(line)),
                dim_style(),
            ),
            _ => Line::styled(format!("  {}", strip_control_chars(line)), dim_style()),
        })
        .collect()
}

fn answer_lines(text: &str, open: bool) -> Vec<Line<'static>> {
    let mut lines = markdown::render_markdown(text);
    if open {
        let mark = Span::styled("▌", dim_style());
        match lines.last_mut() {
            Some(last) => last.push_span(mark),
            None => lines.push(Line::from(mark)),
        }
    }
    lines
}

/// Renders another agent's text under its name.
fn delegate_lines(name: &str, text: &str, open: bool) -> Vec<Line<'static>> {
    let mut lines =
        vec![Line::from(Span::styled(strip_control_chars(name), Style::new().fg(Color::Magenta).bold()))];
    lines.extend(answer_lines(text, open));
    lines
}

fn reasoning_lines(text: &str, open: bool) -> Vec<Line<'static>> {
    let style = dim_style().add_modifier(Modifier::ITALIC);
    let all: Vec<&str> = text.trim_end().lines().collect();
    let hidden = all.len().saturating_sub(MAX_SHOWN_REASONING_LINES);
    let mut lines = vec![Line::styled(if open { "thinking…" } else { "thought" }, style)];
    if hidden > 0 {
        lines.push(Line::styled(format!("  … {hidden} more line(s)"), style));
    }
    lines.extend(
        all[hidden..].iter().map(|line| Line::styled(format!("  {}", strip_control_chars(line)), style)),
    );
    lines
}

fn tool_lines(tool: &ToolCard) -> Vec<Line<'static>> {
    let (mark, color) = match tool.state {
        ToolState::Running => ("⋯", Color::Yellow),
        ToolState::Ok => ("✓", Color::Green),
        ToolState::Failed => ("✗", Color::Red),
    };
    let mut head = vec![
        Span::styled(format!("{mark} "), Style::new().fg(color)),
        Span::raw(strip_control_chars(&tool.name)).bold(),
        Span::raw(" "),
    ];
    let mut lines = Vec::new();
    for (n, line) in shorten_text(&tool.arguments).lines().enumerate() {
        if n > 0 {
            lines.push(Line::from(std::mem::take(&mut head)));
            head.push(Span::raw("  "));
        }
        head.push(Span::styled(strip_control_chars(line), Style::new().fg(Color::Cyan)));
    }
    lines.push(Line::from(head));
    lines.extend(
        tool.visible_output()
            .into_iter()
            .map(|line| Line::styled(format!("  │ {}", strip_control_chars(line)), dim_style())),
    );
    lines.extend(
        tool.sandbox
            .iter()
            .map(|line| Line::styled(format!("  └ {}", strip_control_chars(line)), dim_style())),
    );
    lines
}

fn question_lines(question: &ApprovalCard) -> Vec<Line<'static>> {
    let color = if question.is_open() { Color::Yellow } else { Color::DarkGray };
    let mut lines = vec![Line::from(vec![
        Span::styled("? ", Style::new().fg(color).bold()),
        Span::raw(strip_control_chars(&permission_request_text(&question.requested_by, &question.tool)))
            .bold(),
    ])];
    // Never shortened: a person must see everything that they approve.
    lines.extend(
        question.arguments.lines().map(|line| {
            Line::styled(format!("  {}", strip_control_chars(line)), Style::new().fg(Color::Cyan))
        }),
    );
    lines.push(match question.is_open() {
        true => Line::styled("  y  allow once      n  deny", Style::new().fg(color)),
        false => Line::styled(format!("  {}", question.state), dim_style()),
    });
    lines
}

/// Says who asks to run which tool.
fn permission_request_text(asked_by: &str, tool: &str) -> String {
    if asked_by.is_empty() {
        format!("{tool} wants to run")
    } else {
        format!("{asked_by} wants to run {tool}")
    }
}

fn note_lines(text: &str, tone: NoteTone) -> Vec<Line<'static>> {
    let style = match tone {
        NoteTone::Plain => dim_style(),
        NoteTone::Bad => Style::new().fg(Color::Red),
    };
    text.lines().map(|line| Line::styled(strip_control_chars(line), style)).collect()
}

fn shorten_text(text: &str) -> String {
    let mut cut: String = text.chars().take(MAX_SHOWN_ARGUMENT_CHARS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}
