//! The nodes of a machine, numbered without gaps, and the node of each CPU.

use numakit_model::Topology;

/// Positions of nodes in rows of values.
#[derive(Debug, Clone, Default)]
pub struct TaskNodes {
    ids: Vec<u32>,
    of_cpu: Vec<Option<usize>>,
}

impl TaskNodes {
    /// The nodes of a machine.
    pub fn of(topology: &Topology) -> Self {
        let mut of_cpu = Vec::new();
        for (place, node) in topology.nodes.iter().enumerate() {
            for cpu in node.cpus.iter().map(|cpu| cpu as usize) {
                if of_cpu.len() <= cpu {
                    of_cpu.resize(cpu + 1, None);
                }
                of_cpu[cpu] = Some(place);
            }
        }
        Self { ids: topology.nodes.iter().map(|n| n.os_index).collect(), of_cpu }
    }

    /// The kernel's numbers.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Number of nodes.
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// The position of the node with this number.
    pub fn place(&self, id: u32) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    /// The position of a CPU's node.
    pub fn of_cpu(&self, cpu: u32) -> Option<usize> {
        self.of_cpu.get(cpu as usize).copied().flatten()
    }
}
