//! From the threads of the observed program to the nodes of this run.

use crate::{Cure, CuredThreads, FRACTIONS, ObjectPart, ObjectPolicy, PartsOver, SharingThreads, together};
use std::collections::BTreeSet;
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

/// A cure for this run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FittedCure {
    /// The objects that get something, in the order of the cure.
    pub objects: Vec<FittedObject>,
    /// Those that get nothing, by their places, with the reason.
    pub refused: Vec<(usize, NoFit)>,
}

impl Cure {
    /// The cores of a run with these threads, so that threads that share data are on one node; `None` if the cure has none that do.
    pub fn order(&self, threads: &RunThreads) -> Option<Result<CoreOrder, NoOrder>> {
        (!self.sharing.is_empty()).then(|| Run::new(&self.threads, threads).order(&self.sharing))
    }

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
struct Run<'a> {
    observed: &'a [u32],
    /// How many threads work now.
    now: usize,
    /// The number of the first one.
    first: u32,
    threads: &'a RunThreads,
    /// Whether OpenMP binds them.
    open_mp: bool,
}

impl<'a> Run<'a> {
    fn new(cured: &'a CuredThreads, threads: &'a RunThreads) -> Self {
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
    fn core(&self, thread: u32) -> Option<usize> {
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
        let all: f64 = sharing.iter().map(|pair| pair.share).sum();
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

    /// Each of eight threads shares with the fourth one after it.
    fn sharing(first: u32) -> Cure {
        let pair = |n| SharingThreads { threads: [first + n, first + n + 4], share: 0.1 };
        Cure { sharing: (0..4).map(pair).collect(), ..eight(first) }
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
        assert_eq!(eight(0).order(&threads(8)), None);
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
