//! Where the main thread's memory is, which it touches before it creates a thread, as far as it is certain.

use super::early::{self, PAGES};
use numakit_guest::{Failure, Guest, Part};

const REPEATS: usize = 2;

pub fn guest() -> Result<Guest, Failure> {
    early::guest(REPEATS)
}

fn part() -> Option<Part> {
    super::LATER.part("main_thread")
}

/// Pages at home, pages elsewhere, and bound threads, of all repeats.
fn sums(name: &str) -> Option<(f64, f64, f64)> {
    Some(early::pages(name, &part()?[name]))
}

#[test]
fn what_the_program_touches_first_is_on_the_node_of_its_first_core() {
    let all = (PAGES * REPEATS as f64, 0.0, REPEATS as f64);
    for name in ["all", "scatter", "four", "driver", "exec"] {
        let Some(found) = sums(name) else { return };
        assert_eq!(found, all, "{name}");
    }
}

#[test]
fn a_policy_that_was_asked_for_counts_from_the_start() {
    // The cores are on other nodes: without the policy, what is touched first would be at home.
    let Some(sums) = sums("prefer") else { return };
    assert_eq!(sums, (0.0, PAGES * REPEATS as f64, REPEATS as f64));
    let text = part().unwrap()["prefer"].succeeded();
    assert!(!text.lines().any(|line| line == "node 2"), "{text}");
}

#[test]
fn threads_are_bound_where_the_memory_may_be_elsewhere() {
    // The kernel may move the thread while it floats: how often is in `measuring_main_thread`.
    for name in ["below", "filtered all", "filtered scatter"] {
        let Some((home, elsewhere, bound)) = sums(name) else { return };
        assert_eq!((home + elsewhere, bound), (PAGES * REPEATS as f64, REPEATS as f64), "{name}");
    }
}
