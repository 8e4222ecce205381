//! The memory nodes of a plan's processes.

use crate::error::PlanError;
use crate::lists::KnownNumbers;
use crate::machine::Machine;
use crate::request::PlacementRequest;
use numakit_model::CpuSet;
use numakit_model::plan::{Memory, Mode};

/// Selects memory nodes for the nodes of threads.
pub(crate) struct Memories<'a> {
    machine: &'a Machine<'a>,
    mode: Mode,
    /// Nodes that the request names or its policy needs.
    given: Option<CpuSet>,
    /// Positions of nodes with usable memory.
    usable: Vec<usize>,
    /// Nodes of threads without memory, each with the nearest node that has some.
    without: Vec<(u32, u32)>,
    /// Nodes of threads that have memory, and whose memory the request leaves out.
    left_out: CpuSet,
    is_named: bool,
}

impl<'a> Memories<'a> {
    /// Reads the request. `selected` are nodes that were selected for their memory.
    pub fn of(
        machine: &'a Machine<'a>,
        request: &PlacementRequest,
        selected: Option<CpuSet>,
    ) -> Result<Self, PlanError> {
        let topology = machine.topology;
        let has = |node: &usize| topology.nodes[*node].memory_kb != Some(0);
        let allowed = |node: &usize| topology.allowed_nodes.contains(machine.id(*node));
        let usable: Vec<usize> =
            (0..topology.nodes.len()).filter(|node| has(node) && allowed(node)).collect();
        let ids: CpuSet = usable.iter().map(|&node| machine.id(node)).collect();
        let given = match &request.memory.nodes {
            None => selected.filter(|_| request.memory.mode != Mode::Local),
            Some(words) => {
                let known = KnownNumbers {
                    what: "node",
                    there: &topology.node_ids(),
                    offline: &CpuSet::new(),
                    allowed: &ids,
                    limit: "it has no memory, or the cpuset leaves its memory out",
                };
                Some(words.within(&known)?)
            }
        };
        if ids.is_empty() && request.memory.mode != Mode::Local {
            return Err(PlanError::machine(
                format!("memory '{}' needs a node with memory, and there is none", request.memory),
                "use --memory local",
            ));
        }
        Ok(Self {
            machine,
            mode: request.memory.mode,
            given,
            usable,
            without: Vec::new(),
            left_out: CpuSet::new(),
            is_named: request.memory.nodes.is_some(),
        })
    }

    /// The memory of a process whose threads run on the nodes at these positions.
    pub fn of_process(&mut self, nodes: &[usize]) -> Memory {
        let mut taken = CpuSet::new();
        let mut own = CpuSet::new();
        for &node in nodes {
            own.insert(self.machine.id(node));
            let nearest =
                if self.usable.binary_search(&node).is_ok() { Some(node) } else { self.instead(node) };
            taken.insert(self.machine.id(nearest.unwrap_or(node)));
        }
        self.left_out.insert_all(&self.given.as_ref().map_or_else(CpuSet::new, |given| taken.minus(given)));
        let nodes = match (&self.given, self.mode) {
            (Some(given), _) => given.clone(),
            (None, Mode::Local) => own,
            (None, _) => taken,
        };
        Memory { mode: self.mode, nodes }
    }

    /// The node with memory that is nearest to a node without memory.
    fn instead(&mut self, node: usize) -> Option<usize> {
        let distance = |other: &&usize| (self.machine.distances.between(node, **other), **other);
        let nearest = self.usable.iter().min_by_key(distance).copied()?;
        let pair = (self.machine.id(node), self.machine.id(nearest));
        if self.given.is_none() && !self.without.contains(&pair) {
            self.without.push(pair);
        }
        Some(nearest)
    }

    /// Warnings about nodes without memory, and about threads on other nodes than the memory.
    pub fn warnings(self) -> Vec<String> {
        let machine = self.machine;
        let allowed = &machine.topology.allowed_nodes;
        let warning = |(node, nearest): (u32, u32)| {
            let why = if allowed.contains(node) { "has no memory" } else { "may not give memory (cpuset)" };
            format!("node {node} {why}: its threads take from node {nearest}, the nearest that does")
        };
        let away = self.away();
        self.without.into_iter().map(warning).chain(away).collect()
    }

    /// Threads on nodes whose own memory a list of nodes leaves out. Nodes without CPUs are named on purpose, and what is spread is for
    /// all.
    fn away(&self) -> Option<String> {
        let given = self.given.as_ref().filter(|_| self.is_named && !self.left_out.is_empty())?;
        let has_cpus =
            |node: &u32| self.machine.topology.node(*node).is_some_and(|node| !node.cpus.is_empty());
        let mode = match self.mode {
            Mode::Bind => "bind",
            Mode::Prefer => "prefer",
            Mode::Local | Mode::Interleave | Mode::Weighted => return None,
        };
        given.iter().all(|node| has_cpus(&node)).then(|| {
            format!(
                "threads on {} get the memory of {} (--memory {mode}:{given}), which is remote to them: --memory {mode} \
                 takes it from the nodes of the threads",
                named(&self.left_out),
                named(given)
            )
        })
    }
}

/// `node 0` or `nodes 0-1`.
fn named(nodes: &CpuSet) -> String {
    format!("node{} {nodes}", if nodes.len() == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::MemoryRequest;
    use numakit_model::Topology;

    fn memory(topology: &Topology, words: &str, nodes: &[usize]) -> Result<(Memory, Vec<String>), PlanError> {
        let machine = Machine::of(topology);
        let memory: MemoryRequest = words.parse().unwrap();
        let request = PlacementRequest { memory, ..PlacementRequest::default() };
        let mut memories = Memories::of(&machine, &request, None)?;
        Ok((memories.of_process(nodes), memories.warnings()))
    }

    fn four() -> Topology {
        numakit_topology::synthetic::parse("package:2 node:2 core:2 dist=10/12/32").unwrap()
    }

    #[test]
    fn nodes_are_those_of_the_threads_or_those_named() {
        let shown = |words: &str, nodes: &[usize]| {
            let (memory, warnings) = memory(&four(), words, nodes).unwrap();
            assert_eq!(warnings, Vec::<String>::new());
            format!("{} {}", memory.mode, memory.nodes)
        };
        assert_eq!(shown("local", &[1, 2]), "local 1-2");
        assert_eq!(shown("bind", &[1]), "bind 1");
        assert_eq!(shown("interleave:all", &[1]), "interleave 0-3");
        assert_eq!(shown("prefer:!0", &[1]), "prefer 1-3");
    }

    #[test]
    fn nodes_without_memory_take_from_the_nearest() {
        let mut topology = four();
        topology.nodes[3].memory_kb = Some(0);
        let (bound, warnings) = memory(&topology, "bind", &[3]).unwrap();
        assert_eq!(bound.nodes.to_string(), "2");
        assert_eq!(warnings, ["node 3 has no memory: its threads take from node 2, the nearest that does"]);
        topology.allowed_nodes.remove(2);
        let (local, warnings) = memory(&topology, "local", &[2, 3]).unwrap();
        assert_eq!(local.nodes.to_string(), "2-3");
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with("node 2 may not give memory (cpuset): its threads take from node 0"));
    }

    #[test]
    fn threads_whose_own_memory_is_left_out_are_named() {
        let warnings = |words: &str, nodes: &[usize]| memory(&four(), words, nodes).unwrap().1;
        assert_eq!(
            warnings("bind:0", &[0, 1, 2]),
            [
                "threads on nodes 1-2 get the memory of node 0 (--memory bind:0), which is remote to them: --memory bind takes \
                 it from the nodes of the threads"
            ]
        );
        assert!(warnings("prefer:0", &[1])[0].starts_with("threads on node 1 get the memory of node 0"));
        for (words, nodes) in [
            ("bind:0-2", &[0, 1, 2][..]),
            ("bind:0-3", &[1, 2]),
            ("bind", &[0, 1]),
            ("local", &[0, 1]),
            ("interleave:0", &[0, 1]),
        ] {
            assert_eq!(warnings(words, nodes), Vec::<String>::new(), "{words} {nodes:?}");
        }
        // Memory without CPUs is far from all threads.
        let mut topology = four();
        topology.nodes[3].cpus = CpuSet::new();
        assert_eq!(memory(&topology, "bind:3", &[0]).unwrap().1, Vec::<String>::new());
    }

    #[test]
    fn nodes_that_cannot_be_are_named() {
        let mut topology = four();
        topology.allowed_nodes.remove(2);
        for (words, expected) in [
            ("bind:7", "node 7 of the list '7' is not on this machine; those that may be used are 0-1,3"),
            ("bind:1-2", "node 2 of the list '1-2' may not be used: it has no memory, or the cpuset"),
        ] {
            let error = memory(&topology, words, &[0]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
