//! The ranks of an MPI job: a table of their time.

use numakit_explain::ranks::RankTime;
use std::fmt::Write;

/// The table, at most `rows` ranks: those that waited least are what the others wait for, and come first. One rank has no other.
pub fn table(ranks: &[RankTime], rows: usize) -> String {
    if ranks.len() < 2 {
        return String::new();
    }
    let used = |rank: &RankTime| (rank.worked + rank.waited).max(1) as f64;
    let mut shown: Vec<&RankTime> = ranks.iter().collect();
    shown.sort_by_key(|rank| (std::cmp::Reverse(rank.worked), rank.rank));
    let mut out = "\n   RANK  PROCESS  WORKS%  WAITS%  NO CPU%  WAITS IN\n".to_owned();
    for rank in shown.into_iter().take(rows) {
        let part = |time: u64, of: f64| time as f64 / of * 100.0;
        let could_run = used(rank) + rank.runnable as f64;
        let calls: Vec<&str> = rank.calls.iter().map(|call| call.function.as_str()).collect();
        let calls = if calls.is_empty() { "-".to_owned() } else { calls.join(", ") };
        // Writing to a string cannot fail.
        _ = writeln!(
            out,
            " {:6} {:>8} {:7.1} {:7.1} {:8.1}  {calls}",
            rank.rank,
            rank.pid,
            part(rank.worked, used(rank)),
            part(rank.waited, used(rank)),
            part(rank.runnable, could_run),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_explain::ranks::MpiCall;

    #[test]
    fn the_rank_with_most_work_comes_first() {
        let rank = |rank, worked, waited| RankTime {
            rank,
            pid: 100 + rank,
            worked,
            waited,
            runnable: 250,
            observed: 1000,
            calls: vec![MpiCall { function: "MPI_Barrier".to_owned(), time: waited }],
        };
        let expected = "\n   RANK  PROCESS  WORKS%  WAITS%  NO CPU%  WAITS IN\n\
                        \x20     1      101    75.0    25.0     20.0  MPI_Barrier\n\
                        \x20     0      100    50.0    50.0     20.0  MPI_Barrier\n";
        let ranks = [rank(0, 500, 500), rank(1, 750, 250)];
        assert_eq!(table(&ranks, 9), expected);
        assert_eq!(table(&ranks, 1).lines().count(), 3);
        assert_eq!(table(&ranks[..1], 9), "");
    }
}
