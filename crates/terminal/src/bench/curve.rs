//! Curves: a line for each point, with a bar on a logarithmic scale and the marks between them.

use super::number;
use numakit_bench::Curve;
use std::fmt::Write;

/// Columns in front of the bars.
const LEFT: usize = 24;
const LONGEST: usize = 60;
/// Values that differ by less than this factor do not fill all columns.
const FULL: f64 = 2.0;

/// The plot.
pub fn text(curve: &Curve, width: usize) -> String {
    let mut text = format!("{} in {}, by {}\n", curve.name, curve.unit, curve.x.name);
    let medians = || curve.points.iter().map(|point| point.value.median);
    let (least, most) = (medians().fold(f64::MAX, f64::min), medians().fold(0.0, f64::max));
    let longest = width.saturating_sub(LEFT + 2).clamp(10, LONGEST);
    let mut marks = curve.marks.iter().peekable();
    for point in &curve.points {
        while let Some(mark) = marks.next_if(|mark| mark.x < point.x) {
            _ = writeln!(text, "  {:->11} {} is {}", "", mark.name, curve.x.place(mark.x));
        }
        let bar = "#".repeat(length(point.value.median, least, most, longest));
        _ = writeln!(text, "  {:>11} {:>8} {bar}", curve.x.place(point.x), number(point.value.median));
    }
    text
}

/// One character for the least value, all for the largest.
fn length(value: f64, least: f64, most: f64, longest: usize) -> usize {
    if most <= least || least <= 0.0 {
        return 1;
    }
    let share = (value / least).ln() / (most / least).max(FULL).ln();
    1 + (share.clamp(0.0, 1.0) * (longest - 1) as f64).round() as usize
}
