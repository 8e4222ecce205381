//! The distance matrix as a heat map.

use super::drawing::{Drawing, stack, text_line, text_width};
use crate::topology::matrix::{NodeGroup, merge, singles};
use numakit_model::topology::Distances;

/// Up to this many rows, each cell shows its number.
const NUMBERED: usize = 40;

/// On large machines, nodes that are equally far from all others share a row.
pub fn draw(distances: &Distances) -> Drawing {
    let colours = Colours::of(distances);
    let mut groups = singles(distances);
    if groups.len() > NUMBERED {
        groups = merge(distances, &groups);
    }
    // Very few groups would show less than many small cells.
    let map = match groups.len() {
        len if len > NUMBERED || (len < 4 && distances.nodes.len() > NUMBERED) => plain(distances, &colours),
        _ => numbered(distances, &groups, &colours),
    };
    stack(vec![text_line("distances", 13.0, "name"), map, colours.legend()], 8.0)
}

/// One colour per value: green for local, then from light to dark. The same distance is about
/// as dark on every machine; close values differ by their rank.
struct Colours {
    values: Vec<u32>,
}

const STEPS: [(f64, f64, f64); 5] = [
    (255.0, 245.0, 210.0),
    (254.0, 205.0, 120.0),
    (246.0, 140.0, 70.0),
    (210.0, 65.0, 55.0),
    (120.0, 15.0, 45.0),
];
const LOCAL: &str = "#cfe8d8";

impl Colours {
    fn of(distances: &Distances) -> Self {
        let mut values: Vec<u32> = distances.rows.iter().flatten().copied().collect();
        values.sort_unstable();
        values.dedup();
        Self { values }
    }

    /// From 0 for local to 1 for 16 times the local distance.
    fn heat(&self, value: u32) -> f64 {
        let last = self.values.len().saturating_sub(1);
        let rank = self.values.binary_search(&value).unwrap_or(0) as f64 / (last.max(1)) as f64;
        let far = (f64::from(value.max(1)) / f64::from(self.values[0].max(1))).ln() / 16f64.ln();
        0.2 * rank + 0.8 * far.clamp(0.0, 1.0)
    }

    fn fill(&self, value: u32) -> String {
        if Some(&value) == self.values.first() {
            return LOCAL.to_owned();
        }
        let place = self.heat(value) * (STEPS.len() - 1) as f64;
        let at = (place as usize).min(STEPS.len() - 2);
        let part = place - at as f64;
        let mix = |a: f64, b: f64| (a + (b - a) * part).round() as u8;
        let (a, b) = (STEPS[at], STEPS[at + 1]);
        format!("#{:02x}{:02x}{:02x}", mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
    }

    fn ink(&self, value: u32) -> &'static str {
        if self.heat(value) > 0.6 { "c light" } else { "c" }
    }

    fn legend(&self) -> Drawing {
        let mut out = Drawing::new(0.0, 16.0);
        // A machine with very many values shows some of them.
        let step = self.values.len().div_ceil(12);
        for &value in self.values.iter().step_by(step.max(1)) {
            let label = value.to_string();
            out.area(out.width, 1.0, 14.0, 14.0, &self.fill(value));
            out.text(out.width + 18.0, 12.0, 11.0, "note", &label);
            out.width += 30.0 + text_width(&label, 11.0);
        }
        out
    }
}

fn numbered(distances: &Distances, groups: &[NodeGroup], colours: &Colours) -> Drawing {
    let count = groups.len();
    let names: Vec<String> = groups.iter().map(|group| group.name(distances)).collect();
    let size = if count <= 16 { 12.0 } else { 9.5 };
    let widest = names.iter().map(|name| text_width(name, size)).fold(0.0, f64::max);
    let shared = groups.len() < distances.nodes.len();
    let width = (if count <= 16 { 30.0 } else { 23.0f64 }).max(if shared { widest + 6.0 } else { 0.0 });
    let (height, left) = (if count <= 16 { 27.0 } else { 20.0 }, widest + 12.0);
    let mut out = Drawing::new(left + width * count as f64, height * (count + 1) as f64);
    for (at, name) in names.iter().enumerate() {
        let middle = height * (at as f64 + 1.5) + size * 0.36;
        out.text(left + width * (at as f64 + 0.5), height * 0.7, size, "c note", name);
        out.text(left - 6.0, middle, size, "r note", name);
    }
    for (from, row) in groups.iter().enumerate() {
        for (to, column) in groups.iter().enumerate() {
            let value = row.farthest(column, distances);
            let (x, y) = (left + width * to as f64, height * (from + 1) as f64);
            out.area(x, y, width - 1.0, height - 1.0, &colours.fill(value));
            let text = row.cell(column, distances);
            out.text(x + width / 2.0, y + height / 2.0 + size * 0.36, size, colours.ink(value), &text);
        }
    }
    out
}

/// Cells without numbers; equal neighbours in a row are one piece, equal rows one block.
fn plain(distances: &Distances, colours: &Colours) -> Drawing {
    let count = distances.nodes.len();
    // An integer, or there are seams between the cells.
    let cell = (720.0 / count as f64).clamp(1.0, 12.0).floor();
    let left = 40.0;
    let mut out = Drawing::new(left + cell * count as f64, 16.0 + cell * count as f64);
    let every = count.div_ceil(16);
    for (at, node) in distances.nodes.iter().enumerate().step_by(every) {
        out.text(left + cell * at as f64, 11.0, 9.0, "note", &node.to_string());
        out.text(left - 6.0, 16.0 + cell * at as f64 + 8.0, 9.0, "r note", &node.to_string());
    }
    let mut from = 0;
    while from < count {
        let same = distances.rows[from..].iter().take_while(|row| **row == distances.rows[from]).count();
        let row = &distances.rows[from];
        let mut to = 0;
        while to < count {
            let run = row[to..].iter().take_while(|value| **value == row[to]).count();
            let (x, y) = (left + cell * to as f64, 16.0 + cell * from as f64);
            out.area(x, y, cell * run as f64, cell * same as f64, &colours.fill(row[to]));
            to += run;
        }
        from += same;
    }
    out
}
