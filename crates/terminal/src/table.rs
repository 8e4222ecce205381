//! Columns of fixed width under two lines of headings: groups, and the columns in them.

/// The head of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnHead {
    /// Heading that adjacent columns with the same group share; may be empty.
    pub group: String,
    /// The column's own heading.
    pub heading: String,
    /// Width of its fields.
    pub width: usize,
}

/// Columns separated by one space.
#[derive(Debug, Clone, Default)]
pub struct TableLayout {
    heads: Vec<ColumnHead>,
}

impl TableLayout {
    /// Columns wide enough for their headings and for those of their groups.
    pub fn new(mut heads: Vec<ColumnHead>) -> Self {
        for head in &mut heads {
            head.width = head.width.max(head.heading.chars().count());
        }
        let mut start = 0;
        while start < heads.len() {
            let end = group_end(&heads, start);
            let missing = heads[start].group.chars().count().saturating_sub(width_of(&heads[start..end]));
            heads[end - 1].width += missing;
            start = end;
        }
        Self { heads }
    }

    /// Width of each column.
    pub fn widths(&self) -> impl Iterator<Item = usize> + '_ {
        self.heads.iter().map(|h| h.width)
    }

    /// Width of a line.
    pub fn width(&self) -> usize {
        width_of(&self.heads)
    }

    /// How many columns fit into a line of that width; at least one.
    pub fn fitting(&self, width: usize) -> usize {
        (1..=self.heads.len()).rev().find(|&n| width_of(&self.heads[..n]) <= width).unwrap_or(1)
    }

    /// The line of groups, if there are any, and the line of headings.
    pub fn headings(&self) -> Vec<String> {
        let mut groups = Vec::new();
        let mut start = 0;
        while start < self.heads.len() {
            let end = group_end(&self.heads, start);
            groups.push(ruled(&self.heads[start].group, width_of(&self.heads[start..end])));
            start = end;
        }
        let mut lines = vec![self.line(self.heads.iter().map(|h| h.heading.clone()))];
        if self.heads.iter().any(|h| !h.group.is_empty()) {
            lines.insert(0, groups.join(" ").trim_end().to_owned());
        }
        lines
    }

    /// One line; fields are right-aligned.
    pub fn line(&self, fields: impl IntoIterator<Item = String>) -> String {
        let padded = self.heads.iter().zip(fields).map(|(head, field)| format!("{field:>0$}", head.width));
        padded.collect::<Vec<_>>().join(" ")
    }
}

fn group_end(heads: &[ColumnHead], start: usize) -> usize {
    let same = |h: &&ColumnHead| h.group == heads[start].group;
    start + heads[start..].iter().take_while(same).count()
}

fn width_of(heads: &[ColumnHead]) -> usize {
    heads.iter().map(|h| h.width + 1).sum::<usize>().saturating_sub(1)
}

/// A word in the middle of a rule, which shows the columns that it spans.
fn ruled(word: &str, width: usize) -> String {
    let fill = if word.is_empty() { ' ' } else { '-' };
    let around = width.saturating_sub(word.chars().count());
    let left = around / 2;
    let repeat = |n| std::iter::repeat_n(fill, n).collect::<String>();
    format!("{}{word}{}", repeat(left), repeat(around - left))
}

/// A small table for a page: the first column is left-aligned, the others right-aligned, each as
/// wide as its content; a last heading that begins with `<` is left-aligned. Without rows there is no text.
pub fn page_table(headings: &[&str], rows: &[Vec<String>], indent: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|r| r.get(at)).map(|c| c.chars().count());
        cells.chain([headings[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let last = headings.len() - 1;
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:<width$}"),
            _ if at == last && headings[last].starts_with('<') => cell.to_owned(),
            _ => format!("{cell:>width$}"),
        });
        format!("{indent}{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let shown: Vec<&str> = headings.iter().map(|h| h.trim_start_matches('<')).collect();
    let mut text = line(&mut shown.into_iter());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(group: &str, heading: &str, width: usize) -> ColumnHead {
        ColumnHead { group: group.into(), heading: heading.into(), width }
    }

    #[test]
    fn groups_are_above_their_columns() {
        let layout = TableLayout::new(vec![
            head("", "time", 6),
            head("faults/s", "all", 4),
            head("faults/s", "major", 4),
        ]);
        assert_eq!(layout.headings(), ["       -faults/s-", "  time  all major"]);
        assert_eq!(layout.line(["1".into(), "22".into(), "-".into()]), "     1   22     -");
        assert_eq!(layout.width(), 17);
        assert_eq!((layout.fitting(17), layout.fitting(16), layout.fitting(1)), (3, 2, 1));
    }

    #[test]
    fn a_long_group_widens_its_last_column() {
        let layout = TableLayout::new(vec![head("a long group", "x", 2), head("y", "longer", 1)]);
        assert_eq!(layout.headings(), ["a long group --y---", "           x longer"]);
    }

    #[test]
    fn a_page_table_is_as_wide_as_its_content() {
        let rows = vec![
            vec!["0".into(), "12".into(), "all is well".into()],
            vec!["10".into(), "1".into(), "no".into()],
        ];
        let text = page_table(&["node", "n", "<verdict"], &rows, "  ");
        assert_eq!(text, "  node   n  verdict\n  0     12  all is well\n  10     1  no\n");
        assert_eq!(page_table(&["a"], &[], ""), "");
    }
}
