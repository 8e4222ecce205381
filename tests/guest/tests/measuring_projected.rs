//! What `numa explain --as` says of programs on this machine, beside what the simulator counts of them on the machine that
//! was described: the threads are where `numa plan --policy balanced` places them, and pages where they are touched first.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, Simulation, or_skipped, programs};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

/// Threads of the programs, one for each CPU of a shape.
const THREADS: usize = 8;
/// Nodes of the shapes. The CPUs follow the nodes, in both numberings.
const NODES: [usize; 3] = [2, 4, 8];
/// A shape with more points of chance tells nothing.
const MAX_INTERVAL: f64 = 30.0;
/// In percent: the ring has room for the touches of all pages.
const MAX_UNKNOWN: f64 = 10.0;
/// Samples in a second of CPU time.
const RATE: &str = "997";

/// A program: what is run in the simulated machine, and more of the same here, where it is faster.
struct Program {
    name: &'static str,
    file: &'static str,
    simulated: &'static [&'static str],
    here: &'static [&'static str],
    /// Regions in the simulated machine.
    regions: usize,
    /// How many points the interval may be away from the truth.
    tolerance: f64,
}

const PROGRAMS: [Program; 5] = [
    Program {
        name: "cg",
        file: "npb",
        simulated: &["cg", "broken", "10"],
        here: &["cg", "broken", "6000"],
        regions: 1,
        tolerance: 6.0,
    },
    Program {
        name: "mixed",
        file: "npb",
        simulated: &["mixed", "broken", "8"],
        here: &["mixed", "broken", "3000"],
        regions: 24,
        tolerance: 6.0,
    },
    Program {
        name: "join",
        file: "npb",
        simulated: &["join", "repaired", "8"],
        here: &["join", "repaired", "1600"],
        regions: 1,
        tolerance: 6.0,
    },
    Program {
        name: "store",
        file: "npb",
        simulated: &["store", "broken", "12"],
        here: &["store", "broken", "8000"],
        regions: 1,
        tolerance: 6.0,
    },
    Program {
        name: "mg",
        file: "npb_fortran",
        simulated: &["mg", "broken", "4"],
        here: &["mg", "broken", "3000"],
        regions: 1,
        tolerance: 6.0,
    },
];

/// Threads that wait must not keep a CPU: there are more of them here than CPUs.
const VARIABLES: [(&str, &str); 3] =
    [("OMP_NUM_THREADS", "8"), ("OMP_WAIT_POLICY", "passive"), ("GOMP_SPINCOUNT", "0")];

/// As `--as` takes it, with the caches of the simulator.
fn description(nodes: usize) -> String {
    format!("node:{nodes} l3:1(size=512K) core:{}(l2=128K) pu:1", THREADS / nodes)
}

/// The same to be booted.
fn shape(nodes: usize) -> Result<Shape, Failure> {
    let cpus = THREADS / nodes;
    let mut text = format!("shape projected\nabout {nodes} nodes\npackages {nodes}\n");
    for node in 0..nodes {
        _ = writeln!(text, "node {node} cpus {}-{} memory 256", node * cpus, (node + 1) * cpus - 1);
    }
    Ok(Shape::parse(&text)?.remove(0))
}

/// The CPUs of the threads in the order of their creation.
fn planned(numa: &Path, nodes: usize) -> String {
    let description = description(nodes);
    let words = ["plan", "--policy", "balanced", "-c", "8", "--json", "--synthetic", &description];
    let done = Command::new(numa).args(words).output().unwrap();
    let plan: Value = serde_json::from_slice(&done.stdout).unwrap();
    let steps = plan["plan"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), THREADS, "{plan}");
    let cpus: Vec<String> = steps.iter().map(|step| step["cpu"].to_string()).collect();
    cpus.join(" ")
}

fn boot(nodes: usize) -> Result<Boot, Failure> {
    let numa = programs::numa()?;
    let mut guest = Guest::new(shape(nodes)?).simulate(Simulation::new()).timeout(Duration::from_secs(600));
    for (name, value) in VARIABLES {
        guest = guest.env(name, value);
    }
    guest = guest.env("GOMP_CPU_AFFINITY", &planned(&numa, nodes));
    for file in ["npb", "npb_fortran"] {
        guest = guest.program(&programs::compiled(file)?.unwrap());
    }
    // Small pages: which node a huge page is on would be the luck of the thread that touches it first.
    guest = guest.step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"]);
    for Program { name, file, simulated, .. } in &PROGRAMS {
        guest = guest.step(name, &[&[*file], *simulated].concat());
    }
    guest.boot()
}

static BOOTS: LazyLock<[Result<Boot, Failure>; NODES.len()]> = LazyLock::new(|| NODES.map(boot));

/// The remote share of the lines of each program, in percent.
fn counted(boot: &Boot) -> Vec<f64> {
    let mut regions = boot.traffic.as_ref().unwrap().each.iter();
    let share = |program: &Program| {
        assert!(boot[program.name].succeeded().contains("verified yes"), "{}", program.name);
        let (mut local, mut remote) = (0, 0);
        for region in 0..program.regions {
            let lines = regions.next().unwrap_or_else(|| panic!("{} has no region {region}", program.name));
            let (near, far) = lines.local_and_remote();
            (local, remote) = (local + near, remote + far);
        }
        100.0 * remote as f64 / (local + remote) as f64
    };
    PROGRAMS.iter().map(share).collect()
}

/// What is said of a program on this machine, as if it were on another one.
struct Projected {
    /// In percent, with the interval.
    far: [f64; 3],
    unknown: f64,
    samples: u64,
}

/// Whether this machine permits performance events, without which nobody sees who touches pages first.
fn has_events(numa: &Path) -> bool {
    let done = Command::new(numa).args(["explain", "--method", "perf", "--", "true"]).output().unwrap();
    done.status.success()
}

/// Runs a program here.
fn projected(numa: &Path, folder: &Path, program: &Program, nodes: usize) -> Projected {
    let file: PathBuf = programs::compiled(program.file).unwrap().unwrap();
    let result = folder.join(format!("{}-{nodes}.json", program.name));
    let mut explain = Command::new(numa);
    explain.args(["explain", "-F", RATE, "--as", &description(nodes), "--json"]).arg(&result).arg("--");
    let done = explain.arg(file).args(program.here).envs(VARIABLES).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {said}", program.name);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let projected = &report["projected"];
    assert!(projected["why_not"].is_null(), "{}: {projected}", program.name);
    assert_eq!(projected["threads"], THREADS, "{}: {projected}", program.name);
    let percent = |value: &Value| 100.0 * value.as_f64().unwrap_or(f64::NAN);
    Projected {
        far: ["share", "low", "high"].map(|name| percent(&projected["remote_share"][name])),
        unknown: percent(&projected["unknown"]),
        samples: report["samples"]["total"].as_u64().unwrap(),
    }
}

#[test]
#[ignore = "thorough: three simulated machines and 15 programs here, 6 minutes"]
fn what_would_be_far_is_what_the_simulated_machine_counts() {
    let mut truth = Vec::new();
    for boot in &*BOOTS {
        let Some(boot) = or_skipped(boot) else { return };
        truth.push(counted(boot));
    }
    let numa = programs::numa().unwrap();
    if !has_events(&numa) {
        return numakit_skips::PRIVILEGES
            .skip("performance events are refused: numa explain --method perf -- true");
    }
    let folder = std::env::temp_dir().join(format!("numakit-projected-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut table = format!(
        "{:<8} {:>5} {:>8} {:>18} {:>8} {:>8}\n",
        "PROGRAM", "NODES", "COUNTED%", "PROJECTED%", "UNKNOWN%", "SAMPLES"
    );
    let mut wrong = Vec::new();
    for (at, program) in PROGRAMS.iter().enumerate() {
        for (nodes, counted) in NODES.iter().zip(&truth).map(|(nodes, of)| (*nodes, of[at])) {
            let one = projected(&numa, &folder, program, nodes);
            let (name, [share, low, high]) = (program.name, one.far);
            let range = format!("{share:.1} ({low:.0} to {high:.0})");
            _ = writeln!(
                table,
                "{name:<8} {nodes:>5} {counted:8.1} {range:>18} {:8.1} {:8}",
                one.unknown, one.samples
            );
            // What is within the interval is chance, which must not be all.
            let difference = (low - counted).max(counted - high);
            let is_told = high - low <= MAX_INTERVAL && one.unknown <= MAX_UNKNOWN;
            if !(difference <= program.tolerance && is_told) {
                wrong.push(format!("{name} on {nodes} nodes: {difference:.1} points"));
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:?}\n{table}");
}
