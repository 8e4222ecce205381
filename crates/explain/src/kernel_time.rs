//! CPU time in the kernel, by the code of the program that entered it: a system call, or an access that faults.

use crate::code::{CodeName, CodeNames};
use crate::collector::ObservedProcesses;
use crate::explained::CodeShare;
use numakit_sampling::Sample;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of different instructions; the time of further ones is missing.
const MAX_PLACES: usize = 8192;
/// Functions that are kept.
const MAX_KEPT: usize = 8;

/// The time of samples in the kernel, in ns, by process (its place in the list) and instruction.
#[derive(Debug, Default)]
pub(crate) struct KernelTime {
    by_place: HashMap<(u32, u64), u64>,
}

impl KernelTime {
    /// Adds the time of a sample, if it is of the kernel.
    pub(crate) fn take(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) {
        if !sample.in_kernel {
            return;
        }
        let place = (processes.place(sample.process), sample.registers.ip);
        // The code gets its name at the end, when the process may have ended.
        if self.is_new(place) {
            processes.space(sample);
        }
        self.add(place, sample.weight);
    }

    /// Whether nothing is known of this code, and something may be added.
    fn is_new(&self, place: (u32, u64)) -> bool {
        !self.by_place.contains_key(&place) && self.by_place.len() < MAX_PLACES
    }

    fn add(&mut self, place: (u32, u64), weight: u64) {
        if self.is_new(place) {
            self.by_place.insert(place, 0);
        }
        self.by_place.get_mut(&place).into_iter().for_each(|time| *time += weight);
    }

    /// The functions that entered the kernel, those with most of the time first, with their parts of it.
    pub(crate) fn functions(&self, names: &mut dyn CodeNames) -> Vec<CodeShare> {
        let all: u64 = self.by_place.values().sum();
        let mut functions: BTreeMap<CodeName, u64> = BTreeMap::new();
        for ((process, instruction), time) in &self.by_place {
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
        [(0x300, 1), (0x110, 2), (0x200, 1)].into_iter().for_each(|(at, time)| kernel.add((0, at), time));
        let functions = kernel.functions(&mut Names);
        let shares: Vec<_> =
            functions.iter().map(|code| (code.name.function.as_deref(), code.share)).collect();
        assert_eq!(shares, [(Some("read"), 0.75), (Some("open"), 0.25)], "0x200 is behind the call");
        assert!(kernel.is_new((1, 0x300)) && !kernel.is_new((0, 0x300)));
    }
}
