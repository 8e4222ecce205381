//! A page as text for a terminal.

mod lines;
mod table;

use crate::links::{self, LinkTarget};
use crate::{Document, topics};
use lines::{BOLD, Lines, PLAIN, glued};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use table::Table;

/// How text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Columns of a line; code and words that are longer stay as they are.
    pub width: usize,
    /// Whether headings, code and emphasis are bold; otherwise headings are underlined and code is in backquotes.
    pub is_styled: bool,
}

/// How far code is indented.
const INDENT_OF_CODE: usize = 4;

/// Code of at most this many bytes stays on one line.
const GLUED: usize = 30;

/// The page as text. A link to another page is followed by the command that shows it.
pub fn of(document: &Document, layout: Layout) -> String {
    of_markdown(document.path, &document.markdown(), layout)
}

fn of_markdown(path: &str, markdown: &str, layout: Layout) -> String {
    let mut writer = Writer {
        path,
        layout,
        lines: Lines::new(layout),
        text: String::new(),
        lists: Vec::new(),
        dense_items: Vec::new(),
        table: None,
        link: None,
    };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        writer.take(event);
    }
    writer.lines.finish()
}

struct Writer<'a> {
    path: &'a str,
    layout: Layout,
    lines: Lines,
    /// Text of the paragraph, heading, cell or code so far.
    text: String,
    /// For each list around: the number of its next item, if it is numbered.
    lists: Vec<Option<u64>>,
    /// For each item around: whether its text is no paragraph, so that no empty lines are between it and the next.
    dense_items: Vec<bool>,
    table: Option<Table>,
    /// The address of the link, and where its text begins.
    link: Option<(String, usize)>,
}

impl Writer<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text.push_str(&text),
            Event::Code(code) => self.code(&code),
            Event::InlineHtml(html) => self.html(&html),
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::Rule => self.lines.block(&"-".repeat(self.layout.width.min(40))),
            // The guide has none of the others, but for comments.
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Strong | Tag::Emphasis => self.text.push(BOLD),
            Tag::CodeBlock(_) => self.flush_dense(),
            Tag::List(first) => {
                self.flush_dense();
                self.lines.set_dense(self.dense_items.last().is_some_and(|is_dense| *is_dense));
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::BlockQuote(_) => self.lines.indent("  "),
            Tag::Table(_) => self.table = Some(Table::default()),
            Tag::Link { dest_url, .. } => self.link = Some((dest_url.into_string(), self.text.len())),
            Tag::Image { .. } => self.text.push_str("[Picture: "),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong | TagEnd::Emphasis => self.text.push(PLAIN),
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(level) => self.heading(level),
            TagEnd::CodeBlock => {
                let code = std::mem::take(&mut self.text);
                self.lines.code(&code, INDENT_OF_CODE);
            }
            TagEnd::Item => {
                self.flush_dense();
                self.lines.outdent();
                self.lines.set_dense(self.dense_items.pop().unwrap_or(false));
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.lines.set_dense(false);
            }
            TagEnd::BlockQuote(_) => self.lines.outdent(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                self.table.iter_mut().for_each(|table| table.cell(cell.clone()));
            }
            TagEnd::TableHead | TagEnd::TableRow => self.table.iter_mut().for_each(Table::end_row),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.lines.table(&table);
                }
            }
            TagEnd::Link => self.end_link(),
            TagEnd::Image => self.text.push(']'),
            _ => {}
        }
    }

    /// The text of an item that is no paragraph.
    fn flush_dense(&mut self) {
        if !self.text.is_empty() {
            self.dense_items.last_mut().into_iter().for_each(|is_dense| *is_dense = true);
            self.flush();
        }
    }

    /// The paragraph so far.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.lines.paragraph(&text);
        }
    }

    fn item(&mut self) {
        let bullet = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "- ".to_owned(),
        };
        self.lines.indent(&bullet);
        self.dense_items.push(false);
    }

    fn heading(&mut self, level: HeadingLevel) {
        let text = std::mem::take(&mut self.text).replace([BOLD, PLAIN, '`'], "");
        let underline = match level {
            _ if self.layout.is_styled => None,
            HeadingLevel::H1 => Some("="),
            _ => Some("-"),
        };
        let width = text.chars().count();
        self.lines.paragraph(&format!("{BOLD}{text}{PLAIN}"));
        if let Some(line) = underline {
            self.lines.line(&line.repeat(width));
        }
    }

    fn code(&mut self, code: &str) {
        let (open, close) = if self.layout.is_styled { (BOLD, PLAIN) } else { ('`', '`') };
        self.text.push(open);
        self.text.push_str(&if code.len() <= GLUED { glued(code) } else { code.to_owned() });
        self.text.push(close);
    }

    fn html(&mut self, html: &CowStr<'_>) {
        let mark = match (&**html, self.layout.is_styled) {
            ("<code>", true) => BOLD,
            ("</code>", true) => PLAIN,
            ("<code>" | "</code>", false) => '`',
            _ => return,
        };
        self.text.push(mark);
    }

    fn end_link(&mut self) {
        let Some((address, start)) = self.link.take() else { return };
        let suffix = match links::resolve(self.path, &address) {
            Some(LinkTarget::Address(address)) if self.text[start..] != *address => format!("<{address}>"),
            Some(LinkTarget::Document(document, _)) if document.path != self.path => match document.is_page()
            {
                true => glued(&format!("('numa help guide {}')", topics::name_of(document))),
                false => format!("({})", document.path),
            },
            _ => return,
        };
        self.text.push(' ');
        self.text.push_str(&suffix);
    }
}

#[cfg(test)]
mod tests;
