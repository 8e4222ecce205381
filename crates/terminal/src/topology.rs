//! The machine as text and as a drawing.

mod hardware;
mod homes;
mod matrix;
mod outline;
mod phrases;
mod svg;
mod tree;

pub use hardware::hardware;
pub use svg::{Overlay, PuOverlay, svg, svg_with};
pub(crate) use svg::{svg_in_page, svg_style};
pub use tree::{TreeStyle, tree};

/// A tree for terminals without UTF-8: its lines in ASCII.
pub fn in_ascii(tree: &str) -> String {
    tree.replace(['├', '│'], "|").replace('└', "`").replace('─', "-")
}
