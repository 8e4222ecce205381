//! What became of a process that was placed while it ran, in words.

use numakit_launch::Replaced;
use numakit_model::Plan;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bytes of a process by node.
type Memory = BTreeMap<u32, u64>;

/// Threads, memory, and what could not be done. The memory is that before and after, where the
/// kernel says.
pub fn report(
    pid: u32,
    plan: &Plan,
    replaced: &Replaced,
    before: Option<&Memory>,
    after: Option<&Memory>,
) -> String {
    let mut text = String::new();
    for (thread, cpu) in &replaced.bound {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "thread {thread}: CPU {cpu}");
    }
    if !replaced.free.is_empty() {
        let (count, cpus) = (replaced.free.len(), plan.cpus());
        let _ = writeln!(text, "{count} further threads: CPUs {cpus}");
    }
    let elsewhere = |memory: &Memory| -> u64 {
        memory.iter().filter(|(node, _)| !replaced.nodes.contains(**node)).map(|(_, bytes)| bytes).sum()
    };
    let nodes = &replaced.nodes;
    let _ = match (before.map(elsewhere), after.map(elsewhere)) {
        (Some(0), _) => writeln!(text, "memory: all of it was on nodes {nodes} already"),
        (Some(before), Some(after)) => {
            let moved = kib(before.saturating_sub(after));
            writeln!(text, "memory: {moved} of {} moved to nodes {nodes}", kib(before))
        }
        _ => writeln!(text, "memory: moved to nodes {nodes}; how much is not known"),
    };
    if replaced.stacks > 0 {
        let _ = writeln!(text, "stacks: {} pages moved to the nodes of their threads", replaced.stacks);
    }
    if replaced.left > 0 {
        let _ = writeln!(text, "{} pages could not be moved: they are shared or in use", replaced.left);
    }
    for failure in &replaced.failures {
        let _ = writeln!(text, "process {pid}: {failure}");
    }
    text
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_is_the_difference_of_two_looks() {
        let replaced = Replaced {
            bound: vec![(40, 2), (41, 3)],
            nodes: "1".parse().unwrap(),
            stacks: 3,
            ..Replaced::default()
        };
        let (before, after) = (Memory::from([(0, 40 << 10), (1, 8)]), Memory::from([(0, 4 << 10), (1, 9)]));
        let text = report(40, &Plan::default(), &replaced, Some(&before), Some(&after));
        assert_eq!(
            text,
            "thread 40: CPU 2\nthread 41: CPU 3\nmemory: 36 KiB of 40 KiB moved to nodes 1\n\
             stacks: 3 pages moved to the nodes of their threads\n"
        );
        let text = report(40, &Plan::default(), &replaced, Some(&Memory::new()), None);
        assert!(text.contains("already"), "{text}");
        assert!(report(40, &Plan::default(), &replaced, None, None).contains("not known"));
    }
}
