//! What the simulator counts on four nodes, in one boot for each tier.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod believed;
mod collectives;
mod placed_traffic;
mod shared_loops;

use numakit_guest::Parts;

static PARTS: Parts = Parts::new(&[
    ("believed", believed::guest),
    ("placed_traffic", placed_traffic::guest),
    ("collectives", collectives::guest),
]);
/// A boot of its own, for the second tier.
static LOOPS: Parts = Parts::new(&[("shared_loops", shared_loops::guest)]);
