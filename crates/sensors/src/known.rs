//! Metrics of the kernel's names: the text tables in `data/`, one line per name.

use crate::layout::FileLine;
use crate::sensor::metric;
use numakit_model::{Kind, Metric, Scope, Unit};
use std::collections::HashMap;
use std::sync::LazyLock;

/// A line of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownName {
    /// The kernel's name.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// Unit of the value as the kernel prints it.
    pub unit: Unit,
    /// One sentence.
    pub help: &'static str,
}

/// The names of one kind of file.
#[derive(Debug)]
pub struct NameTable {
    lines: Vec<KnownName>,
    by_name: HashMap<&'static str, usize>,
}

/// /proc/vmstat and nodeN/vmstat.
pub static VMSTAT: LazyLock<NameTable> = LazyLock::new(|| NameTable::new(include_str!("../data/vmstat.txt")));
/// nodeN/numastat.
pub static NUMASTAT: LazyLock<NameTable> =
    LazyLock::new(|| NameTable::new(include_str!("../data/numastat.txt")));
/// nodeN/meminfo.
pub static MEMINFO: LazyLock<NameTable> =
    LazyLock::new(|| NameTable::new(include_str!("../data/meminfo.txt")));
/// The series of observed processes.
pub static TASK: LazyLock<NameTable> = LazyLock::new(|| NameTable::new(include_str!("../data/task.txt")));

/// The series of samples of instructions.
pub static ACCESS: LazyLock<NameTable> = LazyLock::new(|| NameTable::new(include_str!("../data/access.txt")));

impl KnownName {
    /// The metric of this line.
    pub fn metric(&self, sensor: &str, scope: Scope, source: &str) -> Metric {
        metric(&format!("{sensor}.{}", self.name), self.unit, self.kind, scope, self.help, source)
    }
}

/// The metric of a line that no table has.
fn unknown(entry: &FileLine<'_>, sensor: &str, scope: Scope, source: &str, kind: Kind) -> Metric {
    let unit = if entry.kibibytes { Unit::Kibibytes } else { Unit::Count };
    let help =
        format!("Unknown to this version of numakit; its name and position suggest a {}.", kind.name());
    metric(&format!("{sensor}.{}", entry.name), unit, kind, scope, &help, source)
}

impl NameTable {
    // The tables are embedded; tests check all lines.
    pub(crate) fn new(text: &'static str) -> Self {
        let lines: Vec<KnownName> = table_lines(text).filter_map(parse).collect();
        let by_name = lines.iter().enumerate().map(|(at, known)| (known.name, at)).collect();
        Self { lines, by_name }
    }

    /// The line of a name.
    pub fn get(&self, name: &str) -> Option<&KnownName> {
        self.by_name.get(name).map(|&at| &self.lines[at])
    }

    /// The metric of a line of the file; `guess` is its kind if the table does not have its name.
    pub fn metric(
        &self,
        entry: &FileLine<'_>,
        sensor: &str,
        scope: Scope,
        source: &str,
        guess: Kind,
    ) -> Metric {
        let Some(known) = self.get(entry.name) else { return unknown(entry, sensor, scope, source, guess) };
        let metric = known.metric(sensor, scope, source);
        if entry.kibibytes { Metric { unit: Unit::Kibibytes, ..metric } } else { metric }
    }

    /// Every line, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = &KnownName> {
        self.lines.iter()
    }
}

fn table_lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
}

fn parse(line: &'static str) -> Option<KnownName> {
    let (name, rest) = line.split_once(' ')?;
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    let (unit, help) = rest.trim_start().split_once(' ')?;
    let kind = match kind {
        "counter" => Kind::COUNTER,
        "gauge" => Kind::Gauge,
        _ => return None,
    };
    let unit = Unit::ALL.into_iter().find(|u| u.name() == unit)?;
    Some(KnownName { name, kind, unit, help: help.trim() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_line_of_every_table_is_valid_and_names_are_unique() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        // These have other formats.
        let others = ["classes.txt", "numaconnect2.txt", "perf.txt"];
        let of_names =
            |path: &std::path::PathBuf| path.is_file() && !others.iter().any(|o| path.ends_with(o));
        for path in files.filter(of_names) {
            let text: &'static str = std::fs::read_to_string(&path).unwrap().leak();
            let mut names = HashSet::new();
            for line in table_lines(text) {
                let known = parse(line).unwrap_or_else(|| panic!("not a line of a table: {line}"));
                assert!(names.insert(known.name), "{} exists twice", known.name);
                assert!(known.help.ends_with('.') && known.help.len() > 10, "{line}");
            }
            assert!(!names.is_empty(), "{}", path.display());
        }
        assert_eq!(VMSTAT.iter().count(), VMSTAT.by_name.len());
    }

    #[test]
    fn gauges_and_counters_are_distinguished() {
        for (name, kind, unit) in [
            ("nr_free_pages", Kind::Gauge, Unit::Pages),
            ("nr_dirtied", Kind::COUNTER, Unit::Pages),
            ("nr_written", Kind::COUNTER, Unit::Pages),
            ("nr_dirty_threshold", Kind::Gauge, Unit::Pages),
            ("nr_kernel_stack", Kind::Gauge, Unit::Kibibytes),
            ("nr_tlb_remote_flush", Kind::COUNTER, Unit::Count),
            ("workingset_nodes", Kind::Gauge, Unit::Count),
            ("pgpgin", Kind::COUNTER, Unit::Kibibytes),
            ("numa_hit", Kind::COUNTER, Unit::Count),
        ] {
            let known = VMSTAT.get(name).unwrap();
            assert_eq!((known.kind, known.unit), (kind, unit), "{name}");
        }
        assert!(MEMINFO.iter().all(|k| k.kind == Kind::Gauge));
        assert!(NUMASTAT.iter().all(|k| k.kind == Kind::COUNTER));
    }
}
