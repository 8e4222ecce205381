//! Curves as a drawing: those of one axis and unit share it.

use super::scale::{Scale, tick};
use crate::html::escaped;
use numakit_bench::{Axis, Curve};
use numakit_model::numbers::NumberStyle;
use std::fmt::Write;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 24.0;
/// Above the curves: the unit, and the names of marks.
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
/// Curves that can be distinguished in one drawing.
const MOST: usize = 8;
/// A ratio of the largest to the least value beyond which the least could not be read from the top of an even axis.
const WIDE: f64 = 10.0;

/// Curves in groups that share a drawing, in their order: of one axis, one unit and one pair of nodes.
pub fn groups(curves: &[Curve]) -> Vec<Vec<&Curve>> {
    let mut groups: Vec<Vec<&Curve>> = Vec::new();
    for curve in curves {
        let fits = |group: &&mut Vec<&Curve>| {
            let first = group.first();
            let alike = |first: &&Curve| {
                first.x == curve.x && first.unit == curve.unit && first.nodes() == curve.nodes()
            };
            group.len() < MOST && first.is_some_and(alike)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(curve),
            None => groups.push(vec![curve]),
        }
    }
    groups
}

/// The words with which all names begin, up to a comma, and the length of that with the comma.
pub fn common(group: &[&Curve]) -> usize {
    let Some(first) = group.first() else { return 0 };
    let parts = first.name.match_indices(", ").map(|(at, comma)| at + comma.len());
    let is_common = |length: &usize| group.iter().all(|curve| curve.name.starts_with(&first.name[..*length]));
    if group.len() == 1 { 0 } else { parts.filter(is_common).last().unwrap_or(0) }
}

/// The words with which all names end, from a comma on, and the length of that with the comma. Something is left of each name
/// between these and the first `begin` bytes.
pub fn common_end(group: &[&Curve], begin: usize) -> usize {
    let Some(first) = group.first().filter(|_| group.len() > 1) else { return 0 };
    let rest = |curve: &Curve| curve.name.get(begin..).unwrap_or_default().to_owned();
    let own = rest(first);
    let ends = own.match_indices(", ").map(|(at, _)| &own[at..]);
    let mut common =
        ends.filter(|end| group.iter().all(|c| rest(c).len() > end.len() && rest(c).ends_with(end)));
    common.next().map_or(0, str::len)
}

/// The drawing; nothing if no curve has a point.
pub fn svg(group: &[&Curve]) -> Option<String> {
    let axis = &group.first()?.x;
    let points = || group.iter().flat_map(|curve| &curve.points);
    let x = Scale::over(points().map(|point| point.x), axis.logarithmic, (LEFT + 8.0, WIDTH - RIGHT))?;
    let medians = points().map(|point| point.value.median);
    let (least, most) = (medians.clone().fold(f64::MAX, f64::min), medians.clone().fold(0.0, f64::max));
    let y = Scale::over(medians, most > WIDE * least, (HEIGHT - BOTTOM, TOP))?.with_room();
    let name = group.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>().join("; ");
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(&name)
    );
    axes(&mut svg, axis, &group.first()?.unit, &x, &y);
    marks(&mut svg, group, &x);
    for (at, curve) in group.iter().enumerate() {
        line(&mut svg, curve, at, &x, &y);
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// The sign of a curve in a drawing, for the legend.
pub fn key(at: usize) -> String {
    format!(
        "<svg class=\"key s{at}\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><polyline points=\"0,6 30,6\"/>{}</svg>",
        sign(at, 15.0, 6.0)
    )
}

fn axes(svg: &mut String, axis: &Axis, unit: &str, x: &Scale, y: &Scale) {
    // Writing to a string cannot fail.
    for value in y.ticks(10.0) {
        let at = y.at(value);
        _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            tick(value)
        );
    }
    let is_bytes = axis.unit == "bytes";
    for value in x.ticks(if is_bytes { 2.0 } else { 10.0 }) {
        let (at, from, to) = (x.at(value), HEIGHT - BOTTOM, HEIGHT - BOTTOM + 4.0);
        let text = if is_bytes {
            NumberStyle::Bytes.words(value).replace(".00", "").replace(".0", "")
        } else {
            tick(value)
        };
        _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{from}\" y2=\"{to}\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
            to + 11.0
        );
    }
    let how = |scale: &Scale| if scale.logarithmic { ", logarithmic" } else { "" };
    let what = match is_bytes || axis.unit == axis.name {
        true => axis.name.clone(),
        false => format!("{} in {}", axis.name, axis.unit),
    };
    _ = writeln!(
        svg,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\
         <text class=\"what\" x=\"4\" y=\"12\">{}{}</text>\
         <text class=\"what\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}{}</text>",
        WIDTH - RIGHT,
        HEIGHT - BOTTOM,
        HEIGHT - BOTTOM,
        escaped(unit),
        how(y),
        WIDTH - RIGHT,
        HEIGHT - 6.0,
        escaped(&what),
        how(x)
    );
}

/// Marks of all curves, each once; names that are near each other are in two lines.
fn marks(svg: &mut String, group: &[&Curve], x: &Scale) {
    let mut marks: Vec<(f64, &str)> = Vec::new();
    for mark in group.iter().flat_map(|curve| &curve.marks).filter(|mark| x.has(mark.x)) {
        if !marks.contains(&(mark.x, &mark.name)) {
            marks.push((mark.x, &mark.name));
        }
    }
    let (mut before, mut is_low) = (f64::MIN, false);
    for (value, name) in marks {
        let at = x.at(value);
        is_low = at - before < 36.0 && !is_low;
        before = at;
        let y = if is_low { TOP + 8.0 } else { TOP - 5.0 };
        _ = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{}\"/>\
             <text x=\"{at:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM,
            escaped(name)
        );
    }
}

/// A curve with a sign at each point and a line from its 10 % to its 90 % quantile.
fn line(svg: &mut String, curve: &Curve, at: usize, x: &Scale, y: &Scale) {
    _ = write!(svg, "<g class=\"s{at}\"><polyline points=\"");
    for point in &curve.points {
        _ = write!(svg, "{:.1},{:.1} ", x.at(point.x), y.at(point.value.median));
    }
    svg.push_str("\"/>\n");
    for point in &curve.points {
        let (px, py) = (x.at(point.x), y.at(point.value.median));
        _ = writeln!(
            svg,
            "<g><title>{}</title><line x1=\"{px:.1}\" x2=\"{px:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>{}</g>",
            escaped(&format!(
                "{}: {} {}, from {} to {}",
                curve.x.place(point.x),
                super::number(point.value.median),
                curve.unit,
                super::number(point.value.low),
                super::number(point.value.high)
            )),
            y.at(point.value.low),
            y.at(point.value.high),
            sign(at, px, py)
        );
    }
    svg.push_str("</g>\n");
}

/// A sign of its own for each of the first curves, for those who see no colours.
fn sign(at: usize, x: f64, y: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let corner = |(dx, dy): &(f64, f64)| format!("{:.1},{:.1}", x + dx, y + dy);
        let corners: Vec<String> = corners.iter().map(corner).collect();
        format!("<polygon points=\"{}\"/>", corners.join(" "))
    };
    match at % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"),
        1 => polygon(&[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)]),
        2 => polygon(&[(0.0, -4.0), (4.0, 3.0), (-4.0, 3.0)]),
        _ => polygon(&[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)]),
    }
}
