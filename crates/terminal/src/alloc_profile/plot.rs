//! A plot of memory over time, as SVG that takes its colours from the page.

use numakit_bench::allocations::MemoryMoment;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 20.0;

/// Live and resident memory; `seconds` and `bytes` are the ends of the axes, which several plots share.
pub fn memory(series: &[MemoryMoment], seconds: f64, bytes: u64, text: impl Fn(u64) -> String) -> String {
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"live and resident memory over time\">",
        HEIGHT + BOTTOM
    );
    for quarter in 0..=4u64 {
        let y = HEIGHT - HEIGHT * quarter as f64 / 4.0;
        let value = text(bytes / 4 * quarter);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            LEFT - 6.0,
            (y + 4.0).max(10.0)
        );
    }
    for (class, value) in [("resident", resident_of as fn(&MemoryMoment) -> u64), ("live", live_of)] {
        let _ = write!(svg, "<polyline class=\"{class}\" points=\"");
        for moment in series {
            let x = LEFT + (WIDTH - LEFT) * moment.seconds / seconds.max(1e-9);
            let y = HEIGHT - HEIGHT * value(moment) as f64 / bytes.max(1) as f64;
            let _ = write!(svg, "{x:.1},{y:.1} ");
        }
        svg.push_str("\"/>");
    }
    for quarter in 0..=4 {
        let x = LEFT + (WIDTH - LEFT) * f64::from(quarter) / 4.0;
        let anchor = if quarter == 4 {
            "end"
        } else if quarter == 0 {
            "start"
        } else {
            "middle"
        };
        let _ = write!(
            svg,
            "<text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{:.3} s</text>",
            HEIGHT + BOTTOM - 4.0,
            seconds * f64::from(quarter) / 4.0
        );
    }
    svg.push_str("</svg>");
    svg
}

fn live_of(moment: &MemoryMoment) -> u64 {
    moment.live
}

fn resident_of(moment: &MemoryMoment) -> u64 {
    moment.resident
}
