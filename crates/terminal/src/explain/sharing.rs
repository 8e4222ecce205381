//! Threads that use the same data.

use numakit_cure::together;
use numakit_explain::sharing::ThreadSharing;
use numakit_findings::explained::JudgedReport;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Groups of threads that are named, and threads of a group.
const MAX_GROUPS: usize = 4;
const MAX_THREADS: usize = 8;

/// Which threads use the same data, if a cure brings them together.
pub(super) fn line(judged: &JudgedReport) -> Option<String> {
    let offered = judged.cure.as_ref().is_some_and(|cure| !cure.sharing.is_empty());
    judged.report.explanation.sharing.as_ref().filter(|_| offered).map(words)
}

fn words(sharing: &ThreadSharing) -> String {
    let ThreadSharing { threads, node_threads, pairs, shared, .. } = sharing;
    let created: Vec<u32> = (0..threads.len() as u32).map(|place| place / node_threads.max(&1)).collect();
    let arranged = together::arranged(pairs, threads, &created);
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    threads.iter().zip(&arranged).for_each(|(thread, node)| groups.entry(*node).or_default().push(*thread));
    let mut groups: Vec<Vec<u32>> = groups.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    let mut text = "Threads ".to_owned();
    for (at, group) in groups.iter().take(MAX_GROUPS).enumerate() {
        let names: Vec<String> = group.iter().take(MAX_THREADS).map(u32::to_string).collect();
        let more = if group.len() > MAX_THREADS { " and others" } else { "" };
        let names = match names.as_slice() {
            [one, other] => format!("{one} and {other}"),
            all => all.join(" "),
        };
        // Writing to a string cannot fail.
        _ = write!(text, "{}{names}{more}", if at == 0 { "" } else { ", " });
    }
    if groups.len() > MAX_GROUPS {
        text.push_str(", ...");
    }
    let part = 100.0 * together::within(pairs, threads, &arranged) / shared.max(1e-9);
    _ = writeln!(
        text,
        " use the same data, {part:.0} % of what threads share; 'numa run --apply' gives them cores of one node."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_cure::SharingThreads;

    #[test]
    fn groups_of_threads_are_named() {
        let pairs = |all: &[[u32; 2]]| {
            all.iter().map(|threads| SharingThreads { threads: *threads, share: 0.1 }).collect()
        };
        let sharing = |pairs, node_threads| ThreadSharing {
            threads: (0..8).collect(),
            node_threads,
            shared: 0.5,
            pairs,
            ..ThreadSharing::default()
        };
        assert_eq!(
            words(&sharing(pairs(&[[0, 4], [1, 5], [2, 6], [3, 7]]), 2)),
            "Threads 0 and 4, 1 and 5, 2 and 6, 3 and 7 use the same data, 80 % of what threads share; 'numa run --apply' gives them cores of one node.\n"
        );
        let four = words(&sharing(pairs(&[[0, 2], [2, 4], [4, 6], [1, 3], [3, 5]]), 4));
        assert!(four.starts_with("Threads 0 2 4 6, 1 3 5 7 use"), "{four}");
    }
}
