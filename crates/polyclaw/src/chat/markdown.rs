//! Minimal Markdown: bold, code, code blocks and headings. Everything else is shown as written.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

pub fn render_markdown(text: &str) -> Vec<Line<'static>> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.trim_end().lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            let language = line.trim_start().trim_start_matches('`').trim();
            if fenced && !language.is_empty() {
                lines.push(Line::from(Span::styled(format!("  {language}"), dim_style())));
            }
            continue;
        }
        lines.push(if fenced { code_line(line) } else { prose_line(line) });
    }
    lines
}

fn code_line(line: &str) -> Line<'static> {
    Line::from(vec![Span::styled("│ ", dim_style()), Span::styled(strip_control_chars(line), code_style())])
}

fn prose_line(line: &str) -> Line<'static> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&level) && line[level..].starts_with(' ') {
        return Line::from(Span::styled(strip_control_chars(line[level..].trim()), bold_style()));
    }
    Line::from(inline_spans(line))
}

/// Splits at `**` and backticks. An unmatched mark is plain text.
fn inline_spans(line: &str) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some((at, mark)) = next_mark(rest) {
        let inner = &rest[at + mark.len()..];
        let Some(end) = inner.find(mark).filter(|end| *end > 0) else {
            let cut = at + mark.len();
            spans.push(Span::raw(strip_control_chars(&rest[..cut])));
            rest = &rest[cut..];
            continue;
        };
        if at > 0 {
            spans.push(Span::raw(strip_control_chars(&rest[..at])));
        }
        spans.push(Span::styled(
            strip_control_chars(&inner[..end]),
            if mark == "`" { code_style() } else { bold_style() },
        ));
        rest = &inner[end + mark.len()..];
    }
    if !rest.is_empty() {
        spans.push(Span::raw(strip_control_chars(rest)));
    }
    spans
}

fn next_mark(text: &str) -> Option<(usize, &'static str)> {
    ["**", "`"].into_iter().filter_map(|mark| Some((text.find(mark)?, mark))).min()
}

/// Removes control characters, with which a model could move the cursor.
pub fn strip_control_chars(text: &str) -> String {
    polyclaw_domain::sanitize::escape_hidden(&text.replace('\t', "    "))
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

fn bold_style() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn code_style() -> Style {
    Style::new().fg(Color::Cyan)
}

pub fn dim_style() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        render_markdown(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn marks_become_styles_and_unpaired_ones_stay() {
        let lines = render_markdown("a **b** `c` 2 ** 3");
        let styles: Vec<_> = lines[0].spans.iter().map(|span| (span.content.as_ref(), span.style)).collect();
        assert_eq!(styles[1], ("b", bold_style()));
        assert_eq!(styles[3], ("c", code_style()));
        assert_eq!(shown("a **b** `c` 2 ** 3"), ["a b c 2 ** 3"]);
    }

    #[test]
    fn code_blocks_and_headings_are_set_apart() {
        assert_eq!(
            shown("# Title\n```rust\nlet **x** = 1;\n```\nend"),
            ["Title", "  rust", "│ let **x** = 1;", "end"]
        );
        assert_eq!(shown("```\nnever closed"), ["│ never closed"]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(shown("a\x1b[31mb\tc"), ["a[31mb    c"]);
    }
}
