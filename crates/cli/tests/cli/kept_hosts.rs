//! Hosts whose scrapes are kept in dashboards/hosts: guests that served metrics. `served_hosts` of numakit-guest makes them.

use std::fmt::Write;
use std::fs;

/// A host with its scrapes: the seconds since the first one, and the text.
pub struct KeptHost {
    pub name: &'static str,
    scrapes: Vec<(u64, String)>,
}

impl KeptHost {
    pub fn read(name: &'static str) -> Self {
        let file = |at: usize| {
            format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboards/hosts/{}-{}.txt"), name, at)
        };
        let scrape = |text: String| {
            let (time, values) = text.split_once('\n').unwrap();
            let time = time.strip_prefix("# ").unwrap().strip_suffix(" seconds").unwrap();
            (time.parse().unwrap(), values.to_owned())
        };
        let scrapes: Vec<_> = (0..).map_while(|at| fs::read_to_string(file(at)).ok()).map(scrape).collect();
        assert!(scrapes.len() >= 3, "{name} has {} scrapes", scrapes.len());
        Self { name, scrapes }
    }

    /// The times of its scrapes, of which the last one is `end`.
    pub fn times(&self, end: u64) -> impl Iterator<Item = u64> {
        let last = self.scrapes.last().unwrap().0;
        self.scrapes.iter().map(move |(time, _)| end - (last - time))
    }

    /// Writes what it served of a metric, with the labels that Prometheus adds.
    pub fn write(&self, sample_name: &str, end: u64, text: &mut String) {
        for ((_, scrape), time) in self.scrapes.iter().zip(self.times(end)) {
            for line in scrape.lines() {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                if name != sample_name {
                    continue;
                }
                let labels = labels.strip_suffix('}').unwrap();
                let own = format!("instance=\"{}\"", self.name);
                let job = if labels.contains("job=\"") { "" } else { ",job=\"numa\"" };
                let comma = if labels.is_empty() { "" } else { "," };
                _ = writeln!(text, "{name}{{{own}{job}{comma}{labels}}} {value} {time}");
            }
        }
    }

    /// How much the series that begin so have grown from the first scrape to the last one.
    pub fn grown(&self, start: &str, part: &str) -> f64 {
        let sum = |text: &str| -> f64 {
            let lines = text.lines().filter(|line| line.starts_with(start) && line.contains(part));
            lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
        };
        sum(&self.scrapes.last().unwrap().1) - sum(&self.scrapes[0].1)
    }
}
