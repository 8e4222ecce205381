//! The topology of a machine, from /sys and /proc, from a description, or from JSON.
//!
//! Every file is read through [`SysRoot`]; with a root given, nothing of the host is read.
//! Whatever the files contain, reading returns a topology or an error, and never panics.

pub mod boards;
pub mod caches;
pub mod capture;
pub mod cpus;
pub mod cpuset;
pub mod devices;
pub mod distances;
mod hmat;
pub mod json;
mod kinds;
mod limits;
mod nodes;
mod packages;
pub mod page_size;
mod reader;
pub mod synthetic;
pub mod values;

pub use json::JsonError;
pub use nodes::{WEIGHTS, read_weights, weights_auto_file};
pub use synthetic::DescriptionError;

use numakit_model::Topology;
use numakit_sys::SysRoot;
use reader::Reader;
use thiserror::Error;

/// A root without a usable machine.
#[derive(Debug, Error)]
pub enum TopologyError {
    /// No source names a CPU.
    #[error(
        "{root} shows no CPU: {found}; give a folder or archive that holds the sys and proc of a machine, \
         such as one made by 'numa capture'"
    )]
    NoCpus {
        /// The root.
        root: String,
        /// What was read.
        found: String,
    },
    /// More CPUs or nodes than Linux supports, from a damaged file.
    #[error(
        "{root} shows {found}, and numa reads machines of up to {max}; correct the file, or capture the machine again"
    )]
    TooLarge {
        /// The root.
        root: String,
        /// What is too large, with its file.
        found: String,
        /// The limit.
        max: String,
    },
}

/// Reads the topology of the machine whose /sys and /proc are below this root. The notes of the
/// result say what is odd about them.
pub fn read(root: &SysRoot) -> Result<Topology, TopologyError> {
    read_parts(root, Parts::All)
}

/// Reads what a plan depends on, from a fraction of the files that [`read`] reads: nodes with
/// their CPUs and memory, distances, packages, dies, clusters, cores and their kinds, which CPUs
/// share caches beyond the first level, and what this process may use; devices on request.
/// Everything else is empty. The plan is the same as that of the full topology.
pub fn read_for_placement(root: &SysRoot, with_devices: bool) -> Result<Topology, TopologyError> {
    read_parts(root, if with_devices { Parts::PlacementAndDevices } else { Parts::Placement })
}

/// Allows in a topology what a process may be given, in place of what this process may use.
pub fn allow_as(topology: &mut Topology, root: &SysRoot, process: u32) {
    let ids = topology.node_ids();
    let allowed = cpuset::of_process(&mut Reader::new(root), process, &topology.online, &ids);
    (topology.allowed, topology.allowed_nodes) = (allowed.cpus, allowed.nodes);
}

/// Gives each node its CPUs that are offline too, for programs that outlive their coming and going.
pub fn add_offline_cpus(topology: &mut Topology, root: &SysRoot) {
    let mut reader = Reader::new(root);
    for node in topology.nodes.iter_mut().filter(|node| !node.implicit) {
        // Its lists leave them out, and the links to them stay.
        let cpus =
            reader.numbered(&format!("{}/node{}", nodes::NODE, node.os_index), "cpu").unwrap_or_default();
        node.cpus.insert_all(&cpus.and(&topology.offline));
    }
}

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    All,
    PlacementAndDevices,
    Placement,
}

fn read_parts(root: &SysRoot, parts: Parts) -> Result<Topology, TopologyError> {
    let all = parts == Parts::All;
    let mut reader = Reader::new(root);
    let cpus::Cpus { online, offline } = cpus::read(&mut reader)?;
    let nodes = if all { nodes::read } else { nodes::read_for_placement }(&mut reader, &online)?;
    let distances = distances::read(&mut reader, &nodes);
    let levels = if all { packages::read } else { packages::read_for_placement }(&mut reader, &online);
    let siblings = packages::Siblings::of(&levels);
    let caches = if all { caches::read } else { caches::read_for_placement }(&mut reader, &online, &siblings);
    let (kinds, cores) = kinds::read(&mut reader, levels.cores);
    let ids = nodes.nodes.iter().map(|n| n.os_index).collect();
    let cpuset::Allowed { cpus: allowed, nodes: allowed_nodes } = cpuset::read(&mut reader, &online, &ids);
    let limits = limits::read(&mut reader, &nodes.nodes);
    let mut topology = Topology {
        origin: origin(root),
        page_size: if all { page_size::read(&mut reader) } else { numakit_sys::sched::page_size() },
        caches,
        devices: if parts == Parts::Placement { Vec::new() } else { devices::read(&mut reader) },
        nodes: nodes.nodes,
        packages: levels.packages,
        dies: levels.dies,
        clusters: levels.clusters,
        units: levels.units,
        books: levels.books,
        drawers: levels.drawers,
        limits,
        weights_auto: if all { nodes::weights_auto(&mut reader) } else { None },
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

/// Where a topology comes from, without the folders that lead there.
fn origin(root: &SysRoot) -> String {
    if root.is_host() {
        return "sysfs".to_owned();
    }
    let name = root.name().trim_end_matches('/');
    format!("capture {}", name.rsplit('/').next().unwrap_or(name))
}
