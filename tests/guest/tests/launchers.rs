//! The lines of every launcher on machines whose CPUs are numbered in other ways, or not all allowed.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[allow(dead_code)]
mod affinity;
mod comparison;
mod launched;

use numakit_guest::Parts;

static NUMBERING: Parts = Parts::new(&[("numbering", || launched::guest("numbering"))]);
static RESTRICTED: Parts = Parts::new(&[("restricted", || launched::guest("restricted"))]);
static SMT: Parts = Parts::new(&[("smt", || launched::guest("smt"))]);

#[test]
#[ignore = "thorough: the first tier tries another shape, 1 minute"]
fn numbers_that_go_to_and_fro_do_not_matter() {
    let Some(part) = NUMBERING.part("numbering") else { return };
    launched::check("numbering", &part);
}

#[test]
#[ignore = "thorough: the first tier tries another shape, 1 minute"]
fn a_cpuset_is_kept() {
    let Some(part) = RESTRICTED.part("restricted") else { return };
    launched::check("restricted", &part);
}

#[test]
#[ignore = "thorough: the first tier tries another shape, 1 minute"]
fn cores_with_several_threads_are_told_apart() {
    let Some(part) = SMT.part("smt") else { return };
    launched::check("smt", &part);
}
