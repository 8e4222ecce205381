//! CPU time in which threads only wait for others: in loops, and in MPI.

use super::Explainer;
use crate::chain_names::ChainNames;
use crate::ranks::{self, MpiWaits, RankProcess, RankTime};
use crate::spins::{self, Spins, Waiting};
use numakit_sampling::operand::Decoder;
use std::collections::{BTreeMap, HashMap};

impl Explainer {
    /// CPU time in which threads only waited for others, and that of each rank of an MPI job.
    pub(super) fn waiting(&mut self) -> (Spins, Vec<RankTime>) {
        let of_ranks = self.rank_processes();
        let Self { collector, processes, .. } = self;
        let samples = &collector.observations;
        let mpi = MpiWaits::find(samples, of_ranks, &mut ChainNames::new(&collector.calls, processes));
        let mut decoders: HashMap<u32, Decoder> = HashMap::new();
        let mut loops: HashMap<(u32, u64), bool> = HashMap::new();
        for at in samples {
            loops.entry((at.process, at.instruction)).or_insert_with(|| {
                let decoder = decoders.entry(at.process).or_default();
                let process = processes.observed_at(at.process);
                process.is_some_and(|process| decoder.is_spinning(at.instruction, process))
            });
        }
        let waiting = Waiting {
            pauses: &mut |process, at| loops.get(&(process, at)).is_some_and(|spins| *spins),
            is_called_to_wait: &|at| mpi.call(at).is_some(),
            group: &|process| mpi.job(process),
        };
        (spins::find(samples, processes, waiting), mpi.times(samples))
    }

    /// The processes to which a launcher gave a rank, by their places in the list of processes.
    fn rank_processes(&mut self) -> BTreeMap<u32, RankProcess> {
        let Self { accounts, processes, kernel, .. } = self;
        let ranks = processes.ranks();
        let mut kernel = kernel.of_processes(processes, ranks::is_yielding);
        let process = |(place, pid, rank): (u32, u32, u32)| {
            let (times, observed) = accounts.of_process(pid);
            let is_mpi = processes.has_loaded(pid, ranks::is_mpi);
            let kernel = kernel.remove(&place).unwrap_or_default();
            (place, RankProcess { rank, pid, is_mpi, times, observed, kernel })
        };
        ranks.into_iter().map(process).collect()
    }
}
