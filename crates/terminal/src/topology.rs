//! The machine as text and as a drawing.

mod hardware;
mod homes;
mod matrix;
mod outline;
mod phrases;
mod svg;
mod tree;

pub use hardware::hardware;
pub use svg::{Mark, Overlay, svg, svg_with};
pub use tree::{Look, tree};
