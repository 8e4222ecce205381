use crate::runner::{Done, Folder};
use numakit_bench::{BENCHMARKS, BenchResults};
use numakit_sys::SysRoot;
use numakit_testing::until;
use std::process::Stdio;

/// Settings with which a benchmark takes a moment.
const SHORT: &str = "--size 1M --time 1ms";

fn results(done: &Done) -> BenchResults {
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {} {}", done.out, done.err))
}

#[test]
fn every_benchmark_has_complete_matrices() {
    let folder = Folder::new("bench");
    let topology = numakit_topology::read(&SysRoot::host()).unwrap();
    let done = folder.run(&format!("bench all --json {SHORT}"));
    assert_eq!(done.code, 0, "{}", done.err);
    let results = results(&done);
    assert!(results.complete && results.version == 1);
    assert!(!results.conditions.processor.is_empty() && !results.conditions.kernel.is_empty());
    let names: Vec<&str> = results.benchmarks.iter().map(|result| result.name.as_str()).collect();
    assert_eq!(names, BENCHMARKS.iter().map(|benchmark| benchmark.name).collect::<Vec<_>>());
    for result in &results.benchmarks {
        assert!(result.all().count() > 0, "{result:?}");
        for (name, value) in result.all() {
            assert!(
                value.median > 0.0 && value.low <= value.median && value.median <= value.high,
                "{name} {value:?}"
            );
        }
        if result.left_out.is_empty() {
            let nodes = result.matrices.iter().filter(|matrix| matrix.column == "memory of node");
            for matrix in nodes {
                assert_eq!(matrix.values().count(), topology.nodes.len().pow(2), "{matrix:?}");
            }
        }
    }
}

#[test]
fn results_of_a_whole_machine_are_kept_and_others_are_not() {
    let folder = Folder::new("benchkept");
    let state = folder.path("state");
    let run = |words: &str| Done::of(folder.numa(words).env("XDG_STATE_HOME", &state).output().unwrap());
    assert!(!run(&format!("bench all {SHORT}")).err.contains("kept") && !state.exists());
    let done = run("bench all --quick --time 1ms --json");
    done.says(0, "results of this machine are kept in");
    let results = results(&done);
    let kept = state.join(format!("numakit/bench/{}.json", results.machine_key));
    assert_eq!(std::fs::read_to_string(kept).unwrap().trim(), done.out.trim());
}

#[test]
fn a_page_says_what_was_measured_where() {
    let folder = Folder::new("benchpage");
    let done = folder.run(&format!("bench latency {SHORT}"));
    assert_eq!(done.code, 0, "{}", done.err);
    for part in [
        "load latency, idle in ns\n",
        "CPUs of node \\ memory of node",
        "  medians; ",
        "     4.00 KiB ",
        "; Linux ",
    ] {
        assert!(done.out.contains(part), "no '{part}' in\n{}", done.out);
    }
    assert!(!done.out.contains('\x1b'), "{}", done.out);
    assert!(folder.run(&format!("bench latency --color always {SHORT}")).out.contains("\x1b[30;48;5;114m"));
}

#[test]
fn a_command_runs_alone_and_beside_recordings() {
    let folder = Folder::new("benchoverhead");
    let done = folder.run("bench overhead --rounds 2 --rates 10Hz,200Hz --json -- sleep 0.1");
    let results = results(&done);
    let curves = &results.benchmarks[0].curves;
    let rates =
        |at: usize| curves[at].points.iter().map(|point| (point.x, point.value.samples)).collect::<Vec<_>>();
    assert_eq!((done.code, curves.len()), (0, 3), "{}", done.err);
    (0..3).for_each(|at| assert_eq!(rates(at), [(10.0, 2), (200.0, 2)]));
    for (line, code, says) in [
        ("-- false", 2, "'false': the command ended with status 1"),
        ("-- /no/program", 127, "cannot run '/no/program'"),
        ("-- /etc/passwd", 126, "cannot run '/etc/passwd'"),
        ("--rounds 0 -- true", 2, "--rounds"),
        ("", 2, "<CMD>"),
    ] {
        let done = folder.run(&format!("bench overhead {line}"));
        assert!(done.code == code && done.err.contains(says), "{line}: {} {}", done.code, done.err);
    }
}

#[test]
fn what_is_left_out_has_a_reason() {
    let folder = Folder::new("benchleft");
    let done = folder.run("bench latency --quick --json --time 1ms --size 16T");
    let results = results(&done);
    let why = &results.benchmarks[0].left_out[0].why;
    assert!(why.contains("needs 16.0 TiB") && why.contains("give a smaller --size"), "{why}");
    assert_eq!((done.code, results.benchmarks[0].matrices[0].values().count()), (0, 0));
}

#[test]
fn nonsense_is_refused_with_its_bounds() {
    let folder = Folder::new("benchbad");
    for (words, parts) in [
        ("latency --size 1K", ["1.00 KiB is outside of 64.0 KiB to 16.0 TiB", "--size"]),
        ("latency --size 100T", ["outside of 64.0 KiB to 16.0 TiB", "--size"]),
        ("latency --size fast", ["'fast' is not a size", "256M"]),
        ("latency --time 0s", ["'0s' is out of range", "from 100us to 1h"]),
        ("latency --time 200us", ["200µs is outside of 1ms to 3600s", "--time"]),
        ("latency --cpus 9999", ["--cpus", "those that may be used are"]),
        ("latency --nodes 900", ["--nodes", "those that may be used are"]),
        ("speed", ["invalid value 'speed'", "latency"]),
        ("latency --sysroot /nowhere", ["measures the memory of this machine", "omit --sysroot"]),
    ] {
        let done = folder.run(&format!("bench {words}"));
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{words}: {}", done.err);
        parts
            .iter()
            .for_each(|part| assert!(done.err.contains(part), "{words}: no '{part}' in {}", done.err));
    }
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let folder = Folder::new("benchint");
    // The first matrix takes a moment, and the curve behind it minutes.
    let child = folder
        .numa("bench latency --json --size 256K --time 2s")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let process = child.id();
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap_or("0");
        u64::from_str_radix(blocked, 16).unwrap_or(0) & 0b10 != 0
    };
    until!(catches());
    std::process::Command::new("kill").args(["-INT", &process.to_string()]).status().unwrap();
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(done.code, 130, "{} {}", done.out, done.err);
    let results = results(&done);
    assert!(!results.complete && results.version == 1, "{}", done.out);
}
