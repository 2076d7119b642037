//! Tables: each column is as wide as its widest cell.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::dim_style;

type TableCell = Vec<Span<'static>>;

pub(super) struct TableLayout {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<TableCell>>,
    row: Vec<TableCell>,
}

impl TableLayout {
    pub fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub fn push_cell(&mut self, cell: TableCell) {
        self.row.push(cell);
    }

    pub fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// The first row is the head; a line separates it from the others.
    pub fn into_lines(self) -> Vec<Line<'static>> {
        let widths: Vec<usize> = (0..self.alignments.len())
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(cell_width).max().unwrap_or(0)
            })
            .collect();
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        let mut lines: Vec<Line<'static>> =
            self.rows.into_iter().map(|row| build_row(row, &widths, &self.alignments)).collect();
        lines.insert(lines.len().min(1), Line::from(Span::styled(rule.join("─┼─"), dim_style())));
        lines
    }
}

fn cell_width(cell: &TableCell) -> usize {
    cell.iter().map(|span| span.content.width()).sum()
}

fn build_row(row: Vec<TableCell>, widths: &[usize], alignments: &[Alignment]) -> Line<'static> {
    let mut spans = Vec::new();
    let last = widths.len().saturating_sub(1);
    for (column, cell) in row.into_iter().enumerate() {
        let missing = widths.get(column).copied().unwrap_or(0).saturating_sub(cell_width(&cell));
        let before = match alignments.get(column) {
            Some(Alignment::Right) => missing,
            Some(Alignment::Center) => missing / 2,
            _ => 0,
        };
        // Nothing follows the last column, so it needs no padding.
        let after = if column == last { 0 } else { missing - before };
        spans.push(Span::raw(" ".repeat(before)));
        spans.extend(cell);
        spans.push(Span::raw(" ".repeat(after)));
        if column < last {
            spans.push(Span::styled(" │ ", dim_style()));
        }
    }
    spans.retain(|span| !span.content.is_empty());
    Line::from(spans)
}
