//! Whether threads that libnumaplace places run where the plan says, with all their pages there.

use numakit_guest::programs::figure;
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIBRARY: &str = "/usr/lib/libnumaplace.so";
const NODES: &str = "0:0-1;1:2-3;2:4-5;3:6-7";
/// An order in which neighbours are on different nodes.
const SPREAD: &str = "0,2,4,6,1,3,5,7";
/// What OpenMP is told when its threads are to have these cores.
const BOUND: &str = "OMP_NUM_THREADS=6 OMP_PROC_BIND=close OMP_PLACES={0},{2},{4},{6},{1},{3}";
const LLVM: &str = "LD_LIBRARY_PATH=/usr/lib/llvm";

/// What the kernel permits the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    /// Everything.
    Open,
    /// What it permits in a container of Docker: no memory policy, no moving of pages.
    Filtered,
}

const BOTH: [Kernel; 2] = [Kernel::Open, Kernel::Filtered];

/// The command as the launcher starts it: on the whole mask, with the first core's node preferred.
fn placed_on(kernel: Kernel, order: &str, with: &str, command: &str) -> String {
    let first: u32 = order.split([',', '-']).next().unwrap().parse().unwrap();
    let (policy, process) = match kernel {
        Kernel::Open => (format!("numactl -C {order} --preferred={}", first / 2), ""),
        Kernel::Filtered => (format!("filtered taskset -c {order}"), "NUMA_PROCESS=$$"),
    };
    format!(
        "{policy} env NUMA_PLACE={order} NUMA_MASK={order} 'NUMA_NODES={NODES}' NUMA_MEMORY=default {process} \
         LD_PRELOAD={LIBRARY} {with} {command}"
    )
}

/// Steps and what they run. Under the filter, memory that was used on another node stays there, and a
/// program with another policy than the kernel's own is not started.
fn steps(kernel: Kernel) -> Vec<(Kernel, &'static str, String)> {
    let needs_calls = |name: &str| {
        ["alone", "pool", "gomp-nested", "llvm-nested", "interleaved", "bound", "huge"].contains(&name)
    };
    let all = all_steps(|order, with, command| placed_on(kernel, order, with, command));
    let can = all.into_iter().filter(|(name, _)| kernel == Kernel::Open || !needs_calls(name));
    can.map(|(name, words)| (kernel, name, words)).collect()
}

fn all_steps(placed: impl Fn(&str, &str, &str) -> String) -> Vec<(&'static str, String)> {
    let bound = |more: &str| format!("'OMP_WAIT_POLICY=passive' {} {more}", quoted(BOUND));
    let one = placed("0,2,4", "", "placed plain 2 > one & ");
    let other = placed("1,3,5,7", "", "placed plain 3 > other & wait; cat one other");
    vec![
        ("alone", "numactl -C 0 env GOMP_CPU_AFFINITY=0,2,4,6,1,3 placed omp 6".to_owned()),
        ("plain", placed(SPREAD, "", "placed plain 7")),
        ("surplus", placed("0,2,4", "", "placed plain 5")),
        ("pool", placed(SPREAD, "", "placed pool 6")),
        ("gomp", placed(SPREAD, &bound(""), "placed omp 6")),
        ("llvm", placed(SPREAD, &bound(LLVM), "placed omp 6")),
        ("gomp-nested", placed(SPREAD, &bound("OMP_NESTED=true"), "placed nested 3")),
        ("llvm-nested", placed(SPREAD, &bound(LLVM), "placed nested 3")),
        ("gomp-unbound", placed(SPREAD, "OMP_PROC_BIND=false", "placed omp 6")),
        ("llvm-unbound", placed(SPREAD, &format!("OMP_PROC_BIND=false {LLVM}"), "placed omp 6")),
        ("forks", placed(SPREAD, "", "placed forks 6")),
        ("two", one + &other),
        ("interleaved", placed(SPREAD, "NUMA_MEMORY=interleave:0-3", "placed pool 6")),
        ("bound", placed(SPREAD, "NUMA_MEMORY=bind:0", "placed plain 6")),
        ("plugin", placed(SPREAD, &format!("PLACED_PLUGIN={PLUGIN_INSIDE}"), "placed plugin 7")),
        ("huge", format!("{HUGE} && {MADE} && {} && {MADE}", placed(SPREAD, "", "placed huge 7"))),
    ]
}

/// A library that is loaded while the program runs, with much of its own in each thread.
const PLUGIN: &str = "#include <stddef.h>\nstatic __thread char own[64 << 10] = {1};\n\
    char *storage(size_t *bytes) { *bytes = sizeof own; return own; }\n";
const PLUGIN_INSIDE: &str = "/usr/lib/placed-plugin.so";

fn plugin() -> Result<PathBuf, Failure> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (folder.join("placed-plugin.c"), folder.join("placed-plugin.so"));
    std::fs::write(&source, PLUGIN).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    match cc.status() {
        Ok(status) if status.success() => Ok(library),
        failed => Err(Failure::Request(format!("the plugin cannot be built: {failed:?}"))),
    }
}

const HUGE: &str = "echo always > /sys/kernel/mm/transparent_hugepage/enabled";

/// Huge pages that the kernel made since the boot: `thp_fault_alloc N`.
const MADE: &str = "grep thp_fault_alloc /proc/vmstat";

/// Braces and blanks stay in the words of a shell.
fn quoted(words: &str) -> String {
    words.split(' ').map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
}

pub fn guest() -> Result<Guest, Failure> {
    let taskset = programs::of_host("taskset").ok_or_else(|| Failure::NotFound("taskset".to_owned()))?;
    let numactl = programs::of_host("numactl").ok_or_else(|| Failure::NotFound("numactl".to_owned()))?;
    let mut guest = Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::compiled("placed")?.unwrap())
        .program(&programs::compiled("filtered")?.unwrap())
        .program(&numactl)
        .program(&taskset)
        .file(&programs::libomp()?, "/usr/lib/llvm/libgomp.so.1")
        .file(&programs::libnumaplace()?, LIBRARY)
        .file(&plugin()?, PLUGIN_INSIDE)
        // So that a page is a page, and stays where it was put.
        .step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"])
        .step("quiet", &["sh", "-c", "echo 0 > /proc/sys/kernel/numa_balancing"]);
    // The filter is that of a command. What makes huge pages is the last of all.
    for (kernel, name, words) in BOTH.into_iter().rev().flat_map(steps) {
        guest = guest.step(&step_of(kernel, name), &["sh", "-c", &words]);
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("placed")
}

fn step_of(kernel: Kernel, name: &str) -> String {
    format!("{kernel:?} {name}")
}

/// A line of the program about one thread.
#[derive(Debug)]
struct Thread {
    index: u32,
    /// None if it is not bound.
    cpu: Option<u32>,
    home: u64,
    elsewhere: u64,
}

fn threads(text: &str, name: &str) -> Vec<Thread> {
    let of = |line: &str| {
        let words: Vec<&str> = line.strip_prefix("thread ")?.split(' ').collect();
        let [found, index, "cpu", cpu, "node", _, "home", home, "elsewhere", elsewhere] = words[..] else {
            panic!("{line}")
        };
        let number = |word: &str| word.parse().unwrap();
        (found == name).then(|| Thread {
            index: index.parse().unwrap(),
            cpu: cpu.parse().ok(),
            home: number(home),
            elsewhere: number(elsewhere),
        })
    };
    text.lines().filter_map(of).collect()
}

/// What a step printed, which must have its pages at home and nothing to complain of.
fn at_home(step: &str) -> Option<String> {
    at_home_on(Kernel::Open, step)
}

fn at_home_on(kernel: Kernel, step: &str) -> Option<String> {
    let boot = part()?;
    let step = &step_of(kernel, step);
    let text = boot[step].succeeded();
    assert_eq!(boot[step].errors(), "", "{step}");
    let sum = |what: &str| -> f64 {
        let found = text.lines().filter_map(|line| line.strip_prefix(what)?.trim().parse::<f64>().ok());
        found.sum()
    };
    let (home, elsewhere) = (sum("pages_at_home "), sum("pages_elsewhere "));
    let apart = sum("argument_pages_elsewhere ");
    println!("{step}: {home} pages at home, {elsewhere} elsewhere; of arguments {apart} elsewhere");
    // Under the filter, exec may have made the first pages of the main thread on another node.
    let least = if kernel == Kernel::Open { 0.99 } else { 0.9 };
    assert!(home > 0.0 && home >= least * (home + elsewhere), "{text}");
    Some(text)
}

fn bound_cpus(threads: &[Thread]) -> Vec<u32> {
    threads.iter().filter_map(|thread| thread.cpu).collect()
}

/// The CPUs of the plan, each taken by one thread.
fn all_different(threads: &[Thread]) -> BTreeSet<u32> {
    let cpus = bound_cpus(threads);
    let set: BTreeSet<u32> = cpus.iter().copied().collect();
    assert_eq!(set.len(), cpus.len(), "{threads:?}");
    set
}

#[test]
fn without_the_library_pages_are_elsewhere() {
    let Some(boot) = part() else { return };
    let text = boot["Open alone"].succeeded();
    let (home, elsewhere) =
        (figure(&text, "pages_at_home").unwrap(), figure(&text, "pages_elsewhere").unwrap());
    println!("libgomp alone: {home} pages at home, {elsewhere} elsewhere");
    assert!(elsewhere > 0.1 * (home + elsewhere), "{text}");
}

#[test]
fn threads_take_the_cores_in_order() {
    for kernel in BOTH {
        let Some(text) = at_home_on(kernel, "plain") else { return };
        let mut threads = threads(&text, "plain");
        threads.sort_by_key(|thread| thread.index);
        assert_eq!(bound_cpus(&threads), [0, 2, 4, 6, 1, 3, 5, 7], "{text}");
        assert!(threads.iter().all(|thread| thread.home > 60), "{text}");
        let created = threads.iter().filter(|thread| thread.index > 0);
        assert_eq!(created.map(|thread| thread.elsewhere).sum::<u64>(), 0, "{text}");
        assert!(kernel == Kernel::Filtered || threads[0].elsewhere == 0, "{text}");
    }
}

#[test]
fn more_threads_than_cores_run_anywhere() {
    for kernel in BOTH {
        let Some(text) = at_home_on(kernel, "surplus") else { return };
        assert_eq!(all_different(&threads(&text, "plain")), BTreeSet::from([0, 2, 4]), "{text}");
        assert_eq!(figure(&text, "unbound"), Some(3.0), "{text}");
    }
}

#[test]
fn stacks_that_others_left_come_along() {
    let Some(text) = at_home("pool") else { return };
    let threads = threads(&text, "pool");
    assert_eq!(figure(&text, "unbound"), Some(0.0), "{text}");
    assert!(threads.len() > 60 && threads.iter().all(|thread| thread.elsewhere == 0), "{text}");
}

#[test]
fn threads_of_openmp_keep_their_cores_and_get_their_pages() {
    for kernel in BOTH {
        for step in ["gomp", "llvm", "gomp-unbound", "llvm-unbound"] {
            let Some(text) = at_home_on(kernel, step) else { return };
            let threads = threads(&text, "omp");
            assert_eq!(threads.len(), 18, "{text}");
            for round in threads.chunks(6) {
                assert_eq!(all_different(round), BTreeSet::from([0, 1, 2, 3, 4, 6]), "{step}: {text}");
            }
        }
    }
}

#[test]
fn nested_teams_too() {
    for step in ["gomp-nested", "llvm-nested"] {
        let Some(text) = at_home(step) else { return };
        assert!(threads(&text, "nested").len() >= 18, "{text}");
    }
}

#[test]
fn children_of_a_fork_begin_with_all_cores() {
    for kernel in BOTH {
        let Some(text) = at_home_on(kernel, "forks") else { return };
        let told: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("child_may_use ")).collect();
        assert_eq!(told, ["8", "8"], "{text}");
        for child in threads(&text, "child").chunks(7) {
            assert_eq!(all_different(child).len(), 7, "{text}");
        }
    }
}

#[test]
fn two_applications_run_side_by_side() {
    for kernel in BOTH {
        let Some(text) = at_home_on(kernel, "two") else { return };
        let threads = threads(&text, "plain");
        assert_eq!(all_different(&threads), BTreeSet::from([0, 1, 2, 3, 4, 5, 7]), "{text}");
    }
}

#[test]
fn stacks_are_at_home_whatever_the_policy_is() {
    at_home("interleaved");
    let Some(boot) = part() else { return };
    // Unless all memory is to be on certain nodes.
    let text = boot["Open bound"].succeeded();
    let count = |thread: &Thread| (thread.cpu.unwrap() / 2 == 0, thread.home, thread.elsewhere);
    for (is_there, home, elsewhere) in threads(&text, "plain").iter().map(count) {
        assert_eq!((home > 0, elsewhere > 0), (is_there, !is_there), "{text}");
    }
}

#[test]
fn storage_of_libraries_that_come_later_is_told_apart() {
    for kernel in BOTH {
        let Some(text) = at_home_on(kernel, "plugin") else { return };
        let (home, elsewhere) = (
            figure(&text, "plugin_pages_at_home").unwrap(),
            figure(&text, "plugin_pages_elsewhere").unwrap(),
        );
        println!("of a library that was loaded later: {home} pages at home, {elsewhere} elsewhere");
        // Each of the seven has 15 whole pages, which it touched first.
        assert_eq!(home + elsewhere, 7.0 * 15.0, "{text}");
        assert!(home >= 0.99 * (home + elsewhere), "{text}");
    }
}

#[test]
fn huge_pages_of_stacks_come_along() {
    let Some(text) = at_home("huge") else { return };
    let made: Vec<f64> =
        text.lines().filter_map(|line| line.strip_prefix("thp_fault_alloc ")?.parse().ok()).collect();
    let [before, after] = made[..] else { panic!("{text}") };
    println!("{} huge pages were made", after - before);
    // Seven stacks of two huge pages, of which threads touch the upper one.
    assert!(after - before >= 7.0, "{text}");
}
