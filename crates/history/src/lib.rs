//! Samples within a memory budget, for requests at any zoom: live samples in memory, and
//! recordings.
//!
//! Values are stored as they are displayed: counters as rates per second, gauges unchanged.
//! Rows are stored in blocks. A block has every value, the minimum, maximum and mean of each
//! group of 64 rows, and those of all its rows. When the budget is exceeded, the finest level
//! is dropped first, from the oldest block on: a spike stays visible as long as anything of
//! its time is stored.

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

pub use answer::{Bucketed, Buckets, Raw, stored_value};
pub use grid::MAX_BUCKETS;
pub use history::History;
pub use label::{Label, Labels};
pub use recorded::{PartlyRead, RecordedHistory, RowView, RowViewMaker, levels_of, plain};
pub use source::Source;
