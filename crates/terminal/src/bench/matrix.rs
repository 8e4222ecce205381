//! Values in rows and columns: a table, in colours from good to bad.

use super::BenchStyle;
use super::grid::{self, Grid, STEPS};
use numakit_bench::Quantiles;
use numakit_model::numbers::ABSENT;
use std::fmt::Write;

/// Backgrounds of the 256 colours, from good to bad; black letters are legible on all of them.
const HEAT: [u8; STEPS] = [114, 150, 186, 222, 216, 210, 203];

/// The medians, and how far measurements were from them.
pub fn text<'a>(of: impl Into<Grid<'a>>, style: BenchStyle) -> String {
    let grid: Grid<'_> = of.into();
    let mut text = format!("{} in {}\n", grid.name, grid.unit);
    if grid.values().next().is_none() {
        text.push_str("  nothing was measured\n");
        return text;
    }
    let head = format!("{} \\ {}", grid.row, grid.column);
    let named = grid.rows.iter().filter(|_| grid.is_named).map(|name| name.chars().count());
    let left = named.chain([head.chars().count(), 4]).max().unwrap_or(0);
    let cells: Vec<Vec<String>> = grid.cells.iter().map(|row| row.iter().map(grid::word).collect()).collect();
    let longest = cells.iter().flatten().chain(&grid.columns).map(|word| word.chars().count());
    let width = longest.max().unwrap_or(0).max(4);
    let fits = (style.width.saturating_sub(left + 2) / (width + 1)).max(1);
    let bounds = grid.bounds();
    for first in (0..grid.columns.len()).step_by(fits) {
        let columns = first..(first + fits).min(grid.columns.len());
        _ = write!(text, "  {head:<left$}");
        for column in &grid.columns[columns.clone()] {
            _ = write!(text, " {column:>width$}");
        }
        text.push('\n');
        for ((row, values), words) in grid.rows.iter().zip(grid.cells).zip(&cells) {
            match grid.is_named {
                true => _ = write!(text, "  {row:<left$}"),
                false => _ = write!(text, "  {row:>left$}"),
            }
            for at in columns.clone() {
                let value = values.get(at).copied().flatten();
                let (before, after) = heat(value, bounds[at], grid.less_is_better, style.color);
                let word = words.get(at).map_or(ABSENT, String::as_str);
                _ = write!(text, " {before}{word:>width$}{after}");
            }
            text.push('\n');
        }
    }
    text.extend(grid.spread().map(|spread| format!("  {spread}\n")));
    text
}

/// What to print before and after a value, for its colour.
fn heat(
    value: Option<Quantiles>,
    bounds: (f64, f64),
    less_is_better: bool,
    color: bool,
) -> (String, &'static str) {
    let Some(value) = value.filter(|_| color) else { return (String::new(), "") };
    let step = grid::step(value.median, bounds, less_is_better);
    (format!("\x1b[30;48;5;{}m", HEAT[step]), "\x1b[0m")
}
