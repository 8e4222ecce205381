//! What the simulator counts on four nodes, in one boot.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod believed;
mod placed_traffic;
mod shared_loops;

use numakit_guest::Parts;

static PARTS: Parts = Parts::new(&[
    ("believed", believed::guest),
    ("placed_traffic", placed_traffic::guest),
    ("shared_loops", shared_loops::guest),
]);
