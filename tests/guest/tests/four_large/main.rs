//! What takes four nodes of a real Linux with more memory, in two boots: cores that programs hold, control groups, files, and
//! nodes that are full.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod files;
mod nodes;
#[path = "../recording/mod.rs"]
mod recording;
mod registry;
mod run_cases;
mod spilled;

use numakit_guest::Parts;

static PARTS: Parts = Parts::new(&[
    // The first look at the registry is that at a machine on which nobody held cores before.
    ("registry", registry::guest),
    ("run_cases", run_cases::guest),
]);

/// Those of a second boot: all in one would take as long as a guest may where the host is slow.
static LATER: Parts =
    Parts::new(&[("files", files::guest), ("nodes", nodes::guest), ("spilled", spilled::guest)]);

/// Shell commands that leave a node this many MiB: pages of the pool of huge pages take the rest.
fn leave(node: usize, mib: u64) -> String {
    format!(
        "free=$(awk '/MemFree/ {{print int($4 / 1024)}}' /sys/devices/system/node/node{node}/meminfo)
        echo $(((free - {mib}) / 2)) >/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages\n"
    )
}
