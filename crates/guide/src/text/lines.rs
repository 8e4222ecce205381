//! Lines of text with an indent, wrapped at a width.

use super::Layout;
use super::table::Table;

/// Bold from here, in text that is not laid out yet.
pub const BOLD: char = '\u{e000}';
/// No longer bold.
pub const PLAIN: char = '\u{e001}';

/// A blank at which no line ends.
const GLUE: char = '\u{e002}';

/// What a terminal reads as bold, and as its end.
const STYLES: [(char, &str); 2] = [(BOLD, "\x1b[1m"), (PLAIN, "\x1b[0m")];

/// The lines so far.
pub struct Lines {
    layout: Layout,
    out: String,
    /// The columns of each indent.
    indents: Vec<usize>,
    /// What stands in the indent of the next line.
    bullet: String,
    /// Whether no empty line stands before the next block.
    is_dense: bool,
}

impl Lines {
    pub fn new(layout: Layout) -> Self {
        Self { layout, out: String::new(), indents: Vec::new(), bullet: String::new(), is_dense: true }
    }

    /// All lines.
    pub fn finish(self) -> String {
        self.out
    }

    /// Indents by the width of this text, which stands before the next line.
    pub fn indent(&mut self, bullet: &str) {
        // An item that begins with a list has both bullets in one line.
        self.bullet.push_str(bullet);
        self.indents.push(bullet.chars().count());
    }

    pub fn outdent(&mut self) {
        self.indents.pop();
        self.bullet.clear();
    }

    /// Whether no empty line stands before the next block.
    pub fn set_dense(&mut self, is_dense: bool) {
        self.is_dense = is_dense;
    }

    fn margin(&self) -> usize {
        self.indents.iter().sum()
    }

    /// The columns for text.
    fn room(&self) -> usize {
        self.layout.width.saturating_sub(self.margin()).max(20)
    }

    fn gap(&mut self) {
        if !self.is_dense && !self.out.is_empty() {
            self.out.push('\n');
        }
        self.is_dense = true;
    }

    /// A block of one line.
    pub fn block(&mut self, line: &str) {
        self.gap();
        self.line(line);
        self.is_dense = false;
    }

    /// A wrapped paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.gap();
        for line in wrap(text, self.room(), false) {
            self.line(&line);
        }
        self.is_dense = false;
    }

    /// Lines of code, as they are.
    pub fn code(&mut self, code: &str, indent: usize) {
        self.gap();
        self.indents.push(indent);
        code.lines().for_each(|line| self.line(line));
        self.indents.pop();
        self.is_dense = false;
    }

    pub fn table(&mut self, table: &Table) {
        self.gap();
        table.lines(self.room(), self.layout.is_styled).iter().for_each(|line| self.line(line));
        self.is_dense = false;
    }

    /// The next line of a block.
    pub fn line(&mut self, line: &str) {
        let bullet = std::mem::take(&mut self.bullet);
        let indent = " ".repeat(self.margin().saturating_sub(bullet.chars().count()));
        let line = format!("{indent}{bullet}{line}");
        self.out.push_str(&styled(line.trim_end(), self.layout.is_styled));
        self.out.push('\n');
    }
}

/// The line with what terminals read, or without.
fn styled(line: &str, is_styled: bool) -> String {
    let line = line.replace(GLUE, " ");
    STYLES.iter().fold(line, |line, (mark, style)| line.replace(*mark, if is_styled { style } else { "" }))
}

/// Text that stays on one line.
pub fn glued(text: &str) -> String {
    text.replace(' ', &GLUE.to_string())
}

/// The columns of text.
pub fn width(text: &str) -> usize {
    text.chars().filter(|c| ![BOLD, PLAIN].contains(c)).count()
}

/// Text in lines of at most `room` columns, each of which ends what is bold in it. Longer words are lines of their own, or are
/// broken too.
pub fn wrap(text: &str, room: usize, breaks_words: bool) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        for part in if breaks_words { pieces(word, room) } else { vec![word.to_owned()] } {
            let line = lines.last_mut().map_or("", |line| line.as_str());
            match line.is_empty() {
                true => lines.last_mut().into_iter().for_each(|line| line.push_str(&part)),
                false if width(line) + 1 + width(&part) <= room => {
                    lines.last_mut().into_iter().for_each(|line| *line = format!("{line} {part}"));
                }
                false => lines.push(part),
            }
        }
    }
    let mut is_bold = false;
    for line in &mut lines {
        let was_bold = is_bold;
        is_bold = line.chars().rfind(|c| [BOLD, PLAIN].contains(c)).map_or(is_bold, |mark| mark == BOLD);
        if was_bold {
            line.insert(0, BOLD);
        }
        if is_bold {
            line.push(PLAIN);
        }
    }
    lines
}

/// A word in pieces of at most `room` columns.
fn pieces(word: &str, room: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in word.chars() {
        if let Some(last) = pieces.last_mut().filter(|last| width(last) < room || [BOLD, PLAIN].contains(&c))
        {
            last.push(c);
        } else {
            pieces.push(c.to_string());
        }
    }
    pieces
}
