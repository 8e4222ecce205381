//! Where the time of a program goes, from samples of its threads: to computing, to caches, to near and far memory, to
//! lines that threads contend for; by function, line and object. What is wrong in it is judged elsewhere.
//!
//! All here is computed from [`Observation`]s. Taking samples and finding what they waited for is done by
//! `numakit-sampling`.

pub mod account;
pub mod caches;
pub mod call_tree;
mod chain_names;
pub mod code;
pub mod collector;
pub mod contended;
pub mod cpu_waits;
mod cure_facts;
mod debug_file;
mod explained;
pub mod explainer;
mod explanation;
pub mod fields;
pub mod file_use;
pub mod first_touch;
pub mod flame;
pub mod footprint;
pub mod hint_faults;
pub mod hint_windows;
pub mod huge_pages;
pub mod identity;
pub mod java;
mod kernel_time;
mod malloc_memory;
pub mod member_path;
pub mod members;
pub mod memory_policies;
pub mod memory_use;
pub mod module_files;
pub mod object_use;
pub mod objects;
pub mod observation;
mod pace;
pub mod part_use;
pub mod partition;
pub mod perf_map;
pub mod place;
mod process_objects;
mod process_visits;
pub mod processes;
pub mod projection;
pub mod python;
pub mod ranks;
pub mod remote_costs;
mod report;
pub mod residence;
pub mod runtime;
pub mod share;
pub mod sharing;
pub mod sources;
pub mod spins;
pub mod symbols;
pub mod tally;
pub mod teams;
#[cfg(test)]
mod tests;
pub mod thread_order;
pub mod threads;
pub mod touched_pages;
pub mod traffic;
mod variables;
pub mod waits;
pub mod walk;

pub use cure_facts::{CureFacts, CureProgram, Unidentified};
pub use explained::{CodeShare, ExplainedObject, ObjectContext, ObjectFacts, ObjectTouch};
pub use explanation::{Explanation, FaultTime, NodeTime, SampleCounts, Surveyed, TimeShares};
pub use flame::FlameGraph;
pub use observation::{Observation, ObservedAccess, Waited};
pub use report::{
    ExplainReport, Explained, FlameGraphs, MissingSamples, OpenLoops, ProjectedFacts, Regime, SampledObject,
    SampledThread, SeenProcess, UNKNOWN_ARGUMENTS, UNKNOWN_COMMAND, lacks_words,
};
