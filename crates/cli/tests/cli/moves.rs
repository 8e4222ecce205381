//! `numa move` on this machine: any machine has at least one core, so that threads can be moved.

use crate::run::compiled;
use crate::runner::Folder;
use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::sched::affinity_of;
use numakit_testing::until;
use std::process::{Child, Command, Stdio};

/// Two threads that compute in memory of their own, until standard input ends.
const SPINNING: &str = "#include <pthread.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    static void *spin(void *none) {\n\
        volatile long *own = calloc(1 << 16, sizeof *own);\n\
        for (;;)\n\
            for (int at = 0; at < 1 << 16; at++)\n\
                own[at] += at;\n\
        return none;\n\
    }\n\
    int main(void) {\n\
        pthread_t one, other;\n\
        pthread_create(&one, 0, spin, 0);\n\
        pthread_create(&other, 0, spin, 0);\n\
        char word;\n\
        return read(0, &word, 1) != 0;\n\
    }\n";

/// A process that starts another one of its program; both compute, and start one more for each SIGUSR1.
const FORKING: &str = "#include <signal.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n\
    static volatile sig_atomic_t asked = 1;\n\
    static void ask(int none) { asked = 1; }\n\
    int main(void) {\n\
        signal(SIGUSR1, ask);\n\
        for (;;)\n\
            if (asked) {\n\
                asked = 0;\n\
                if (fork() == 0)\n\
                    prctl(PR_SET_PDEATHSIG, SIGKILL);\n\
            }\n\
    }\n";

struct Running(Child);

impl Running {
    fn start(program: &std::path::Path) -> Self {
        Self(Command::new(program).stdin(Stdio::piped()).spawn().unwrap())
    }

    /// The CPU masks of its threads.
    fn masks(&self) -> Vec<CpuSet> {
        let threads = TaskDir::of(&SysRoot::host(), self.0.id()).threads().unwrap();
        threads.into_iter().map(|thread| affinity_of(thread).unwrap()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The records in a folder.
fn records(folder: &Folder) -> usize {
    std::fs::read_dir(folder.path("state/numakit/moved")).map_or(0, |files| files.count())
}

#[test]
fn measuring_a_process_that_starts_others_is_not_bound() {
    let folder = Folder::new("move-forking");
    let Some(program) = compiled(&folder, "forking", FORKING, &[]) else { return };
    let running = Running::start(&program);
    let before = running.masks();
    let pid = running.0.id();
    let done = folder.run(&format!("move --pid {pid} --for 2s --threads --json"));
    if done.code == 2 && done.err.contains("works") {
        return numakit_skips::PRIVILEGES.skip("running processes may not be observed here");
    }
    assert_eq!(done.code, 0, "{}", done.err);
    let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let decided = report["threads"].as_array().unwrap();
    let parent = decided.iter().find(|thread| thread["thread"].as_u64() == Some(u64::from(pid))).unwrap();
    assert_eq!(
        (parent["reason"].as_str(), parent["cpu"].as_u64()),
        (Some("starts-others"), None),
        "{report:#}"
    );
    assert_eq!(running.masks(), before);

    // Its child is bound, and what that starts inherits its CPU until it is given back.
    let child = |pid: u32| tree::by_parent(&SysRoot::host()).get(&pid)?.first().copied();
    let first = child(pid).unwrap();
    let of_first = decided.iter().find(|thread| thread["thread"].as_u64() == Some(u64::from(first))).unwrap();
    if of_first["cpu"].is_null() {
        return numakit_skips::MACHINE.skip("no core is free for a process");
    }
    assert!(Command::new("kill").args(["-USR1", &first.to_string()]).status().unwrap().success());
    until!(child(first).is_some());
    let second = child(first).unwrap();
    assert_eq!(affinity_of(second).unwrap(), affinity_of(first).unwrap());
    let back = folder.run(&format!("move --pid {pid} --back"));
    assert_eq!(back.code, 0, "{}", back.err);
    assert!(back.out.contains("1 younger thread had inherited a CPU"), "{}", back.out);
    assert_eq!(
        [affinity_of(first).unwrap(), affinity_of(second).unwrap()],
        [before[0].clone(), before[0].clone()]
    );
}

#[test]
fn measuring_threads_are_bound_to_cores_of_their_own_and_freed_again() {
    let folder = Folder::new("move-threads");
    let Some(program) = compiled(&folder, "spinning", SPINNING, &["-pthread"]) else { return };
    let running = Running::start(&program);
    until!(running.masks().len() == 3);
    let before = running.masks();
    let pid = running.0.id();
    let dry = folder.run(&format!("move --pid {pid} --for 2s --threads --dry-run"));
    if dry.code == 2 && dry.err.contains("works") {
        return numakit_skips::PRIVILEGES.skip("running processes may not be observed here");
    }
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.out.contains("Nothing was changed"), "{}", dry.out);
    assert_eq!((running.masks(), records(&folder)), (before.clone(), 0));
    let done = folder.run(&format!("move --pid {pid} --for 2s --threads --json"));
    assert_eq!(done.code, 0, "{}", done.err);
    let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let decided = report["threads"].as_array().unwrap();
    assert_eq!(decided.len(), 2, "{report:#}");
    for thread in decided.iter().filter(|thread| !thread["cpu"].is_null()) {
        let number = thread["thread"].as_u64().unwrap() as u32;
        let cpu = thread["cpu"].as_u64().unwrap() as u32;
        assert_eq!(affinity_of(number).unwrap(), CpuSet::range(cpu, cpu));
    }
    let cpus: std::collections::BTreeSet<_> =
        decided.iter().filter_map(|thread| thread["cpu"].as_u64()).collect();
    let bound = decided.iter().filter(|thread| !thread["cpu"].is_null()).count();
    assert!(bound > 0 && cpus.len() == bound, "each has its own: {report:#}");
    assert_eq!(records(&folder), 1);
    let doctor = folder.run("doctor --all");
    assert!(doctor.out.contains(&format!("numa move --pid {pid} --back")), "{}", doctor.out);
    let back = folder.run(&format!("move --pid {pid} --back"));
    assert_eq!(back.code, 0, "{}", back.err);
    assert_eq!((running.masks(), records(&folder)), (before, 0));
    let again = folder.run(&format!("move --pid {pid} --back"));
    assert_eq!(again.code, 2);
    assert!(again.err.contains("is to be undone: this user did not move it"), "{}", again.err);
}

#[test]
fn a_record_of_a_process_that_has_ended_is_removed_and_a_damaged_one_is_refused() {
    let folder = Folder::new("move-records");
    let sleeper = Running(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = sleeper.0.id();
    let start = TaskDir::of(&SysRoot::host(), pid).stat().unwrap().start;
    let moved = folder.path("state/numakit/moved");
    // As numa creates it: nobody else may write to it.
    for path in [folder.path("state/numakit"), moved.clone()] {
        std::fs::create_dir_all(&path).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    let record = |process: u32, start: u64| {
        format!(
            r#"{{"version":1,"process":{process},"start":{start},"command":"x","moved":0,"threads":[],"pages":[],"forgotten":0}}"#
        )
    };
    let gone = moved.join("4194301-7.json");
    std::fs::write(&gone, record(4_194_301, 7)).unwrap();
    std::fs::write(moved.join(format!("{pid}-{start}.json")), record(pid, start)).unwrap();
    let doctor = folder.run("doctor --all");
    assert!(doctor.out.contains(&format!("process {pid} (x) was moved")), "{}", doctor.out);
    assert!(!gone.exists());
    std::fs::write(moved.join(format!("{pid}-{start}.json")), "{").unwrap();
    let refused = folder.run(&format!("move --pid {pid} --back"));
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("it is no record") && refused.err.contains("remove it"), "{}", refused.err);
}

#[test]
fn bad_requests_are_refused_with_what_to_do() {
    let folder = Folder::new("move-bad");
    let sleeper = Running(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = sleeper.0.id();
    let cure = folder.path("other.cure");
    let text = r#"{"cure":1,"command":"","program":{"file":"x","build_id":"00"},"threads":{"working":[],"count":1,"cpus":1},"objects":[]}"#;
    std::fs::write(&cure, text).unwrap();
    for (words, expected) in [
        ("move".to_owned(), "nothing to move is given"),
        ("move --pid 4194304".to_owned(), "there is no such process"),
        (format!("move --pid {pid} --rate 0"), "--rate 0"),
        (format!("move --pid {pid} --back --watch"), "cannot be used with"),
        (format!("move --pid {pid} --back"), "is to be undone: this user did not move it"),
        (format!("move --pid {pid} --nodes 900"), "900"),
        (format!("move --pid {pid} --apply missing"), "cannot read missing"),
        (format!("move --pid {pid} --apply last"), "no cure of this build of sleep is kept"),
        (format!("move --pid {pid} --back --apply last"), "cannot be used with"),
        (format!("move --pid {pid} --apply {}", cure.display()), "is for x with build ID 00"),
    ] {
        let done = folder.run(&words);
        assert_eq!(done.code, 2, "{words}: {} {}", done.out, done.err);
        assert!(done.err.contains(expected), "{words}: {}", done.err);
    }
    assert_eq!(records(&folder), 0);
}
