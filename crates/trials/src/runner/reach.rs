//! What a program that runs is seen to do: which settings can reach it.

use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::sched::affinity;
use serde::{Deserialize, Serialize};

/// Files of libraries of OpenMP.
const OPENMP: [&str; 3] = ["/libgomp.so", "/libomp.so", "/libiomp5.so"];
/// Threads of a process that are looked at.
const THREADS: usize = 256;

/// What a program was seen to do while it ran without a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProgramReach {
    /// It has loaded a library of OpenMP.
    pub has_openmp: bool,
    /// It binds its threads itself.
    pub binds_threads: bool,
}

impl ProgramReach {
    /// Looks at a process and all below it.
    pub(super) fn look(&mut self, process: u32) {
        let (root, own) = (SysRoot::host(), affinity().ok());
        for pid in tree::family(&root, process) {
            let process = TaskDir::of(&root, pid);
            if !self.has_openmp {
                let maps = process.text("maps").unwrap_or_default();
                self.has_openmp = OPENMP.iter().any(|library| maps.contains(library));
            }
            if !self.binds_threads {
                let threads = process.threads().unwrap_or_default();
                let masks = threads
                    .into_iter()
                    .take(THREADS)
                    .filter_map(|tid| process.thread(tid).status().ok()?.allowed_cpus());
                self.binds_threads =
                    own.is_some() && masks.into_iter().any(|mask| Some(&mask) != own.as_ref());
            }
        }
    }
}
