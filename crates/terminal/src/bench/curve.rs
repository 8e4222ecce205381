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

/// Values that differ by less are shown as equal.
const EQUAL: f64 = 1.02;

/// One character for the least value, all for the largest.
fn length(value: f64, least: f64, most: f64, longest: usize) -> usize {
    if most <= least * EQUAL || least <= 0.0 {
        return 1;
    }
    let share = (value / least).ln() / (most / least).max(FULL).ln();
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
        assert_eq!([1.0, 2.0].map(|x| numakit_bench::Axis::threads().place(x)), ["1 thread", "2 threads"]);
        assert_eq!(numakit_bench::Axis::bandwidth().place(1.0), "1 GB/s");
    }
}
