//! The survey of processes: which there are, what their threads do, and on which nodes their memory is.
//!
//! - [`Survey`] scans all processes of a machine or some of them again and again, for lists of processes.
//! - [`Observer`] follows one process and its descendants, and adds up what they do and have. A [`Walker`] runs it in a
//!   thread of its own, so that a sensor never waits for /proc.
//! - [`Mappers`] are the processes that map files.
//! - [`ChosenProcesses`] are those that a user asks for: by number, control group, unit, container or name.
//! - [`start_line`] is how a program was started, [`running_already`] says whether one runs that is to be started.
//! - [`Affinity`] is where threads may run and memory may come from; [`AllocatorReader`] reads the counts of libnumalloc.
//!
//! Survey and observer walk memory by the same code, in parts so short that a process is hardly delayed: a small process
//! by its numa_maps, a large one by querying the nodes of its pages. [`TaskAccess`] says what permits to read the processes
//! of others.

mod access;
mod account;
mod affinity;
mod allocator;
mod bound_memory;
mod busy;
mod cards;
mod chosen;
mod limit;
mod mappers;
mod mappings;
mod nodes;
mod numa_maps;
mod observer;
mod pace;
mod page_query;
mod parted_lines;
mod ranking;
mod running_cpus;
mod sample;
mod search;
mod start_line;
mod survey;
mod threads;
mod tree;
mod walk;
mod walker;

pub use access::TaskAccess;
pub use affinity::{Affinity, Policies, ThreadGroup};
pub use allocator::{
    AllocatorCounts, AllocatorError, AllocatorReader, AllocatorSpace, AllocatorWatch, CountTableError,
    NodeAllocations, PagesUnknown, RegionCounts, RegionPages, may_be_loaded,
};
pub use bound_memory::{BoundElsewhere, MemoryBound, bound_elsewhere};
pub use busy::BusyProgram;
pub use cards::{CardElsewhere, cards_elsewhere};
pub use chosen::{
    ChoiceError, ChosenProcesses, NamePattern, NamePatternError, ProcessChoice, container_names,
    container_of_group,
};
pub use limit::LimitWatch;
pub use mappers::{Mapper, Mappers};
pub use nodes::TaskNodes;
pub use numa_maps::{MemoryByUse, NumaMapsReading, Use};
pub use observer::{Activity, Observer, Walked, WatchTargets};
pub use ranking::{ProcessRanking, busiest};
pub use sample::{MemorySource, ProcessSample, per_second};
pub use search::memory_by_node;
pub use start_line::{running_already, start_line};
pub use survey::{Survey, WalkCandidate, WalkChoice};
pub use threads::{ThreadFields, threads_by_node};
pub use tree::descendants;
pub use walk::{WalkFindings, WalkRequest, WalkedMachine};
pub use walker::{Walker, WalkerControl, WalkerStatus};
