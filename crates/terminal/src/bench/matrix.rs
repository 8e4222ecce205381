//! Values by pair: a table, in colours from good to bad.

use super::{BenchStyle, number};
use numakit_bench::{PairMatrix, Quantiles};
use numakit_model::numbers::ABSENT;
use std::fmt::Write;

/// Colours from the best to the worst value.
pub(super) const STEPS: usize = 7;
/// Backgrounds of the 256 colours, from good to bad; black letters are legible on all of them.
const HEAT: [u8; STEPS] = [114, 150, 186, 222, 216, 210, 203];
/// A ratio of the worst to the best value below which all are alike.
const ALIKE: f64 = 1.05;

/// The medians, and how far measurements were from them.
pub fn text(matrix: &PairMatrix, style: BenchStyle) -> String {
    let mut text = format!("{} in {}\n", matrix.name, matrix.unit);
    if matrix.values().next().is_none() {
        text.push_str("  nothing was measured\n");
        return text;
    }
    let head = format!("{} \\ {}", matrix.row, matrix.column);
    let left = head.len().max(4);
    let cells: Vec<Vec<String>> = matrix.cells.iter().map(|row| row.iter().map(cell).collect()).collect();
    let longest =
        cells.iter().flatten().map(String::len).chain(matrix.columns.iter().map(|c| c.to_string().len()));
    let width = longest.max().unwrap_or(0).max(4);
    let fits = (style.width.saturating_sub(left + 2) / (width + 1)).max(1);
    let bounds = bounds(matrix);
    for first in (0..matrix.columns.len()).step_by(fits) {
        let columns = first..(first + fits).min(matrix.columns.len());
        _ = write!(text, "  {head:<left$}");
        for column in &matrix.columns[columns.clone()] {
            _ = write!(text, " {column:>width$}");
        }
        text.push('\n');
        for ((row, values), words) in matrix.rows.iter().zip(&matrix.cells).zip(&cells) {
            _ = write!(text, "  {row:>left$}");
            for at in columns.clone() {
                let (before, after) =
                    heat(values.get(at).copied().flatten(), bounds, matrix.less_is_better, style.color);
                let word = words.get(at).map_or(ABSENT, String::as_str);
                _ = write!(text, " {before}{word:>width$}{after}");
            }
            text.push('\n');
        }
    }
    text.extend(spread(matrix).map(|spread| format!("  {spread}\n")));
    text
}

/// How far measurements were from the medians.
pub(super) fn spread(matrix: &PairMatrix) -> Option<String> {
    let widest = matrix.values().max_by(|a, b| a.spread().total_cmp(&b.spread()))?;
    let [low, high] =
        [widest.low, widest.high].map(|v| 100.0 * (v / widest.median.max(f64::MIN_POSITIVE) - 1.0));
    Some(format!("medians; the 10 % and 90 % quantiles are at most {low:+.0} % and {high:+.0} % away"))
}

fn cell(value: &Option<Quantiles>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| number(value.median))
}

/// The least and the largest median.
pub(super) fn bounds(matrix: &PairMatrix) -> (f64, f64) {
    let medians = || matrix.values().map(|value| value.median);
    (medians().fold(f64::MAX, f64::min), medians().fold(0.0, f64::max))
}

/// Whether the least and the largest value differ so little that colours would mislead.
pub(super) fn are_alike((least, most): (f64, f64)) -> bool {
    most <= ALIKE * least
}

/// The colour of a value: 0 for the best, the last of [`STEPS`] for the worst.
pub(super) fn step(value: f64, (least, most): (f64, f64), less_is_better: bool) -> usize {
    if are_alike((least, most)) {
        return 0;
    }
    let share = (value - least) / (most - least);
    let bad = if less_is_better { share } else { 1.0 - share };
    (bad.clamp(0.0, 1.0) * (STEPS - 1) as f64).round() as usize
}

/// What to print before and after a value, for its colour.
fn heat(
    value: Option<Quantiles>,
    bounds: (f64, f64),
    less_is_better: bool,
    color: bool,
) -> (String, &'static str) {
    let Some(value) = value.filter(|_| color) else { return (String::new(), "") };
    let step = step(value.median, bounds, less_is_better);
    (format!("\x1b[30;48;5;{}m", HEAT[step]), "\x1b[0m")
}
