//! A machine for tests.

use numakit_model::topology::{Core, Node};
use numakit_model::{CpuSet, Topology};

/// One node of four cores of one CPU.
pub fn topology() -> Topology {
    let all = CpuSet::range(0, 3);
    let cores = all.iter().map(|cpu| Core { cpus: CpuSet::range(cpu, cpu), ..Core::default() });
    Topology {
        online: all.clone(),
        allowed: all.clone(),
        allowed_nodes: CpuSet::range(0, 0),
        cores: cores.collect(),
        nodes: vec![Node { cpus: all, memory_kb: Some(1 << 20), ..Node::default() }],
        ..Topology::default()
    }
}
