//! One file per verb: its options and how they map to calls.

pub mod alloc;
pub mod alloc_work;
pub mod bench;
pub mod capture;
pub mod completions;
pub mod ctl;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod file;
pub mod help;
pub mod list;
pub mod live;
pub mod man;
pub mod mark;
pub mod mcp;
pub mod overview;
pub mod plan;
pub mod ps;
pub mod record;
pub mod recover;
pub mod run;
pub mod show;
pub mod stat;
pub mod top;
pub mod topo;
