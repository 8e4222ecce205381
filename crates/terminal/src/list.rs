//! `numa list`: what can be measured here, and what cannot.

mod formulas;

use crate::wrap::wrap;
use numakit_formulas::Catalog;
use numakit_model::{Confidence, CpuSet, Instance, Kind, Metric, Scope, Topology, Unavailable};
use numakit_sensors::glob::Pattern;
use numakit_sensors::{Probe, SENSORS};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Metrics, with the instances that are measured, or why they are not.
#[derive(Debug, Default)]
pub struct Listing {
    rows: Vec<Row>,
    // Name, description, and why it is missing, if it is.
    sensors: Vec<(&'static str, &'static str, Option<Unavailable>)>,
    formulas: Vec<formulas::Row>,
}

#[derive(Debug)]
struct Row {
    metric: Metric,
    count: usize,
    // The numbers of its instances; those of links by where the link begins.
    ids: BTreeMap<u32, CpuSet>,
    why: Option<Unavailable>,
}

/// Minimum width of the column of descriptions; on narrower terminals they are below their line.
const MIN_HELP: usize = 36;
const BELOW: usize = 4;
/// For longer lists of instances, only their number is shown.
const MAX_IDS: usize = 24;

impl Listing {
    /// The metrics of a probe that match: a glob is compared with the full and the bare name,
    /// other text is searched in names and descriptions.
    pub fn of(probe: &Probe, pattern: Option<&str>) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        let unknown = |m: &Metric, why: &Unavailable| Row {
            metric: m.clone(),
            count: 0,
            ids: BTreeMap::new(),
            why: Some(why.clone()),
        };
        for entry in SENSORS {
            let first = rows.len();
            for series in probe.series().filter(|s| s.metric.sensor() == entry.name) {
                add(&mut rows, first, &series.metric, series.instance);
            }
            let absent = probe.absent().filter(|a| a.metric.sensor() == entry.name);
            rows.extend(absent.map(|a| unknown(&a.metric, &a.why)));
            if let Some((_, why)) = probe.unavailable.iter().find(|(e, _)| e.name == entry.name) {
                rows.extend((entry.known)().iter().map(|m| unknown(m, why)));
            }
        }
        let sensors = SENSORS.iter().map(|entry| {
            let why = probe.unavailable.iter().find(|(e, _)| e.name == entry.name);
            (entry.name, entry.help, why.map(|(_, why)| why.clone()))
        });
        let mut listing = Self { rows, sensors: sensors.collect(), formulas: Vec::new() };
        if let Some(pattern) = pattern {
            let search = Search::new(pattern);
            listing.rows.retain(|row| search.fits([&row.metric.name, row.metric.bare()], &row.metric.help));
            listing.sensors.clear();
        }
        listing
    }

    /// With the formulas that match, at the end.
    #[must_use]
    pub fn with_formulas(
        mut self,
        probe: &Probe,
        topology: &Topology,
        formulas: &Catalog,
        pattern: Option<&str>,
    ) -> Self {
        self.formulas = formulas::rows(probe, topology, formulas, pattern);
        self
    }

    /// Whether nothing matches.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.formulas.is_empty()
    }

    /// One line per metric, with descriptions broken to this width. A sensor that is missing
    /// is one line, unless there is a pattern.
    pub fn table(&self, width: Option<usize>) -> String {
        let mut lines: Vec<[String; 5]> =
            vec![["NAME", "UNIT", "KIND", "SCOPE", "DESCRIPTION"].map(str::to_owned)];
        let missing =
            |name: &str| self.sensors.iter().any(|(sensor, _, why)| *sensor == name && why.is_some());
        lines.extend(self.rows.iter().filter(|r| !missing(r.metric.sensor())).map(Row::cells));
        for (name, help, why) in &self.sensors {
            if let Some(why) = why {
                let dash = || "-".to_owned();
                lines.push([format!("{name}.*"), dash(), dash(), dash(), absent(help, why)]);
            }
        }
        lines.extend(self.formulas.iter().filter(|row| !row.is_redundant()).map(formulas::Row::cells));
        let column = |at: usize| lines.iter().map(|cells| cells[at].chars().count()).max().unwrap_or(0);
        let [name, unit, kind, scope] = [0, 1, 2, 3].map(column);
        let help_column = name + unit + kind + scope + 8;
        let below = width.is_some_and(|w| w < help_column + MIN_HELP);
        let indent = if below { BELOW } else { help_column };
        let help_width = width.map(|w| w.saturating_sub(indent).max(1));
        let mut text = String::new();
        for [a, b, c, d, help] in &lines {
            let start = format!("{a:name$}  {b:unit$}  {c:kind$}  {d:scope$}");
            let mut parts = wrap(help, help_width).into_iter();
            _ = match below {
                true => writeln!(text, "{}", start.trim_end()),
                false => writeln!(text, "{start}  {}", parts.next().unwrap_or_default()),
            };
            for part in parts {
                _ = writeln!(text, "{:indent$}{part}", "");
            }
        }
        text
    }

    /// The same as JSON: `sensors` and `metrics`, as `numa list --help` describes.
    pub fn json(&self) -> Value {
        let sensors = self.sensors.iter().map(
            |(name, help, why)| json!({"name": name, "help": help, "available": why.is_none(), "why": why}),
        );
        json!({
            "sensors": sensors.collect::<Vec<_>>(),
            "metrics": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "formulas": self.formulas.iter().map(formulas::Row::json).collect::<Vec<_>>(),
        })
    }
}

/// Counts an instance of a metric; the rows of its sensor start at `first`.
fn add(rows: &mut Vec<Row>, first: usize, metric: &Metric, instance: Instance) {
    let known = rows[first..].iter().position(|r| r.metric.name == metric.name);
    let at = known.map_or_else(
        || {
            rows.push(Row { metric: metric.clone(), count: 0, ids: BTreeMap::new(), why: None });
            rows.len() - 1
        },
        |at| first + at,
    );
    rows[at].count += 1;
    let (place, id) = match instance {
        Instance::Node(id)
        | Instance::Package(id)
        | Instance::Cpu(id)
        | Instance::Cache(id)
        | Instance::Device(id) => (0, id),
        Instance::Link(from, id) | Instance::Pair(from, id) => (from, id),
        Instance::Machine | Instance::Task(_) => return,
    };
    rows[at].ids.entry(place).or_default().insert(id);
}

/// A search.
enum Search {
    /// A pattern over names.
    Names(Pattern),
    /// A text, in lower case, in names and descriptions.
    Text(String),
}

impl Search {
    fn new(text: &str) -> Self {
        match Pattern::new(text) {
            Pattern::Name(name) => Self::Text(name.to_lowercase()),
            glob => Self::Names(glob),
        }
    }

    fn fits(&self, names: [&str; 2], help: &str) -> bool {
        match self {
            Self::Names(pattern) => names.iter().any(|name| pattern.fits(name)),
            Self::Text(text) => [names[0], help].iter().any(|place| place.to_lowercase().contains(text)),
        }
    }
}

fn absent(help: &str, why: &Unavailable) -> String {
    format!("{help} Unavailable: {}; {}", why.seen, why.fix)
}

impl Row {
    /// The numbers of the instances: `0-3,8`; of links where each begins and its own number, of pairs both
    /// nodes: `0.0-2,1.0-2`.
    fn instances(&self) -> Option<String> {
        let links = matches!(self.metric.scope, Scope::Link | Scope::Pair);
        let parts = self.ids.iter().map(|(from, ids)| match links {
            true => {
                ids.to_string().split(',').map(|part| format!("{from}.{part}")).collect::<Vec<_>>().join(",")
            }
            false => ids.to_string(),
        });
        let text = parts.collect::<Vec<_>>().join(",");
        (!text.is_empty()).then_some(text)
    }

    fn cells(&self) -> [String; 5] {
        let metric = &self.metric;
        let scope = match self.instances() {
            Some(ids) if ids.len() > MAX_IDS => format!("{} {}s", self.count, metric.scope.name()),
            Some(ids) => format!("{} {ids}", metric.scope.name()),
            None => metric.scope.name().to_owned(),
        };
        let mut help = metric.help.clone();
        if metric.confidence == Some(Confidence::Medium) {
            help.push_str(" (confidence: medium)");
        }
        if let Some(why) = &self.why {
            help = absent(&help, why);
        }
        [metric.name.clone(), metric.unit.name().to_owned(), metric.kind.name().to_owned(), scope, help]
    }

    fn json(&self) -> Value {
        let metric = &self.metric;
        let bits = match metric.kind {
            Kind::Counter { bits } => Some(bits),
            Kind::Gauge | Kind::Rate => None,
        };
        json!({
            "name": metric.name,
            "unit": metric.unit.name(),
            "kind": metric.kind.name(),
            "bits": bits,
            "scope": metric.scope.name(),
            "count": self.count,
            "instances": self.instances(),
            "help": metric.help,
            "source": metric.source,
            "resolution_ns": u64::try_from(metric.resolution.as_nanos()).unwrap_or(u64::MAX),
            "confidence": metric.confidence.map(Confidence::name),
            "available": self.why.is_none(),
            "why": self.why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::Node;
    use numakit_sensors::Scene;
    use numakit_sys::SysRoot;
    use numakit_sys::root::FileTree;

    fn probe() -> Probe {
        let mut tree = FileTree::new();
        tree.file("/proc/vmstat", "nr_free_pages 1\nnuma_hit 2\npgpgin 3\nnuma_hint_faults 4\n")
            .file("/proc/sys/vm/numa_stat", "0\n")
            .file("/sys/devices/system/node/node0/meminfo", "Node 0 MemFree: 1 kB\n")
            .file("/sys/devices/system/node/node3/meminfo", "Node 3 MemFree: 1 kB\n");
        let node = |os_index| Node { os_index, ..Node::default() };
        let topology = Topology { nodes: vec![node(0), node(3)], ..Topology::default() };
        Probe::new(&Scene::new(&SysRoot::of_tree(tree), &topology))
    }

    fn names(pattern: &str) -> Vec<String> {
        Listing::of(&probe(), Some(pattern)).rows.iter().map(|r| r.metric.name.clone()).collect()
    }

    #[test]
    fn a_metric_is_one_line_with_its_instances() {
        let text = Listing::of(&probe(), None).table(None);
        let line =
            |name: &str| text.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        assert!(text.starts_with("NAME "));
        assert!(line("node.MemFree ").contains("KiB    gauge    node 0,3  Free memory."), "{text}");
        assert!(line("vmstat.pgpgin ").contains("KiB    counter  machine"), "{text}");
        assert!(
            line("vmstat.numa_hit ")
                .contains("Unavailable: /proc/sys/vm/numa_stat is 0; sysctl vm.numa_stat=1")
        );
        assert!(line("pressure.* ").contains("psi=1"));
        assert!(!text.contains("pressure.io_some"));
    }

    #[test]
    fn links_and_uncertain_descriptions_are_marked() {
        let metric = Metric {
            name: "uncore.link_out".into(),
            unit: numakit_model::Unit::Bytes,
            kind: Kind::COUNTER,
            scope: Scope::Link,
            help: "Sent.".into(),
            source: "x".into(),
            resolution: std::time::Duration::ZERO,
            confidence: Some(Confidence::Medium),
            maximum: None,
        };
        let mut rows = Vec::new();
        for (from, link) in [(0, 0), (0, 1), (0, 3), (1, 0)] {
            add(&mut rows, 0, &metric, Instance::Link(from, link));
        }
        let cells = rows[0].cells();
        assert_eq!(
            (cells[3].as_str(), cells[4].as_str()),
            ("link 0.0-1,0.3,1.0", "Sent. (confidence: medium)")
        );
        assert_eq!(
            (&rows[0].json()["instances"], &rows[0].json()["confidence"]),
            (&json!("0.0-1,0.3,1.0"), &json!("medium"))
        );
        (2..9).for_each(|from| add(&mut rows, 0, &metric, Instance::Link(from, 0)));
        assert_eq!(rows[0].cells()[3], "11 links");
    }

    #[test]
    fn columns_do_not_shift_and_lines_fit_the_terminal() {
        let text = Listing::of(&probe(), None).table(Some(90));
        let start = text.lines().next().unwrap().find("DESCRIPTION").unwrap();
        for line in text.lines() {
            assert!(line.chars().count() <= 90, "{line}");
            assert_eq!(&line[start - 2..start], "  ", "{line}");
        }
    }

    #[test]
    fn on_a_narrow_terminal_descriptions_are_below_their_line() {
        let text = Listing::of(&probe(), Some("MemFree")).table(Some(60));
        let expected = "NAME          UNIT  KIND   SCOPE\n    DESCRIPTION\n\
                        node.MemFree  KiB   gauge  node 0,3\n    Free memory.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn globs_match_names_and_other_text_is_searched() {
        assert_eq!(names("numa_h*"), ["vmstat.numa_hint_faults", "vmstat.numa_hit"]);
        assert_eq!(names("node.*"), ["node.MemFree"]);
        assert_eq!(names("FREE memory"), ["vmstat.nr_free_pages", "node.MemFree"]);
        assert_eq!(names("io_some"), ["pressure.io_some"]);
        assert!(Listing::of(&probe(), Some("nothing like it")).is_empty());
    }

    #[test]
    fn json_has_everything_and_the_reasons() {
        let value = Listing::of(&probe(), None).json();
        let metric = |name: &str| {
            let found = value["metrics"].as_array().unwrap().iter().find(|m| m["name"] == name);
            found.unwrap_or_else(|| panic!("no {name}")).clone()
        };
        let free = metric("node.MemFree");
        assert_eq!((free["count"].as_u64(), free["instances"].as_str()), (Some(2), Some("0,3")));
        assert_eq!((free["available"].as_bool(), free["why"].is_null()), (Some(true), true));
        assert_eq!(metric("vmstat.pgpgin")["bits"], 64);
        assert_eq!(metric("vmstat.numa_hit")["why"]["fix"], "sysctl vm.numa_stat=1");
        assert_eq!(metric("pressure.io_some")["available"], false);
        let pressure = value["sensors"].as_array().unwrap().iter().find(|s| s["name"] == "pressure").unwrap();
        assert_eq!(pressure["available"], false);
    }
}
