//! `cargo xtask guest`, and its commands in the guide.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

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

#[test]
fn commands_of_the_guide_work() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide");
    let mut count = 0;
    for page in PAGES {
        let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
        for line in text.lines().filter(|line| line.starts_with("cargo xtask guest ")) {
            if line.contains("--shell") {
                continue;
            }
            let output = run(line, &out);
            if skipped(line, &output) {
                return;
            }
            assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
            count += 1;
        }
    }
    assert!(count >= 8, "{count}");
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
