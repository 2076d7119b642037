//! Draws the chat: transcript, completion, input, status line.

use polyclaw_provider::embedded;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph};
use unicode_width::UnicodeWidthChar;

use super::card;
use super::entry::TranscriptEntry;
use super::markdown::dim_style;
use super::state::{ChatState, LinkState};
use super::teams;

const MAX_INPUT_ROWS: usize = 8;

/// Entries as last drawn, so that only changed entries are laid out again.
#[derive(Default)]
pub struct ChatView {
    drawn: Vec<(TranscriptEntry, usize, Vec<Line<'static>>)>,
}

impl ChatView {
    pub fn draw_chat(&mut self, frame: &mut Frame<'_>, model: &mut ChatState) {
        let width = usize::from(frame.area().width.saturating_sub(4));
        let (rows, cursor) = input_rows(model, width.max(1));
        let height = rows.len().clamp(1, MAX_INPUT_ROWS) as u16 + 2;
        let areas = Layout::vertical([Constraint::Min(1), Constraint::Length(height), Constraint::Length(1)]);
        let [transcript, input, status] = areas.areas(frame.area());
        let transcript = teams::draw_teams(frame, transcript, model);
        self.draw_transcript(frame, transcript, model);
        draw_input(frame, input, &rows, cursor);
        draw_offers(frame, input, model);
        frame.render_widget(status_line(model, usize::from(status.width)), status);
    }

    fn draw_transcript(&mut self, frame: &mut Frame<'_>, area: Rect, model: &mut ChatState) {
        let area = area.inner(ratatui::layout::Margin { horizontal: 1, vertical: 0 });
        self.layout_entries(&model.entries, usize::from(area.width));
        let total: usize = self.drawn.iter().map(|(_, _, lines)| lines.len()).sum();
        let room = usize::from(area.height);
        model.scroll = model.scroll.min(total.saturating_sub(room));
        let skip = total.saturating_sub(room + model.scroll);
        let shown = self.drawn.iter().flat_map(|(_, _, lines)| lines).skip(skip).take(room);
        let lines: Vec<Line<'_>> = shown.cloned().collect();
        if lines.is_empty() {
            let hint = "Type a message. / shows commands, Alt+Enter starts a new line, Ctrl+T shows teams, Ctrl+C \
                twice quits.";
            frame.render_widget(Paragraph::new(hint).style(dim_style()), area);
            return;
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn layout_entries(&mut self, entries: &[TranscriptEntry], width: usize) {
        self.drawn.truncate(entries.len());
        for (n, entry) in entries.iter().enumerate() {
            let fresh = self.drawn.get(n).is_some_and(|(old, at, _)| *at == width && old == entry);
            if fresh {
                continue;
            }
            let drawn = (entry.clone(), width, card::entry_lines(entry, width));
            match self.drawn.get_mut(n) {
                Some(old) => *old = drawn,
                None => self.drawn.push(drawn),
            }
        }
    }
}

/// Wraps the input into rows. Returns them with the cursor's row and column.
fn input_rows(model: &ChatState, width: usize) -> (Vec<String>, (usize, usize)) {
    let (before, _) = model.input.around_cursor();
    let mut rows = vec![String::new()];
    let (mut column, mut cursor, mut seen) = (0, (0, 0), 0);
    for character in model.input.text().chars() {
        let columns = character.width().unwrap_or(0);
        if character == '\n' || column + columns > width {
            rows.push(String::new());
            column = 0;
        }
        if seen == before.len() {
            cursor = (rows.len() - 1 - usize::from(character == '\n'), column);
            if character == '\n' {
                let last = rows.len() - 2;
                cursor = (last, unicode_width::UnicodeWidthStr::width(rows[last].as_str()));
            }
        }
        if character != '\n' {
            if let Some(row) = rows.last_mut() {
                row.push(if character == '\t' { ' ' } else { character });
            }
            column += columns;
        }
        seen += character.len_utf8();
    }
    if seen == before.len() {
        cursor = (rows.len() - 1, column);
    }
    (rows, cursor)
}

fn draw_input(frame: &mut Frame<'_>, area: Rect, rows: &[String], (row, column): (usize, usize)) {
    let block = Block::bordered().border_type(BorderType::Rounded).border_style(dim_style());
    let inner = block.inner(area);
    let room = usize::from(inner.height).max(1);
    let first = (row + 1).saturating_sub(room);
    let lines: Vec<Line<'_>> =
        rows.iter().skip(first).take(room).map(|row| Line::from(row.as_str())).collect();
    frame.render_widget(
        Paragraph::new(lines).block(block.padding(ratatui::widgets::Padding::horizontal(1))),
        area,
    );
    let x = inner.x + 1 + u16::try_from(column).unwrap_or(0);
    let y = inner.y + u16::try_from(row - first).unwrap_or(0);
    frame.set_cursor_position(Position { x: x.min(inner.right()), y });
}

fn draw_offers(frame: &mut Frame<'_>, input: Rect, model: &ChatState) {
    let offers = model.completion.matching_offers(model.input.text());
    if offers.is_empty() {
        return;
    }
    let selected = model.completion.position().min(offers.len() - 1);
    let line = |(n, offer): (usize, &super::completion::CommandOffer)| {
        let name = format!(" /{:<10} {:<30} ", offer.name, offer.arguments);
        let style = if n == selected { Style::new().reversed() } else { Style::new() };
        Line::from(vec![Span::styled(name, style), Span::styled(format!(" {}", offer.does), dim_style())])
    };
    let height = u16::try_from(offers.len()).unwrap_or(u16::MAX).min(input.y);
    let first = (selected + 1).saturating_sub(usize::from(height));
    let lines: Vec<Line<'_>> =
        offers.iter().enumerate().map(line).skip(first).take(usize::from(height)).collect();
    let area = Rect { x: input.x + 1, y: input.y - height, width: input.width.saturating_sub(2), height };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).on_black(), area);
}

/// Builds the status line. Drops the least important parts if the terminal is too narrow.
fn status_line(model: &ChatState, width: usize) -> Line<'static> {
    let face = model.faces.get(&model.agent).unwrap_or(&model.agent);
    let mut parts = vec![(2, Span::raw(face.clone()).bold())];
    parts.extend(model_parts(&model.model));
    parts.push((0, state_span(model)));
    let warning = |text: String| Span::styled(text, Style::new().fg(Color::Yellow));
    if model.waiting_count() > 0 {
        parts.push((1, warning(format!("{} waiting", model.waiting_count()))));
    }
    if model.scroll > 0 {
        parts.push((3, Span::styled(format!("{} lines below", model.scroll), dim_style())));
    }
    if model.quit_armed {
        parts.push((0, warning("Ctrl+C again quits".to_owned())));
    }
    parts.push((5, Span::styled(model.session.clone(), dim_style())));
    join_parts(fit_parts(parts, width))
}

fn state_span(model: &ChatState) -> Span<'static> {
    match (&model.link, &model.running, model.open_question()) {
        (LinkState::Connecting, ..) => Span::styled("connecting", Style::new().fg(Color::Yellow)),
        (LinkState::Lost, ..) => Span::styled("reconnecting", Style::new().fg(Color::Red)),
        (_, _, Some(_)) => Span::styled("needs approval: y / n", Style::new().fg(Color::Yellow)),
        (_, Some(_), _) => Span::styled("answering (Esc stops)", Style::new().fg(Color::Green)),
        _ => Span::styled("ready", dim_style()),
    }
}

/// Returns the parts that name the model. The demo mark stays as long as the name; its explanation may be dropped.
fn model_parts(model: &str) -> Vec<(u8, Span<'static>)> {
    if model.is_empty() {
        return vec![(2, Span::styled("no model", Style::new().fg(Color::Yellow)))];
    }
    if model != embedded::chat_model().to_string() {
        return vec![(2, Span::raw(model.to_owned()))];
    }
    let about = "often wrong; `polyclaw doctor` shows how to add a real one";
    vec![(2, Span::raw(format!("{model} (demo)"))), (4, Span::raw(about))]
}

/// Drops parts, the least important first, until the rest fits.
fn fit_parts(mut parts: Vec<(u8, Span<'static>)>, width: usize) -> Vec<Span<'static>> {
    let taken = |parts: &[(u8, Span<'_>)]| parts.iter().map(|(_, span)| span.width() + 3).sum::<usize>();
    while taken(&parts) > width + 2 && parts.len() > 1 {
        let least = parts.iter().enumerate().max_by_key(|(_, (rank, _))| *rank).map_or(0, |(at, _)| at);
        parts.remove(least);
    }
    parts.into_iter().map(|(_, span)| span).collect()
}

fn join_parts(parts: Vec<Span<'static>>) -> Line<'static> {
    let apart = |(at, span)| [if at == 0 { Span::raw(" ") } else { Span::styled(" · ", dim_style()) }, span];
    Line::from(parts.into_iter().enumerate().flat_map(apart).collect::<Vec<_>>())
}
