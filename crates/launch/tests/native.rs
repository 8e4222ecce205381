//! The library's own tests, which are in C: preloaded, linked, under sanitizers.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_skips::{MACHINE, Skip, rounds};
use std::path::Path;
use std::process::Command;

/// A part of the tests, as make calls it, and how many of its cases pass at least, usually and with `cargo xtask test
/// --thorough`. Without sanitizers and such tools there are fewer.
const PARTS: [(&str, usize, usize); 4] = [
    ("sh test/check", 100, 150),
    ("sh test/explain/check", 100, 130),
    ("sh test/alloc/check", 100, 110),
    ("sh test/count/check", 20, 20),
];
/// Within this many minutes all of them have run.
const MINUTES: (usize, usize) = (20, 90);

#[test]
fn the_tests_of_the_library_pass() {
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
    let mut make = Command::new("timeout");
    make.args(["-k", "5", &format!("{}m", rounds(MINUTES.0, MINUTES.1)), "make", "-C"]);
    make.arg(native).arg(format!("OUT={}", out.display())).arg("check");
    let output = make.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let skips: Vec<&str> = text.lines().filter(|line| Skip::parse(line).is_some()).collect();
    skips.iter().for_each(|line| println!("{line}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", failures(&text));
    for (part, usually, thoroughly) in PARTS {
        let lines = text.lines().skip_while(|line| !line.starts_with(part)).skip(1);
        let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("sh ")).collect();
        let passed = lines.iter().filter(|line| line.starts_with("ok ")).count();
        println!("{part}: {passed} cases passed");
        // Placing threads takes two CPUs.
        let one_cpu =
            lines.iter().any(|line| Skip::parse(line).is_some_and(|skip| skip.kind == MACHINE.name));
        let least = rounds(usually, thoroughly);
        assert!(passed >= least || one_cpu, "{part}: only {passed} cases of {least} passed: {text}");
    }
}

/// What is said of failed tests, without the commands of make and the tests that passed.
fn failures(text: &str) -> String {
    let is_said = |line: &&str| {
        line.starts_with("failed ")
            || !["ok ", "cc ", "ar ", "mkdir ", "make: ", "\t"].iter().any(|start| line.starts_with(start))
    };
    text.lines()
        .skip_while(|line| !line.starts_with("failed "))
        .filter(is_said)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_guide_has_all_settings_of_the_allocator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (source, guide) = (read("native/alloc/settings.c"), read("docs/guide/libnumalloc.md"));
    let rows = source.split_once("rows[] = {").unwrap().1.split_once("};").unwrap().0;
    let declared: Vec<&str> =
        rows.lines().filter_map(|line| line.trim().strip_prefix("{\"")?.split('"').next()).collect();
    let described: Vec<&str> =
        guide.lines().filter_map(|line| line.strip_prefix("| `NUMALLOC_")?.split('`').next()).collect();
    assert!(declared.len() >= 7, "{declared:?}");
    assert_eq!(declared, described);
}

/// ELF's number of the architecture.
const AARCH64: u8 = 183;

#[test]
fn the_library_compiles_for_aarch64() {
    let python = std::env::var("NUMAKIT_PYTHON").unwrap_or_else(|_| "python3".into());
    let zig = Command::new(&python).args(["-m", "ziglang", "version"]).output();
    if !zig.is_ok_and(|output| output.status.success()) {
        return numakit_skips::PYTHON.skip("NUMAKIT_PYTHON names no Python with ziglang");
    }
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aarch64");
    let _ = std::fs::remove_file(out.join("place/api.o"));
    // An archive only: Zig's linker does not know '-z initfirst', which the shared library needs.
    let mut make = Command::new("make");
    make.arg("-C").arg(native).arg(format!("OUT={}", out.display())).arg("CFLAGS=-O2");
    make.arg(format!("CC={python} -m ziglang cc -target aarch64-linux-gnu.2.28"));
    make.arg(format!("AR={python} -m ziglang ar")).arg(out.join("libnumaplace.a"));
    let output = make.env("ZIG_GLOBAL_CACHE_DIR", out.join("cache")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let object = std::fs::read(out.join("place/api.o")).unwrap();
    assert_eq!((&object[..4], object[18]), (&b"\x7fELF"[..], AARCH64));
}
