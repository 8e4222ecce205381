//! The fuzzer: runs the target that NUMAKIT_FUZZ_TARGET names. Started by `cargo xtask fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numakit_fuzz::{Target, find};
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("NUMAKIT_FUZZ_TARGET").unwrap_or_default();
    find(&name).unwrap_or_else(|| panic!("NUMAKIT_FUZZ_TARGET is '{name}', which is not a target"))
});

fuzz_target!(|input: &[u8]| {
    (TARGET.run)(input);
});
