//! Calibration.

use numakit_sampling::calibration;
use numakit_sampling::landing::LandingCounts;
use numakit_sys::permissions::{Permission, Permissions};

/// A landing place is known, or the machine has none: whatever it is, most samples are of the chain.
fn is_conclusive(counts: LandingCounts) {
    println!("{counts}");
    assert!(counts.total() >= 8 && counts.landing().is_some(), "{counts}");
}

#[test]
fn every_road_is_calibrated_on_this_machine() {
    let permissions = Permissions::own_of(&[Permission::Counters, Permission::Tracing]);
    match permissions.check(Permission::Counters) {
        Ok(()) => is_conclusive(calibration::by_perf().unwrap()),
        Err(refusal) => numakit_skips::PRIVILEGES.skip_part(refusal),
    }
    is_conclusive(calibration::by_timer().unwrap());
    match permissions.check(Permission::Tracing) {
        Ok(()) => is_conclusive(calibration::by_ptrace().unwrap()),
        Err(refusal) => numakit_skips::PRIVILEGES.skip_part(refusal),
    }
}
