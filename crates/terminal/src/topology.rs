//! The machine as text and as a drawing.

mod hardware;
mod homes;
mod matrix;
mod measured;
mod outline;
mod phrases;
mod svg;
mod tree;

pub use hardware::hardware;
pub use measured::measured;
pub use phrases::summary;
pub use svg::{Overlay, PuOverlay, svg, svg_with};
pub(crate) use svg::{svg_in_page, svg_style};
pub use tree::{TreeStyle, tree};

use std::fmt::Write;

/// A tree for terminals without UTF-8: its lines in ASCII.
pub fn in_ascii(tree: &str) -> String {
    tree.replace(['├', '│'], "|").replace('└', "`").replace('─', "-")
}

/// The machines that are known by name: name, year and what they have, in columns.
pub fn named_machines(rows: &[(&str, u16, String)]) -> String {
    let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0).max(4);
    let mut text = format!("{:width$}  year  machine\n", "name");
    for (name, year, machine) in rows {
        _ = writeln!(text, "{name:width$}  {year}  {machine}");
    }
    text
}
