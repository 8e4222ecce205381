//! What to try next: one table. A line is shown only when the recording supports it.

use super::criteria::{FULL_PERCENT, LOST_PERCENT, MAJOR_FAULTS, MANY_FAULTS, MANY_MOVES};
use super::value::{Advice, Bottleneck, Grade, Report};
use crate::units::{NumberStyle, duration};
use numakit_sensors::COUNT_ALLOCATIONS;

/// What speaks for a line, and the node that it is about.
type Found = Option<(String, Option<u32>)>;

struct Line {
    name: &'static str,
    /// Looks whether the report supports it.
    when: fn(&Report) -> Found,
    /// `{node}` and `{command}` are put in, and `{slower}`, an interval twice as long.
    commands: &'static [&'static str],
}

const LINES: &[Line] = &[
    Line { name: "count allocations", when: counters_off, commands: &[COUNT_ALLOCATIONS] },
    Line {
        name: "keep threads beside their memory",
        when: remote,
        commands: &[
            "numactl --cpunodebind={node} --membind={node} {command}",
            "numa stat --per node -e 'node.local_node,node.other_node,node.numa_miss,node.numa_foreign'",
        ],
    },
    Line {
        name: "find who uses far memory",
        when: far,
        commands: &["numa tasks", "numa record -e task,node --pid PID"],
    },
    Line {
        name: "use the memory of more nodes",
        when: crowded,
        commands: &["numa stat -m dram_bandwidth,dram_util --per node", "numactl --interleave=all {command}"],
    },
    Line {
        name: "make room or spread",
        when: overflowed,
        commands: &[
            "numa stat --per node -e 'node.MemFree,node.numa_foreign,node.FilePages'",
            "numactl --interleave=all {command}",
        ],
    },
    Line {
        name: "bind what is used from afar",
        when: remote_accesses,
        commands: &[
            "numactl --cpunodebind=0 --membind=0 {command}",
            "numa stat -e 'vmstat.numa_hint*,vmstat.numa_pages_migrated'",
        ],
    },
    Line {
        name: "stop moving pages",
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
        name: "need less memory",
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
        let filled = |text: &&str| {
            text.replace("{node}", &node).replace("{slower}", &slower).replace("{command}", command)
        };
        Some(Advice { name: line.name, because, commands: line.commands.iter().map(filled).collect() })
    };
    LINES.iter().filter_map(line).collect()
}

/// As `-i` takes it.
fn interval(seconds: f64) -> String {
    duration(seconds).replace(' ', "")
}

fn counters_off(report: &Report) -> Found {
    let mut reasons = report.losses.absent.iter().map(|g| &g.why);
    let why = reasons.find(|why| why.fix.is_command(COUNT_ALLOCATIONS))?;
    Some((why.seen.clone(), None))
}

fn remote(report: &Report) -> Found {
    let worst = report.locality.worst()?;
    Some((
        format!("node {} is {}: {}", worst.node, worst.verdict.word, worst.verdict.because),
        Some(worst.node),
    ))
}

fn far(report: &Report) -> Found {
    sufferer(report, Bottleneck::Remote)
}

fn crowded(report: &Report) -> Found {
    sufferer(report, Bottleneck::Memory)
}

fn sufferer(report: &Report, bottleneck: Bottleneck) -> Found {
    let worst = report.suffering.sufferers.iter().find(|s| s.bottleneck == bottleneck)?;
    let because =
        format!("{} {} ({} {})", worst.who, worst.does, NumberStyle::Percent.words(worst.percent), worst.of);
    Some((because, None))
}

fn overflowed(report: &Report) -> Found {
    let (node, sign) = report.locality.nodes.iter().find_map(|n| Some((n, n.overflow.sign()?)))?;
    let memory = report.memory.iter().find(|m| m.node == Some(node.node));
    let full = memory.filter(|m| m.total_bytes.is_some_and(|t| m.least_bytes * 100.0 < t * FULL_PERCENT));
    let free = full.map_or_else(String::new, |m| {
        format!("; it had only {} free", NumberStyle::Bytes.words(m.least_bytes))
    });
    Some((format!("node {} {sign}{free}", node.node), Some(node.node)))
}

fn remote_accesses(report: &Report) -> Found {
    let verdict = &report.locality.accesses;
    let bad = verdict.grade == Grade::Notable;
    bad.then(|| (format!("sampled accesses are {}: {}", verdict.word, verdict.because), None))
}

fn moving(report: &Report) -> Found {
    let rate = report.faults.pages_moved_per_second.filter(|&r| r >= MANY_MOVES)?;
    report.faults.hint_per_second.filter(|&r| r > 0.0)?;
    Some((format!("{} pages were moved between nodes or places", NumberStyle::Rate.words(rate)), None))
}

fn huge_refused(report: &Report) -> Found {
    let verdict = &report.faults.huge_pages;
    let bad = verdict.grade == Grade::Notable;
    bad.then(|| (format!("huge pages were {}: {}", verdict.word, verdict.because), None))
}

fn no_huge(report: &Report) -> Found {
    let rate = report.faults.minor_per_second.filter(|&r| r >= MANY_FAULTS)?;
    let asked = report.faults.huge? + report.faults.small?;
    let why = format!("{} page faults, and hardly any asked for a huge page", NumberStyle::Rate.words(rate));
    (asked * 100.0 < report.faults.minor?).then_some((why, None))
}

fn storage(report: &Report) -> Found {
    let rate = report.faults.major_per_second.filter(|&r| r >= MAJOR_FAULTS)?;
    Some((format!("{} page faults waited for storage", NumberStyle::Rate.words(rate)), None))
}

fn stalled(report: &Report) -> Found {
    let verdict = &report.pressure.memory;
    let bad = verdict.grade == Grade::Notable;
    bad.then(|| (format!("threads waited for memory {}", verdict.because), None))
}

fn lost(report: &Report) -> Found {
    let losses = &report.losses;
    let why = format!("{} of the ticks were lost", NumberStyle::Percent.words(losses.lost_percent));
    (losses.lost_percent >= LOST_PERCENT).then_some((why, None))
}

/// Too little was recorded to judge, on a machine that could be judged.
fn short(report: &Report) -> Found {
    let verdict = &report.locality.verdict;
    let few =
        verdict.grade == Grade::CannotTell && verdict.events.is_some() && !report.locality.nodes.is_empty();
    few.then(|| (verdict.because.clone(), None))
}
