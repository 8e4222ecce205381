//! Curves: a line for each point, with a bar on a logarithmic scale and the marks between them.

use super::number;
use numakit_bench::{Axis, Curve};
use numakit_model::numbers::NumberStyle;
use std::fmt::Write;

/// Columns in front of the bars.
const LEFT: usize = 24;
const LONGEST: usize = 60;

/// The plot.
pub fn text(curve: &Curve, width: usize) -> String {
    let mut text = format!("{} in {}, by {}\n", curve.name, curve.unit, curve.x.name);
    let medians = || curve.points.iter().map(|point| point.value.median);
    let (least, most) = (medians().fold(f64::MAX, f64::min), medians().fold(0.0, f64::max));
    let longest = width.saturating_sub(LEFT + 2).clamp(10, LONGEST);
    let mut marks = curve.marks.iter().peekable();
    for point in &curve.points {
        while let Some(mark) = marks.next_if(|mark| mark.x < point.x) {
            _ = writeln!(text, "  {:->11} {} is {}", "", mark.name, place(&curve.x, mark.x));
        }
        let bar = "#".repeat(length(point.value.median, least, most, longest));
        _ = writeln!(text, "  {:>11} {:>8} {bar}", place(&curve.x, point.x), number(point.value.median));
    }
    text
}

/// A place on the axis, with its unit.
fn place(axis: &Axis, x: f64) -> String {
    match axis.unit.as_str() {
        "bytes" => NumberStyle::Bytes.words(x),
        unit if x == 1.0 => format!("{x} {}", unit.trim_end_matches('s')),
        unit if x.fract() == 0.0 => format!("{x} {unit}"),
        unit => format!("{} {unit}", number(x)),
    }
}

/// Values that differ by less are shown as equal.
const EQUAL: f64 = 1.02;

/// One character for the least value, all for the largest.
fn length(value: f64, least: f64, most: f64, longest: usize) -> usize {
    if most <= least * EQUAL || least <= 0.0 {
        return 1;
    }
    let share = (value / least).ln() / (most / least).ln();
    1 + (share.clamp(0.0, 1.0) * (longest - 1) as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_hardly_differ_have_equal_bars() {
        assert_eq!([length(1.38, 1.375, 1.385, 60), length(1.385, 1.375, 1.385, 60)], [1, 1]);
        assert_eq!(
            [length(1.0, 1.0, 4.0, 61), length(2.0, 1.0, 4.0, 61), length(4.0, 1.0, 4.0, 61)],
            [1, 31, 61]
        );
    }

    #[test]
    fn one_thread_is_not_several() {
        assert_eq!([1.0, 2.0].map(|x| place(&Axis::threads(), x)), ["1 thread", "2 threads"]);
    }
}
