//! Values to text.

pub mod columns;
pub mod doctor;
pub mod events;
pub mod list;
pub mod report;
pub mod stat;
pub mod table;
pub mod topology;
pub mod units;
mod wrap;
