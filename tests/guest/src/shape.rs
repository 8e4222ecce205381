//! Shapes: what machine a guest looks like. They are lines of text; `shapes.txt` explains them.

mod parse;

use numakit_model::CpuSet;

/// The file with the shapes that every guest can take.
const SHAPES: &str = include_str!("../shapes.txt");

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its CPUs; none is a node of memory only.
    pub cpus: CpuSet,
    /// Its memory; 0 is a node of CPUs only.
    pub memory_mib: u64,
    /// For a node without CPUs, the node with CPUs that is nearest to it.
    pub initiator: Option<usize>,
}

/// A value of the firmware's table of memory attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Node with CPUs.
    pub from: usize,
    /// Node with memory.
    pub to: usize,
    /// Nanoseconds, or MiB a second.
    pub value: u64,
}

/// CPUs and nodes that commands are confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// Allowed CPUs.
    pub cpus: CpuSet,
    /// Nodes whose memory is allowed.
    pub mems: CpuSet,
}

/// A machine to boot. What comes out of the parser can be booted: ids without gaps, all distances.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape {
    /// How it is called.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// Number of sockets.
    pub packages: u32,
    /// Dies of each.
    pub dies: u32,
    /// Threads of a core: CPUs that follow each other.
    pub threads: u32,
    /// The nodes, in order of id.
    pub nodes: Vec<Node>,
    /// Distances, a row for each node.
    pub distances: Vec<Vec<u8>>,
    /// Latencies in nanoseconds that the firmware tells.
    pub latencies: Vec<Attribute>,
    /// Bandwidths in MiB a second that the firmware tells.
    pub bandwidths: Vec<Attribute>,
    /// The cpuset of commands, where there is one.
    pub confined: Option<Confined>,
}

/// What is wrong with a shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A line that is not understood, or facts that contradict each other.
    #[error("line {line} of the shapes: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// There is no shape of this name.
    #[error("no shape '{name}'; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names that exist.
        known: String,
    },
}

impl Shape {
    /// The shape of this name in `shapes.txt`.
    pub fn named(name: &str) -> Result<Self, ShapeError> {
        let all = Self::all()?;
        let names: Vec<String> = all.iter().map(|shape| shape.name.clone()).collect();
        let unknown = || ShapeError::Unknown { name: name.to_owned(), known: names.join(", ") };
        all.into_iter().find(|shape| shape.name == name).ok_or_else(unknown)
    }

    /// All shapes of `shapes.txt`.
    pub fn all() -> Result<Vec<Self>, ShapeError> {
        Self::parse(SHAPES)
    }

    /// Reads shapes from text.
    pub fn parse(text: &str) -> Result<Vec<Self>, ShapeError> {
        parse::shapes(text)
    }

    /// How many CPUs it has.
    pub fn cpus(&self) -> usize {
        self.nodes.iter().map(|node| node.cpus.len()).sum()
    }

    /// The numbers of its CPUs.
    pub fn all_cpus(&self) -> CpuSet {
        self.nodes.iter().flat_map(|node| node.cpus.iter()).collect()
    }

    /// All its memory.
    pub fn memory_mib(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory_mib).sum()
    }

    /// Gives every node that has memory this much.
    pub fn set_memory_mib(&mut self, mib: u64) {
        for node in self.nodes.iter_mut().filter(|node| node.memory_mib > 0) {
            node.memory_mib = mib;
        }
    }
}

#[cfg(test)]
mod tests;
