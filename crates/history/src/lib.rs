//! What was sampled, kept within a budget and asked for at any zoom: live samples in memory,
//! and recordings.
//!
//! Kept are values as they are shown: counters as rates per second, gauges as levels. Rows are
//! kept in blocks. A block has every value, the least, greatest and mean value of each group
//! of 64 rows, and those of all its rows; under pressure the finest goes first, from the
//! oldest block on. So a spike is never lost from a view as long as anything of its time is
//! kept.

mod answer;
mod block;
mod gather;
mod grid;
mod history;
mod label;
mod level;
mod open;
mod pack;
mod recorded;
mod source;
mod store;

pub use answer::{Bucketed, Buckets, Raw, kept};
pub use grid::MAX_BUCKETS;
pub use history::History;
pub use label::{Label, Labels};
pub use recorded::{RecordedHistory, RowView, RowViewMaker, levels_of, plain};
pub use source::Source;
