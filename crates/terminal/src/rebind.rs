//! The result of placing a running process, in words.

use numakit_launch::RebindReport;
use numakit_model::Plan;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bytes of a process by node.
type Memory = BTreeMap<u32, u64>;

/// Threads, memory, and what failed. `before` and `after` are the memory by node, if known.
pub fn report(
    pid: u32,
    plan: &Plan,
    result: &RebindReport,
    before: Option<&Memory>,
    after: Option<&Memory>,
) -> String {
    let mut text = String::new();
    for (thread, cpu) in &result.bound {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "thread {thread}: CPU {cpu}");
    }
    if !result.unbound.is_empty() {
        let (count, cpus) = (result.unbound.len(), plan.cpus());
        let _ = writeln!(text, "{count} further threads: CPUs {cpus}");
    }
    let on_other_nodes = |memory: &Memory| -> u64 {
        memory.iter().filter(|(node, _)| !result.nodes.contains(**node)).map(|(_, bytes)| bytes).sum()
    };
    let nodes = &result.nodes;
    let _ = match (before.map(on_other_nodes), after.map(on_other_nodes)) {
        (Some(0), _) => writeln!(text, "memory: all of it was already on nodes {nodes}"),
        (Some(before), Some(after)) => {
            let moved = kib(before.saturating_sub(after));
            writeln!(text, "memory: {moved} of {} moved to nodes {nodes}", kib(before))
        }
        _ => writeln!(text, "memory: moved to nodes {nodes}; how much is unknown"),
    };
    if result.stacks > 0 {
        let _ = writeln!(text, "stacks: {} pages moved to the nodes of their threads", result.stacks);
    }
    if result.left > 0 {
        let _ = writeln!(text, "{} pages could not be moved: they are shared or in use", result.left);
    }
    for failure in &result.failures {
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
    fn the_memory_that_moved_is_the_difference() {
        let result = RebindReport {
            bound: vec![(40, 2), (41, 3)],
            nodes: "1".parse().unwrap(),
            stacks: 3,
            ..RebindReport::default()
        };
        let (before, after) = (Memory::from([(0, 40 << 10), (1, 8)]), Memory::from([(0, 4 << 10), (1, 9)]));
        let text = report(40, &Plan::default(), &result, Some(&before), Some(&after));
        assert_eq!(
            text,
            "thread 40: CPU 2\nthread 41: CPU 3\nmemory: 36 KiB of 40 KiB moved to nodes 1\n\
             stacks: 3 pages moved to the nodes of their threads\n"
        );
        let text = report(40, &Plan::default(), &result, Some(&Memory::new()), None);
        assert!(text.contains("already"), "{text}");
        assert!(report(40, &Plan::default(), &result, None, None).contains("unknown"));
    }
}
