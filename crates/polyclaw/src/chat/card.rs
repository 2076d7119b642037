//! One entry of the transcript as styled lines.

use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};

use super::entry::{Entry, Question, Said, SaidState, Tone, Tool, ToolState};
use super::markdown::{self, dim, plain};
use super::wrap::wrap;

/// Lines of reasoning that stay visible.
const REASONING: usize = 6;
const ARGUMENTS: usize = 600;

/// The entry wrapped to a width, with an empty line after it.
pub fn lines(entry: &Entry, width: usize) -> Vec<Line<'static>> {
    let lines = match entry {
        Entry::User(said) => user(said),
        Entry::Told { origin, text, .. } => told(origin, text),
        Entry::Answer { text, open, .. } => answer(text, *open),
        Entry::Speech { name, text, open, .. } => speech(name, text, *open),
        Entry::Reasoning { text, open, .. } => reasoning(text, *open),
        Entry::Tool(tool) => card(tool),
        Entry::Approval(question) => ask(question),
        Entry::Note { text, tone } => note(text, *tone),
    };
    let mut wrapped: Vec<_> = lines.iter().flat_map(|line| wrap(line, width)).collect();
    wrapped.push(Line::default());
    wrapped
}

fn user(said: &Said) -> Vec<Line<'static>> {
    let mark =
        |first: bool| Span::styled(if first { "› " } else { "  " }, Style::new().fg(Color::Green).bold());
    let line = |(n, line): (usize, &str)| Line::from(vec![mark(n == 0), Span::raw(plain(line)).bold()]);
    let mut lines: Vec<_> = said.text.lines().enumerate().map(line).collect();
    let state = match said.state {
        SaidState::Sending => "sending…",
        SaidState::Waiting => "waiting: taken up at the next step of the running turn",
        SaidState::Refused => "not accepted",
        SaidState::Taken => return lines,
    };
    lines.push(Line::from(Span::styled(format!("  {state}"), dim())));
    lines
}

/// What was not typed here, and who wrote it.
fn told(origin: &str, text: &str) -> Vec<Line<'static>> {
    text.lines()
        .enumerate()
        .map(|(n, line)| match n {
            0 => Line::styled(format!("◦ {}: {}", plain(origin), plain(line)), dim()),
            _ => Line::styled(format!("  {}", plain(line)), dim()),
        })
        .collect()
}

fn answer(text: &str, open: bool) -> Vec<Line<'static>> {
    let mut lines = markdown::render(text);
    if open {
        let mark = Span::styled("▌", dim());
        match lines.last_mut() {
            Some(last) => last.push_span(mark),
            None => lines.push(Line::from(mark)),
        }
    }
    lines
}

/// Another agent's words, under its name.
fn speech(name: &str, text: &str, open: bool) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(Span::styled(plain(name), Style::new().fg(Color::Magenta).bold()))];
    lines.extend(answer(text, open));
    lines
}

fn reasoning(text: &str, open: bool) -> Vec<Line<'static>> {
    let style = dim().add_modifier(Modifier::ITALIC);
    let all: Vec<&str> = text.trim_end().lines().collect();
    let hidden = all.len().saturating_sub(REASONING);
    let mut lines = vec![Line::styled(if open { "thinking…" } else { "thought" }, style)];
    if hidden > 0 {
        lines.push(Line::styled(format!("  … {hidden} more line(s)"), style));
    }
    lines.extend(all[hidden..].iter().map(|line| Line::styled(format!("  {}", plain(line)), style)));
    lines
}

fn card(tool: &Tool) -> Vec<Line<'static>> {
    let (mark, color) = match tool.state {
        ToolState::Running => ("⋯", Color::Yellow),
        ToolState::Ok => ("✓", Color::Green),
        ToolState::Failed => ("✗", Color::Red),
    };
    let mut head = vec![
        Span::styled(format!("{mark} "), Style::new().fg(color)),
        Span::raw(plain(&tool.name)).bold(),
        Span::raw(" "),
    ];
    let mut lines = Vec::new();
    for (n, line) in short(&tool.arguments).lines().enumerate() {
        if n > 0 {
            lines.push(Line::from(std::mem::take(&mut head)));
            head.push(Span::raw("  "));
        }
        head.push(Span::styled(plain(line), Style::new().fg(Color::Cyan)));
    }
    lines.push(Line::from(head));
    lines.extend(tool.tail().into_iter().map(|line| Line::styled(format!("  │ {}", plain(line)), dim())));
    lines.extend(tool.sandbox.iter().map(|line| Line::styled(format!("  └ {}", plain(line)), dim())));
    lines
}

fn ask(question: &Question) -> Vec<Line<'static>> {
    let color = if question.is_open() { Color::Yellow } else { Color::DarkGray };
    let mut lines = vec![Line::from(vec![
        Span::styled("? ", Style::new().fg(color).bold()),
        Span::raw(plain(&wish(&question.asked_by, &question.tool))).bold(),
    ])];
    // Whole, however long: nobody can agree to what is not shown.
    lines.extend(
        question
            .arguments
            .lines()
            .map(|line| Line::styled(format!("  {}", plain(line)), Style::new().fg(Color::Cyan))),
    );
    lines.push(match question.is_open() {
        true => Line::styled("  y  let it run once      n  refuse", Style::new().fg(color)),
        false => Line::styled(format!("  {}", question.state), dim()),
    });
    lines
}

/// Who asks for what.
fn wish(asked_by: &str, tool: &str) -> String {
    if asked_by.is_empty() {
        format!("{tool} wants to run")
    } else {
        format!("{asked_by} wants to run {tool}")
    }
}

fn note(text: &str, tone: Tone) -> Vec<Line<'static>> {
    let style = match tone {
        Tone::Plain => dim(),
        Tone::Bad => Style::new().fg(Color::Red),
    };
    text.lines().map(|line| Line::styled(plain(line), style)).collect()
}

fn short(text: &str) -> String {
    let mut cut: String = text.chars().take(ARGUMENTS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}
