//! Logical numbers against those that hwloc itself gives.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_placement::numbering::LogicalNumbering;
use numakit_testing::sysfs;
use numakit_topology::synthetic;
use std::path::Path;
use std::process::Command;

const MACHINES: [&str; 6] = [
    "package:2 node:2 core:4",
    "package:2 node:2 core:4 pu:2 numbering=interleaved",
    "package:2 node:2 core:4 pu:2 numbering=roundrobin",
    "package:4 node:1 l3:2 core:2 pu:2 numbering=roundrobin allowed=3,5-20,29",
    "node:2 package:2 core:3 numbering=roundrobin offline=1,6",
    "board:2 package:2 node:2 core:4 numbering=roundrobin dist=10/16/100",
];

/// What hwloc says of the CPUs of a core or a PU, in its order.
fn hwloc(root: &Path, what: &str) -> Option<Vec<String>> {
    let output = Command::new("hwloc-calc")
        .env("HWLOC_FSROOT", root)
        .env("HWLOC_COMPONENTS", "linux,stop")
        .env("HWLOC_THISSYSTEM", "0")
        .args(["--physical-output", "--intersect", what, "--sep", " ", "--logical-input", "all"])
        .output()
        .ok()?;
    Some(String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect())
}

#[test]
fn cores_and_pus_have_the_numbers_of_hwloc() {
    let folder = std::env::temp_dir().join(format!("numakit-hwloc-{}", std::process::id()));
    for description in MACHINES {
        let t = synthetic::parse(description).unwrap();
        let _ = std::fs::remove_dir_all(&folder);
        sysfs::write(&sysfs::tree(&t), &folder).unwrap();
        let Some(theirs) = hwloc(&folder, "pu") else {
            return numakit_skips::TOOLS.skip("hwloc-calc is not installed (Debian package hwloc)");
        };
        let numbering = LogicalNumbering::of(&t);
        let mut ours: Vec<(u32, u32)> =
            t.online.iter().filter_map(|cpu| Some((numbering.place(cpu)?.pu, cpu))).collect();
        ours.sort_unstable();
        let ours: Vec<String> = ours.iter().map(|(_, cpu)| cpu.to_string()).collect();
        // hwloc sees no limits of another machine's process.
        let theirs: Vec<String> =
            theirs.into_iter().filter(|cpu| t.allowed.contains(cpu.parse().unwrap())).collect();
        assert_eq!(ours, theirs, "{description}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
