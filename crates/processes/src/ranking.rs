//! The order of processes in lists, and which of them a short list has.

use crate::sample::ProcessSample;
use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;

/// The order of processes in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessRanking {
    /// Most CPU time on remote memory first, then the largest remote share of memory.
    #[default]
    Remote,
    /// Most memory first.
    Memory,
    /// Most CPU time first.
    Cpu,
    /// Most page faults first.
    Faults,
    /// Most pages that NUMA balancing moved first.
    Moved,
    /// Lowest PID first.
    Pid,
    /// By the name of the program.
    Name,
}

impl ProcessRanking {
    /// Sorts processes.
    pub fn sort(self, processes: &mut [ProcessSample]) {
        match self {
            Self::Pid => processes.sort_by_key(|p| p.pid),
            Self::Name => processes.sort_by_cached_key(|p| (p.command.to_lowercase(), p.pid)),
            // What is unknown comes last.
            Self::Faults => processes.sort_by_key(|p| (Reverse(p.faults), p.pid)),
            Self::Moved => processes.sort_by_key(|p| (Reverse(p.moved), p.pid)),
            Self::Cpu => processes.sort_by_key(|p| (Reverse(p.ran), p.pid)),
            Self::Memory => processes.sort_by_key(|p| (Reverse(p.bytes()), p.pid)),
            Self::Remote => processes.sort_by(far_first),
        }
    }
}

fn far_first(a: &ProcessSample, b: &ProcessSample) -> Ordering {
    let far = |p: &ProcessSample, amount: u64| p.remote_percent().unwrap_or(0.0) * amount as f64;
    let rest = |p: &ProcessSample| (Reverse(p.ran), Reverse(p.bytes()), p.pid);
    // CPU time on remote memory; a process that did not run has none.
    let time = far(b, b.ran).total_cmp(&far(a, a.ran));
    time.then_with(|| far(b, b.bytes()).total_cmp(&far(a, a.bytes()))).then_with(|| rest(a).cmp(&rest(b)))
}

/// The processes of a list with at most this many: those of the observed program come first, then those that ran most, then
/// those with most memory.
pub fn busiest<'a>(
    samples: &'a [ProcessSample],
    observed: &HashSet<u32>,
    maximum: usize,
) -> Vec<&'a ProcessSample> {
    let mut chosen: Vec<&ProcessSample> = samples.iter().collect();
    chosen.sort_by_key(|p| Reverse((observed.contains(&p.pid), p.ran, p.resident)));
    chosen.truncate(maximum);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numa_maps::{MemoryByUse, Use};
    use crate::sample::MemorySource;

    fn process(pid: u32, ran_ms: u64, near_far: Option<(u64, u64)>, heap: Option<u64>) -> ProcessSample {
        let found = heap.map_or(MemorySource::Late, |bytes| {
            let mut memory = MemoryByUse::none(1);
            memory.0[0][Use::Heap as usize] = bytes;
            MemorySource::Memory(memory)
        });
        ProcessSample {
            ran: ran_ms * 1_000_000,
            near_far,
            resident: 77,
            pid,
            found,
            ..ProcessSample::default()
        }
    }

    #[test]
    fn processes_are_sorted_by_every_key() {
        let mut processes = [
            process(12, 2000, Some((90, 10)), Some(1100)),
            process(345, 1500, Some((25, 75)), Some(20_004)),
            process(7, 10, None, None),
            process(8, 0, None, None),
            process(6, 0, Some((0, 10)), Some(1)),
        ];
        let mut pids = |ranking: ProcessRanking| {
            ranking.sort(&mut processes);
            processes.each_ref().map(|p| p.pid)
        };
        assert_eq!(pids(ProcessRanking::Remote), [345, 12, 6, 7, 8]);
        assert_eq!(pids(ProcessRanking::Cpu), [12, 345, 7, 6, 8]);
        assert_eq!(pids(ProcessRanking::Memory), [345, 12, 7, 8, 6]);
        assert_eq!(pids(ProcessRanking::Pid), [6, 7, 8, 12, 345]);
        for (process, (faults, moved, command)) in processes.iter_mut().zip([
            (Some(5), None, "b"),
            (None, Some(2), "C"),
            (Some(9), None, "a"),
            (Some(0), Some(3), "d"),
            (None, None, "b"),
        ]) {
            (process.faults, process.moved, process.command) = (faults, moved, command.to_owned());
        }
        let mut pids = |ranking: ProcessRanking| {
            ranking.sort(&mut processes);
            processes.each_ref().map(|p| p.pid)
        };
        assert_eq!(pids(ProcessRanking::Faults), [8, 6, 12, 7, 345]);
        assert_eq!(pids(ProcessRanking::Moved)[..2], [12, 7]);
        assert_eq!(pids(ProcessRanking::Name), [8, 6, 345, 7, 12]);
    }
}
