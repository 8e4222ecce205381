//! /proc and /sys are read through `SysRoot`, and the files of processes by `numakit_sys::proc`.

use crate::{files, read};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Sources that open files of /proc or /sys without `SysRoot`, and why.
const WITHOUT_ROOT: [(&str, &str); 4] = [
    ("crates/sys/src/file.rs", "/proc/self/fd/N names an open file for a system call"),
    ("crates/sys/src/pages.rs", "is the kernel behind the trait Pages; a capture has no pages"),
    ("crates/sys/src/shared_file.rs", "/proc/PID/fd/N names its memory file to other processes"),
    ("crates/launch/src/isolate.rs", "creates, writes and removes control groups, which SysRoot cannot"),
];

/// Sources that name files of processes and threads or the load, and why.
const OF_PROCESSES: [(&str, &str); 8] = [
    ("crates/sys/src/proc.rs", "is the module of readers"),
    ("crates/sys/src/proc/machine.rs", "is part of it"),
    ("crates/sys/src/file.rs", "/proc/self/fd/N names an open file for a system call"),
    ("crates/sys/src/pages.rs", "is the kernel behind the trait Pages; a capture has no pages"),
    ("crates/sys/src/shared_file.rs", "/proc/PID/fd/N names its memory file to other processes"),
    ("crates/topology/src/cpuset.rs", "its Reader notes what a capture lacks; the parsers are those of sys"),
    ("crates/topology/src/limits.rs", "its Reader notes what a capture lacks; the parsers are those of sys"),
    ("crates/topology/src/capture.rs", "names files of captures and opens none"),
];

/// Calls that open a file without a root.
const OPENERS: [&str; 5] = ["fs::", "File::open", "File::options", "Path::new(\"/proc", "Path::new(\"/sys"];
/// Prefixes of paths of processes and of the load.
const PROCESSES: [&str; 3] = ["/proc/{", "/proc/self", "/proc/loadavg"];
/// Calls that add a file to a tree in memory.
const MAKERS: [&str; 4] = ["put(", ".file(", ".failing(", ".symlink("];

/// The paths below /proc and /sys in a source, without those of trees in memory.
fn paths(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for top in ["/proc", "/sys"] {
            for (at, _) in line.match_indices(&format!("\"{top}")) {
                let path = line[at + 1..].split('"').next().unwrap_or_default();
                let before = line[..at].trim_end_matches("format!(").trim_end_matches("format_args!(");
                let is_made = MAKERS.iter().any(|maker| before.trim_end_matches('&').ends_with(maker));
                let is_path = path[top.len()..].is_empty() || path[top.len()..].starts_with('/');
                if is_path && !is_made && !path.contains(' ') {
                    found.push(path);
                }
            }
        }
    }
    found
}

/// A source without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

fn reads_without_root(text: &str) -> bool {
    let code = code(text);
    // Not the end of a longer name, as in `tracefs::`.
    let is_whole = |at: usize| !code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let opens = |opener: &&str| code.match_indices(*opener).any(|(at, _)| is_whole(at));
    !paths(code).is_empty() && OPENERS.iter().any(opens)
}

fn names_processes(text: &str) -> bool {
    paths(code(text)).iter().any(|path| PROCESSES.iter().any(|start| path.starts_with(start)))
}

/// The sources of all crates except modules of tests, and those that write simulated machines into
/// folders.
fn sources() -> Vec<(PathBuf, String)> {
    let mut sources: Vec<(PathBuf, String)> = files(&["rs"])
        .into_iter()
        .filter(|path| path.starts_with("crates") && path.iter().any(|part| part == "src"))
        .filter(|path| !path.starts_with("tests/testing"))
        .map(|path| (path.clone(), read(path)))
        .collect();
    let mut of_tests = BTreeSet::new();
    for (path, text) in &sources {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let folder = match stem {
            "lib" | "main" | "mod" => path.parent().unwrap().to_owned(),
            stem => path.with_file_name(stem),
        };
        let modules = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| {
            let line = rest.lines().next()?.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            line.strip_prefix("mod ")?.strip_suffix(';')
        });
        of_tests.extend(modules.map(|module| folder.join(format!("{module}.rs"))));
    }
    sources.retain(|(path, _)| !of_tests.contains(path));
    assert!(of_tests.len() > 20 && sources.len() > 200, "{} of {}", of_tests.len(), sources.len());
    sources
}

fn found(breaks: fn(&str) -> bool) -> BTreeSet<PathBuf> {
    sources().into_iter().filter(|(_, text)| breaks(text)).map(|(path, _)| path).collect()
}

fn allowed(list: &[(&str, &str)]) -> BTreeSet<PathBuf> {
    list.iter().map(|(path, _)| Path::new(path).to_owned()).collect()
}

#[test]
fn proc_and_sys_are_read_through_a_root() {
    let found = found(reads_without_root);
    assert_eq!(found, allowed(&WITHOUT_ROOT), "read through SysRoot, or write the reason into WITHOUT_ROOT");
}

#[test]
fn files_of_processes_are_read_by_one_module() {
    let found = found(names_processes);
    assert_eq!(found, allowed(&OF_PROCESSES), "use numakit_sys::proc, or write the reason into OF_PROCESSES");
}

#[test]
fn violations_are_found() {
    assert!(reads_without_root("std::fs::read_to_string(\"/proc/stat\")"));
    assert!(reads_without_root("const A: &str = \"/sys/x\";\nlet f = File::open(A);"));
    assert!(reads_without_root("Path::new(\"/proc\").join(pid).exists()"));
    assert!(names_processes("root.text(&format!(\"/proc/{pid}/stat\"))"));
    assert!(names_processes("const LOAD: &str = \"/proc/loadavg\";"));
    for fine in [
        "root.text(\"/proc/stat\")",
        "// fs::read(\"/proc/stat\")",
        "fs::read(\"/process\")",
        "say(\"/proc/self is not this one\"); fs::read(path)",
        "tree.file(&format!(\"/proc/{pid}/stat\"), fs::read(path))",
        "#[cfg(test)]\nmod tests {\nfs::read(\"/proc/self/stat\")",
    ] {
        assert!(!reads_without_root(fine) && !names_processes(fine), "{fine}");
    }
}
