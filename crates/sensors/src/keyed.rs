//! Sensors of files with `NAME NUMBER` lines. [`keyed_file`](crate::keyed_file) declares one for a
//! single file; `node` combines several files.

use crate::Scene;
use crate::known::NameTable;
use crate::layout::{FileLayout, FileLine, entries};
use crate::sensor::{Absent, Probed, Sensor, Tick};
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::root::Watched;
use std::collections::HashSet;
use std::sync::Arc;

/// Declares the sensor of one file of the machine, as a line of [`SENSORS`](crate::SENSORS). Its
/// names are in a text file, one per line: `NAME counter|gauge UNIT What it is.` Other names are
/// sampled as gauges.
#[macro_export]
macro_rules! keyed_file {
    (name: $name:literal, help: $help:literal, path: $path:literal, names: $names:literal $(,)?) => {
        $crate::SensorEntry {
            name: $name,
            help: $help,
            default: |_| true,
            known: || $crate::keyed::known($name, $path, include_str!($names)),
            probe: |scene| $crate::keyed::probe(scene, $name, $path, include_str!($names)),
        }
    };
}

/// The metrics of a file, whose names are in this text.
pub fn known(sensor: &str, path: &str, names: &'static str) -> Vec<Metric> {
    NameTable::new(names).iter().map(|line| line.metric(sensor, Scope::Machine, path)).collect()
}

/// Opens a file, whose names are in this text.
pub fn probe(scene: &Scene<'_>, sensor: &str, path: &str, names: &'static str) -> Probed {
    let table = NameTable::new(names);
    let describe = |entry: &FileLine<'_>| table.metric(entry, sensor, Scope::Machine, path, Kind::Gauge);
    Ok(Box::new(of_file(scene.root, path, path, |entry| (describe(entry), None))?))
}

/// The sensor of a file of the machine: `describe` returns the metric of a line, and why the kernel
/// does not count it, if so. Without the file, `what` is missing.
pub(crate) fn of_file(
    root: &SysRoot,
    path: &str,
    what: &str,
    mut describe: impl FnMut(&FileLine<'_>) -> (Metric, Option<Unavailable>),
) -> Result<Keyed, Unavailable> {
    let unavailable = |seen: String| Unavailable::new(what, seen, root.fix_for(path));
    let mut file = Watched::open(root, path).map_err(|e| unavailable(e.to_string()))?;
    let mut content = Vec::new();
    if !file.read(&mut content) {
        return Err(unavailable(file.failure().map_or_else(String::new, ToString::to_string)));
    }
    let mut sensor = Keyed::default();
    let (mut names, mut columns) = (HashSet::new(), Vec::new());
    for entry in entries(&content).filter(|e| names.insert(e.name)) {
        match describe(&entry) {
            (metric, None) => columns.push((entry.key, Series::new(&Arc::new(metric), Instance::Machine))),
            (metric, Some(why)) => sensor.add_absent(Absent { metric, why }),
        }
    }
    if columns.is_empty() {
        return Err(unavailable(format!("{path} has no line 'NAME NUMBER'")));
    }
    sensor.add(file, &content, columns);
    Ok(sensor)
}

/// Files of `name value` lines as one sensor.
#[derive(Debug, Default)]
pub struct Keyed {
    series: Vec<Series>,
    absent: Vec<Absent>,
    files: Vec<(Watched, FileLayout)>,
    // Files that exist, but could not be read when the sensor was created.
    unread: Vec<String>,
    buffer: Vec<u8>,
}

impl Keyed {
    /// Adds a file with its current content, and a series for each of these keys.
    pub fn add<'a>(
        &mut self,
        file: Watched,
        content: &[u8],
        columns: impl IntoIterator<Item = (&'a [u8], Series)>,
    ) {
        let mut keys = Vec::new();
        for (key, series) in columns {
            keys.push((key, self.series.len()));
            self.series.push(series);
        }
        if !keys.is_empty() {
            self.files.push((file, FileLayout::new(content, keys)));
        }
    }

    /// Notes a file that exists and cannot be read.
    pub fn add_unread(&mut self, error: String) {
        self.unread.push(error);
    }

    /// Notes an unavailable metric.
    pub fn add_absent(&mut self, absent: Absent) {
        self.absent.push(absent);
    }
}

impl Sensor for Keyed {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn keep(&mut self, keys: &dyn Fn(&Series) -> bool) {
        let successors = crate::sensor::narrow(&mut self.series, keys);
        for (_, layout) in &mut self.files {
            layout.keep(&|slot| successors[slot]);
        }
        self.files.retain(|(_, layout)| !layout.is_empty());
    }

    fn files(&self) -> usize {
        self.files.len()
    }

    fn read(&mut self, _: &Tick, out: &mut [Option<u64>]) {
        for (file, layout) in &mut self.files {
            if file.read(&mut self.buffer) {
                layout.read(&self.buffer, out);
            }
        }
    }

    fn failure(&self) -> Option<String> {
        let of_files = self.files.iter().filter_map(|(file, layout)| match file.failure() {
            Some(error) => Some(error.to_string()),
            None => layout
                .missing()
                .map(|key| format!("{} has no line '{}'", file.path(), String::from_utf8_lossy(key))),
        });
        let mut failures = self.unread.iter().cloned().chain(of_files);
        let first = failures.next()?;
        Some(match failures.count() {
            0 => first,
            more => format!("{first} (and {more} more files)"),
        })
    }
}
