//! The table as the original NUMAscope writes it, for what reads it line by line.

use super::StatTable;
use std::fmt::Write;

/// Lines from one row of headings to the next.
const REPEAT: usize = 25;

impl StatTable {
    /// The names of all columns, and below them numbers that end where the names do.
    pub(super) fn original(&mut self, rows: &[Vec<Option<f64>>], out: &mut String) {
        let headings: Vec<String> = self.figures.iter().map(|figure| heading(&figure.name)).collect();
        for row in rows {
            let line = self.lines.get_or_insert(0);
            if line.is_multiple_of(REPEAT) {
                out.push_str(&headings.join(" "));
                out.push('\n');
            }
            *line += 1;
            for (heading, value) in headings.iter().zip(row) {
                let width = heading.chars().count();
                // To a text nothing fails.
                let _ = match value {
                    Some(value) => write!(out, "{:>width$} ", value.round() as i64),
                    None => write!(out, "{:>width$} ", '-'),
                };
            }
            out.push('\n');
        }
    }
}

/// The name as the kernel or the card has it; `:2` is what card 2 counts.
fn heading(name: &str) -> String {
    let bare = name.split_once('.').map_or(name, |(_, bare)| bare);
    bare.replace("@card", ":")
}
