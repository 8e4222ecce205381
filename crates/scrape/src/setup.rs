//! The sensors of a scrape, and from which of their columns each line is summed.

use crate::places::{ExposedPlaces, MAX_PLACES};
use crate::table::{EXPOSED, ExposedMetric, ExposedPart, ExposedSource};
use numakit_export::ExportedValues;
use numakit_export::openmetrics::{Families, UnitScale, base};
use numakit_model::{Kind, Topology, Unavailable};
use numakit_recording::{AbsentMetric, Header};
use numakit_sensors::{Probe, SENSORS, Scene, SelectError, Selection, Sensor};
use numakit_sys::SysRoot;
use numakit_sys::clock;
use numakit_sys::proc::machine;
use std::collections::HashSet;
use std::time::Duration;

/// Sensors whose absence is reported, beside those of the table.
const TOLD: [&str; 2] = ["uncore", "resctrl"];
/// Sensors of observed programs, of which a scrape has none.
const OF_PROGRAMS: [&str; 2] = ["task", "access"];

/// Series that -e may add.
pub const MAX_ADDED: usize = 10_000;

/// One line of a scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct ExposedLine {
    /// The position of its metric in the table.
    pub metric: usize,
    /// The position of its place, if it has one.
    pub place: Option<usize>,
    /// Its labels, as in `{node="0"}`.
    pub labels: String,
    /// The columns that are added up.
    pub columns: Vec<usize>,
    /// The kind of these columns.
    pub kind: Kind,
    /// From their unit to the base unit.
    pub scale: UnitScale,
}

/// What is sampled for scrapes.
pub struct ScrapeSetup {
    /// The machine's files.
    pub root: SysRoot,
    /// The sensors.
    pub sensors: Vec<Box<dyn Sensor>>,
    /// Their columns.
    pub header: Header,
    /// The lines, in the order of the table.
    pub lines: Vec<ExposedLine>,
    /// The places of the machine.
    pub places: ExposedPlaces,
    /// The series that the user added, and the position of each in the columns.
    pub added: Families,
    /// The columns of `added`.
    pub added_columns: Vec<usize>,
    /// Series that were selected and are more than the limit.
    pub left_out: usize,
    /// What is absent: names of metrics or sensors, and the reasons.
    pub absent: Vec<(String, Unavailable)>,
}

impl ScrapeSetup {
    /// The sensors of this machine, with the series that the user adds.
    pub fn new(scene: &Scene<'_>, added: Option<&Selection>) -> Result<Self, SelectError> {
        let topology = scene.topology;
        let wanted = match added {
            None => HashSet::new(),
            Some(selection) => {
                let sensors = Probe::new(scene).select(selection)?;
                sensors.iter().flat_map(|s| s.series().iter().map(|s| s.name())).collect()
            }
        };
        let in_table: HashSet<&str> = EXPOSED.iter().flat_map(ExposedMetric::series).collect();
        let used = |name: &str| in_table.iter().any(|metric| metric.split('.').next() == Some(name));
        let entries = SENSORS.iter().filter(|entry| {
            let is_told = used(entry.name) || TOLD.contains(&entry.name);
            is_told || (!wanted.is_empty() && !OF_PROGRAMS.contains(&entry.name))
        });
        let Probe { mut sensors, unavailable } = Probe::of(scene, entries);
        let mut missing: Vec<(String, Unavailable)> =
            unavailable.into_iter().map(|(entry, why)| (entry.name.to_owned(), why)).collect();
        missing
            .extend(sensors.iter().flat_map(|s| s.absent()).map(|a| (a.metric.name.clone(), a.why.clone())));
        for sensor in &mut sensors {
            sensor.keep(&|s| in_table.contains(s.metric.name.as_str()) || wanted.contains(&s.name()));
        }
        sensors.retain(|sensor| !sensor.series().is_empty());
        let absent = missing.iter().cloned().map(|(name, why)| AbsentMetric { name, why }).collect();
        let header = Header {
            series: sensors.iter().flat_map(|s| s.series().iter().cloned()).collect(),
            page_size: topology.page_size,
            absent,
            ..Header::default()
        };
        let mut columns: Vec<usize> =
            (0..header.series.len()).filter(|&at| wanted.contains(&header.series[at].name())).collect();
        let left_out = columns.len().saturating_sub(MAX_ADDED);
        columns.truncate(MAX_ADDED);
        let series: Vec<_> = columns.iter().map(|&at| header.series[at].clone()).collect();
        let places = ExposedPlaces::of(topology);
        let lines = lines(&header, &places);
        let absent = told(&header, topology, &lines, missing);
        let added = Families::new(&series, topology.page_size, ExportedValues::Raw, &[]);
        let root = scene.root.clone();
        Ok(Self { root, sensors, header, lines, places, added, added_columns: columns, left_out, absent })
    }

    /// The description of the samples for those who keep them.
    pub fn described(&self, scene: &Scene<'_>, interval: Duration) -> Header {
        Header {
            topology: Some(scene.topology.clone()),
            host: machine::host_name(scene.root).unwrap_or_default(),
            kernel: machine::kernel_release(scene.root).unwrap_or_default(),
            program: concat!("numa ", env!("CARGO_PKG_VERSION")).to_owned(),
            started: clock::utc(),
            interval: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            ..self.header.clone()
        }
    }
}

/// The lines of the table that have columns here.
fn lines(header: &Header, places: &ExposedPlaces) -> Vec<ExposedLine> {
    let mut lines = Vec::new();
    for (at, metric) in EXPOSED.iter().enumerate() {
        match metric.source {
            ExposedSource::Machine(label, parts) => {
                for (value, names) in parts {
                    let columns: Vec<usize> = columns(header, names).collect();
                    lines.extend(line(header, at, labels(&[(label, value)]), columns));
                }
            }
            ExposedSource::Places(label, parts) => {
                lines.extend(by_place(header, places, at, label, parts));
            }
            ExposedSource::Jobs(_) | ExposedSource::Own(_) => {}
        }
    }
    lines
}

fn by_place(
    header: &Header,
    places: &ExposedPlaces,
    metric: usize,
    label: &str,
    parts: &[ExposedPart],
) -> Vec<ExposedLine> {
    // A large machine has many columns: each is looked at once.
    let mut of: Vec<Vec<Vec<usize>>> = vec![vec![Vec::new(); parts.len()]; places.list.len()];
    for (at, (_, names)) in parts.iter().enumerate() {
        for column in columns(header, names) {
            if let Some(place) = places.of_instance(header.series[column].instance) {
                of[place][at].push(column);
            }
        }
    }
    let mut lines = Vec::new();
    for (at, (place, columns)) in places.list.iter().zip(of).enumerate() {
        for ((value, _), columns) in parts.iter().zip(columns) {
            let labels = labels(&[(places.label, &place.name), (label, value)]);
            let line = line(header, metric, labels, columns);
            lines.extend(line.map(|line| ExposedLine { place: Some(at), ..line }));
        }
    }
    lines
}

fn columns(header: &Header, names: &[&str]) -> impl Iterator<Item = usize> {
    let of = |at: &usize| names.contains(&header.series[*at].metric.name.as_str());
    (0..header.series.len()).filter(of)
}

fn line(header: &Header, metric: usize, labels: String, columns: Vec<usize>) -> Option<ExposedLine> {
    let series = &header.series[*columns.first()?].metric;
    let scale = base(series.unit, header.page_size).1;
    Some(ExposedLine { metric, place: None, labels, columns, kind: series.kind, scale })
}

/// Labels with their braces; those without a name are left out.
pub fn labels(all: &[(&str, &str)]) -> String {
    let words: Vec<String> = all
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| format!("{name}=\"{}\"", numakit_export::openmetrics::escaped(value)))
        .collect();
    if words.is_empty() { String::new() } else { format!("{{{}}}", words.join(",")) }
}

/// The metrics of the table that have no value here with their reasons, then the sensors whose absence is reported.
fn told(
    header: &Header,
    topology: &Topology,
    lines: &[ExposedLine],
    missing: Vec<(String, Unavailable)>,
) -> Vec<(String, Unavailable)> {
    let why = |metric: &str| {
        let sensor = metric.split('.').next().unwrap_or(metric);
        missing.iter().find(|(name, _)| name == metric || name == sensor).map(|(_, why)| why.clone())
    };
    let has = |metric: &str| header.series.iter().any(|series| series.metric.name == metric);
    let mut told = Vec::new();
    for (at, metric) in EXPOSED.iter().enumerate() {
        let absent: Vec<&str> = metric.series().filter(|name| !has(name)).collect();
        let Some(first) = absent.first() else { continue };
        let what = match lines.iter().any(|line| line.metric == at) {
            false => metric.sample_name(),
            true => format!("{}: {}", metric.sample_name(), absent.join(", ")),
        };
        let unknown = || {
            let fix = numakit_model::Fix::OtherKernel("that has it".to_owned());
            Unavailable::new(*first, "this kernel does not show it", fix)
        };
        told.push((what, why(first).unwrap_or_else(unknown)));
    }
    told.extend(missing.into_iter().filter(|(name, _)| TOLD.contains(&name.as_str())));
    if topology.nodes.len() > MAX_PLACES {
        let seen = format!(
            "the machine has {} nodes, and up to {MAX_PLACES} have values of their own",
            topology.nodes.len()
        );
        let fix = numakit_model::Fix::CommandLine("add -e 'node.*'".to_owned());
        told.push(("values by node".to_owned(), Unavailable::new("values by node", seen, fix)));
    }
    told
}
