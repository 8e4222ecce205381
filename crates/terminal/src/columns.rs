//! The figures that people look at: one table of columns, each a formula over series. The
//! table of `numa stat`, its documents and the report all take them from here.

mod formula;

pub use formula::{Bound, Formula, Index};

use crate::units::Quantity::{self, Bytes, Percent, Rate};
use formula::Formula::{Less, Of, Share, Sum};

/// What has a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// The machine: series of several nodes or CPUs are added up.
    Machine,
    /// Each node; the CPUs of a node are added up.
    Node,
    /// Each CPU.
    Cpu,
}

impl Per {
    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Node => "node",
            Self::Cpu => "cpu",
        }
    }
}

/// A column.
#[derive(Debug)]
pub struct Column {
    /// Its name in CSV and JSON, for ever.
    pub name: &'static str,
    /// Heading that it shares with its neighbours.
    pub group: &'static str,
    /// Its own heading.
    pub heading: &'static str,
    /// Width of its fields.
    pub width: usize,
    /// What the number is.
    pub quantity: Quantity,
    /// Where it comes from.
    pub formula: Formula,
    /// The tables that have it.
    pub per: &'static [Per],
    /// One sentence.
    pub help: &'static str,
}

const M: &[Per] = &[Per::Machine];
const N: &[Per] = &[Per::Node];
const C: &[Per] = &[Per::Cpu];
const MN: &[Per] = &[Per::Machine, Per::Node];
const MNC: &[Per] = &[Per::Machine, Per::Node, Per::Cpu];

const LOCAL: &[&str] = &["vmstat.numa_local", "node.local_node"];
const OTHER: &[&str] = &["vmstat.numa_other", "node.other_node"];
/// All that a CPU does; guests are part of user and nice.
const ALL_TICKS: &[&[&str]] = &[
    &["cpu.user"],
    &["cpu.nice"],
    &["cpu.system"],
    &["cpu.idle"],
    &["cpu.iowait"],
    &["cpu.irq"],
    &["cpu.softirq"],
    &["cpu.steal"],
];
const USER: &[&[&str]] = &[&["cpu.user"], &["cpu.nice"]];
const SYSTEM: &[&[&str]] = &[&["cpu.system"], &["cpu.irq"], &["cpu.softirq"]];
const IDLE: &[&[&str]] = &[&["cpu.idle"], &["cpu.iowait"]];

const fn column(
    (name, group, heading, width): (&'static str, &'static str, &'static str, usize),
    quantity: Quantity,
    formula: Formula,
    per: &'static [Per],
    help: &'static str,
) -> Column {
    Column { name, group, heading, width, quantity, formula, per, help }
}

/// Every column, in the order in which it is shown.
pub static COLUMNS: &[Column] = &[
    column(
        ("free", "memory", "free", 6),
        Bytes,
        Of(&["vmstat.nr_free_pages", "node.MemFree"]),
        MN,
        "Free memory.",
    ),
    column(
        ("anon", "memory", "anon", 6),
        Bytes,
        Of(&["node.AnonPages"]),
        N,
        "Memory of programs that is not from files.",
    ),
    column(("file", "memory", "file", 6), Bytes, Of(&["node.FilePages"]), N, "Page cache and shared memory."),
    column(
        ("local", "alloc/s", "loc%", 4),
        Percent,
        Share(&[LOCAL], &[LOCAL, OTHER]),
        MN,
        "Share of allocations made by a CPU of the node that the memory is on.",
    ),
    column(
        ("allocations", "alloc/s", "all", 5),
        Rate,
        Sum(&[LOCAL, OTHER]),
        N,
        "Allocations that got memory on the node, whatever their size.",
    ),
    column(
        ("miss", "alloc/s", "miss", 5),
        Rate,
        Of(&["vmstat.numa_miss", "node.numa_miss"]),
        MN,
        "Allocations that got memory here although they preferred another node.",
    ),
    column(
        ("foreign", "alloc/s", "forgn", 5),
        Rate,
        Of(&["node.numa_foreign"]),
        N,
        "Allocations that preferred this node but got memory on another.",
    ),
    column(
        ("interleave", "alloc/s", "intlv", 5),
        Rate,
        Of(&["node.interleave_hit"]),
        N,
        "Interleaved allocations that got memory on the node when it had its turn.",
    ),
    column(
        ("minor", "faults/s", "minor", 5),
        Rate,
        Less(&["vmstat.pgfault"], &["vmstat.pgmajfault"]),
        M,
        "Page faults that did not wait for storage.",
    ),
    column(
        ("major", "faults/s", "major", 5),
        Rate,
        Of(&["vmstat.pgmajfault"]),
        M,
        "Page faults that waited for storage.",
    ),
    column(
        ("huge", "faults/s", "huge", 5),
        Rate,
        Of(&["vmstat.thp_fault_alloc"]),
        M,
        "Page faults that got a transparent huge page.",
    ),
    column(
        ("small", "faults/s", "small", 5),
        Rate,
        Of(&["vmstat.thp_fault_fallback"]),
        M,
        "Page faults that got small pages because no huge page was to be had.",
    ),
    column(
        ("hint", "faults/s", "hint", 5),
        Rate,
        Of(&["vmstat.numa_hint_faults"]),
        M,
        "Faults by which NUMA balancing samples who uses which memory.",
    ),
    column(
        ("hint_local", "faults/s", "loc%", 4),
        Percent,
        Share(&[&["vmstat.numa_hint_faults_local"]], &[&["vmstat.numa_hint_faults"]]),
        M,
        "Share of these by a CPU of the memory's own node.",
    ),
    column(
        ("user", "time %", "user", 4),
        Percent,
        Share(USER, ALL_TICKS),
        MNC,
        "CPU time in programs, with niced ones and guests.",
    ),
    column(
        ("system", "time %", "sys", 4),
        Percent,
        Share(SYSTEM, ALL_TICKS),
        MNC,
        "CPU time in the kernel, with interrupts.",
    ),
    column(
        ("idle", "time %", "idle", 4),
        Percent,
        Share(IDLE, ALL_TICKS),
        MNC,
        "CPU time with nothing to do, with waiting for storage.",
    ),
    column(
        ("iowait", "time %", "wait", 4),
        Percent,
        Share(&[&["cpu.iowait"]], ALL_TICKS),
        C,
        "Of the idle time, that in which a thread waited for storage.",
    ),
    column(
        ("interrupts", "time %", "irq", 4),
        Percent,
        Share(&[&["cpu.irq"], &["cpu.softirq"]], ALL_TICKS),
        C,
        "Of the kernel's time, that for interrupts.",
    ),
    column(
        ("steal", "time %", "steal", 5),
        Percent,
        Share(&[&["cpu.steal"]], ALL_TICKS),
        C,
        "CPU time that the host gave to others.",
    ),
    column(
        ("stall", "time %", "stall", 5),
        Percent,
        Of(&["pressure.memory_some"]),
        M,
        "Time in which at least one thread waited for memory.",
    ),
    column(
        ("moved", "events/s", "moved", 5),
        Rate,
        Of(&["vmstat.pgmigrate_success"]),
        M,
        "Pages moved in memory, for whatever reason.",
    ),
    column(
        ("switches", "events/s", "ctxsw", 5),
        Rate,
        Of(&["cpu.context_switches"]),
        M,
        "Changes from one thread to another.",
    ),
    column(("lost", "events/s", "lost", 4), Rate, Of(&["self.lost"]), M, "Ticks that the sampler missed."),
    column(
        ("promoted", "pages/s", "up", 5),
        Rate,
        Of(&["node.pgpromote_success"]),
        N,
        "Pages moved up to this node from slower memory.",
    ),
    column(
        ("demoted", "pages/s", "down", 5),
        Rate,
        Sum(&[
            &["node.pgdemote_kswapd"],
            &["node.pgdemote_direct"],
            &["node.pgdemote_khugepaged"],
            &["node.pgdemote_proactive"],
        ]),
        N,
        "Pages moved down from this node to slower memory.",
    ),
];

/// The columns of a table.
pub fn columns(per: Per) -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(move |c| c.per.contains(&per))
}

/// The column of that name.
pub fn named(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|c| c.name == name)
}

#[cfg(test)]
mod tests;
