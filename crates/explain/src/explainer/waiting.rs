//! CPU time in which threads only wait for others: in loops, and in MPI.

use super::Explainer;
use crate::chain_names::ChainNames;
use crate::observation::Observation;
use crate::ranks::{self, MpiWaits, RankProcess, RankTime};
use crate::spins::{self, Spins, Waiting};
use crate::teams::{self, TeamScene, TeamSleep, TeamTime};
use numakit_sampling::operand::Decoder;
use std::collections::{BTreeMap, HashMap};

impl Explainer {
    /// CPU time in which threads only waited for others, that of each rank of an MPI job, and the teams of OpenMP, whose members slept so.
    pub(super) fn waiting(&mut self, slept: &[TeamSleep]) -> (Spins, Vec<RankTime>, Vec<TeamTime>) {
        let of_ranks = self.rank_processes();
        let Self { collector, processes, accounts, .. } = self;
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
        let spins = spins::find(samples, processes, waiting);
        let is_loop = |at: &Observation| loops.get(&(at.process, at.instruction)).is_some_and(|spins| *spins);
        let team_scene = TeamScene {
            observations: samples,
            threads: &collector.sampled_threads,
            times: &accounts.times().collect(),
            slept,
            spins: &is_loop,
        };
        let teams = teams::find(&team_scene, &mut ChainNames::new(&collector.calls, processes));
        (spins, mpi.times(samples), teams)
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
