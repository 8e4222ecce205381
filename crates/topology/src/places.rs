//! The parts of a topology that placing looks at, for programs that are started.

use crate::reader::Reader;
use crate::{TopologyError, boards, caches, cpus, cpuset, devices, distances, kinds, nodes, packages};
use numakit_model::Topology;
use numakit_sys::SysRoot;

/// Reads what places are made of, in a fraction of the files that [`crate::read`] reads: nodes
/// with their CPUs and memory, distances, packages, dies, clusters, cores and their kinds, who
/// shares caches beyond the first level, and what this process may use. Devices only if asked
/// for. Everything else is empty. A plan made of it is that of the whole topology.
pub fn read_places(root: &SysRoot, with_devices: bool) -> Result<Topology, TopologyError> {
    let mut reader = Reader::new(root);
    let cpus::Cpus { online, offline } = cpus::read(&mut reader)?;
    let nodes = nodes::read_places(&mut reader, &online);
    let distances = distances::read(&mut reader, &nodes);
    let levels = packages::read_places(&mut reader, &online);
    let (kinds, cores) = kinds::read(&mut reader, levels.cores);
    let ids = nodes.nodes.iter().map(|n| n.os_index).collect();
    let cpuset::Allowed { cpus: allowed, nodes: allowed_nodes } = cpuset::read(&mut reader, &online, &ids);
    let mut topology = Topology {
        origin: crate::origin(root),
        page_size: numakit_sys::sched::page_size(),
        caches: caches::read_places(&mut reader, &online),
        devices: if with_devices { devices::read(&mut reader) } else { Vec::new() },
        nodes: nodes.nodes,
        packages: levels.packages,
        dies: levels.dies,
        clusters: levels.clusters,
        books: levels.books,
        drawers: levels.drawers,
        online,
        offline,
        allowed,
        allowed_nodes,
        distances,
        kinds,
        cores,
        ..Topology::default()
    };
    topology.boards = boards::find(&topology);
    topology.notes = reader.into_notes();
    Ok(topology)
}
