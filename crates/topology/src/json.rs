//! Writes topologies as JSON and reads them.

use numakit_model::topology::Core;
use numakit_model::{CpuSet, Topology};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};
use thiserror::Error;

/// Maximum number of CPUs in a description or a JSON file.
pub const MAX_CPUS: u32 = 65_536;
/// Maximum number of nodes.
pub const MAX_NODES: usize = 4096;

/// A JSON text that does not describe a machine.
#[derive(Debug, Error)]
pub enum JsonError {
    /// Not JSON, or a field of the wrong kind.
    #[error("this JSON does not describe a machine: {0}; write one with 'numa topo --json' and change that")]
    Syntax(#[from] serde_json::Error),
    /// Fields that contradict each other.
    #[error(transparent)]
    Content(#[from] ContentError),
}

/// Fields that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ContentError {
    /// No memory.
    #[error("there are no nodes; give at least {{\"os_index\": 0, \"cpus\": \"0-3\"}} in \"nodes\"")]
    NoNodes,
    /// More than [`MAX_NODES`].
    #[error("{0} nodes are more than {MAX_NODES}; give fewer")]
    Nodes(usize),
    /// No CPU is online.
    #[error("no CPU is online; name CPUs in \"nodes\" or in \"online\"")]
    NoCpu,
    /// A number of [`MAX_CPUS`] or more.
    #[error("CPU {0} is beyond {max}; number CPUs from 0", max = MAX_CPUS - 1)]
    Cpu(u32),
    /// A part of the machine has CPUs that are not online.
    #[error("{what} {cpus} has CPUs {odd} that are not in \"online\"; add them there or remove them")]
    Offline {
        /// The kind of part.
        what: &'static str,
        /// Its CPUs.
        cpus: CpuSet,
        /// The CPUs that are not online.
        odd: CpuSet,
    },
    /// Cores overlap, or have no CPU.
    #[error("core {{{0}}} is empty or shares CPUs with another; give each CPU to one core")]
    Core(CpuSet),
    /// A core of a kind that is not described.
    #[error("core {{{0}}} has a kind that \"kinds\" does not have; add it there")]
    Kind(CpuSet),
    /// A device at a node that is not described.
    #[error("device {name} is at a node that does not exist; the nodes are {nodes}")]
    Device {
        /// Its name.
        name: String,
        /// The nodes of the machine.
        nodes: CpuSet,
    },
}

/// The machine as JSON, one list entry a line.
pub fn text(topology: &Topology) -> String {
    let mut out = Vec::new();
    // Neither writing to memory nor the values of a topology can fail.
    let _ = topology.serialize(&mut Serializer::with_formatter(&mut out, Lines { depth: 0, filled: false }));
    out.push(b'\n');
    String::from_utf8_lossy(&out).into_owned()
}

/// Reads a machine. A hand-written file may leave out most fields: CPUs that any list names
/// are online, everything is allowed, and each CPU is a core.
pub fn parse(text: &str) -> Result<Topology, JsonError> {
    Ok(checked(serde_json::from_str(text)?)?)
}

/// A machine that is a part of another file, completed and checked as [`parse`] does it.
pub fn checked(mut topology: Topology) -> Result<Topology, ContentError> {
    complete(&mut topology);
    check(&topology)?;
    Ok(topology)
}

fn complete(t: &mut Topology) {
    if t.online.is_empty() {
        let nodes = t.nodes.iter().map(|n| &n.cpus);
        let all = nodes.chain(t.packages.iter().map(|p| &p.cpus)).chain(t.cores.iter().map(|c| &c.cpus));
        t.online = all.fold(CpuSet::new(), |all, cpus| all.or(cpus));
    }
    if t.allowed.is_empty() {
        t.allowed = t.online.clone();
    }
    if t.allowed_nodes.is_empty() {
        t.allowed_nodes = t.node_ids();
    }
    // `check` refuses more CPUs: nothing is allocated for them before.
    if t.cores.is_empty() && t.online.last() < Some(MAX_CPUS) {
        let core = |cpu| Core { cpus: CpuSet::range(cpu, cpu), ..Core::default() };
        t.cores = t.online.iter().map(core).collect();
    }
    if t.page_size == 0 {
        t.page_size = 4096;
    }
    if t.origin.is_empty() {
        t.origin = "JSON".to_owned();
    }
}

fn check(t: &Topology) -> Result<(), ContentError> {
    if t.nodes.is_empty() {
        return Err(ContentError::NoNodes);
    }
    if t.nodes.len() > MAX_NODES {
        return Err(ContentError::Nodes(t.nodes.len()));
    }
    match t.online.last() {
        None => return Err(ContentError::NoCpu),
        Some(last) if last >= MAX_CPUS => return Err(ContentError::Cpu(last)),
        Some(_) => {}
    }
    let nodes = t.nodes.iter().map(|n| ("node", &n.cpus));
    let packages = t.packages.iter().map(|p| ("package", &p.cpus));
    let cores = t.cores.iter().map(|c| ("core", &c.cpus));
    let caches = t.caches.iter().map(|c| ("cache", &c.cpus));
    for (what, cpus) in nodes.chain(packages).chain(cores).chain(caches).chain([("allowed", &t.allowed)]) {
        if !cpus.is_subset(&t.online) {
            let odd = cpus.minus(&t.online);
            return Err(ContentError::Offline { what, cpus: cpus.clone(), odd });
        }
    }
    let mut seen = CpuSet::new();
    for core in &t.cores {
        if core.cpus.is_empty() || seen.intersects(&core.cpus) {
            return Err(ContentError::Core(core.cpus.clone()));
        }
        seen = seen.or(&core.cpus);
        if core.kind.is_some_and(|kind| kind as usize >= t.kinds.len()) {
            return Err(ContentError::Kind(core.cpus.clone()));
        }
    }
    let ids = t.node_ids();
    match t.devices.iter().find(|d| d.node.is_some_and(|node| !ids.contains(node))) {
        Some(device) => Err(ContentError::Device { name: device.name.clone(), nodes: ids }),
        None => Ok(()),
    }
}

/// Each field of the machine and each entry of its lists gets a line; everything below that
/// is on one line.
struct Lines {
    depth: usize,
    /// Whether the innermost bracket has content.
    filled: bool,
}

impl Lines {
    fn open(&mut self, bracket: &[u8], writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        writer.write_all(bracket)
    }

    fn close(&mut self, bracket: &[u8], writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < 2 && self.filled {
            self.new_line(writer)?;
        }
        self.filled = true;
        writer.write_all(bracket)
    }

    fn part(&mut self, first: bool, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.filled = true;
        if !first {
            writer.write_all(if self.depth > 2 { b", " } else { b"," })?;
        }
        if self.depth <= 2 { self.new_line(writer) } else { Ok(()) }
    }

    fn new_line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writer.write_all(&b"\n    "[..1 + 2 * self.depth.min(2)])
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(b"[", writer)
    }
    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(b"]", writer)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.part(first, writer)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(b"{", writer)
    }
    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(b"}", writer)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.part(first, writer)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
