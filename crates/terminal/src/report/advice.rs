//! What to try next: one table. A line is shown only if the recording supports it.

use super::criteria::{FULL_PERCENT, LOST_PERCENT, MAJOR_FAULTS, MANY_FAULTS, MANY_MOVES};
use super::value::{Advice, BottleneckKind, Grade, Report};
use crate::units::{NumberStyle, duration};
use numakit_sensors::COUNT_ALLOCATIONS;

/// The evidence for a line, and its node.
type Evidence = Option<(String, Option<u32>)>;

struct Line {
    name: &'static str,
    /// The evidence for it in the report.
    when: fn(&Report) -> Evidence,
    /// `{node}` and `{command}` are replaced, and `{slower}` by an interval twice as long.
    commands: &'static [&'static str],
}

const LINES: &[Line] = &[
    Line { name: "count allocations", when: counters_off, commands: &[COUNT_ALLOCATIONS] },
    Line {
        name: "run threads on the node of their memory",
        when: remote,
        commands: &[
            "numactl --cpunodebind={node} --membind={node} {command}",
            "numa stat --per node -e 'node.local_node,node.other_node,node.numa_miss,node.numa_foreign'",
        ],
    },
    Line {
        name: "find the processes that use remote memory",
        when: far,
        commands: &["numa tasks", "numa record -e task,node --pid PID"],
    },
    Line {
        name: "use the memory of more nodes",
        when: crowded,
        commands: &["numa stat -m dram_bandwidth,dram_util --per node", "numactl --interleave=all {command}"],
    },
    Line {
        name: "free memory on the node, or interleave",
        when: overflowed,
        commands: &[
            "numa stat --per node -e 'node.MemFree,node.numa_foreign,node.FilePages'",
            "numactl --interleave=all {command}",
        ],
    },
    Line {
        name: "bind threads and memory to one node",
        when: remote_accesses,
        commands: &[
            "numactl --cpunodebind=0 --membind=0 {command}",
            "numa stat -e 'vmstat.numa_hint*,vmstat.numa_pages_migrated'",
        ],
    },
    Line {
        name: "stop page migration",
        when: moving,
        commands: &[
            "sysctl kernel.numa_balancing=0",
            "numa stat -e 'vmstat.numa_pages_migrated,vmstat.pgmigrate_success'",
        ],
    },
    Line {
        name: "make huge pages available",
        when: huge_refused,
        commands: &["echo 1 > /proc/sys/vm/compact_memory", "cat /sys/kernel/mm/transparent_hugepage/defrag"],
    },
    Line {
        name: "use huge pages",
        when: no_huge,
        commands: &[
            "cat /sys/kernel/mm/transparent_hugepage/enabled",
            "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
        ],
    },
    Line {
        name: "avoid waiting for storage",
        when: storage,
        commands: &[
            "numa stat -e 'vmstat.pgmajfault,vmstat.pswpin,vmstat.pgpgin,vmstat.workingset_refault_file'",
        ],
    },
    Line {
        name: "use less memory",
        when: stalled,
        commands: &["numa stat -e 'pressure.memory*,vmstat.pgscan_direct,vmstat.nr_free_pages'"],
    },
    Line { name: "sample less often", when: lost, commands: &["numa record -i {slower} -- {command}"] },
    Line { name: "record longer", when: short, commands: &["numa record -i 1ms -- {command}"] },
];

pub(super) fn advice(report: &Report) -> Vec<Advice> {
    let command = report.recording.command.as_deref().unwrap_or("COMMAND");
    let slower = report.recording.interval_seconds.map_or_else(|| "10ms".into(), |s| interval(2.0 * s));
    let line = |line: &Line| {
        let (because, node) = (line.when)(report)?;
        let node = node.map_or_else(|| "0".to_owned(), |n| n.to_string());
        let fill = |text: &&str| {
            text.replace("{node}", &node).replace("{slower}", &slower).replace("{command}", command)
        };
        Some(Advice { name: line.name, because, commands: line.commands.iter().map(fill).collect() })
    };
    LINES.iter().filter_map(line).collect()
}

/// In the form of the option `-i`.
fn interval(seconds: f64) -> String {
    duration(seconds).replace(' ', "")
}

fn counters_off(report: &Report) -> Evidence {
    let mut reasons = report.losses.absent.iter().map(|g| &g.why);
    let why = reasons.find(|why| why.fix.is_command(COUNT_ALLOCATIONS))?;
    Some((why.seen.clone(), None))
}

fn remote(report: &Report) -> Evidence {
    let worst = report.locality.worst()?;
    Some((
        format!("node {} is {}: {}", worst.node, worst.verdict.word, worst.verdict.because),
        Some(worst.node),
    ))
}

fn far(report: &Report) -> Evidence {
    worst(report, BottleneckKind::Remote)
}

fn crowded(report: &Report) -> Evidence {
    worst(report, BottleneckKind::Memory)
}

fn worst(report: &Report, kind: BottleneckKind) -> Evidence {
    let worst = report.bottlenecks.found.iter().find(|b| b.kind == kind)?;
    let because =
        format!("{} {} ({} {})", worst.who, worst.does, NumberStyle::Percent.words(worst.percent), worst.of);
    Some((because, None))
}

fn overflowed(report: &Report) -> Evidence {
    let (node, sign) = report.locality.nodes.iter().find_map(|n| Some((n, n.overflow.sign()?)))?;
    let memory = report.memory.iter().find(|m| m.node == Some(node.node));
    let full = memory.filter(|m| m.total_bytes.is_some_and(|t| m.least_bytes * 100.0 < t * FULL_PERCENT));
    let free = full.map_or_else(String::new, |m| {
        format!("; it had only {} free", NumberStyle::Bytes.words(m.least_bytes))
    });
    Some((format!("node {} {sign}{free}", node.node), Some(node.node)))
}

fn remote_accesses(report: &Report) -> Evidence {
    let verdict = &report.locality.accesses;
    let bad = verdict.grade == Grade::Notable;
    bad.then(|| (format!("sampled accesses are {}: {}", verdict.word, verdict.because), None))
}

fn moving(report: &Report) -> Evidence {
    let rate = report.faults.pages_moved_per_second.filter(|&r| r >= MANY_MOVES)?;
    report.faults.hint_per_second.filter(|&r| r > 0.0)?;
    Some((format!("{} pages were migrated", NumberStyle::Rate.words(rate)), None))
}

fn huge_refused(report: &Report) -> Evidence {
    let verdict = &report.faults.huge_pages;
    let bad = verdict.grade == Grade::Notable;
    bad.then(|| (format!("huge pages were {}: {}", verdict.word, verdict.because), None))
}

fn no_huge(report: &Report) -> Evidence {
    let rate = report.faults.minor_per_second.filter(|&r| r >= MANY_FAULTS)?;
    let asked = report.faults.huge? + report.faults.small?;
    let why = format!("{} page faults, and hardly any asked for a huge page", NumberStyle::Rate.words(rate));
    (asked * 100.0 < report.faults.minor?).then_some((why, None))
}

fn storage(report: &Report) -> Evidence {
    let rate = report.faults.major_per_second.filter(|&r| r >= MAJOR_FAULTS)?;
    Some((format!("{} page faults waited for storage", NumberStyle::Rate.words(rate)), None))
}

fn stalled(report: &Report) -> Evidence {
    let verdict = &report.pressure.memory;
    let bad = verdict.grade == Grade::Notable;
    bad.then(|| (format!("threads waited for memory {}", verdict.because), None))
}

fn lost(report: &Report) -> Evidence {
    let losses = &report.losses;
    let why = format!("{} of the ticks were lost", NumberStyle::Percent.words(losses.lost_percent));
    (losses.lost_percent >= LOST_PERCENT).then_some((why, None))
}

/// Too few events for a verdict, on a machine that has the counters.
fn short(report: &Report) -> Evidence {
    let verdict = &report.locality.verdict;
    let few =
        verdict.grade == Grade::CannotTell && verdict.events.is_some() && !report.locality.nodes.is_empty();
    few.then(|| (verdict.because.clone(), None))
}
