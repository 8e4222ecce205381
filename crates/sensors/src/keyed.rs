//! The sensor behind `vmstat` and `node`: any number of files of `name value` lines.

use crate::layout::Layout;
use crate::sensor::{Absent, Sensor, Tick};
use crate::watched::Watched;
use numakit_model::Series;

/// Files of `name value` lines as one sensor.
#[derive(Debug, Default)]
pub struct Keyed {
    series: Vec<Series>,
    absent: Vec<Absent>,
    files: Vec<(Watched, Layout)>,
    // Files that were there but could not be read when their names were to be learned.
    unread: Vec<String>,
    buffer: Vec<u8>,
}

impl Keyed {
    /// Adds a file with its present content, and one series for each of these keys of its lines.
    pub fn add<'a>(
        &mut self,
        file: Watched,
        content: &[u8],
        columns: impl IntoIterator<Item = (&'a [u8], Series)>,
    ) {
        let mut wanted = Vec::new();
        for (key, series) in columns {
            wanted.push((key, self.series.len()));
            self.series.push(series);
        }
        if !wanted.is_empty() {
            self.files.push((file, Layout::new(content, wanted)));
        }
    }

    /// Notes a file that is there and cannot be read, so that nothing is known of it.
    pub fn add_unread(&mut self, error: String) {
        self.unread.push(error);
    }

    /// Notes a metric that is not to be had.
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

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = crate::sensor::narrow(&mut self.series, wanted);
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
