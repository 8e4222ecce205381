//! Which cores of a run threads get that share data.

use crate::fit::Run;
use crate::{Cure, RunThreads, SharingThreads, together};
use std::collections::BTreeSet;
use std::fmt;

/// The cores of threads that share data.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreOrder {
    /// For each core of the run, in the order in which threads are created, which of these cores it is instead.
    pub cores: Vec<usize>,
    /// The part of what the threads share that is within nodes then, from 0 to 1.
    pub within: f64,
    /// The same in the order of creation.
    pub before: f64,
}

/// Why threads that share data keep the order of their creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOrder {
    /// It is not known which of another number of threads share data.
    Threads {
        /// Threads that worked when the program was observed.
        observed: usize,
        /// Threads of this run.
        now: usize,
    },
    /// Not every thread has a core of its own.
    Cores {
        /// Threads of this run.
        now: usize,
        /// Cores that it has.
        cores: usize,
    },
    /// Other processes than that of the threads have some of the cores.
    Processes(usize),
    /// The program is another build than the one that was observed.
    OtherBuild,
    /// The threads of the program are not bound.
    Unbound,
}

impl fmt::Display for NoOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads { observed, now } => write!(
                f,
                "{observed} threads worked when the program was observed, and this run has {now}: observe it with as many"
            ),
            Self::Cores { now, cores } => {
                write!(f, "{now} threads work, and this run has {cores} cores: give it as many with -c {now}")
            }
            Self::Processes(count) => write!(f, "this run is divided among {count} processes"),
            Self::OtherBuild => f.write_str("the program is another build than the one that was observed"),
            Self::Unbound => f.write_str("the threads of this program are not bound one by one"),
        }
    }
}

impl Cure {
    /// The cores of a run with these threads, so that threads that share data are on one node; `None` if the cure has none that do.
    pub fn order(&self, threads: &RunThreads) -> Option<Result<CoreOrder, NoOrder>> {
        (!self.sharing.is_empty()).then(|| Run::new(&self.threads, threads).order(&self.sharing))
    }
}

impl Run<'_> {
    fn order(&self, sharing: &[SharingThreads]) -> Result<CoreOrder, NoOrder> {
        let (now, cores) = (self.now, self.threads.nodes.len());
        if now != self.observed.len() {
            return Err(NoOrder::Threads { observed: self.observed.len(), now });
        }
        let places: Vec<usize> = self.observed.iter().filter_map(|thread| self.core(*thread)).collect();
        let distinct: BTreeSet<usize> = places.iter().copied().collect();
        if distinct.len() < now {
            return Err(NoOrder::Cores { now, cores });
        }
        let node = |core: usize| self.threads.nodes[core];
        let nodes: Vec<u32> = places.iter().map(|place| node(*place)).collect();
        let arranged = together::arranged(sharing, self.observed, &nodes);
        let all = sharing.iter().map(|pair| pair.share).sum::<f64>().max(f64::MIN_POSITIVE);
        let [before, within] =
            [&nodes, &arranged].map(|nodes| together::within(sharing, self.observed, nodes) / all);
        let (stay, go): (Vec<_>, Vec<_>) =
            places.iter().zip(&arranged).partition(|(place, to)| node(**place) == **to);
        let mut free: BTreeSet<usize> = distinct;
        stay.iter().for_each(|(place, _)| _ = free.remove(place));
        let mut order: Vec<usize> = (0..cores).collect();
        for (place, to) in go {
            // There are as many cores of each node as threads on it.
            let core = free.iter().copied().find(|core| node(*core) == *to).unwrap_or(*place);
            free.remove(&core);
            order[*place] = core;
        }
        Ok(CoreOrder { cores: order, within, before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cure;

    /// Two threads a node.
    fn threads(count: u32) -> RunThreads {
        RunThreads { nodes: (0..count).map(|thread| thread / 2).collect(), told: None }
    }

    /// Each of eight threads shares with the fourth one after it.
    fn sharing(first: u32) -> Cure {
        let pair = |n| SharingThreads { threads: [first + n, first + n + 4], share: 0.1 };
        let all: Vec<(u32, u32, u32)> = (0..8).map(|n| (n * 8, n * 8 + 8, first + n)).collect();
        Cure { sharing: (0..4).map(pair).collect(), ..cure(&all) }
    }

    #[test]
    fn threads_that_share_data_get_cores_of_one_node() {
        let order = |cure: &Cure| cure.order(&threads(8)).unwrap().unwrap();
        let found = order(&sharing(0));
        assert_eq!((found.cores, found.before), (vec![0, 2, 4, 6, 1, 3, 5, 7], 0.0));
        assert!((found.within - 1.0).abs() < 1e-9);
        // An idle first thread: the last one that works runs on its core.
        let mut idle = sharing(1);
        idle.threads.cpus = 64;
        let found = order(&idle).cores;
        let nodes = threads(8).nodes;
        let node = |thread: usize| nodes[found[thread % 8]];
        assert!((1..5).all(|thread| node(thread) == node(thread + 4)), "{found:?}");
        assert_eq!(cure(&[(0, 64, 0)]).order(&threads(8)), None);
    }

    #[test]
    fn an_order_needs_as_many_threads_and_cores() {
        let why = |cure: &Cure, threads: &RunThreads| cure.order(threads).unwrap().unwrap_err();
        assert_eq!(why(&sharing(0), &threads(4)), NoOrder::Threads { observed: 8, now: 4 });
        let mut open_mp = sharing(0);
        open_mp.threads.open_mp = true;
        let told = RunThreads { told: Some(8), ..threads(4) };
        assert_eq!(why(&open_mp, &told), NoOrder::Cores { now: 8, cores: 4 });
        assert!(NoOrder::Cores { now: 8, cores: 4 }.to_string().contains("-c 8"));
    }
}
