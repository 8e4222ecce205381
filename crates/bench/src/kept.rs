//! The results of a machine, kept where other programs of numakit find them.

use crate::conditions;
use numakit_model::Topology;
use numakit_sys::{SysRoot, cache, user};
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

/// The start and the factor of FNV-1a.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;
/// Firmware takes a little more or less of the memory at every boot.
const MEMORY_UNIT_KB: u64 = 1 << 20;

/// A name for a machine: equal for the same processor, nodes, CPUs and memory to a GiB, whatever its host name.
pub(crate) fn machine_key(processor: &str, topology: &Topology) -> String {
    let mut text = format!("{processor}; {} packages", topology.packages.len());
    for node in &topology.nodes {
        let memory = node.memory_kb.map(|kb| (kb + MEMORY_UNIT_KB / 2) / MEMORY_UNIT_KB);
        // Writing to a string cannot fail.
        let _ = write!(text, "; {} {} {memory:?}", node.os_index, node.cpus);
    }
    let hash = text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

/// The name of the machine with this root.
pub fn key_of(root: &SysRoot, topology: &Topology) -> String {
    machine_key(&conditions::processor_of(root), topology)
}

/// The folder of results: `numakit/bench` in XDG_STATE_HOME, of root /var/lib, of others .local/state in their home.
fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let system = || (user::id() == 0).then(|| PathBuf::from("/var/lib"));
    let home = || Some(variable("HOME")?.join(".local/state"));
    let state = variable("XDG_STATE_HOME").or_else(system).or_else(home)?;
    Some(state.join("numakit/bench"))
}

/// Keeps results of a machine, as JSON, in place of its earlier ones; returns the file.
pub fn keep(machine_key: &str, results: &str) -> io::Result<PathBuf> {
    let folder = folder().ok_or_else(|| io::Error::other("there is no folder for it; set XDG_STATE_HOME"))?;
    let name = format!("{machine_key}.json");
    cache::store(&folder, &name, results)?;
    Ok(folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_keeps_its_key_until_it_is_another() {
        let parse = |text| numakit_topology::synthetic::parse(text).unwrap();
        let machine = parse("package:2 node:2(mem=32G) core:4 pu:2");
        let key = machine_key("Some CPU", &machine);
        assert_eq!((key.len(), &key), (16, &machine_key("Some CPU", &machine)));
        let mut rebooted = machine.clone();
        rebooted.nodes[0].memory_kb = rebooted.nodes[0].memory_kb.map(|kb| kb - 1000);
        assert_eq!(key, machine_key("Some CPU", &rebooted));
        assert_ne!(key, machine_key("Other CPU", &machine));
        assert_ne!(key, machine_key("Some CPU", &parse("package:2 node:2(mem=64G) core:4 pu:2")));
        assert_ne!(key, machine_key("Some CPU", &parse("package:2 node:2(mem=32G) core:8 pu:2")));
    }
}
