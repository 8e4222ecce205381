//! The command line of the original numaplace.

use crate::explain_truth::huge_pages;
use crate::runner::{Done, Folder};
use std::process::Command;

/// Runs a line of it in a folder with a program of the name that the examples have.
fn numaplace(folder: &Folder, words: &[&str]) -> Done {
    let link = folder.path("numaplace");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_numa"), &link).unwrap();
        let text = "#!/bin/sh\necho cores $(nproc) arguments $*\n\
                    grep THP_enabled /proc/self/status\ncat /proc/$$/timerslack_ns\nchrt -p $$ 2>/dev/null\n";
        folder.script("cg.C.x", text);
    }
    let mut command = Command::new(&link);
    folder.isolate(&mut command).args(words).env_remove("LD_PRELOAD").env_remove("OMP_NUM_THREADS");
    Done::of(command.output().unwrap())
}

#[test]
fn lines_of_the_original_work() {
    let folder = Folder::new("numaplace");
    let numaplace = |words: &[&str]| numaplace(&folder, words);
    let done = numaplace(&["-atvc", "1", "sh", "-c", "nproc; grep THP_enabled /proc/self/status"]);
    assert!(done.code == 0 && done.out.starts_with("1\n"), "{}{}", done.out, done.err);
    assert!(
        !done.out.contains("THP_enabled:\t1") && done.err.contains("numa: 1 thread of 1 process"),
        "{}",
        done.err
    );
    let done = numaplace(&["-dp", "-c1", "sh", "-c", "echo $NUMA_MAIN"]);
    assert!(done.out == "0\n" && done.err.contains("thread 0: CPU"), "{}{}", done.out, done.err);
    numaplace(&["-c", "x", "true"]).says(2, "'x'");
    numaplace(&["-x"]).says(2, "Usage: numaplace ");
    numaplace(&["-v"]).says(2, "no program given");
    numaplace(&["--no-thb", "true"]).says(2, "'--no-thp'");
    for version in ["-V", "--version"] {
        let done = numaplace(&[version]);
        assert!(done.code == 0 && done.out.starts_with("numaplace "), "{}{}", done.out, done.err);
    }
}

#[test]
fn the_examples_of_the_original_work() {
    let folder = Folder::new("numaplace-examples");
    for words in [&["--cores", "1", "./cg.C.x"][..], &["--cores=1", "./cg.C.x"], &["-c", "1", "./cg.C.x"]] {
        let done = numaplace(&folder, words);
        assert!(done.code == 0 && done.out.starts_with("cores 1 arguments\n"), "{}{}", done.out, done.err);
        assert!(!done.out.contains("THP_enabled:\t0"), "{}", done.out);
    }
    let done = numaplace(&folder, &["--cores", "1", "--no-thp", "./cg.C.x", "--cores", "9"]);
    assert!(done.out.starts_with("cores 1 arguments --cores 9\n"), "{}{}", done.out, done.err);
    assert!(!done.out.contains("THP_enabled:\t1"), "{}", done.out);
    // A machine with this many cores runs it; others print how many there are.
    let done = numaplace(&folder, &["--cores", "64", "--no-thp", "./cg.C.x"]);
    assert!(done.code == 0 || done.code == 2 && done.err.contains("cores"), "{}{}", done.out, done.err);
    assert!(!done.err.contains("unexpected"), "{}", done.err);
    let long = ["--no-allocator", "--debug", "--parent", "--verbose", "--cores", "1", "./cg.C.x"];
    let done = numaplace(&folder, &long);
    assert!(done.code == 0 && done.err.contains("thread 0: CPU"), "{}{}", done.out, done.err);
}

#[test]
fn timers_and_scheduling_class_are_those_of_the_original() {
    let folder = Folder::new("numaplace-slack");
    let done = numaplace(&folder, &["-c", "1", "./cg.C.x"]);
    assert!(done.out.lines().any(|line| line == "1"), "{}{}", done.out, done.err);
    if !done.out.contains("scheduling policy") {
        return numakit_skips::TOOLS.skip("chrt is not installed (Debian package util-linux)");
    }
    assert!(done.out.contains("SCHED_BATCH"), "{}", done.out);
    let done = numaplace(&folder, &["-p", "-c", "1", "./cg.C.x"]);
    assert!(done.out.contains("SCHED_OTHER"), "{}", done.out);
}

#[test]
fn few_huge_pages_are_warned_of_unless_none_are_wanted() {
    let folder = Folder::new("numaplace-warning");
    let setting = huge_pages().unwrap_or_default();
    let warned =
        |words: &[&str]| numaplace(&folder, words).err.contains("warning: transparent huge pages are ");
    assert_eq!(warned(&["-c", "1", "true"]), setting != "always", "{setting}");
    assert!(!warned(&["-t", "-c", "1", "true"]) && !warned(&["-V"]));
}
