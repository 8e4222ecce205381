//! Programs with one known trouble each and controls without any: what a recording of them finds first.

use crate::explain::compiled;
use crate::explain_truth::has_huge_pages;
use crate::runner::{Done, Folder};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is done, and the rule that must stand first; controls must have no problem of the program.
const PROGRAMS: [(&str, Option<&str>); 19] = [
    ("map-and-unmap", Some("page-faults")),
    ("reuse", None),
    ("grow", Some("page-faults")),
    ("grow-huge", None),
    ("leak", Some("growth")),
    ("fill", None),
    ("clear-huge", Some("huge-page-faults")),
    ("take-turns", Some("context-switches")),
    ("take-long-turns", None),
    ("start-processes", Some("process-starts")),
    ("start-few", None),
    ("threads", Some("too-many-threads")),
    ("two-threads", None),
    ("chase", Some("waits-for-memory")),
    ("chase-cached", None),
    ("fight", Some("contended-lines")),
    ("apart", None),
    ("compute", None),
    ("sleep", None),
];

/// Records `sh -c SCRIPT` or a command, and reads its findings.
fn findings(folder: &Folder, before: &str, command: &str) -> Value {
    let numa = env!("CARGO_BIN_EXE_numa");
    let script = format!("{before} exec {numa} record --force -o a.arrows -- {command}");
    let output = folder.isolate(Command::new("sh").args(["-c", &script])).output().unwrap();
    let recorded = Done::of(output);
    assert!(folder.path("a.arrows").exists(), "{command}: {}", recorded.err);
    let report = folder.run("show --json a.arrows");
    let report: Value = serde_json::from_str(&report.out).unwrap();
    report["findings"].clone()
}

fn rules(findings: &Value, of: impl Fn(&Value) -> bool) -> Vec<String> {
    let problems = findings["problems"].as_array().unwrap().iter();
    problems.filter(|p| of(p)).map(|p| p["rule"].as_str().unwrap().to_owned()).collect()
}

fn is_program(finding: &Value) -> bool {
    finding["subject"]["kind"] == "program"
}

fn has_samples(findings: &Value) -> bool {
    let untold = findings["untold"].as_array().unwrap();
    !untold.iter().any(|u| u["what"] == "time at memory")
}

/// Those that every submission needs.
const FIRST: [&str; 4] = ["map-and-unmap", "leak", "fight", "compute"];

#[test]
fn measuring_some_troubles_are_found_first_and_a_control_has_none() {
    troubles_are_found_first("findings", |mode| FIRST.contains(&mode));
}

#[test]
#[ignore = "thorough: 15 more programs, 85 seconds"]
fn measuring_each_trouble_is_found_first_and_controls_have_none() {
    troubles_are_found_first("findings-more", |mode| !FIRST.contains(&mode));
}

fn troubles_are_found_first(folder: &str, is_chosen: impl Fn(&str) -> bool) {
    let folder = Folder::new(folder);
    let Some(program) = compiled(&folder, "cc", &source()) else { return };
    println!("{:<16} {:<18} {:<18} VERDICT", "PROGRAM", "EXPECTED", "OWN, FIRST");
    let mut wrong = Vec::new();
    for (mode, expected) in PROGRAMS.into_iter().filter(|(mode, _)| is_chosen(mode)) {
        if mode.contains("huge") && !has_huge_pages() {
            numakit_skips::MACHINE.skip_part("there are no huge pages");
            continue;
        }
        let command = format!("{} {mode} 4.5", program.display());
        let found = findings(&folder, "", &command);
        let needs_samples =
            ["waits-for-memory", "contended-lines"].iter().any(|rule| expected == Some(*rule));
        if needs_samples && !has_samples(&found) {
            numakit_skips::SAMPLES.skip_part("no samples can be taken");
            continue;
        }
        let own = rules(&found, is_program);
        let first = own.first().map_or("-", String::as_str);
        let verdict = &found["headline"]["verdict"];
        println!("{mode:<16} {:<18} {first:<18} {verdict}", expected.unwrap_or("-"));
        if own.first().map(String::as_str) != expected {
            wrong.push(format!("{mode}: {first}, not {expected:?}: {found:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings/loads.c")
}

/// A control group of this test that is removed with it.
struct Group(PathBuf);

impl Group {
    /// In the hierarchy of a controller; none without the right to make one.
    fn new(controller: &str) -> Option<Self> {
        let own = format!("/sys/fs/cgroup/{controller}");
        let hierarchy = if Path::new(&own).is_dir() { own } else { "/sys/fs/cgroup".to_owned() };
        let path =
            Path::new(&hierarchy).join(format!("numakit-findings-{controller}-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    /// Writes a limit under the name that either version has.
    fn limit(&self, limits: &[(&str, &str)]) -> bool {
        limits.iter().any(|(file, text)| std::fs::write(self.0.join(file), text).is_ok())
    }

    /// A line of a script that moves its shell into the group.
    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs;", self.0.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn measuring_a_cpu_limit_is_found() {
    let folder = Folder::new("findings-limit");
    let Some(program) = compiled(&folder, "cc", &source()) else { return };
    let Some(group) = Group::new("cpu") else {
        return numakit_skips::PRIVILEGES.skip("no control group can be made");
    };
    if !group.limit(&[("cpu.max", "10000 100000"), ("cpu.cfs_quota_us", "10000")]) {
        return numakit_skips::PRIVILEGES.skip("the control group has no CPU limit");
    }
    let program = format!("{} two-threads 4", program.display());
    let enters_later = format!("sh -c 'sleep 0.3; {} exec {program}'", group.enter());
    for (before, command) in [(group.enter().as_str(), program.as_str()), ("", &enters_later)] {
        let found = findings(&folder, before, command);
        assert_eq!(rules(&found, is_program).first().map(String::as_str), Some("cpu-limit"), "{found:#}");
    }
}

#[test]
fn measuring_a_program_without_memory_is_found() {
    let folder = Folder::new("findings-memory");
    let Some(program) = compiled(&folder, "cc", &source()) else { return };
    let Some(group) = Group::new("memory") else {
        return numakit_skips::PRIVILEGES.skip("no control group can be made");
    };
    if !group.limit(&[("memory.max", "67108864"), ("memory.limit_in_bytes", "67108864")]) {
        return numakit_skips::PRIVILEGES.skip("the control group has no memory limit");
    }
    let inside = |mode: &str| format!("sh -c '{} exec {} {mode}'", group.enter(), program.display());
    let killed = findings(&folder, "", &inside("exhaust 5"));
    let first = &killed["problems"][0];
    assert_eq!((first["rule"].as_str(), is_program(first)), (Some("out-of-memory"), true), "{killed:#}");
    assert!(killed["headline"]["verdict"].as_str().unwrap().contains("killed the program"), "{killed:#}");
    // Larger than the group's memory, so that its pages are evicted before they are read again.
    std::fs::write(folder.path("large"), vec![7u8; 200 << 20]).unwrap();
    let thrashing =
        findings(&folder, "", &inside(&format!("read-file 4 {}", folder.path("large").display())));
    let all = rules(&thrashing, |_| true);
    assert!(all.iter().any(|rule| rule == "file-thrashing"), "{thrashing:#}");
}
