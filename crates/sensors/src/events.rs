//! Hardware events: text tables in `data/events/`, one per platform, and the classes in
//! `data/classes.txt`, under which events of all vendors have the same name.

mod class;
mod fields;
mod identity;
mod parse;
#[cfg(test)]
mod tests;

pub use class::{Class, class, classes};
pub use fields::FieldsError;
pub use identity::Identity;
pub use parse::TableError;
pub(crate) use parse::index_of;

use crate::glob::Pattern;
use crate::pmu::format::FormatError;
use crate::pmu::{DEVICES, Factor, Formats, Pmu, Terms};
use numakit_model::{Confidence, CpuSet};
use numakit_sys::SysRoot;
use numakit_sys::perf;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The events of a platform.
#[derive(Debug, Clone, PartialEq)]
pub struct EventTable {
    /// Its display name.
    pub platform: String,
    /// The source of the codes.
    pub source: String,
    /// Events by the PMUs that count them.
    pub sections: Vec<Section>,
}

/// Events of the same PMUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Patterns over names of PMUs.
    pub pmus: Vec<String>,
    /// Where the events are opened.
    pub open: Open,
    /// What a value belongs to.
    pub spread: Spread,
    /// Which of these PMUs have the events; `None`: all.
    pub condition: Option<Condition>,
    /// The events.
    pub events: Vec<PlatformEvent>,
}

/// Where the events of a section are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// On each CPU in the PMU's `cpumask`; on every CPU without one.
    Everywhere,
    /// On one CPU of each node, since all its cores count the same.
    OncePerNode,
    /// Once for every chip, whose number is the field `chip`.
    EachChip,
}

/// What a value of a section belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// The machine, if the kernel does not say where the PMUs are.
    Machine,
    /// The package of the CPU that the event is open on.
    Package,
    /// The node of that CPU.
    Node,
    /// A link of that package or node: see [`PlatformEvent::number`].
    Link,
    /// The path from the node of that CPU to another node: see [`PlatformEvent::number`].
    Target,
    /// The node of that CPU, as the sum over its CPUs.
    Cpu,
}

/// A file of a PMU that says whether it has the events of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its name in the folder of the PMU.
    pub file: String,
    /// A number or a pattern.
    pub value: String,
    /// Whether the content must be that value. If false, the file may also be missing.
    pub equal: bool,
}

/// An event, or several that differ by an index.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformEvent {
    /// Its name, with `[0-11]` in place of the index.
    pub name: String,
    /// The indices; only 0 without an index.
    pub indices: RangeInclusive<u32>,
    /// The number of the link or node of the first index, if the table states it.
    pub at: Option<u32>,
    /// The kernel's event with the terms.
    pub known: Option<String>,
    /// The terms, in addition to or instead of the kernel's.
    pub terms: Option<Terms>,
    /// The classes that it belongs to.
    pub feeds: Vec<Feed>,
    /// Confidence in its meaning.
    pub confidence: Confidence,
    /// One sentence.
    pub help: String,
}

/// That an event belongs to a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feed {
    /// The class.
    pub class: &'static Class,
    /// Converts a count into the unit of the class. `None`: it is not added, because another event
    /// counts the same or includes it.
    pub factor: Option<Factor>,
}

impl EventTable {
    /// Parses a table. It may only name classes of `classes.txt`.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        parse::table(text)
    }

    /// Every event, with its section.
    pub fn events(&self) -> impl Iterator<Item = (&Section, &PlatformEvent)> {
        self.sections.iter().flat_map(|s| s.events.iter().map(move |e| (s, e)))
    }
}

impl Section {
    /// Whether a PMU of this name can have the events, whatever the condition.
    pub fn is_for(&self, pmu: &str) -> bool {
        self.pmus.iter().any(|pattern| Pattern::new(pattern).fits(pmu))
    }

    /// Whether a PMU has these events, including the condition.
    pub fn holds(&self, root: &SysRoot, pmu: &str) -> bool {
        self.is_for(pmu) && self.condition.as_ref().is_none_or(|c| c.holds(root, pmu))
    }
}

impl Condition {
    fn holds(&self, root: &SysRoot, pmu: &str) -> bool {
        let content = root.text(&format!("{DEVICES}/{pmu}/{}", self.file));
        let fits = content.is_ok_and(|text| match (number(text.trim()), number(&self.value)) {
            (Some(content), Some(wanted)) => content == wanted,
            _ => Pattern::new(&self.value).fits(text.trim()),
        });
        fits == self.equal
    }
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

impl PlatformEvent {
    /// The name with an index in it.
    pub fn name_at(&self, index: u32) -> String {
        put_index(&self.name, &index.to_string())
    }

    /// The number of the link or node of an index: from the table, or the index, or the number at the
    /// end of the PMU's name.
    pub fn number(&self, index: u32, pmu: &str) -> Option<u32> {
        let indexed = self.name != self.name_at(0);
        match self.at {
            Some(at) => Some(at + (index - self.indices.start())),
            None if indexed => Some(index),
            None => crate::pmu::device::number(pmu),
        }
    }

    /// The fields of the event with their values. `known` are the kernel's events of the PMU; `chip`
    /// is the chip, in sections that open events once per chip.
    pub fn fields(
        &self,
        index: u32,
        chip: Option<u32>,
        known: &BTreeMap<String, String>,
    ) -> Result<Vec<(String, u64)>, FieldsError> {
        fields::fields(self, index, chip, known)
    }
}

/// Replaces `[0-11]` in a name.
pub(crate) fn put_index(name: &str, index: &str) -> String {
    match index_of(name) {
        Some((at, _)) => format!("{}{index}{}", &name[..at.start], &name[at.end..]),
        None => name.to_owned(),
    }
}

/// The name in tables of the generic cache events, which have no PMU: type `PERF_TYPE_HW_CACHE`.
pub const HW_CACHE: &str = "hw_cache";

/// A PMU for [`HW_CACHE`].
pub fn hw_cache() -> Result<Pmu, FormatError> {
    let fields = [("cache", "config:0-7"), ("op", "config:8-15"), ("result", "config:16-23")];
    Ok(Pmu {
        name: HW_CACHE.to_owned(),
        kind: perf::PerfEvent::CACHE,
        core: true,
        cpus: CpuSet::new(),
        formats: Formats::parse(fields)?,
        events: BTreeMap::new(),
    })
}

/// The tables for a machine: those that name its CPU, and those without a CPU that name one of its
/// PMUs.
pub fn tables(identity: &Identity, pmus: &[String]) -> Vec<EventTable> {
    let fitting = TABLES.iter().filter(|(_, text)| parse::fits(text, identity, pmus));
    // The tables are embedded; tests parse all of them.
    fitting.filter_map(|(_, text)| EventTable::parse(text).ok()).collect()
}

macro_rules! tables {
    ($($name:literal)*) => {
        /// Every table with the name of its file.
        pub static TABLES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../data/events/", $name, ".txt")))),*];
    };
}

tables! {
    "nehalem-to-ivy-bridge" "haswell-ep" "broadwell-ep" "skylake-sp" "cascade-lake" "ice-lake"
    "sapphire-rapids" "emerald-rapids" "granite-rapids" "sierra-forest" "clearwater-forest"
    "opteron-10h" "opteron-15h" "zen1" "zen2" "zen3" "zen4" "zen5" "zen4-to-6"
    "armv8" "neoverse" "cmn" "dmc-620" "ampereone" "grace" "kunpeng"
    "power9" "power10" "cxl"
}
