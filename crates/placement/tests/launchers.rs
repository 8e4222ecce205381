//! The lines of every launcher, as golden texts. `UPDATE=1 cargo xtask test` writes them again.

#![allow(clippy::unwrap_used)]

use numakit_model::plan::{Memory, Mode, Plan, Step};
use numakit_model::{CpuSet, Topology};
use numakit_placement::launchers::{LAUNCHERS, Launcher, LauncherOptions, emit, lines};
use numakit_topology::synthetic;
use std::path::PathBuf;

const MACHINES: [(&str, &str); 4] = [
    ("numbers in order", "package:2 node:2 core:4"),
    (
        "two PUs a core, numbers dealt to packages in turn",
        "package:2 node:2 core:4 pu:2 numbering=roundrobin",
    ),
    ("the same in a cpuset", "package:2 node:2 core:4 pu:2 numbering=roundrobin allowed=2-15,18-31"),
    ("long lists", "package:1 node:1 core:512"),
];

fn machine(description: &str) -> Topology {
    synthetic::parse(description).unwrap()
}

/// Processes by threads on the cores in the order of the tree; `per_core` PUs of each are used,
/// and all but each `stride`-th core are left out.
fn plan(t: &Topology, processes: u32, threads: u32, per_core: usize, stride: usize) -> Plan {
    let cores = t.packages.iter().flat_map(|package| {
        t.cores.iter().filter(|core| core.cpus.is_subset(&package.cpus)).map(|core| core.cpus.and(&t.allowed))
    });
    let cores = cores.filter(|cpus| !cpus.is_empty()).step_by(stride);
    let mut cpus = cores.flat_map(|cpus| cpus.iter().take(per_core).collect::<Vec<_>>());
    let mut steps: Vec<Step> = Vec::new();
    for process in 0..processes {
        for thread in 0..threads {
            let cpu = cpus.next().unwrap();
            let node = t.node_of_cpu(cpu).unwrap().os_index;
            steps.push(Step {
                process,
                thread,
                cpu,
                node,
                memory: Memory::default(),
                because: String::new(),
            });
        }
    }
    for process in 0..processes {
        let nodes: CpuSet =
            steps.iter().filter(|step| step.process == process).map(|step| step.node).collect();
        steps.iter_mut().filter(|step| step.process == process).for_each(|step| {
            step.memory.nodes = nodes.clone();
        });
    }
    Plan { steps, ..Plan::default() }
}

fn with_memory(mut plan: Plan, mode: Mode, nodes: Option<&str>) -> Plan {
    for step in &mut plan.steps {
        step.memory.mode = mode;
        if let Some(nodes) = nodes {
            step.memory.nodes = CpuSet::parse_list(nodes).unwrap();
        }
    }
    plan
}

fn uneven(t: &Topology) -> Plan {
    let mut plan = plan(t, 2, 3, 1, 1);
    plan.steps.pop();
    plan.steps.swap(0, 1);
    plan
}

fn jobs() -> Vec<(String, Topology, Plan)> {
    let mut jobs = Vec::new();
    let mut job = |what: &str, t: &Topology, plan: Plan| jobs.push((what.to_owned(), t.clone(), plan));
    for (name, description) in &MACHINES[..3] {
        let t = machine(description);
        let per_core = t.cores.iter().map(|core| core.cpus.len()).max().unwrap();
        job(&format!("{name}: 1 process of 4 threads"), &t, plan(&t, 1, 4, 1, 1));
        job(&format!("{name}: 4 processes of 1 thread"), &t, plan(&t, 4, 1, 1, 1));
        job(&format!("{name}: 2 processes of 4 threads"), &t, plan(&t, 2, 4, per_core, 1));
    }
    let t = machine(MACHINES[0].1);
    let one = || plan(&t, 1, 4, 1, 2);
    job("every second core, bound memory", &t, with_memory(one(), Mode::Bind, None));
    job("all nodes alike", &t, plan(&t, 1, 16, 1, 1));
    job(
        "all nodes alike, interleaved",
        &t,
        with_memory(plan(&t, 1, 16, 1, 1), Mode::Interleave, Some("0-3")),
    );
    job("preferred node", &t, with_memory(one(), Mode::Prefer, Some("1")));
    job("preferred nodes", &t, with_memory(one(), Mode::Prefer, Some("0-1")));
    job("interleaved", &t, with_memory(plan(&t, 2, 2, 1, 1), Mode::Interleave, Some("0-3")));
    job("weighted", &t, with_memory(one(), Mode::Weighted, Some("0-1")));
    job("bound memory of two processes", &t, with_memory(plan(&t, 2, 1, 1, 4), Mode::Bind, None));
    job("uneven, and not in rising order", &t, uneven(&t));
    let t = machine(MACHINES[1].1);
    job("processes that share a core", &t, plan(&t, 4, 1, 2, 1));
    let t = machine(MACHINES[3].1);
    job("a list of slots that is too long", &t, plan(&t, 2, 24, 1, 2));
    jobs
}

#[test]
fn every_launcher_gets_the_exact_plan() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/launchers");
    let mut differing = Vec::new();
    for launcher in LAUNCHERS {
        let mut text = format!("# {}: {}\n", launcher.name, launcher.help);
        for (what, t, plan) in jobs() {
            let lines = emit(launcher.name, &t, &plan, &LauncherOptions::default()).unwrap();
            text += &format!("\n## {what}\n{}", lines.text);
            lines.hints.iter().for_each(|hint| text += &format!("=> {hint}\n"));
            lines.warnings.iter().for_each(|warning| text += &format!("!! {warning}\n"));
        }
        let path = folder.join(format!("{}.txt", launcher.name));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != text {
            differing.push(launcher.name);
        }
    }
    assert!(differing.is_empty(), "{differing:?} differ from tests/golden/launchers; UPDATE=1 writes them");
}

#[test]
fn the_guide_lists_all_launchers() {
    let row = |launcher: &Launcher| format!("| `{}` | {} |\n", launcher.name, launcher.help);
    let rows: String = LAUNCHERS.iter().map(row).collect();
    let table = format!("| `--for` | what it is for |\n|---|---|\n{rows}");
    numakit_testing::guide::check_part("docs/guide/plan.md", "launchers", &table);
}

/// The machine of the best-practice guide: 8 servers with two packages of 16 cores.
const GUIDE: &str = "package:16 node:2 core:8";

fn rank_file(processes: u32, threads: u32, stride: usize, host: &str) -> Vec<String> {
    let t = machine(GUIDE);
    let options = LauncherOptions { host: Some(host.to_owned()), ..LauncherOptions::default() };
    let text = lines("openmpi1", &t, &plan(&t, processes, threads, 1, stride), &options).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn rank_files_of_the_guide() {
    let file = rank_file(64, 1, 4, "HOST");
    let expected = (0..64).map(|rank| format!("rank {rank}=HOST slot={}:{}", rank / 4, rank % 4 * 4));
    assert_eq!(file, expected.collect::<Vec<_>>());
    let file = rank_file(128, 1, 2, "numademo");
    let expected = (0..128).map(|rank| format!("rank {rank}=numademo slot={}:{}", rank / 8, rank % 8 * 2));
    assert_eq!(file, expected.collect::<Vec<_>>());
    let file = rank_file(16, 2, 2, "localhost");
    assert_eq!(file[0], "rank 0=localhost slot=0:0,0:2");
    assert_eq!(file[3], "rank 3=localhost slot=0:12,0:14");
    assert_eq!((file.len(), file[15].as_str()), (16, "rank 15=localhost slot=3:12,3:14"));
    let file = rank_file(16, 8, 2, "h8qgl");
    let slots = |rank| (0..8).map(|core| format!("{rank}:{}", core * 2)).collect::<Vec<_>>().join(",");
    let expected = (0..16).map(|rank| format!("rank {rank}=h8qgl slot={}", slots(rank)));
    assert_eq!(file, expected.collect::<Vec<_>>());
}

#[test]
fn impossible_lines_are_errors() {
    let t = machine(MACHINES[0].1);
    let one = plan(&t, 1, 1, 1, 1);
    let error = |name: &str, plan: &Plan, host: Option<&str>| {
        let options = LauncherOptions { host: host.map(str::to_owned), ..LauncherOptions::default() };
        lines(name, &t, plan, &options).unwrap_err().to_string()
    };
    assert_eq!(
        error("openmpi", &one, None),
        "'openmpi' is no launcher; there are openmpi4, openmpi5, openmpi1"
    );
    assert!(error("tasket", &one, None).ends_with("did you mean 'taskset'?"));
    assert!(error("", &one, None).contains("gomp, openmp, kmp"));
    assert!(error("taskset", &Plan::default(), None).starts_with("the plan has no thread"));
    assert!(error("openmpi4", &one, Some("a b")).contains("'a b' is no name of a host"));
    let mut elsewhere = one.clone();
    elsewhere.steps[0].cpu = 99;
    assert!(error("openmpi4", &elsewhere, None).contains("CPU 99 of the plan is not among"));
}
