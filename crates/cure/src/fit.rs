//! From the threads of the observed program to the nodes of this run.

use crate::{Cure, CuredThreads, FRACTIONS, ObjectPart, ObjectPolicy, PartsOver};
use std::fmt;

const ALL: usize = FRACTIONS as usize;

/// Where the threads of this run are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunThreads {
    /// The node of each thread by its number, as many as have cores of their own.
    pub nodes: Vec<u32>,
    /// How many threads the program is told to have, if that is known: OMP_NUM_THREADS of a program with OpenMP.
    pub told: Option<u32>,
}

/// A policy in terms of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FittedPolicy {
    /// The node of each fraction; `None` for that of the thread which touches it first.
    Parts {
        /// What is divided.
        over: PartsOver,
        /// By fraction.
        node: Box<[Option<u32>; ALL]>,
    },
    /// As the cure says, without threads.
    Same,
}

/// An object and what it gets in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedObject {
    /// Its place among the objects of the cure.
    pub place: usize,
    /// Its policy.
    pub policy: FittedPolicy,
}

/// Why an object gets nothing in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFit {
    /// Its parts are not in the order of the threads, so that another number of threads cannot take them.
    Order {
        /// Threads that worked when the program was observed.
        observed: usize,
        /// Threads of this run.
        now: usize,
    },
    /// The threads of its parts have no cores in this run.
    Cores {
        /// Threads of this run.
        now: usize,
        /// Cores that it has.
        cores: usize,
    },
}

impl fmt::Display for NoFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order { observed, now } => write!(
                f,
                "its parts are not in the order of the {observed} threads that used it, so that they cannot be divided among {now}"
            ),
            Self::Cores { now, cores } => write!(
                f,
                "its parts belong to {now} threads, and this run has {cores} cores: threads without a core of their own have no \
                 certain node"
            ),
        }
    }
}

/// A cure for this run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FittedCure {
    /// The objects that get something, in the order of the cure.
    pub objects: Vec<FittedObject>,
    /// Those that get nothing, by their places, with the reason.
    pub refused: Vec<(usize, NoFit)>,
}

impl Cure {
    /// What each object gets in a run with these threads.
    pub fn fit(&self, threads: &RunThreads) -> FittedCure {
        let run = Run::new(&self.threads, threads);
        let mut fitted = FittedCure::default();
        for (place, object) in self.objects.iter().enumerate() {
            let policy = match &object.policy {
                ObjectPolicy::Parts { over, parts } => {
                    run.nodes_of(parts).map(|node| FittedPolicy::Parts { over: *over, node: Box::new(node) })
                }
                _ => Ok(FittedPolicy::Same),
            };
            match policy {
                Ok(policy) => fitted.objects.push(FittedObject { place, policy }),
                Err(why) => fitted.refused.push((place, why)),
            }
        }
        fitted
    }
}

/// The working threads then and now.
pub(crate) struct Run<'a> {
    pub(crate) observed: &'a [u32],
    /// How many threads work now.
    pub(crate) now: usize,
    /// The number of the first one.
    first: u32,
    pub(crate) threads: &'a RunThreads,
    /// Whether OpenMP binds them.
    open_mp: bool,
}

impl<'a> Run<'a> {
    pub(crate) fn new(cured: &'a CuredThreads, threads: &'a RunThreads) -> Self {
        let observed = cured.working.as_slice();
        let first = observed.first().copied().unwrap_or(0);
        // A program with one thread for each CPU asks for their number; others have theirs from their source or arguments.
        let is_by_cpus = observed.len() > 1 && observed.len() == cured.cpus as usize;
        // Where some threads had no part, it is not known who has one among others.
        let idle = cured.count.saturating_sub(observed.len() as u32);
        let is_team = idle == 0 || idle == 1 && first == 1;
        let now = match threads.told {
            _ if !is_team => observed.len(),
            Some(told) => told as usize,
            None if is_by_cpus => threads.nodes.len(),
            None => observed.len(),
        };
        Self { observed, now: now.max(1), first, threads, open_mp: cured.open_mp }
    }

    fn nodes_of(&self, parts: &[ObjectPart]) -> Result<[Option<u32>; ALL], NoFit> {
        let is_same = self.now == self.observed.len();
        if !is_same && !self.are_in_order(parts) {
            return Err(NoFit::Order { observed: self.observed.len(), now: self.now });
        }
        let mut node = [None; ALL];
        for part in parts {
            for fraction in part.from..part.to.min(FRACTIONS) {
                let thread = match is_same {
                    true => part.thread,
                    false => self.divided(part, fraction),
                };
                node[fraction as usize] = self.node(thread);
            }
        }
        let asked: u32 = parts.iter().map(|part| part.to - part.from).sum();
        let found = node.iter().flatten().count();
        match found * 2 >= asked as usize {
            true => Ok(node),
            false => Err(NoFit::Cores { now: self.now, cores: self.threads.nodes.len() }),
        }
    }

    /// Whether each thread has one part, and the parts are in the order of the threads.
    fn are_in_order(&self, parts: &[ObjectPart]) -> bool {
        let is_known = |part: &ObjectPart| self.observed.binary_search(&part.thread).is_ok();
        parts.iter().all(is_known) && parts.is_sorted_by(|one, next| one.thread < next.thread)
    }

    /// The thread that has a fraction of a part among as many threads as there are now.
    fn divided(&self, part: &ObjectPart, fraction: u32) -> u32 {
        let place = self.observed.binary_search(&part.thread).unwrap_or(0) as f64;
        let within = (f64::from(fraction - part.from) + 0.5) / f64::from(part.to - part.from);
        let share = (place + within) / self.observed.len() as f64;
        self.first + (share * self.now as f64) as u32
    }

    /// The node of a thread.
    fn node(&self, thread: u32) -> Option<u32> {
        self.core(thread).and_then(|core| self.threads.nodes.get(core)).copied()
    }

    /// The core of a thread, by its place. Threads beyond the last core run on the cores of those that do not work.
    pub(crate) fn core(&self, thread: u32) -> Option<usize> {
        let nodes = &self.threads.nodes;
        if self.open_mp && self.now > nodes.len() {
            // Neighbours share a core: OMP_PROC_BIND=close.
            return Some(thread as usize * nodes.len() / self.now);
        }
        if (thread as usize) < nodes.len() {
            return Some(thread as usize);
        }
        let is_idle = |number: &usize| match self.now == self.observed.len() {
            true => !self.observed.contains(&(*number as u32)),
            false => *number < self.first as usize,
        };
        let beyond = thread as usize - nodes.len();
        (0..nodes.len()).filter(is_idle).nth(beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cure, parts};

    /// Two threads a node.
    fn threads(count: u32) -> RunThreads {
        RunThreads { nodes: (0..count).map(|thread| thread / 2).collect(), told: None }
    }

    /// The nodes of an object's fractions, without repetitions.
    fn nodes(cure: &Cure, threads: &RunThreads) -> Result<Vec<Option<u32>>, NoFit> {
        let fitted = cure.fit(threads);
        if let Some((_, why)) = fitted.refused.first() {
            return Err(*why);
        }
        let FittedPolicy::Parts { node, .. } = &fitted.objects[0].policy else { panic!("{fitted:?}") };
        let mut node = node.to_vec();
        node.dedup();
        Ok(node)
    }

    fn some(nodes: &[u32]) -> Result<Vec<Option<u32>>, NoFit> {
        Ok(nodes.iter().copied().map(Some).collect())
    }

    /// Eight threads with an eighth each; the first of them has this number.
    fn eight(first: u32) -> Cure {
        let all: Vec<(u32, u32, u32)> = (0..8).map(|n| (n * 8, n * 8 + 8, first + n)).collect();
        cure(&all)
    }

    #[test]
    fn parts_follow_their_threads_to_the_nodes_of_this_run() {
        assert_eq!(nodes(&eight(0), &threads(8)), some(&[0, 1, 2, 3]));
        let elsewhere = RunThreads { nodes: vec![3, 3, 1, 1, 3, 3, 1, 1], told: None };
        assert_eq!(nodes(&eight(0), &elsewhere), some(&[3, 1, 3, 1]));
    }

    #[test]
    fn other_numbers_of_threads_divide_the_parts_anew() {
        let four = RunThreads { nodes: vec![0, 1, 2, 3], told: None };
        assert_eq!(nodes(&eight(0), &four), some(&[0, 1, 2, 3]));
        assert_eq!(nodes(&eight(0), &threads(4)), some(&[0, 1]));
        assert_eq!(nodes(&eight(0), &threads(16)), some(&[0, 1, 2, 3, 4, 5, 6, 7]));
        let told = RunThreads { told: Some(2), ..threads(8) };
        assert_eq!(nodes(&eight(0), &told), some(&[0]));
    }

    #[test]
    fn a_program_with_its_own_number_of_threads_keeps_it() {
        let mut own = eight(0);
        own.threads.cpus = 64;
        assert_eq!(nodes(&own, &threads(64)), some(&[0, 1, 2, 3]));
        assert_eq!(nodes(&own, &threads(2)), Err(NoFit::Cores { now: 8, cores: 2 }));
        // Four of the threads have cores; where the others run is not certain.
        assert_eq!(nodes(&own, &threads(4)), Ok(vec![Some(0), Some(1), None]));
    }

    #[test]
    fn threads_of_open_mp_share_cores_with_their_neighbours() {
        let mut shared = eight(0);
        shared.threads.open_mp = true;
        let two = RunThreads { nodes: vec![1, 1, 2, 2], told: Some(8) };
        assert_eq!(nodes(&shared, &two), some(&[1, 2]));
    }

    #[test]
    fn parts_of_some_threads_of_a_team_stay_theirs() {
        let mut some_of = cure(&[(0, 32, 2), (32, 64, 3)]);
        (some_of.threads.count, some_of.threads.open_mp) = (8, true);
        let eight = RunThreads { told: Some(8), ..threads(8) };
        assert_eq!(nodes(&some_of, &eight), some(&[1]));
    }

    #[test]
    fn the_core_of_an_idle_first_thread_is_the_last_worker_s() {
        let mut idle = eight(1);
        idle.threads.cpus = 64;
        assert_eq!(nodes(&idle, &threads(8)), some(&[0, 1, 2, 3, 0]));
    }

    #[test]
    fn parts_without_order_are_refused_for_other_numbers_of_threads() {
        let mixed = cure(&[(0, 32, 1), (32, 64, 0)]);
        assert_eq!(nodes(&mixed, &RunThreads { nodes: vec![5, 6], told: None }), some(&[6, 5]));
        assert_eq!(nodes(&mixed, &threads(4)), Err(NoFit::Order { observed: 2, now: 4 }));
    }

    #[test]
    fn what_has_no_parts_stays_as_it_is() {
        let mut cure = cure(&[(0, 64, 0)]);
        cure.objects[0].policy = ObjectPolicy::Interleave;
        let fitted = cure.fit(&threads(1));
        assert_eq!(fitted.objects, [FittedObject { place: 0, policy: FittedPolicy::Same }]);
        cure.objects[0].policy = parts(&[(0, 16, 0)]);
        let FittedPolicy::Parts { node, .. } = cure.fit(&threads(1)).objects.remove(0).policy else {
            panic!()
        };
        assert_eq!((node[15], node[16]), (Some(0), None));
    }
}
