//! The sensor `task` with real processes: this test program, started again in a role.

#![allow(clippy::expect_used, clippy::print_stdout, clippy::unwrap_used)]

use numakit_sensors::{SENSORS, Scene, Sensor, Target, Tick};
use numakit_sys::{SysRoot, clock};
use numakit_testing::children::{Lines, Started};
use numakit_testing::wait::wait_for;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const ROLE: &str = "NUMAKIT_TEST_ROLE";

/// A running child in a role. It ends when its standard input closes.
struct Actor(Child);

impl Actor {
    fn start(role: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "act", "--nocapture"]).env(ROLE, role);
        // Small allocations of all threads are on the heap.
        command.env("MALLOC_ARENA_MAX", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = Lines::of(child.stdout.take().unwrap());
        let actor = Self(child);
        assert!(lines.any(|line| line.contains("ready")), "the child did not start");
        actor
    }

    fn say(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let late = Instant::now() + Duration::from_secs(20);
        while Instant::now() < late && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for_line() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

/// The work of the child; does nothing in a normal test run.
#[test]
fn act() {
    match std::env::var(ROLE).as_deref() {
        Ok("memory") => {
            let large = vec![1u8; 64 * MIB as usize];
            let small: Vec<Vec<u8>> = (0..320).map(|_| vec![1u8; 100 << 10]).collect();
            for _ in 0..3 {
                std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
            }
            println!("ready");
            wait_for_line();
            assert!(large.len() + small.len() > 1);
        }
        Ok("family") => {
            let script = "sleep 600 & a=$!; sleep 600 & b=$!; read line; kill $a $b; wait";
            let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
            println!("ready");
            wait_for_line();
            shell.stdin.take().unwrap().write_all(b"end\n").unwrap();
            shell.wait().unwrap();
            wait_for_line();
        }
        _ => {}
    }
}

type Values = BTreeMap<String, Option<u64>>;

fn sensor(pid: u32) -> Box<dyn Sensor> {
    let root = SysRoot::host();
    let topology = numakit_topology::read(&root).unwrap();
    let target = Target::running(pid);
    let entry = SENSORS.iter().find(|e| e.name == "task").unwrap();
    (entry.probe)(&Scene::new(&root, &topology).observing(Some(&target)))
        .unwrap_or_else(|why| panic!("{why}"))
}

fn read(sensor: &mut dyn Sensor) -> Values {
    let mut out = vec![None; sensor.series().len()];
    sensor.read(&Tick { woke: clock::monotonic(), ..Tick::default() }, &mut out);
    sensor.series().iter().map(|s| s.name()).zip(out).collect()
}

#[track_caller]
fn read_until(sensor: &mut dyn Sensor, so: impl Fn(&Values) -> bool) -> Values {
    wait_for("other values", || Some(read(sensor)).filter(&so))
}

/// Over all nodes.
fn sum(values: &Values, metric: &str) -> u64 {
    let start = format!("{metric}@node");
    values.iter().filter(|(name, _)| name.starts_with(&start)).map(|(_, v)| v.unwrap()).sum()
}

fn has_numa() -> bool {
    let there = SysRoot::host().exists("/proc/self/numa_maps");
    if !there {
        numakit_skips::MACHINE.skip("this kernel has no /proc/PID/numa_maps");
    }
    there
}

#[test]
fn memory_is_what_the_kernel_says_and_threads_are_counted_exactly() {
    if !has_numa() {
        return;
    }
    let actor = Actor::start("memory");
    let pid = actor.0.id();
    let mut sensor = sensor(pid);
    let values =
        read_until(&mut *sensor, |v| v["task.walk_age"].is_some() && v["task.minor_faults"].is_some());
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find_map(|l| l.strip_prefix("Rss:")).unwrap();
    let rss = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024;
    let resident = sum(&values, "task.resident");
    assert!(resident.abs_diff(rss) <= 16 * 4096, "{resident} {rss}");
    assert!(sum(&values, "task.anonymous") >= 64 * MIB, "{values:?}");
    assert!((30 * MIB..40 * MIB).contains(&sum(&values, "task.heap")), "{values:?}");
    assert!(sum(&values, "task.stack") > 0 && sum(&values, "task.file") > 100 << 10);
    let uses = ["stack", "heap", "anonymous", "file", "huge"].map(|u| sum(&values, &format!("task.{u}")));
    assert_eq!(uses.iter().sum::<u64>(), resident);
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count() as u64;
    assert!(threads >= 4);
    assert_eq!((sum(&values, "task.threads"), values["task.processes"]), (threads, Some(1)));
    assert!(values["task.minor_faults"].unwrap() > 0 && values["task.walk_cpu"].unwrap() > 0);
}

#[test]
fn the_allocator_of_a_running_process_without_the_library_is_absent() {
    let actor = Actor::start("memory");
    let sensor = sensor(actor.0.id());
    let absent = sensor.absent().iter().filter(|absent| absent.metric.bare().starts_with("alloc_"));
    let whys: Vec<String> = absent.map(|absent| absent.why.to_string()).collect();
    assert_eq!(whys.len(), 7);
    assert!(whys[0].contains("no observed process has loaded libnumalloc.so"), "{}", whys[0]);
    assert!(!sensor.series().iter().any(|series| series.metric.bare().starts_with("alloc_")));
}

#[test]
fn grandchildren_are_members_and_exited_ones_still_count() {
    if !has_numa() {
        return;
    }
    let mut actor = Actor::start("family");
    let mut sensor = sensor(actor.0.id());
    // Between two scans the number of processes stays, and counters are absent.
    let family = |v: &Values, size| v["task.processes"] == Some(size) && v["task.minor_faults"].is_some();
    // The child, its shell, and the shell's two.
    let before = read_until(&mut *sensor, |v| family(v, 4));
    actor.say();
    let after = read_until(&mut *sensor, |v| family(v, 1));
    assert!(after["task.minor_faults"] >= before["task.minor_faults"], "{before:?} {after:?}");
    drop(actor);
    // A value may be absent for a moment.
    let gone = |v: &Values| {
        v.iter().filter(|(name, _)| name.starts_with("task.resident@node")).all(|(_, v)| *v == Some(0))
    };
    let last = read_until(&mut *sensor, |v| family(v, 0) && gone(v));
    assert!(last["task.minor_faults"] >= after["task.minor_faults"]);
    assert_eq!(sensor.failure(), None);
}

#[test]
fn many_short_processes_are_counted() {
    if !has_numa() {
        return;
    }
    let script = "i=0; while [ $i -lt 300 ]; do /bin/true & i=$((i+1)); done; wait; echo over; read line";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = Started(shell.spawn().unwrap());
    let mut sensor = sensor(shell.id());
    let mut last = 0;
    for _ in 0..100 {
        let now = read(&mut *sensor)["task.minor_faults"].unwrap_or(last);
        assert!(now >= last, "{now} {last}");
        last = now;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(Lines::of(shell.stdout.take().unwrap()).next().as_deref(), Some("over"));
    // The shell has waited for all: the sum of its counts and theirs is final once it is idle.
    let kernel = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", shell.id())).unwrap();
        let words: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        words[7].parse::<u64>().unwrap() + words[8].parse::<u64>().unwrap()
    };
    let values = read_until(&mut *sensor, |v| {
        v["task.processes"] == Some(1) && v["task.minor_faults"] == Some(kernel())
    });
    assert!(values["task.minor_faults"] >= Some(last));
    shell.stdin.take().unwrap().write_all(b"end\n").unwrap();
    shell.ended();
}
