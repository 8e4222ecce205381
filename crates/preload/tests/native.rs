//! The library's own tests, which are in C: preloaded, linked, under sanitizers.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_skips::Skip;
use std::path::Path;
use std::process::Command;

#[test]
fn the_tests_of_the_library_pass() {
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
    let mut make = Command::new("make");
    make.arg("-C").arg(native).arg(format!("OUT={}", out.display())).arg("check");
    let output = make.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let skips: Vec<&str> = text.lines().filter(|line| Skip::parse(line).is_some()).collect();
    skips.iter().for_each(|line| println!("{line}"));
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let passed = text.lines().filter(|line| line.starts_with("ok ")).count();
    println!("{passed} tests of the library passed");
    assert!(passed > 0 || !skips.is_empty(), "{text}");
}
