//! Markdown of messages as styled lines of the terminal: headings, emphasis, code, quotes, lists, links and tables. Text
//! whose marks do not pair is shown as written.

mod table;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use self::table::TableLayout;

pub fn render_markdown(text: &str) -> Vec<Line<'static>> {
    let text = text.trim_end();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = MarkdownRenderer::default();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        if let Event::Start(tag) = &event
            && is_block(tag)
        {
            renderer.separate_block(&text[..range.start]);
        }
        renderer.apply(event);
    }
    renderer.end_line();
    renderer.lines
}

fn is_block(tag: &Tag<'_>) -> bool {
    use Tag::{BlockQuote, CodeBlock, Heading, HtmlBlock, Item, List, Paragraph, Table};
    matches!(
        tag,
        Paragraph | Heading { .. } | BlockQuote(_) | CodeBlock(_) | HtmlBlock | List(_) | Item | Table(_)
    )
}

/// Collects the lines of one message.
#[derive(Default)]
struct MarkdownRenderer {
    lines: Vec<Line<'static>>,
    /// Spans of the line that is not complete yet.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    quote_depth: usize,
    /// The next number of each open list; `None` for a list of bullets.
    lists: Vec<Option<u64>>,
    in_code_block: bool,
    /// Address of the open link, and where its text starts in `spans`.
    link: Option<(String, usize)>,
    table: Option<TableLayout>,
}

impl MarkdownRenderer {
    /// Keeps one empty line where the source has empty lines in front of a block.
    fn separate_block(&mut self, before: &str) {
        let is_separated = before.trim_end_matches([' ', '\t', '>']).ends_with("\n\n");
        self.end_line();
        if is_separated && self.lines.last().is_some_and(|line| !line.spans.is_empty()) {
            self.lines.push(Line::default());
        }
    }

    fn apply(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code_block => self.push_code_lines(&text),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.push_text(&text),
            Event::Code(code) => self.push_span(&code, code_style()),
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => self.push_rule(),
            Event::TaskListMarker(is_done) => self.push_text(if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.push_text(&format!("[^{name}]")),
            Event::InlineMath(math) | Event::DisplayMath(math) => self.push_span(&math, code_style()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } | Tag::Strong => self.styles.push(bold_style()),
            Tag::Emphasis => self.styles.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strikethrough => self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::BlockQuote(_) => self.quote_depth += 1,
            Tag::List(first) => self.lists.push(first),
            Tag::Item => self.push_list_marker(),
            Tag::CodeBlock(kind) => self.start_code_block(&kind),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.into_string(), self.spans.len()));
            }
            Tag::Table(alignments) => self.table = Some(TableLayout::new(alignments)),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_line();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.quote_depth -= 1;
            }
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::CodeBlock => self.in_code_block = false,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => self.end_cell(),
            TagEnd::TableHead | TagEnd::TableRow => self.with_table(TableLayout::end_row),
            TagEnd::Table => self.end_table(),
            TagEnd::Paragraph | TagEnd::Item | TagEnd::HtmlBlock => self.end_line(),
            _ => {}
        }
    }

    fn with_table(&mut self, change: impl FnOnce(&mut TableLayout)) {
        if let Some(table) = &mut self.table {
            change(table);
        }
    }

    fn end_cell(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        self.with_table(|table| table.push_cell(spans));
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            self.lines.extend(table.into_lines());
        }
    }

    fn start_code_block(&mut self, kind: &CodeBlockKind<'_>) {
        self.in_code_block = true;
        if let CodeBlockKind::Fenced(language) = kind
            && !language.is_empty()
        {
            self.push_span(&format!("  {language}"), dim_style());
            self.end_line();
        }
    }

    fn push_code_lines(&mut self, code: &str) {
        for line in code.lines() {
            self.spans.push(Span::styled("│ ", dim_style()));
            self.push_span(line, code_style());
            self.end_line();
        }
    }

    fn push_list_marker(&mut self) {
        let indent = "  ".repeat(self.lists.len().saturating_sub(1));
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{indent}{}. ", *number - 1)
            }
            _ => format!("{indent}• "),
        };
        self.push_text(&marker);
    }

    /// Appends the address, unless the link's text already is the address.
    fn end_link(&mut self) {
        let Some((address, start)) = self.link.take() else { return };
        let shown: String = self.spans.iter().skip(start).map(|span| span.content.as_ref()).collect();
        if !address.is_empty() && address != shown && address.strip_prefix("mailto:") != Some(&shown) {
            self.push_span(&format!(" ({address})"), dim_style());
        }
    }

    fn push_rule(&mut self) {
        self.end_line();
        self.push_span("────────", dim_style());
        self.end_line();
    }

    fn push_text(&mut self, text: &str) {
        self.push_span(text, Style::new());
    }

    fn push_span(&mut self, text: &str, style: Style) {
        let style = self.styles.iter().fold(style, |whole, outer| whole.patch(*outer));
        let text = strip_control_chars(text);
        match self.spans.last_mut() {
            // The parser splits text at marks that do not pair.
            Some(last) if last.style == style && self.link.is_none() => last.content.to_mut().push_str(&text),
            _ => self.spans.push(Span::styled(text, style)),
        }
    }

    fn end_line(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let mut spans = vec![Span::styled("▏ ".repeat(self.quote_depth), dim_style())];
        spans.retain(|span| !span.content.is_empty());
        spans.append(&mut self.spans);
        self.lines.push(Line::from(spans));
    }
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
    fn emphasis_and_code_become_styles_and_unpaired_marks_stay() {
        let lines = render_markdown("a **b** `c` 2 ** 3");
        let styles: Vec<_> = lines[0].spans.iter().map(|span| (span.content.as_ref(), span.style)).collect();
        assert_eq!(styles[1], ("b", bold_style()));
        assert_eq!(styles[3], ("c", code_style()));
        assert_eq!(shown("a **b** `c` 2 ** 3"), ["a b c 2 ** 3"]);
    }

    #[test]
    fn code_blocks_and_headings_are_rendered_without_marks() {
        assert_eq!(
            shown("# Title\n```rust\nlet **x** = 1;\n\n  y\n```\nend"),
            ["Title", "  rust", "│ let **x** = 1;", "│ ", "│   y", "end"]
        );
        assert_eq!(shown("```\nnever closed"), ["│ never closed"]);
    }

    #[test]
    fn paragraphs_lists_and_quotes_keep_their_lines() {
        assert_eq!(
            shown("one\ntwo\n\nthree\n- a\n- b\n  1. c\n  2. d\n\n> q1\n> q2\n\n---\n- [x] done"),
            [
                "one",
                "two",
                "",
                "three",
                "• a",
                "• b",
                "  1. c",
                "  2. d",
                "",
                "▏ q1",
                "▏ q2",
                "────────",
                "• [x] done"
            ]
        );
    }

    #[test]
    fn link_shows_its_address_unless_the_text_is_the_address() {
        assert_eq!(
            shown("[docs](https://a.example) <https://b.example>"),
            ["docs (https://a.example) https://b.example"]
        );
    }

    #[test]
    fn table_columns_are_aligned() {
        assert_eq!(
            shown("| name | n |\n|---|--:|\n| **漢字** | 1 |\n| b | 200 |"),
            ["name │   n", "─────┼────", "漢字 │   1", "b    │ 200"]
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(shown("a\x1b[31mb\tc"), ["a[31mb    c"]);
    }
}
