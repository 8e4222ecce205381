//! The default columns: one table of columns, each the formula of its
//! name. The table of `numa stat`, its documents and the report all take them from here.

pub use numakit_findings::series::{bind_metric, bind_series, convert, index};

use numakit_formulas::{Catalog, Formula, Quantity};
use numakit_model::numbers::NumberStyle;

/// What each line of a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// The machine: series of several nodes or CPUs are summed.
    Machine,
    /// Each package; its nodes and CPUs are summed.
    Package,
    /// Each node; the CPUs of a node are summed.
    Node,
    /// Each CPU.
    Cpu,
    /// Each interconnect card.
    Device,
}

impl Per {
    /// Every table, the coarsest first.
    pub const ALL: [Self; 5] = [Self::Machine, Self::Package, Self::Node, Self::Cpu, Self::Device];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Package => "package",
            Self::Node => "node",
            Self::Cpu => "cpu",
            Self::Device => "device",
        }
    }
}

/// A column.
#[derive(Debug)]
pub struct TableColumn {
    /// Its name in CSV and JSON, which never changes, and the name of its formula.
    pub name: &'static str,
    /// Heading that it shares with its neighbours.
    pub group: &'static str,
    /// Its own heading.
    pub heading: &'static str,
    /// Width of its fields.
    pub width: usize,
    /// The tables that have it.
    pub per: &'static [Per],
}

impl TableColumn {
    /// The formula of its values.
    pub fn formula<'a>(&self, formulas: &'a Catalog) -> Option<&'a Formula> {
        formulas.get(self.name)
    }
}

/// How a value of that quantity is written.
pub fn number_style(quantity: Quantity) -> NumberStyle {
    match quantity {
        Quantity::Percent => NumberStyle::Percent,
        Quantity::Bytes => NumberStyle::Bytes,
        Quantity::BytesPerSecond | Quantity::PerSecond => NumberStyle::Rate,
        Quantity::Count => NumberStyle::Count,
        Quantity::Seconds => NumberStyle::Seconds,
        Quantity::Nanoseconds | Quantity::Ratio => NumberStyle::Ratio,
    }
}

const M: &[Per] = &[Per::Machine];
const N: &[Per] = &[Per::Node];
const C: &[Per] = &[Per::Cpu];
const P: &[Per] = &[Per::Package];
const D: &[Per] = &[Per::Device];
const NP: &[Per] = &[Per::Node, Per::Package];
const MNP: &[Per] = &[Per::Machine, Per::Node, Per::Package];
const MNPC: &[Per] = &[Per::Machine, Per::Node, Per::Package, Per::Cpu];

const fn column(
    name: &'static str,
    group: &'static str,
    heading: &'static str,
    width: usize,
    per: &'static [Per],
) -> TableColumn {
    TableColumn { name, group, heading, width, per }
}

/// Every column, in the order in which it is shown.
pub static COLUMNS: &[TableColumn] = &[
    column("free", "memory", "free", 6, MNP),
    column("anon", "memory", "anon", 6, N),
    column("file", "memory", "file", 6, N),
    column("local", "alloc/s", "loc%", 4, MNP),
    column("allocations", "alloc/s", "all", 5, N),
    column("miss", "alloc/s", "miss", 4, MNP),
    column("foreign", "alloc/s", "forgn", 5, N),
    column("interleave", "alloc/s", "intlv", 5, N),
    column("remote_share", "access", "rem%", 4, NP),
    column("dram_bandwidth", "traffic", "dram", 5, P),
    column("link_util", "traffic", "link%", 5, P),
    column("minor", "faults/s", "minor", 5, M),
    column("major", "faults/s", "major", 5, M),
    column("huge", "faults/s", "huge", 4, M),
    column("small", "faults/s", "small", 5, M),
    column("hint", "faults/s", "hint", 4, M),
    column("hint_local", "faults/s", "loc%", 4, M),
    column("user", "time %", "user", 4, MNPC),
    column("system", "time %", "sys", 4, MNPC),
    column("idle", "time %", "idle", 4, MNPC),
    column("iowait", "time %", "wait", 4, C),
    column("interrupts", "time %", "irq", 4, C),
    column("steal", "time %", "st", 3, MNPC),
    column("stall", "time %", "stall", 5, M),
    column("moved", "events/s", "migr", 5, M),
    column("switches", "events/s", "ctxsw", 5, M),
    column("lost", "events/s", "lost", 4, M),
    column("promoted", "pages/s", "promo", 5, N),
    column("demoted", "pages/s", "demo", 5, N),
    column("link_in", "bytes/s", "in", 5, D),
    column("link_out", "bytes/s", "out", 5, D),
    column("n2CycRmpeHalf", "half full %", "RMPE", 5, D),
    column("n2CycHalfLmpeUsed", "half full %", "LMPE", 5, D),
];

/// The columns of a table.
pub fn columns(per: Per) -> impl Iterator<Item = &'static TableColumn> {
    COLUMNS.iter().filter(move |c| c.per.contains(&per))
}

#[cfg(test)]
mod tests;
