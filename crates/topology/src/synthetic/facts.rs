//! What is known of a real machine beside its description.

use super::DescriptionError;
use numakit_model::CpuSet;

/// Facts of a real machine. A description with facts is built without the usual values: what neither states
/// is absent.
#[derive(Debug, Default)]
pub struct Facts {
    /// The kernel's numbers of the nodes, in the order of the description; empty for 0, 1, 2 and so on.
    pub node_numbers: Vec<u32>,
    /// The CPUs of each node with CPUs; empty where `numbering` gives them.
    pub cpus: Vec<CpuSet>,
    /// Memory in KiB by the number of the node.
    pub memory_kb: Vec<(u32, u64)>,
    /// A row for each node; empty where no source has them.
    pub distances: Vec<Vec<u32>>,
}

impl Facts {
    /// The kernel's number of the node at this position.
    pub fn node_number(&self, at: usize) -> u32 {
        self.node_numbers.get(at).copied().unwrap_or(at as u32)
    }

    /// Memory of a node in KiB, where it is stated for that node.
    pub fn memory_of(&self, node: u32) -> Option<u64> {
        self.memory_kb.iter().find(|(number, _)| *number == node).map(|(_, memory)| *memory)
    }

    /// The CPU of each hardware thread, in the order of cores and their threads; empty where `numbering` gives it.
    pub fn cpu_numbers(
        &self,
        cores: usize,
        threads: usize,
        consecutive: bool,
    ) -> Result<Vec<u32>, DescriptionError> {
        let mut numbers = Vec::new();
        let each = cores / self.cpus.len().max(1);
        for cpus in &self.cpus {
            let listed: Vec<u32> = cpus.iter().collect();
            if listed.len() != each * threads {
                let problem = format!("{cpus} are not {} CPUs", each * threads);
                return Err(DescriptionError::new(
                    0,
                    problem,
                    "list as many as the description has in a node",
                ));
            }
            let place = |core: usize, thread: usize| match consecutive {
                true => core * threads + thread,
                false => thread * each + core,
            };
            numbers.extend(
                (0..each)
                    .flat_map(|core| (0..threads).map(move |thread| (core, thread)))
                    .map(|(core, thread)| listed[place(core, thread)]),
            );
        }
        Ok(numbers)
    }
}
