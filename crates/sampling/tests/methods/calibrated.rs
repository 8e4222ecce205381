//! Calibration.

use numakit_sampling::landing::LandingCounts;
use numakit_sampling::{Landing, MethodKind, calibration};
use numakit_sys::permissions::{Permission, Permissions};

/// A landing place is known, and most samples are there.
fn is_conclusive(method: MethodKind, counts: LandingCounts) {
    println!("{method}: {counts}");
    assert!(counts.total() >= 8, "{method}: {counts}");
    if counts.landing() == Some(Landing::Other) {
        numakit_skips::MACHINE.skip_part(format_args!("{method}: samples land in no one place: {counts}"));
    }
}

#[test]
fn measuring_every_method_is_calibrated_on_this_machine() {
    let permissions = Permissions::own_of(&[Permission::Counters, Permission::Tracing]);
    match permissions.check(Permission::Counters) {
        Ok(()) => is_conclusive(MethodKind::Perf, calibration::by_perf().unwrap()),
        Err(refusal) => numakit_skips::PRIVILEGES.skip_part(refusal),
    }
    is_conclusive(MethodKind::InProcess, calibration::by_timer().unwrap());
    match permissions.check(Permission::Tracing) {
        Ok(()) => is_conclusive(MethodKind::Ptrace, calibration::by_ptrace().unwrap()),
        Err(refusal) => numakit_skips::PRIVILEGES.skip_part(refusal),
    }
}
