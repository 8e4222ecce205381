//! Names and locks of programs whose code is compiled while they run: Java and Node.js.

use crate::explain::{explained_with, source};
use crate::runner::{Folder, Started};
use numakit_skips::Kind;
use numakit_testing::until;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Compiles the Java program; a skip without a compiler.
fn monitor(folder: &Folder) -> Option<()> {
    let compiled = Command::new("javac").arg("-d").arg(&folder.0).arg(source("Monitor.java")).status();
    if !compiled.is_ok_and(|status| status.success()) {
        numakit_skips::COMPILERS.skip("there is no javac");
        return None;
    }
    Some(())
}

/// What is seen of the Java program in a mode; a skip where waits or names cannot be seen.
fn java(folder: &Folder, options: &str, mode: &str) -> Option<Value> {
    monitor(folder)?;
    let found = explained_with(folder, options, &format!("java {mode}"))?;
    if let Some(why) = found["waits"]["refused"].as_str() {
        numakit_skips::PRIVILEGES.skip(why);
        return None;
    }
    if found["names"]["runtimes"][0]["source"]["from"] == "old" {
        numakit_skips::PROGRAMS.skip("java is older than JDK 17");
        return None;
    }
    Some(found)
}

fn functions(chain: &Value) -> Vec<&str> {
    chain.as_array().unwrap().iter().filter_map(|code| code["function"].as_str()).collect()
}

/// The functions with samples.
fn sampled(found: &Value) -> Vec<&str> {
    functions(&found["functions"])
}

#[test]
fn measuring_a_monitor_of_java_has_its_class_its_holder_and_its_methods() {
    let folder = Folder::new("java-monitor");
    let Some(found) = java(&folder, "--no-allocations", "-cp . Monitor monitor 6") else { return };
    let lock = &found["waits"]["locks"][0];
    assert_eq!(lock["what"], "Java monitor of class Monitor$Account", "{}", found["waits"]);
    // Monitors are not fair: one thread may have it whenever the machine is asked.
    assert!(lock["threads"].as_u64().unwrap() >= 2, "{lock}");
    assert_eq!(functions(&lock["chain"])[0], "Monitor.deposit", "{lock}");
    let holder = &lock["holders"][0];
    assert!(holder["name"].as_str().unwrap().starts_with("teller-"), "{lock}");
    assert!(functions(&holder["chain"]).contains(&"Monitor.deposit"), "{lock}");
    let finding = &found["findings"][0];
    assert_eq!(finding["rule"], "contended-lock", "{}", found["findings"]);
    assert!(
        finding["says"]
            .as_str()
            .unwrap()
            .contains("Java monitor of class Monitor$Account, in Monitor.deposit")
    );
    // The methods have names, although no option asked for a map.
    assert!(sampled(&found).iter().any(|name| name.starts_with("Monitor.compute(")), "{:?}", sampled(&found));
    let runtime = &found["names"]["runtimes"][0];
    assert_eq!(
        (&runtime["program"], &runtime["source"]["from"]),
        (&"java".into(), &"asked".into()),
        "{runtime}"
    );
    let dumps = runtime["dumps"].as_u64().unwrap();
    assert!((1..=20).contains(&dumps), "{runtime}");
    assert!(!Path::new(&format!("/tmp/perf-{}.map", runtime["process"])).exists(), "the map is removed");
}

#[test]
fn measuring_a_lock_of_java_has_its_class_and_the_method_that_takes_it() {
    let folder = Folder::new("java-lock");
    let Some(found) = java(&folder, "--no-allocations", "-cp . Monitor lock 6") else { return };
    let lock = &found["waits"]["locks"][0];
    assert_eq!(
        lock["what"], "Java lock of class java.util.concurrent.locks.ReentrantLock",
        "{}",
        found["waits"]
    );
    assert_eq!(functions(&lock["chain"])[0], "Monitor.transfer", "{lock}");
    assert_eq!(lock["holders"], Value::Array(Vec::new()), "the machine does not tell that");
}

#[test]
fn measuring_a_java_machine_that_is_not_asked_goes_on_and_has_no_names() {
    let folder = Folder::new("java-unasked");
    for (options, java_options, why) in [
        ("--no-names", "", ""),
        ("", "-Xrs -XX:+DisableAttachMechanism", "DisableAttachMechanism"),
        ("", "-XX:-UsePerfData", "-XX:-UsePerfData"),
    ] {
        let command = format!("{java_options} -cp . Monitor monitor 2");
        let Some(found) = java(&folder, &format!("--no-allocations {options}"), command.trim()) else {
            return;
        };
        assert_eq!(found["exit_status"], 0, "{java_options}");
        assert!(!sampled(&found).iter().any(|name| name.starts_with("Monitor.compute")), "{java_options}");
        let runtimes = found["names"]["runtimes"].as_array().unwrap();
        assert_eq!(runtimes.is_empty(), why.is_empty(), "{runtimes:?}");
        let said = runtimes.iter().filter_map(|runtime| runtime["source"]["why"].as_str());
        assert!(said.into_iter().all(|said| said.contains(why)), "{runtimes:?}");
    }
}

/// Whether Node.js is there.
fn has_node() -> bool {
    let has = Command::new("node").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success());
    if !has {
        numakit_skips::PROGRAMS.skip("there is no node");
    }
    has
}

#[test]
fn measuring_functions_of_javascript_have_names_and_leave_nothing_behind() {
    if !has_node() {
        return;
    }
    let folder = Folder::new("node-names");
    let script = source("hot.js");
    let command = format!("node {} 2", script.display());
    let Some(found) = explained_with(&folder, "--no-allocations", &command) else { return };
    let name = sampled(&found).into_iter().find(|name| name.starts_with("hotLoop "));
    assert!(name.is_some_and(|name| name.contains("hot.js:2:")), "{:?}", sampled(&found));
    let process = &found["processes"][0]["pid"];
    assert!(!Path::new(&format!("/tmp/perf-{process}.map")).exists(), "the map is removed");
    let done = folder.run(&format!("explain --all --no-allocations --no-names -- {command}"));
    assert!(done.out.contains(" undefined\n"), "the variable is not touched: {}", done.out);
    assert!(done.out.contains("have no names: run it as node --perf-basic-prof"), "{}", done.out);
}

/// A Java program that runs, ended with the test.
fn running(folder: &Folder) -> Option<Started> {
    monitor(folder)?;
    let words = ["-cp", ".", "Monitor", "monitor", "60"];
    Some(Started::of(Command::new("java").args(words).current_dir(&folder.0).stdout(Stdio::null())))
}

#[test]
fn measuring_a_running_java_machine_says_first_which_monitor_its_threads_wait_for() {
    let folder = Folder::new("java-attached");
    let Some(java) = running(&folder) else { return };
    let skip = |kind: &Kind, why: &str| kind.skip(why);
    let threads = format!("/proc/{}/task", java.id());
    until!(std::fs::read_dir(&threads).is_ok_and(|threads| threads.count() > 10));
    let done = folder.run(&format!("explain --all --for 5s --pid {}", java.id()));
    if done.code == 2 {
        return skip(&numakit_skips::SAMPLES, &done.err);
    }
    if done.out.contains("has no cause, since") {
        return skip(&numakit_skips::PRIVILEGES, "waits of threads cannot be read");
    }
    let first = done.out.lines().next().unwrap_or_default();
    assert!(first.contains("Java monitor of class Monitor$Account, in Monitor.deposit"), "{}", done.out);
    assert!(first.contains("(teller-") && first.contains("holds it for"), "{}", done.out);
    assert!(
        done.out.contains("was asked once for the names of its methods")
            || done.out.contains(" times for the names")
    );
    assert!(done.out.contains("what its threads wait for, and stopped them for at most"), "{}", done.out);
}
