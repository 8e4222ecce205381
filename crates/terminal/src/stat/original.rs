//! The table in the format of the original NUMAscope, for scripts that parse it.

use super::StatTable;
use std::fmt::Write;

/// Lines between two rows of headings.
const REPEAT: usize = 25;

impl StatTable {
    /// The names of all columns, and below them numbers that end where the names do.
    pub(super) fn original(&mut self, rows: &[Vec<Option<f64>>], out: &mut String) {
        let headings: Vec<String> = self.columns.iter().map(|column| heading(&column.name)).collect();
        for row in rows {
            let line = self.lines.get_or_insert(0);
            if line.is_multiple_of(REPEAT) {
                out.push_str(&headings.join(" "));
                out.push('\n');
            }
            *line += 1;
            for (heading, value) in headings.iter().zip(row) {
                let width = heading.chars().count();
                // Writing to a string cannot fail.
                let _ = match value {
                    Some(value) => write!(out, "{:>width$} ", value.round() as i64),
                    None => write!(out, "{:>width$} ", '-'),
                };
            }
            out.push('\n');
        }
    }
}

/// The name as the kernel or the card has it; `:2` is a counter of card 2.
fn heading(name: &str) -> String {
    let bare = name.split_once('.').map_or(name, |(_, bare)| bare);
    bare.replace("@card", ":")
}
