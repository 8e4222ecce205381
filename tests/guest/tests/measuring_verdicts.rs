//! Verdicts on kernels like those of NPB, each broken and repaired, beside what the simulator counts; and whether the
//! remedies do what they promise.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod judged;

use judged::{KERNEL, Kernel, Tried};
use numakit_guest::{Boot, Failure, or_skipped};
use std::sync::LazyLock;

/// Memory gets near.
const NEAR: Tried = Tried { remote: 0.2, busiest: 100.0 };
/// The load spreads over the memory of all nodes; nothing gets near.
const SPREAD: Tried = Tried { remote: f64::INFINITY, busiest: 40.0 };
/// How often the three arrays of `mixed` take turns, as its command says.
const TURNS: usize = 24;
const FIRST_TOUCH: Option<&str> = Some("first-touch");
const KERNELS: [Kernel; 8] = [
    Kernel {
        name: "cg",
        broken: "npb cg broken",
        repaired: "npb cg repaired",
        objects: &[("element", FIRST_TOUCH)],
        tried: Some(NEAR),
        ..KERNEL
    },
    Kernel {
        name: "is",
        broken: "npb is broken",
        repaired: "npb is repaired",
        objects: &[("keys", FIRST_TOUCH)],
        tolerance: 12.0,
        tried: Some(NEAR),
        ..KERNEL
    },
    Kernel {
        name: "join",
        broken: "npb join broken",
        repaired: "npb join repaired",
        objects: &[("table", Some("shared-by-all"))],
        tried: Some(SPREAD),
        ..KERNEL
    },
    Kernel {
        name: "mixed",
        broken: "npb mixed broken 24",
        repaired: "npb mixed repaired 24",
        objects: &[("by_main", FIRST_TOUCH), ("by_user", None), ("by_other", Some("spread"))],
        turns: TURNS,
        ..KERNEL
    },
    Kernel {
        name: "mg",
        broken: "npb_fortran mg broken",
        repaired: "npb_fortran mg repaired",
        objects: &[("__grids_MOD_u", FIRST_TOUCH)],
        tried: Some(NEAR),
        ..KERNEL
    },
    Kernel {
        name: "ft",
        broken: "npb_fortran ft broken",
        repaired: "npb_fortran ft repaired",
        objects: &[("__transforms_MOD_field", FIRST_TOUCH)],
        tolerance: 12.0,
        tried: Some(NEAR),
        ..KERNEL
    },
    Kernel {
        name: "store",
        broken: "npb store broken",
        repaired: "npb store repaired",
        objects: &[("store", Some("other-node"))],
        tried: Some(NEAR),
        ..KERNEL
    },
    Kernel {
        name: "ep",
        broken: "ep 23",
        repaired: "ep 23 --tls own",
        objects: &[("mine (thread-local)", Some("thread-local"))],
        tolerance: 12.0,
        tried: Some(NEAR),
        ..KERNEL
    },
];

static BOOT: LazyLock<Result<Boot, Failure>> =
    LazyLock::new(|| judged::boot(&KERNELS, &["npb", "npb_fortran", "ep"]));

#[test]
#[ignore = "thorough: samples of 16 programs in the simulator, 6 minutes"]
fn verdicts_are_right_for_what_is_broken_and_absent_for_what_is_repaired() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    judged::check_verdicts(boot, &KERNELS);
}

#[test]
#[ignore = "thorough: samples of 16 programs in the simulator, 6 minutes"]
fn remedies_do_what_they_promise() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    judged::check_remedies(boot, &KERNELS);
}
