//! `cargo xtask guest`, and its commands in the guide.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PAGES: [&str; 2] = ["docs/guide/without-numa.md", "docs/guide/simulated-machine.md"];

/// Runs a line of the guide in a shell, with this build in place of `cargo xtask`.
fn run(line: &str, out: &Path) -> Output {
    let program = format!("'{}' guest --out '{}'", env!("CARGO_BIN_EXE_xtask"), out.display());
    let line = line.replacen("cargo xtask guest", &program, 1);
    Command::new("sh").args(["-c", &line]).current_dir(ROOT).output().unwrap()
}

/// Whether guests cannot run here; prints a line that says so.
fn skipped(line: &str, output: &Output) -> bool {
    let none = output.status.code() == Some(69);
    if none {
        let kind = if line.contains("--sim") { numakit_skips::SIMULATOR } else { numakit_skips::GUEST };
        kind.skip(String::from_utf8_lossy(&output.stderr).trim());
    }
    none
}

/// The lines of the guide that need no terminal, each once.
fn lines_of_the_guide() -> BTreeSet<String> {
    let texts = PAGES.map(|page| fs::read_to_string(Path::new(ROOT).join(page)).unwrap());
    let lines = texts.iter().flat_map(|text| text.lines());
    let is_run = |line: &&str| line.starts_with("cargo xtask guest ") && !line.contains("--shell");
    let without_comment = |line: &str| line.split(" #").next().unwrap().trim_end().to_owned();
    lines.filter(is_run).map(without_comment).collect()
}

/// Runs lines until one cannot run here.
fn work<'a>(lines: impl Iterator<Item = &'a String>) {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide");
    for line in lines {
        let output = run(line, &out);
        if skipped(line, &output) {
            return;
        }
        assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
#[ignore = "thorough: ten guests, a minute and a half"]
fn commands_of_the_guide_work() {
    let lines = lines_of_the_guide();
    assert!(lines.len() >= 8, "{lines:?}");
    work(lines.iter());
}

#[test]
fn a_plain_command_of_the_guide_works() {
    let lines = lines_of_the_guide();
    let plain = lines.iter().find(|line| line.ends_with("-- numa topo")).expect("a line with numa topo");
    work(std::iter::once(plain));
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("status");
    for (command, status, message) in [
        ("-- sh -c 'exit 7'", 7, ""),
        ("-- no-such-program", 127, "'no-such-program' is no program of ours"),
        ("--shape nine -- true", 2, "nine"),
        ("--shape four", 2, "no command; add '-- CMD ARGS'"),
    ] {
        let output = run(&format!("cargo xtask guest {command}"), &out);
        if skipped(command, &output) {
            return;
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{command}: {errors}");
        assert!(errors.contains(message), "{command}: {errors}");
    }
}
