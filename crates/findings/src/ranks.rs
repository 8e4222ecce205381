//! The judgement on ranks of an MPI job that wait in MPI for each other.

use crate::case::percent;
use crate::finding::{CostBasis, FindingCost, FindingRemedy};
use crate::rules::Rule;
use crate::thread_waits::{LATE, MUCH, UNEQUAL, evident, rule};
use numakit_explain::ranks::RankTime;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Ranks that use CPUs to wait.
pub(crate) const WAITING_RANKS: Rule =
    rule("waiting-ranks", "ranks of an MPI job that wait in MPI for ranks with more work", |case| {
        let share = waiting(case.ranks);
        if case.ranks.len() < 2 || share < MUCH {
            return None;
        }
        let (words, cost) = cause(case.ranks);
        let remedy = FindingRemedy { words, ..FindingRemedy::default() };
        Some(evident(says(case.ranks), cost, remedy, ("ranks.waited", 100.0 * share, percent(100.0 * share))))
    });

/// The part of the CPU time of ranks in which they waited for each other.
pub(crate) fn waiting(ranks: &[RankTime]) -> f64 {
    let sum = |of: fn(&RankTime) -> u64| ranks.iter().map(of).sum::<u64>() as f64;
    sum(|rank| rank.waited) / sum(|rank| rank.worked + rank.waited).max(1.0)
}

/// The rank with most work.
fn longest(ranks: &[RankTime]) -> Option<&RankTime> {
    ranks.iter().max_by_key(|rank| (rank.worked, Reverse(rank.rank)))
}

/// By which part the longest rank would be shorter if all had the same work.
fn unequal(ranks: &[RankTime]) -> f64 {
    let mean = ranks.iter().map(|rank| rank.worked).sum::<u64>() as f64 / ranks.len().max(1) as f64;
    let most = longest(ranks).map_or(0, |rank| rank.worked);
    1.0 - mean / most.max(1) as f64
}

/// Whether ranks differ in their work by more than chance.
fn is_unequal(ranks: &[RankTime]) -> bool {
    unequal(ranks) >= UNEQUAL
}

/// Of the time in which ranks could run, the part in which they had no CPU.
fn without_cpu(ranks: &[RankTime]) -> f64 {
    let sum = |of: fn(&RankTime) -> u64| ranks.iter().map(of).sum::<u64>() as f64;
    let runnable = sum(|rank| rank.runnable);
    runnable / (runnable + sum(|rank| rank.worked + rank.waited)).max(1.0)
}

fn says(ranks: &[RankTime]) -> String {
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    ranks
        .iter()
        .flat_map(|rank| &rank.calls)
        .for_each(|call| *calls.entry(&call.function).or_default() += call.time);
    let call = calls.into_iter().max_by_key(|(_, time)| *time);
    let place = call.map_or_else(String::new, |(name, _)| format!(" in {name}"));
    let count = ranks.len();
    let (Some(longest), true) = (longest(ranks), is_unequal(ranks)) else {
        let part = percent(100.0 * waiting(ranks));
        return format!(
            "{count} ranks with about the same work wait {part} of their CPU time for each other, most{place}"
        );
    };
    let works = percent(100.0 - 100.0 * waiting(std::slice::from_ref(longest)));
    let number = longest.rank;
    let others: Vec<RankTime> = ranks.iter().filter(|rank| rank.pid != longest.pid).cloned().collect();
    let waits = percent(100.0 * waiting(&others));
    let others = match others.as_slice() {
        [other] => format!("rank {} waits for it {waits} of its CPU time{place}", other.rank),
        _ => format!("the others wait for it {waits} of theirs, most{place}"),
    };
    format!("Of {count} ranks, rank {number} has most work ({works} of its CPU time); {others}")
}

/// What to do, and what that is worth.
fn cause(ranks: &[RankTime]) -> (String, FindingCost) {
    let late = without_cpu(ranks);
    // Work is CPU time: what keeps ranks from a CPU does not make it unequal.
    if late >= LATE && !is_unequal(ranks) {
        let words = format!(
            "Give each rank a CPU: ranks had none {} of the time in which they could run, and all wait for the last one. Run no more ranks \
             than there are CPUs, end other programs, and look whether mpirun binds ranks of several jobs to the same cores \
             (--report-bindings, --bind-to none)",
            percent(100.0 * late)
        );
        return (words, FindingCost::unknown("ranks that have a CPU each may not wait at all"));
    }
    match (longest(ranks), is_unequal(ranks)) {
        (Some(longest), true) => {
            let words = format!(
                "Give each rank the same work: divide the data by what it costs and not by its size, or hand out small parts to \
                 whichever rank is free. Until then the job is as slow as rank {}",
                longest.rank
            );
            // Where others use the CPUs, work takes as much longer as it waits for one. Of a rank with several threads, this is a
            // bound all the same.
            let working = (longest.worked + longest.runnable) as f64 / longest.observed.max(1) as f64;
            let working = working.min(1.0);
            (words, FindingCost::at_most(CostBasis::WallTime, 100.0 * unequal(ranks) * working))
        }
        _ => {
            let words = "Let ranks wait less often: send fewer and larger messages, begin them early and compute meanwhile \
                         (MPI_Isend, MPI_Irecv, MPI_Iallreduce); work that moves from rank to rank between two waits looks the same";
            (words.to_owned(), FindingCost::at_most(CostBasis::CpuTime, 100.0 * waiting(ranks)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;
    use crate::thread_waits::ThreadCase;
    use numakit_explain::ranks::MpiCall;
    use numakit_explain::spins::Spins;

    fn rank(number: u32, worked: u64, waited: u64) -> RankTime {
        let calls = vec![MpiCall { function: "MPI_Allreduce".to_owned(), time: waited }];
        RankTime { rank: number, pid: 70 + number, worked, waited, runnable: 0, observed: 1000, calls }
    }

    fn found(ranks: &[RankTime]) -> Option<(String, String, FindingCost)> {
        let spins = Spins { time: ranks.iter().map(|rank| rank.waited).sum(), ..Spins::default() };
        let case = ThreadCase {
            locks: &[],
            spins: &spins,
            spinning: 0.5,
            without_cpu: 0.0,
            threads: &[],
            ranks,
            teams: &[],
            loops: None,
        };
        let mut found = rules::judge_threads(&case);
        assert!(found.len() <= 1, "{found:?}");
        let found = found.pop().filter(|finding| finding.rule == "waiting-ranks")?;
        Some((found.says, found.remedy.words, found.cost))
    }

    #[test]
    fn the_rank_with_most_work_is_named_with_what_the_others_wait() {
        let (says, words, cost) = found(&[rank(0, 960, 40), rank(1, 240, 760)]).unwrap();
        let expected = "Of 2 ranks, rank 0 has most work (96.0 % of its CPU time); rank 1 waits for it 76.0 % of its CPU time in \
                        MPI_Allreduce";
        assert_eq!(says, expected);
        assert!(words.starts_with("Give each rank the same work"), "{words}");
        // The mean is 600 of 960, in 1000.
        assert_eq!(cost.words(), "at most 36.0 % of the time");
        let four = [rank(0, 300, 700), rank(1, 300, 700), rank(2, 300, 700), rank(3, 1000, 0)];
        let says = found(&four).unwrap().0;
        assert!(
            says.contains("rank 3 has most work (100 % of its CPU time); the others wait for it 70.0 %"),
            "{says}"
        );
    }

    #[test]
    fn equal_work_and_ranks_without_cpus_are_other_causes() {
        let equal = found(&[rank(0, 500, 500), rank(1, 510, 490)]).unwrap();
        assert!(equal.0.starts_with("2 ranks with about the same work wait 49.5 %"), "{equal:?}");
        assert!(equal.1.starts_with("Let ranks wait less often"), "{equal:?}");
        let starved = |number| RankTime { runnable: 900, ..rank(number, 500, 500) };
        let starved = found(&[starved(0), starved(1)]).unwrap();
        assert!(
            starved.1.contains("47.4 %") && matches!(starved.2, FindingCost::Unknown { .. }),
            "{starved:?}"
        );
        let both = [RankTime { runnable: 500, ..rank(0, 480, 20) }, rank(1, 120, 380)];
        let (_, words, cost) = found(&both).unwrap();
        assert!(words.starts_with("Give each rank the same work"));
        // The mean is 300 of 480, and the work takes 980 of 1000 with the time without a CPU.
        assert_eq!(cost.words(), "at most 36.8 % of the time");
        // Little is no finding, and one rank of a job on several machines waits for ranks that are not seen.
        assert_eq!(found(&[rank(0, 900, 100), rank(1, 900, 100)]), None);
        assert_eq!(found(&[rank(0, 100, 900)]), None);
    }
}
