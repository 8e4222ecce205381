//! Processes that write neighbours on one line of memory which they share, each at an address of its own.

use crate::explain::{cpus, explained_with, program};
use crate::runner::Folder;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command};

/// A file in memory that several processes map.
pub struct SharedFile(pub PathBuf);

impl SharedFile {
    pub fn new(name: &str) -> Self {
        Self(PathBuf::from(format!("/dev/shm/numakit-{name}-{}", std::process::id())))
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Two processes contend for one line of the file.
fn assert_contended(found: &Value, pids: &[u32]) {
    let line = &found["lines"][0];
    // Their parent, which only waits, is a process too.
    let processes = line["processes"].as_array().unwrap();
    assert!(line["sharing"] == "false" && processes.len() == 2, "{line}");
    let users = line["users"].as_array().unwrap();
    assert!(users.len() == 2 && users[0]["address"] != users[1]["address"], "{line}");
    let mut names: Vec<&str> = users.iter().filter_map(|user| user["fields"][0]["name"].as_str()).collect();
    names.sort_unstable();
    assert!(
        names[0].starts_with("bytes 4096-4103 of ") && names[1].starts_with("bytes 4104-4111 of "),
        "{names:?}"
    );
    let finding = found["findings"].as_array().unwrap().iter().find(|one| one["rule"] == "contended-lines");
    let says =
        finding.and_then(|one| one["says"].as_str()).unwrap_or_else(|| panic!("{}", found["findings"]));
    assert!(pids.iter().all(|pid| says.contains(&pid.to_string())), "{says}");
}

#[test]
fn measuring_processes_that_write_one_line_are_named_and_nothing_is_said_of_their_twins() {
    if cpus() < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let (folder, file) = (Folder::new("shared-line"), SharedFile::new("line"));
    let Some(program) = program(&folder, "cc", "neighbours.c") else { return };
    let explain = |bytes: u32| {
        explained_with(&folder, "", &format!("{} {} {bytes}", program.display(), file.0.display()))
    };
    let (Some(shared), Some(apart)) = (explain(8), explain(128)) else { return };
    assert_contended(&shared, &[]);
    assert_eq!(apart["lines"], Value::Array(Vec::new()));

    let start = |place: u32| -> Child {
        let words = [file.0.display().to_string(), "8".to_owned(), place.to_string()];
        Command::new(&program).args(words).spawn().unwrap()
    };
    let mut running = [start(0), start(1)];
    let pids = running.each_ref().map(Child::id);
    let done = folder.run(&format!("explain --json pids.json --pid {},{}", pids[0], pids[1]));
    running.iter_mut().for_each(|one| drop(one.wait()));
    assert_eq!(done.code, 0, "{}", done.err);
    let words = std::fs::read(folder.path("pids.json")).unwrap();
    let found: Value = serde_json::from_slice(&words).unwrap();
    if found["regime"] == "precise" {
        assert_contended(&found, &pids);
    }
}
