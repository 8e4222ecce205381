//! A recording that a guest left, as a table of raw values.

use numakit_guest::programs;
use std::path::Path;
use std::process::Command;

/// Rows of samples; labels are kept apart.
pub struct Recording {
    names: Vec<String>,
    /// ns since 1970.
    pub times: Vec<u64>,
    rows: Vec<Vec<Option<u64>>>,
    /// Texts of labels, in order.
    pub labels: Vec<String>,
}

impl Recording {
    /// Reads a recording with the program under test.
    pub fn read(path: &Path) -> Self {
        let mut export = Command::new(programs::numa().unwrap());
        let output = export.args(["export", "--to", "csv", "--raw"]).arg(path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines();
        let names = lines.next().unwrap().split(',').skip(3).map(str::to_owned).collect();
        let mut recording = Self { names, times: Vec::new(), rows: Vec::new(), labels: Vec::new() };
        for line in lines {
            recording.add(line);
        }
        recording
    }

    /// Time, length and label stand before the values; only labels have quotes.
    fn add(&mut self, line: &str) {
        let cells: Vec<&str> = line.split(',').collect();
        if !cells[2].is_empty() {
            return self.labels.push(cells[2..].join(",").trim_end_matches(',').to_owned());
        }
        self.times.push(cells[0].parse().unwrap());
        self.rows.push(cells[3..].iter().map(|cell| cell.parse().ok()).collect());
    }

    /// Names of the series that have this start.
    pub fn names(&self, start: &str) -> Vec<&str> {
        self.names.iter().map(String::as_str).filter(|name| name.starts_with(start)).collect()
    }

    /// All values of a series.
    pub fn series(&self, name: &str) -> Vec<Option<u64>> {
        let Some(column) = self.names.iter().position(|known| known == name) else {
            panic!("no series {name} among {:?}", self.names);
        };
        self.rows.iter().map(|row| row[column]).collect()
    }

    /// How much a counter of `bits` bits grew, from its first value to its last.
    pub fn grown(&self, name: &str, bits: u32) -> u64 {
        let values: Vec<u64> = self.series(name).into_iter().flatten().collect();
        values[values.len() - 1].wrapping_sub(values[0]) & (u64::MAX >> (64 - bits))
    }

    /// Time from the first sample to the last, in ns.
    pub fn length(&self) -> u64 {
        self.times[self.times.len() - 1] - self.times[0]
    }
}
