//! Tables: columns beside each other, whose cells are wrapped where the table would be too wide.

use super::lines::{BOLD, PLAIN, width, wrap};

/// Columns between columns.
const BETWEEN: usize = 2;
/// No column is made narrower than this.
const LEAST: usize = 8;

/// The rows of a table; the first is its heading.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
}

impl Table {
    pub fn cell(&mut self, text: String) {
        self.row.push(text);
    }

    pub fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Its lines, of at most `room` columns if the columns of the table are not too many.
    pub fn lines(&self, room: usize, is_styled: bool) -> Vec<String> {
        let widths = self.widths(room);
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let is_heading = number == 0;
            let cell = |(text, width): (&String, &usize)| match is_heading {
                true => wrap(&format!("{BOLD}{text}{PLAIN}"), *width, true),
                false => wrap(text, *width, true),
            };
            let cells: Vec<Vec<String>> = row.iter().zip(&widths).map(cell).collect();
            lines.extend(beside(&cells, &widths));
            if is_heading && !is_styled {
                let lines_below: Vec<Vec<String>> =
                    widths.iter().map(|width| vec!["-".repeat(*width)]).collect();
                lines.extend(beside(&lines_below, &widths));
            }
        }
        lines
    }

    /// The widths of the columns: those of their longest cells; the widest are narrowed until all fit, down to their longest
    /// words if that suffices.
    fn widths(&self, room: usize) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let longest = |of: fn(&String) -> usize| {
            let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
            (0..columns).map(|column| cells(column).map(of).max().unwrap_or(0)).collect::<Vec<_>>()
        };
        let mut widths = longest(|cell| width(cell));
        let words = longest(|cell| cell.split_whitespace().map(width).max().unwrap_or(0).max(LEAST));
        let room = room.saturating_sub(BETWEEN * columns.saturating_sub(1));
        for least in [words, vec![LEAST; columns]] {
            while widths.iter().sum::<usize>() > room {
                let wide = widths.iter_mut().zip(&least).filter(|(width, least)| **width > **least);
                let Some((widest, _)) = wide.max() else { break };
                *widest -= 1;
            }
        }
        widths
    }
}

/// Cells beside each other, each of several lines.
fn beside(cells: &[Vec<String>], widths: &[usize]) -> Vec<String> {
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |number: usize| {
        let mut line = String::new();
        for (cell, columns) in cells.iter().zip(widths) {
            let text = cell.get(number).map_or("", String::as_str);
            line.push_str(text);
            line.push_str(&" ".repeat(columns.saturating_sub(width(text)) + BETWEEN));
        }
        line.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}
