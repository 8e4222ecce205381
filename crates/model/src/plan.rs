//! What runs where: the result of planning. A plain value that can be computed on a laptop
//! from a capture of the large machine.

use crate::CpuSet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where every process and thread of a program goes, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The machine that it is for, as [`crate::Topology::origin`] says.
    pub machine: String,
    /// Threads in order of process, then of thread within it. Thread 0 is a process's main thread.
    pub steps: Vec<Step>,
    /// All CPUs of the cores that the plan takes: those of its threads and their siblings.
    pub held: CpuSet,
    /// The part of the request that the machine cannot give now, for the first line: `not near gpu0, which is on node 0`. Its
    /// reason is the first warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<String>,
    /// What the plan lacks of the request, and what the user should know.
    pub warnings: Vec<String>,
}

/// Where one thread goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Process, from 0: the rank of an MPI program.
    pub process: u32,
    /// Thread of the process, from 0.
    pub thread: u32,
    /// Its CPU.
    pub cpu: u32,
    /// The node of this CPU.
    pub node: u32,
    /// Where the memory of its process comes from.
    pub memory: Memory,
    /// Why it is there.
    pub because: String,
}

/// Where memory comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// How memory is spread over the nodes.
    pub mode: Mode,
    /// The nodes; for `local`, those that the threads of the process run on.
    pub nodes: CpuSet,
}

/// How memory is spread over the nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// On the node of the thread that touches a page first.
    #[default]
    Local,
    /// On these nodes only, even if they are full.
    Bind,
    /// On these nodes as long as they have free memory.
    Prefer,
    /// Page by page in turn.
    Interleave,
    /// Page by page, each node as often as the kernel's weights say.
    Weighted,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Bind => "bind",
            Self::Prefer => "prefer",
            Self::Interleave => "interleave",
            Self::Weighted => "weighted",
        })
    }
}

impl Plan {
    /// The CPUs of all threads.
    pub fn cpus(&self) -> CpuSet {
        self.steps.iter().map(|step| step.cpu).collect()
    }

    /// The nodes of all threads.
    pub fn nodes(&self) -> CpuSet {
        self.steps.iter().map(|step| step.node).collect()
    }

    /// The threads of each process, in order.
    pub fn processes(&self) -> impl Iterator<Item = &[Step]> {
        self.steps.chunk_by(|one, next| one.process == next.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_grouped_by_process() {
        let step = |process, thread, cpu| Step {
            process,
            thread,
            cpu,
            node: cpu / 2,
            memory: Memory::default(),
            because: String::new(),
        };
        let steps = vec![step(0, 0, 0), step(0, 1, 1), step(1, 0, 4)];
        let plan = Plan { steps, ..Plan::default() };
        assert_eq!(plan.processes().map(<[Step]>::len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(plan.cpus().to_string(), "0-1,4");
        assert_eq!(plan.nodes().to_string(), "0,2");
    }
}
