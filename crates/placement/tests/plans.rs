//! Plans for real and described machines, as golden texts. `UPDATE=1 cargo xtask test` writes
//! them again.
#![allow(clippy::unwrap_used)]

use numakit_model::plan::Step;
use numakit_model::{Plan, Topology};
use numakit_placement::{PlacementRequest, Taken, explained};
use numakit_sys::SysRoot;
use std::fmt::Write as _;
use std::path::Path;

/// Described machines: name of the golden text, description, requests.
const DESCRIBED: &[(&str, &str, &[&str])] = &[
    (
        "opteron",
        "package:16 node:2 core:8",
        &[
            "processes=64 stride=4",
            "processes=128 stride=2",
            "processes=16 threads=2 stride=2",
            "processes=16 threads=8 stride=2",
            "cores=300",
            "processes=129 stride=2",
        ],
    ),
    (
        "numascope",
        "board:6 package:3 node:2(mem=64G) core:4 dist=10/16/22/100",
        &[
            "cores=4",
            "cores=24",
            "cores=30",
            "cores=48 policy=scatter",
            "processes=18 threads=8",
            "processes=6 policy=balanced threads=24",
            "cores=8 policy=memory:300G memory=interleave",
            "cores=144",
        ],
    ),
    (
        "epyc-nps4",
        "package:2 node:4(mem=96G) l3:2 core:8 pu:2 numbering=interleaved dist=10/12/32",
        &[
            "cores=6",
            "cores=12",
            "cores=40",
            "processes=8 threads=16",
            "processes=16 threads=8",
            "processes=10 threads=6",
            "processes=4 threads=24",
            "processes=8 threads=4 threads_per_core=2 policy=scatter",
            "cores=auto threads_per_core=2",
            "cores=16 policy=balanced",
            "cores=8 threads_per_core=3",
        ],
    ),
    (
        "spr-snc4",
        "package:2 node:4(mem=64G) core:14 pu:2 numbering=interleaved dist=10/12/21 accelerator@node5",
        &[
            "cores=14",
            "cores=20",
            "processes=8 threads=14",
            "cores=20 policy=near:accelerator",
            "processes=3 threads=30",
        ],
    ),
    (
        "four-sockets",
        "package:4 node:1(mem=384G) core:24 pu:2 numbering=roundrobin dist=10/21",
        &["cores=8", "cores=8 policy=scatter", "processes=4 cores=96", "cores=30 policy=balanced"],
    ),
    (
        "grace",
        "package:2 node:1(mem=480G) core:72 node:2(cpuless,mem=96G,far=30) dist=10/40",
        &[
            "cores=72",
            "cores=80",
            "cores=4 memory=bind:2",
            "nodes=2",
            "processes=2 threads=36 policy=scatter",
        ],
    ),
    (
        "cxl",
        "package:2 node:1(mem=256G) core:32 pu:2 node:1(cpuless,mem=512G,far=4) dist=10/21 network@node1",
        &[
            "cores=8 memory=weighted:0,2",
            "cores=8 policy=near:network memory=prefer",
            "cores=8 policy=memory:300G",
            "cores=8 policy=memory:600G",
        ],
    ),
];

/// What is asked of a machine of four nodes, of which two have no memory (Threadripper 2990WX) and one is full.
const OF_ODD_MEMORY: &[&str] = &[
    "cores=4",
    "cores=8",
    "cores=8 policy=scatter",
    "cores=6 policy=balanced",
    "cores=2 policy=spread:node",
    "cores=10",
    "cores=4 nodes=1",
    "cores=4 nodes=2",
    "cores=4 nodes=2 memory=bind",
    "processes=2 threads=4",
    "cores=auto",
];

/// What is asked of every capture.
const OF_CAPTURES: &[&str] = &[
    "cores=2",
    "cores=4 policy=scatter",
    "processes=2 threads=2",
    "cores=3 threads_per_core=2",
    "cores=auto",
    "cores=2 memory=bind",
    "cpus=+0-1",
    "cores=100",
];

/// `cores=6 policy=scatter`: fields of a request.
fn request(words: &str) -> PlacementRequest {
    let field = |word: &str| {
        let (key, value) = word.split_once('=').unwrap();
        let numbers = ["processes", "threads", "threads_per_core", "stride"];
        let number = value.parse::<u32>().ok().filter(|_| numbers.contains(&key));
        (key.to_owned(), number.map_or_else(|| value.into(), serde_json::Value::from))
    };
    serde_json::from_value(words.split(' ').map(field).collect()).unwrap()
}

/// Numbers in their order: runs with a fixed step as one word.
fn runs(numbers: &[u32]) -> String {
    let mut words = Vec::new();
    let mut rest = numbers;
    while let [first, after @ ..] = rest {
        let step = after.first().map_or(0, |next| next.wrapping_sub(*first));
        let wanted = |at: usize| first.wrapping_add(step.wrapping_mul(at as u32 + 1));
        let length = 1 + after.iter().enumerate().take_while(|(at, n)| **n == wanted(*at)).count();
        let last = rest[length - 1];
        let (word, length) = match (length, step) {
            (1, _) => (format!("{first}"), 1),
            (_, 0) => (format!("{first}x{length}"), length),
            (_, 1) => (format!("{first}-{last}"), length),
            (3.., step) if last > *first => (format!("{first}-{last}:{step}"), length),
            _ => (format!("{first}"), 1),
        };
        words.push(word);
        rest = &rest[length..];
    }
    words.join(",")
}

/// Lines of a table that are shown before and after the gap.
const SHOWN: (usize, usize) = (8, 2);

/// `rank thread cpu node`, a line for each run of threads on one node.
fn table(plan: &Plan) -> String {
    let mut lines = Vec::new();
    let near = |one: &Step, next: &Step| one.node == next.node && one.memory == next.memory;
    for run in plan.steps.chunk_by(near) {
        let column = |value: fn(&Step) -> u32| runs(&run.iter().map(value).collect::<Vec<_>>());
        let mut ranks: Vec<u32> = run.iter().map(|step| step.process).collect();
        ranks.dedup();
        let ranks = runs(&ranks);
        lines.push(format!(
            "rank {ranks} thread {} cpu {} node {} memory {} {}: {}",
            column(|step| step.thread),
            column(|step| step.cpu),
            run[0].node,
            run[0].memory.mode,
            run[0].memory.nodes,
            run[0].because
        ));
    }
    let (head, tail) = SHOWN;
    if lines.len() > head + tail + 1 {
        let left_out = lines.len() - head - tail;
        lines.splice(head..head + left_out, [format!("({left_out} lines)")]);
    }
    lines.join("\n")
}

fn shown(topology: &Topology, words: &str) -> String {
    let mut text = format!("\n# {words}\n");
    match explained(topology, &request(words), &Taken::default()) {
        Ok((plan, explanation)) => {
            writeln!(text, "{}\nheld {}", table(&plan), runs(&plan.held.iter().collect::<Vec<_>>())).unwrap();
            plan.warnings.iter().for_each(|warning| writeln!(text, "warning: {warning}").unwrap());
            explanation.iter().for_each(|line| writeln!(text, "{line}").unwrap());
        }
        Err(error) => writeln!(text, "error: {error}").unwrap(),
    }
    text
}

/// Compares with the golden text, or writes it.
fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/plans/{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = text.lines().zip(golden.lines()).find(|(got, wanted)| got != wanted);
    assert_eq!(differing, None, "{name}: first line that differs; UPDATE=1 writes {}", path.display());
    assert_eq!(text, golden, "{name}; UPDATE=1 writes {}", path.display());
}

#[test]
fn described_machines() {
    for (name, description, requests) in DESCRIBED {
        let topology = numakit_topology::synthetic::parse(description).unwrap();
        let plans: String = requests.iter().map(|words| shown(&topology, words)).collect();
        compare(name, &format!("{description}\n{plans}"));
    }
}

#[test]
fn machines_with_nodes_without_free_memory() {
    let description = "package:2 node:2(mem=96G) core:4 dist=10/12/32";
    let mut topology = numakit_topology::synthetic::parse(description).unwrap();
    for node in [1, 3] {
        topology.nodes[node].memory_kb = Some(0);
        topology.nodes[node].free_kb = Some(0);
    }
    let without: String = OF_ODD_MEMORY.iter().map(|words| shown(&topology, words)).collect();
    topology.nodes[2].free_kb = Some(400 << 10);
    let full: String = OF_ODD_MEMORY.iter().map(|words| shown(&topology, words)).collect();
    let text = format!("{description}\n\nnodes 1,3 without memory\n{without}\nnode 2 full too\n{full}");
    compare("odd-memory", &text);
}

#[test]
fn captured_machines() {
    for archive in numakit_captures::archives() {
        let name = archive.file_name().unwrap().to_string_lossy().replace(".tar.bz2", "");
        let topology = numakit_topology::read(&SysRoot::open(&archive).unwrap()).unwrap();
        let plans: String = OF_CAPTURES.iter().map(|words| shown(&topology, words)).collect();
        compare(&format!("capture-{name}"), &format!("{name}\n{plans}"));
    }
}
