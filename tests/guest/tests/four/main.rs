//! What takes four nodes of a real Linux, in two boots.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../affinity/mod.rs"]
mod affinity;
mod allocator;
mod bound_memory;
#[path = "../comparison/mod.rs"]
mod comparison;
mod cured;
#[path = "../described/mod.rs"]
mod described;
#[path = "../early/mod.rs"]
mod early;
mod guide;
mod hotplug;
mod jobs;
#[path = "../launched/mod.rs"]
mod launched;
mod launchers;
mod limits;
mod main_thread;
mod moved;
mod moved_troubles;
mod own_blocks;
mod placed;
mod placed_runtimes;
mod policies;
mod runs;
mod shapes;

use numakit_guest::Parts;

static PARTS: Parts = Parts::new(&[
    ("shapes", shapes::guest),
    ("allocator", allocator::guest),
    ("runs", runs::guest),
    ("guide", guide::guest),
    ("placed", placed::guest),
    ("placed_runtimes", placed_runtimes::guest),
    ("launchers", launchers::guest),
    ("own_blocks", own_blocks::guest),
    ("policies", policies::guest),
]);

/// Those of a second boot: all in one took longer than a guest may.
static LATER: Parts = Parts::new(&[
    ("jobs", jobs::guest),
    ("hotplug", hotplug::guest),
    ("limits", limits::guest),
    ("main_thread", main_thread::guest),
    ("bound_memory", bound_memory::guest),
    ("moved", moved::guest),
    ("cured", cured::guest),
    ("moved_troubles", moved_troubles::guest),
]);
