//! Parts of a screen, and which of their lines are left out where there are too many.

use crate::wrap::wrap;

/// The width of labels.
const LABEL: usize = 7;

/// Some lines, and how much they matter.
pub(super) struct Part {
    lines: Vec<String>,
    /// As many lines stay at least.
    least: usize,
    /// The part with the highest number loses its last line first.
    dropped: u8,
    /// Whether the lines are sentences, whose end is marked where it is left out.
    is_prose: bool,
}

impl Part {
    /// Lines that matter.
    pub(super) fn new(lines: Vec<String>) -> Self {
        Self { lines, least: 1, dropped: 0, is_prose: false }
    }

    /// A line between parts.
    pub(super) fn space() -> Self {
        Self { least: 0, dropped: u8::MAX, ..Self::new(vec![String::new()]) }
    }

    /// Sentences on at most `most` lines.
    pub(super) fn prose(text: &str, width: usize, most: usize) -> Self {
        let mut part = Self { is_prose: true, ..Self::new(wrap(text, Some(width))) };
        while part.lines.len() > most {
            part.drop_line();
        }
        part
    }

    /// Sentences behind a label, on at most `most` lines.
    pub(super) fn labelled(label: &str, text: &str, width: usize, most: usize) -> Self {
        let mut part = Self::prose(text, width - LABEL - 1, most);
        part.label(label);
        part
    }

    /// Items behind a label, each on a line that is wrapped.
    pub(super) fn items(label: &str, items: &[String], width: usize) -> Self {
        let lines = items.iter().flat_map(|item| wrap(item, Some(width - LABEL - 1))).collect();
        let mut part = Self { is_prose: true, ..Self::new(lines) };
        part.label(label);
        part
    }

    /// How many lines of a terminal it has. A word of a command may have several.
    pub(super) fn height(&self) -> usize {
        self.lines.iter().map(|line| 1 + line.matches('\n').count()).sum()
    }

    /// A command behind a label. It is never cut; where it is broken, the shell reads on.
    pub(super) fn command(label: &str, command: &str, width: usize) -> Self {
        let mut part = Self::new(broken(command, width - LABEL - 1));
        part.least = part.lines.len();
        part.label(label);
        part
    }

    fn label(&mut self, label: &str) {
        let label = if label.is_empty() { String::new() } else { format!("{label}:") };
        for (at, line) in self.lines.iter_mut().enumerate() {
            let label = if at == 0 { label.as_str() } else { "" };
            *line = format!("{label:<LABEL$} {line}");
        }
    }

    /// As many lines stay at least.
    pub(super) fn needing(mut self, least: usize) -> Self {
        self.least = least;
        self
    }

    /// How early its lines are left out; all of them may be.
    pub(super) fn dropped(mut self, early: u8) -> Self {
        self.dropped = early;
        self
    }

    fn drop_line(&mut self) {
        self.lines.pop();
        if let Some(last) = self.lines.last_mut().filter(|_| self.is_prose) {
            // The mark takes no more room than the word that it replaces.
            let kept = last.trim_end().rsplit_once(' ').map_or("", |(kept, _)| kept);
            *last = format!("{kept} ...");
        }
    }
}

/// At most `height` lines of all parts, unless commands have more.
pub(super) fn fitted(mut parts: Vec<Part>, height: usize) -> String {
    let lines = |parts: &[Part]| parts.iter().map(Part::height).sum::<usize>();
    while lines(&parts) > height {
        let droppable = parts.iter_mut().rev().filter(|part| part.lines.len() > part.least);
        match droppable.max_by_key(|part| part.dropped) {
            Some(part) => part.drop_line(),
            // Commands are not cut.
            None => break,
        }
    }
    let mut out = String::new();
    for line in parts.iter().flat_map(|part| &part.lines) {
        // No two empty lines, and none at the start.
        if line.is_empty() && (out.is_empty() || out.ends_with("\n\n")) {
            continue;
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A command on lines of at most this width, broken between words. Words stay whole.
fn broken(command: &str, width: usize) -> Vec<String> {
    const MARK: &str = " \\";
    let room = width - MARK.len();
    let mut lines = vec![String::new()];
    for word in words(command) {
        if let Some(line) = lines.last_mut() {
            let length = line.chars().count() + 1 + word.chars().count();
            if line.is_empty() {
                line.push_str(word);
            } else if length <= room {
                line.push(' ');
                line.push_str(word);
            } else {
                line.push_str(MARK);
                lines.push(word.to_owned());
            }
        }
    }
    lines
}

/// The words of a command as a shell sees them: spaces in quotes and behind a backslash break nothing.
fn words(command: &str) -> Vec<&str> {
    let (mut all, mut start, mut quote, mut is_escaped) = (Vec::new(), 0, None, false);
    for (at, letter) in command.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if quote != Some('\'') => is_escaped = true,
            '\'' | '"' if quote.is_none() => quote = Some(letter),
            _ if quote == Some(letter) => quote = None,
            ' ' if quote.is_none() => {
                all.push(&command[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(&command[start..]);
    all.retain(|word| !word.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_broken_where_the_shell_reads_on() {
        let command = r"numa run ./app 'a b c' x\ y";
        assert_eq!(words(command), ["numa", "run", "./app", "'a b c'", r"x\ y"]);
        assert_eq!(broken(command, 80), [command]);
        assert_eq!(broken(command, 20), [r"numa run ./app \", r"'a b c' x\ y"]);
        assert_eq!(broken("numa 'it is one long word'", 12), [r"numa \", "'it is one long word'"]);
    }

    #[test]
    fn lines_that_matter_least_are_left_out_first() {
        let part = |text: &str, early| Part::prose(text, 5, 9).dropped(early);
        let parts = || vec![part("aa aa bb bb", 1), Part::space(), part("cc cc dd dd ee", 5)];
        assert_eq!(fitted(parts(), 9), "aa aa\nbb bb\n\ncc cc\ndd dd\nee\n");
        assert_eq!(fitted(parts(), 5), "aa aa\nbb bb\ncc cc\ndd dd\nee\n");
        assert_eq!(fitted(parts(), 3), "aa aa\nbb bb\ncc ...\n");
        assert_eq!(fitted(parts(), 1), "aa ...\ncc ...\n", "a line of each stays");
        let command = Part::command("next", "numa explain ./app", 20);
        assert_eq!(fitted(vec![command], 1), "next:   numa \\\n        explain \\\n        ./app\n");
    }

    #[test]
    fn lines_within_a_word_of_a_command_count() {
        let command = || Part::command("next", "python3 -c 'a\nb\nc'", 40);
        assert_eq!(command().height(), 3);
        let parts = vec![Part::prose("aa aa bb bb", 5, 9).needing(0), command()];
        assert_eq!(fitted(parts, 4), "aa ...\nnext:   python3 -c 'a\nb\nc'\n", "the word is not changed");
    }

    #[test]
    fn items_stand_below_each_other() {
        let items = ["one two".to_owned(), "three".to_owned()];
        let part = Part::items("waits", &items, 12);
        assert_eq!(part.lines, ["waits:  one", "        two", "        three"]);
    }
}
