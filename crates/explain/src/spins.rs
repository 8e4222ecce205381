//! CPU time in which threads only wait for others, in loops that look at memory until somebody changes it, and what the others
//! do meanwhile.

use crate::code::{CodeName, CodeNames};
use crate::explained::CodeShare;
use crate::observation::Observation;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Threads work at the same time as others spin if both have samples in the same span of this length, in ns.
const SPAN: u64 = 10_000_000;
/// Functions and threads that are kept.
const MAX_KEPT: usize = 8;
/// Functions of runtimes that wait for threads, by the begin of their names: loops whose code does not show that.
const WAITING: &[&str] =
    &["gomp_barrier_wait", "gomp_team_barrier_wait", "do_spin", "__kmp_wait", "__kmp_flag_wait", "kmp_flag_"];

/// The time of a thread, by what it was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpinningThread {
    /// The thread, by its place in the list of threads.
    pub thread: u32,
    /// CPU time in which it waited for others, in ns.
    pub spun: u64,
    /// All other CPU time in ns.
    pub worked: u64,
}

/// A function in which threads wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpinFunction {
    /// What it is.
    #[serde(flatten)]
    pub name: CodeName,
    /// CPU time in ns in which threads waited in it.
    pub time: u64,
}

/// CPU time of threads that wait for others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spins {
    /// All of it, in ns.
    pub time: u64,
    /// The functions in which they wait, that with the longest time first.
    pub functions: Vec<SpinFunction>,
    /// The threads of the program's processes that spin, those that spun longest first.
    pub threads: Vec<SpinningThread>,
    /// What other threads of the same process, or of the same MPI job, did meanwhile.
    pub meanwhile: Vec<CodeShare>,
    /// The thread that worked most meanwhile, by its place in the list of threads, with its part of that work.
    pub worker: Option<(u32, f64)>,
}

/// Which samples only wait, beside those in functions that are known for it.
pub struct Waiting<'a> {
    /// Whether an instruction of a process, by its place in the list, is part of a loop that only waits.
    pub pauses: &'a mut dyn FnMut(u32, u64) -> bool,
    /// Whether the function that called it makes a sample wait.
    pub is_called_to_wait: &'a dyn Fn(&Observation) -> bool,
    /// A number that processes have in common whose threads wait for each other, by their places.
    pub group: &'a dyn Fn(u32) -> u32,
}

/// Finds the samples of threads that wait for others.
pub fn find(observations: &[Observation], names: &mut dyn CodeNames, waiting: Waiting<'_>) -> Spins {
    let Waiting { pauses, is_called_to_wait, group } = waiting;
    let mut known: HashMap<(u32, u64), (bool, CodeName)> = HashMap::new();
    for at in observations {
        known.entry((at.process, at.instruction)).or_insert_with(|| {
            let name = names.name(at.process, at.instruction);
            let function = name.function.as_deref().unwrap_or_default();
            let is_waiting = WAITING.iter().any(|waiting| function.starts_with(waiting));
            let spins = is_waiting || pauses(at.process, at.instruction);
            (spins, CodeName { file: None, line: None, ..name })
        });
    }
    let of = |at: &Observation| known.get(&(at.process, at.instruction));
    let spins = |at: &Observation| of(at).is_some_and(|(spins, _)| *spins) || is_called_to_wait(at);
    let spinning: Vec<&Observation> = observations.iter().filter(|at| spins(at)).collect();
    let groups: HashSet<u32> = spinning.iter().map(|at| group(at.process)).collect();
    let span = |at: &Observation| (group(at.process), at.time / SPAN);
    let spans: HashSet<(u32, u64)> = spinning.iter().map(|at| span(at)).collect();
    let working = || observations.iter().filter(|at| groups.contains(&group(at.process)) && !spins(at));
    let meanwhile: Vec<&Observation> = working().filter(|at| spans.contains(&span(at))).collect();
    let mut threads: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    spinning.iter().for_each(|at| threads.entry(at.thread).or_default()[0] += at.weight);
    working().for_each(|at| threads.entry(at.thread).or_default()[1] += at.weight);
    let mut threads: Vec<SpinningThread> =
        threads.into_iter().map(|(thread, [spun, worked])| SpinningThread { thread, spun, worked }).collect();
    threads.sort_by_key(|thread| (Reverse(thread.spun), thread.thread));
    let name = |at: &&Observation| of(at).map(|(_, name)| name.clone()).unwrap_or_default();
    let all: u64 = meanwhile.iter().map(|at| at.weight).sum();
    let share = |time: u64| time as f64 / all.max(1) as f64;
    Spins {
        time: spinning.iter().map(|at| at.weight).sum(),
        functions: longest(spinning.iter().map(|at| (name(at), at.weight)))
            .map(|(name, time)| SpinFunction { name, time })
            .collect(),
        threads,
        meanwhile: longest(meanwhile.iter().map(|at| (name(at), at.weight)))
            .map(|(name, time)| CodeShare { name, share: share(time) })
            .collect(),
        worker: longest(meanwhile.iter().map(|at| (at.thread, at.weight)))
            .next()
            .map(|(thread, time)| (thread, share(time))),
    }
}

/// The sums by key, the largest first.
fn longest<K: Ord + Clone>(parts: impl Iterator<Item = (K, u64)>) -> impl Iterator<Item = (K, u64)> {
    let mut sums: BTreeMap<K, u64> = BTreeMap::new();
    parts.for_each(|(key, time)| *sums.entry(key).or_default() += time);
    let mut sums: Vec<(K, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, time)| Reverse(*time));
    sums.into_iter().take(MAX_KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waited;

    struct Names;

    impl CodeNames for Names {
        fn name(&mut self, _: u32, instruction: u64) -> CodeName {
            let function = if instruction >= 0x900 { "gomp_barrier_wait_end" } else { "work" };
            CodeName { function: Some(function.to_owned()), module: "app".to_owned(), ..CodeName::default() }
        }
    }

    fn samples(thread: u32, times: std::ops::Range<u64>, instruction: u64) -> Vec<Observation> {
        let at = |n: u64| Observation {
            thread,
            process: 0,
            time: n * 5_000_000,
            weight: 5,
            cpu_node: None,
            instruction,
            waited: Waited::Computing,
            chain: 0,
        };
        times.map(at).collect()
    }

    fn found(all: &[Observation], mut pauses: impl FnMut(u32, u64) -> bool) -> Spins {
        let waiting =
            Waiting { pauses: &mut pauses, is_called_to_wait: &|_| false, group: &|process| process };
        find(all, &mut Names, waiting)
    }

    #[test]
    fn a_process_that_waits_in_a_call_waits_for_others_of_its_group() {
        let of = |process, samples: Vec<Observation>| {
            samples
                .into_iter()
                .map(move |at| Observation { process, thread: process, ..at })
                .collect::<Vec<_>>()
        };
        let mut all = [0, 1, 2].map(|process| of(process, samples(0, 0..100, 0x100))).concat();
        all[100..200].iter_mut().for_each(|at| at.chain = 7);
        let waiting = Waiting {
            pauses: &mut |_, _| false,
            is_called_to_wait: &|at| at.chain == 7,
            group: &|process| process.saturating_sub(1),
        };
        let found = find(&all, &mut Names, waiting);
        assert_eq!((found.time, found.worker), (500, Some((0, 1.0))), "process 2 is of another group");
    }

    #[test]
    fn one_works_while_the_others_spin() {
        let all = [
            samples(0, 0..100, 0x100),
            samples(1, 0..20, 0x100),
            // By its code, and by its name.
            samples(1, 20..60, 0x800),
            samples(1, 60..100, 0x900),
            samples(2, 200..300, 0x100),
        ]
        .concat();
        let found = found(&all, |_, instruction| instruction == 0x800);
        assert_eq!(found.time, 400);
        assert_eq!(found.threads[0], SpinningThread { thread: 1, spun: 400, worked: 100 });
        assert_eq!(found.worker, Some((0, 1.0)), "thread 1 itself worked before");
        let meanwhile: Vec<_> = found.meanwhile.iter().map(|code| code.share).collect();
        assert_eq!(meanwhile, [1.0]);
        assert_eq!(found.functions.len(), 2);
    }

    #[test]
    fn without_a_loop_that_waits_there_is_nothing() {
        assert_eq!(
            found(&samples(0, 0..9, 0x100), |_, _| false),
            Spins { threads: Vec::new(), ..Spins::default() }
        );
    }
}
