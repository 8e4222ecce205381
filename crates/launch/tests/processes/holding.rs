//! Which cores are held after processes are killed.

use crate::scene::{Scene, exists, kill, state};
use numakit_registry::HolderState;
use numakit_testing::children::{Lines, Started};
use numakit_testing::until;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Prints its PID, then sleeps.
const SLEEP: &str = "echo $$; exec sleep 1000";
/// The same without the inherited descriptor; for bash, as other shells accept only one digit.
const CLOSED: &str = "exec 100>&-; echo $$; exec sleep 1000";

#[test]
fn two_programs_exclude_each_other() {
    let scene = Scene::new("exclude");
    let (mut one, pid) = scene.running(&["0-2", "sh", "-c", SLEEP]);
    assert_eq!(scene.program(), pid);
    let refused = scene.hold(&["2-3", "true"]).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        message.contains("CPUs 0-2 are held by sh of ") && message.contains(&format!("(process {pid})")),
        "{message}"
    );
    assert_eq!(scene.hold(&["3", "true"]).status().unwrap().code(), Some(0));
    let (mut two, _) = scene.running(&["+3", "sh", "-c", SLEEP]);
    assert_eq!(scene.held(), "0-5");
    kill("TERM", one.pid());
    assert_eq!(one.status(), 143);
    scene.until_held("3-5");
    kill("KILL", two.pid());
    two.status();
    // The program continues, as with nohup.
    assert_eq!(scene.held(), "3-5");
    kill("KILL", scene.program());
    scene.until_held("");
}

#[test]
fn a_killed_program_releases_its_cores() {
    let scene = Scene::new("program");
    let (mut run, pid) = scene.running(&["0-1", "sh", "-c", SLEEP]);
    assert_eq!(scene.program(), pid);
    let holding = &scene.holdings()[0];
    assert_eq!((holding.cores(), &holding.state), (2, &HolderState::Held));
    kill("KILL", pid);
    assert_eq!(run.status(), 137);
    scene.until_held("");
}

#[test]
fn a_killed_launcher_leaves_the_program_with_its_cores() {
    let scene = Scene::new("launcher");
    let (mut run, pid) = scene.running(&["0-1", "bash", "-c", CLOSED]);
    kill("KILL", run.pid());
    assert_eq!(run.status(), 137);
    assert_eq!(scene.held(), "0-1");
    assert!("RSD".contains(state(pid.parse().unwrap())));
    kill("TERM", pid);
    scene.until_held("");
}

#[test]
fn a_killed_keeper_costs_neither_the_cores_nor_the_status() {
    let scene = Scene::new("supervisor");
    let script = "exec 100>&-; trap 'exit 7' USR1; echo $$; while :; do sleep 0.02; done";
    let (mut run, _) = scene.running(&["0-1", "bash", "-c", script]);
    let supervisor = scene.supervisor();
    kill("KILL", supervisor);
    until!(scene.supervisor() == run.pid(), "the launcher supervises the program");
    assert_eq!(scene.held(), "0-1");
    kill("USR1", run.pid());
    assert_eq!(run.status(), 7);
    scene.until_held("");
}

fn numbers(folder: &str) -> Vec<u32> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut numbers: Vec<u32> = names.map(|name| name.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// Descriptors that programs inherit from this process.
fn inherited() -> Vec<u32> {
    let closed_at_exec = |number: &u32| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("02000000");
        u32::from_str_radix(flags.trim(), 8).unwrap() & 0o2_000_000 != 0
    };
    numbers("/proc/self/fd").into_iter().filter(|number| !closed_at_exec(number)).collect()
}

#[test]
fn the_inherited_descriptor_alone_holds_the_cores() {
    let scene = Scene::new("descriptor");
    let (mut run, pid) = scene.running(&["0-1", "sh", "-c", SLEEP]);
    // The descriptors that the launcher inherits from this test, and the one of the locks.
    let mut expected: Vec<u32> = inherited();
    expected.extend([0, 1, 2, 100]);
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(numbers(&format!("/proc/{pid}/fd")), expected);
    kill("KILL", scene.supervisor());
    kill("KILL", run.pid());
    run.status();
    assert_eq!(scene.held(), "0-1");
    kill("KILL", pid);
    scene.until_held("");
}

#[test]
fn without_keeper_and_descriptor_the_audit_keeps_the_cores() {
    let cpu = numakit_sys::sched::affinity().unwrap().first().unwrap().to_string();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    if online.trim() == "0" {
        numakit_skips::MACHINE.skip("one CPU: no mask is narrower than the machine");
        return;
    }
    for unnamed in [false, true] {
        let scene = Scene::new(if unnamed { "audit-unnamed" } else { "audit" });
        let mut words = vec!["--bind", &cpu, "bash", "-c", CLOSED];
        if unnamed {
            words.insert(0, "--unnamed");
        }
        let (mut run, pid) = scene.running(&words);
        kill("KILL", scene.supervisor());
        kill("KILL", run.pid());
        run.status();
        until!(scene.holdings().iter().any(|h| h.state != HolderState::Held), "the locks are released");
        let holdings = scene.holdings();
        assert_eq!(holdings.len(), 1, "{holdings:?}");
        assert_eq!(holdings[0].state, HolderState::Bound(pid.parse().unwrap()));
        assert_eq!(
            (holdings[0].cpus.to_string(), holdings[0].holder.as_ref().unwrap().application.as_str()),
            (cpu.clone(), "bash")
        );
        // Its record is not overwritten by others that come and go.
        for _ in 0..3 {
            let refused = scene.hold(&[&cpu, "true"]).output().unwrap();
            assert!(String::from_utf8_lossy(&refused.stderr).contains(&format!("process {pid}")));
            assert!(scene.hold(&["60-61", "true"]).status().unwrap().success());
        }
        kill("KILL", pid);
        scene.until_held("");
        assert!(scene.hold(&[&cpu, "true"]).status().unwrap().success());
    }
}

#[test]
fn a_daemon_keeps_the_cores_and_the_launcher_returns() {
    let scene = Scene::new("daemon");
    let script = "setsid bash -c 'exec 100>&-; echo $$; exec sleep 1000 >/dev/null' & exit 3";
    let (mut run, pid) = scene.running(&["0-1", "sh", "-c", script]);
    assert_eq!(run.status(), 3);
    assert_eq!(scene.held(), "0-1");
    // The pipe ends although the supervisor still runs.
    assert_eq!(run.line(), "");
    let supervisor = scene.supervisor();
    assert!(exists(Path::new(&format!("/proc/{supervisor}"))));
    assert_eq!(fs::read_to_string(format!("/proc/{supervisor}/comm")).unwrap().trim(), "cores-keeper");
    assert!(fs::read_to_string(format!("/proc/{supervisor}/cmdline")).unwrap().starts_with("cores-keeper\0"));
    kill("TERM", pid);
    scene.until_held("");
    until!(!exists(Path::new(&format!("/proc/{supervisor}"))), "the supervisor ends");
}

#[test]
fn a_damaged_record_does_not_lose_the_lock() {
    use std::os::unix::fs::FileExt;
    let scene = Scene::new("damaged");
    let (mut run, pid) = scene.running(&["4-5", "sh", "-c", SLEEP]);
    // The last write before a process ends.
    assert_eq!(scene.program(), pid);
    let file = fs::File::options().write(true).open(scene.registry()).unwrap();
    file.write_all_at(b"garbage", 4096 + 100).unwrap();
    let holdings = scene.holdings();
    assert_eq!(
        (holdings[0].state.clone(), holdings[0].cpus.to_string()),
        (HolderState::Unknown, "4-5".to_owned())
    );
    let refused = scene.hold(&["5", "true"]).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("CPUs 4-5 are held by unknown (damaged record)"), "{message}");
    // Even an emptied file is repaired, and the locks stay.
    file.set_len(0).unwrap();
    assert!(scene.hold(&["6", "true"]).status().unwrap().success());
    assert!(!scene.hold(&["5", "true"]).status().unwrap().success());
    kill("TERM", pid);
    run.status();
    scene.until_held("");
}

#[test]
fn a_removed_file_is_created_again() {
    let scene = Scene::new("removed");
    assert!(scene.hold(&["0", "true"]).status().unwrap().success());
    fs::remove_file(scene.registry()).unwrap();
    assert_eq!(scene.held(), "");
    assert!(!exists(&scene.registry()), "inspecting creates nothing");
    let (mut run, pid) = scene.running(&["0", "sh", "-c", SLEEP]);
    assert_eq!(scene.held(), "0");
    kill("TERM", pid);
    run.status();
}

#[test]
fn waiting_ends_when_cores_are_free_or_the_time_is_over() {
    let scene = Scene::new("waiting");
    let (mut run, pid) = scene.running(&["0", "sh", "-c", SLEEP]);
    let late = scene.hold(&["--wait", "0.3", "0", "true"]).output().unwrap();
    assert!(String::from_utf8_lossy(&late.stderr).contains("CPUs 0 are held by sh"));
    let mut waiting = scene.hold(&["--wait", "60", "0", "true"]);
    let mut waiting = Started(waiting.stderr(Stdio::piped()).spawn().unwrap());
    let refusal = Lines::of(waiting.stderr.take().unwrap()).next();
    assert!(
        refusal.as_ref().is_some_and(|line| line.starts_with("hold: waits: CPUs 0 are held")),
        "{refusal:?}"
    );
    kill("TERM", pid);
    run.status();
    assert!(waiting.ended().success());
}
