//! CPU time in the kernel, by the code of the program that entered it: a system call, or an access that faults.

use crate::code::{CodeName, CodeNames};
use crate::collector::ObservedProcesses;
use crate::explained::CodeShare;
use numakit_sampling::Sample;
use numakit_sampling::operand::sampled::{self, SampledMemory};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of different instructions; the time of further ones is missing.
const MAX_PLACES: usize = 8192;
/// Functions that are kept.
const MAX_KEPT: usize = 8;

/// The time of samples in the kernel, in ns, by process (its place in the list) and instruction.
#[derive(Debug, Default)]
pub(crate) struct KernelTime {
    by_place: HashMap<(u32, u64), EntryTime>,
}

/// What the kernel did for an instruction.
#[derive(Debug, Default)]
struct EntryTime {
    /// In ns.
    time: u64,
    /// Whether the instruction stands behind a system call: if not, it accessed memory for which the kernel had no page yet.
    is_behind_call: bool,
}

impl KernelTime {
    /// Adds the time of a sample, if it is of the kernel.
    pub(crate) fn take(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) {
        if !sample.in_kernel {
            return;
        }
        let place = (processes.place(sample.process), sample.registers.ip);
        // The code gets its name at the end, when the process may have ended.
        let is_behind_call = self.is_new(place) && {
            let space = SampledMemory { now: processes.space(sample), stack: &sample.stack };
            sampled::is_behind_call(sample.registers.ip, &space)
        };
        self.add(place, sample.weight, is_behind_call);
    }

    /// Whether nothing is known of this code, and something may be added.
    fn is_new(&self, place: (u32, u64)) -> bool {
        !self.by_place.contains_key(&place) && self.by_place.len() < MAX_PLACES
    }

    fn add(&mut self, place: (u32, u64), weight: u64, is_behind_call: bool) {
        if self.is_new(place) {
            self.by_place.insert(place, EntryTime { time: 0, is_behind_call });
        }
        self.by_place.get_mut(&place).into_iter().for_each(|entry| entry.time += weight);
    }

    /// The part of the time in the kernel that page faults take; `None` without samples in the kernel.
    pub(crate) fn faulting(&self) -> Option<f64> {
        let all: u64 = self.by_place.values().map(|entry| entry.time).sum();
        let faulting = self.by_place.values().filter(|entry| !entry.is_behind_call).map(|entry| entry.time);
        (all > 0).then(|| faulting.sum::<u64>() as f64 / all as f64)
    }

    /// The time of processes, by their places: for functions that only wait, and for all others.
    pub(crate) fn of_processes(
        &self,
        names: &mut dyn CodeNames,
        waits: fn(&str) -> bool,
    ) -> HashMap<u32, [u64; 2]> {
        let mut times: HashMap<u32, [u64; 2]> = HashMap::new();
        for ((process, instruction), EntryTime { time, .. }) in &self.by_place {
            let name = names.name(*process, instruction.saturating_sub(1));
            let is_work = !name.function.as_deref().is_some_and(waits);
            times.entry(*process).or_default()[usize::from(is_work)] += time;
        }
        times
    }

    /// The functions that entered the kernel, those with most of the time first, with their parts of it.
    pub(crate) fn functions(&self, names: &mut dyn CodeNames) -> Vec<CodeShare> {
        let all: u64 = self.by_place.values().map(|entry| entry.time).sum();
        let mut functions: BTreeMap<CodeName, u64> = BTreeMap::new();
        for ((process, instruction), EntryTime { time, .. }) in &self.by_place {
            // Behind a system call, the next instruction is where the program goes on.
            let name = names.name(*process, instruction.saturating_sub(1));
            *functions.entry(CodeName { file: None, line: None, ..name }).or_default() += time;
        }
        let share =
            |(name, time): (CodeName, u64)| CodeShare { name, share: time as f64 / all.max(1) as f64 };
        let mut shares: Vec<CodeShare> = functions.into_iter().map(share).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares.truncate(MAX_KEPT);
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Names;

    impl CodeNames for Names {
        fn name(&mut self, _: u32, instruction: u64) -> CodeName {
            let function = if instruction < 0x200 { "read" } else { "open" };
            CodeName {
                function: Some(function.to_owned()),
                line: Some(instruction as u32),
                ..CodeName::default()
            }
        }
    }

    #[test]
    fn the_functions_with_most_time_in_the_kernel_come_first() {
        let mut kernel = KernelTime::default();
        assert_eq!(kernel.faulting(), None);
        let calls = [(0x300, 1, true), (0x110, 2, false), (0x200, 1, true)];
        calls.into_iter().for_each(|(at, time, is_call)| kernel.add((0, at), time, is_call));
        assert_eq!(kernel.faulting(), Some(0.5));
        let functions = kernel.functions(&mut Names);
        let shares: Vec<_> =
            functions.iter().map(|code| (code.name.function.as_deref(), code.share)).collect();
        assert_eq!(shares, [(Some("read"), 0.75), (Some("open"), 0.25)], "0x200 is behind the call");
        assert!(kernel.is_new((1, 0x300)) && !kernel.is_new((0, 0x300)));
        assert_eq!(kernel.of_processes(&mut Names, |name| name == "read"), [(0, [3, 1])].into());
    }
}
