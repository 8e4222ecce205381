//! Values to text.

pub mod affinity;
pub mod alloc_profile;
pub mod alloc_stats;
pub mod bench;
pub mod columns;
pub mod compare;
pub mod cure;
pub mod doctor;
pub mod events;
pub mod explain;
pub mod files;
pub mod formulas;
pub mod holders;
mod html;
pub mod list;
pub mod moves;
pub mod overview;
pub mod permissions;
pub mod plan;
pub mod rebind;
pub mod report;
pub mod stat;
pub mod table;
pub mod tasks;
pub mod topology;
pub mod totals;
mod wrap;
