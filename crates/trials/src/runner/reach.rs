//! What a program that runs is seen to do: which settings can reach it.

use numakit_model::CpuSet;
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
    /// Without a setting, it or what starts it binds its threads.
    pub binds_threads: bool,
    /// Whether its threads had the cores of `numa run` in a run with it; `None` if that was not seen.
    #[serde(default)]
    pub is_placed: Option<bool>,
}

/// The CPUs that `numa run` gives a program, as its library reads them.
const GIVEN: &str = "NUMA_MASK";
/// The same CPUs in the order of threads.
const PLACE: &str = "NUMA_PLACE";

impl ProgramReach {
    /// Whether settings of cores may not reach its threads, as far as is known.
    pub fn evades_cores(&self) -> bool {
        self.binds_threads && self.is_placed != Some(true)
    }

    /// Looks whether a program that `numa run` started has the CPUs that it gave, in a process and all below it.
    pub(super) fn look_placed(&mut self, process: u32) {
        let root = SysRoot::host();
        for pid in tree::family(&root, process) {
            let process = TaskDir::of(&root, pid);
            let variables = process.environment().unwrap_or_default();
            // Without its library, as before it runs the program, nothing says what it gives.
            let Some(given) = variables.get(GIVEN).and_then(|list| CpuSet::parse_list(&list).ok()) else {
                continue;
            };
            let masks: Vec<CpuSet> = masks(&process).collect();
            // A launcher gives its ranks parts, and a runtime its threads. Another thread has all CPUs if it is the only one, or was
            // bound to the first when there were others.
            let is_parted = masks.len() > 1 || variables.rank().is_some() || has_openmp(&process);
            let main = variables.get(PLACE).and_then(|order| order.split([',', '-']).next()?.parse().ok());
            let is_main = |mask: &CpuSet| main.is_some_and(|cpu| *mask == CpuSet::range(cpu, cpu));
            let evades =
                |mask: &CpuSet| !mask.is_subset(&given) || !is_parted && *mask != given && !is_main(mask);
            if !masks.is_empty() {
                let is_placed = !masks.iter().any(evades);
                self.is_placed = Some(self.is_placed.unwrap_or(true) && is_placed);
            }
        }
    }

    /// Looks at a process and all below it.
    pub(super) fn look(&mut self, process: u32) {
        let (root, own) = (SysRoot::host(), affinity().ok());
        for pid in tree::family(&root, process) {
            let process = TaskDir::of(&root, pid);
            self.has_openmp = self.has_openmp || has_openmp(&process);
            if !self.binds_threads {
                self.binds_threads = own.is_some() && masks(&process).any(|mask| Some(&mask) != own.as_ref());
            }
        }
    }
}

/// Whether a process has loaded a library of OpenMP.
fn has_openmp(process: &TaskDir<'_>) -> bool {
    let maps = process.text("maps").unwrap_or_default();
    OPENMP.iter().any(|library| maps.contains(library))
}

/// The CPU masks of the threads of a process.
fn masks(process: &TaskDir<'_>) -> impl Iterator<Item = CpuSet> {
    let threads = process.threads().unwrap_or_default().into_iter().take(THREADS);
    threads.filter_map(|tid| process.thread(tid).status().ok()?.allowed_cpus())
}
