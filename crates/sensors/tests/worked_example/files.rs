//! `files`: the number of open files of the whole machine.

use crate::layout::digits;
use crate::{Probed, Scene, Sensor, SensorEntry, Tick, metric};
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unavailable, Unit};
use numakit_sys::root::Watched;
use std::sync::Arc;

const PATH: &str = "/proc/sys/fs/file-nr";

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: "files",
    help: "Open files of the whole machine.",
    default: |_| true,
    known: || vec![open_files()],
    probe,
};

fn open_files() -> Metric {
    metric("files.open", Unit::Count, Kind::Gauge, Scope::Machine, "Files that are open.", PATH)
}

struct Files {
    file: Watched,
    series: Vec<Series>,
    buffer: Vec<u8>,
}

fn probe(scene: &Scene<'_>) -> Probed {
    let root = scene.root;
    let file = Watched::open(root, PATH)
        .map_err(|e| Unavailable::new("number of open files", e.to_string(), root.fix_for(PATH)))?;
    let series = vec![Series::new(&Arc::new(open_files()), Instance::Machine)];
    Ok(Box::new(Files { file, series, buffer: Vec::new() }))
}

impl Sensor for Files {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        self.series.retain(|s| wanted(s));
    }

    fn files(&self) -> usize {
        1
    }

    fn read(&mut self, _: &Tick, out: &mut [Option<u64>]) {
        if let Some(slot) = out.first_mut()
            && self.file.read(&mut self.buffer)
        {
            *slot = digits(&self.buffer).map(|(value, _)| value);
        }
    }

    fn failure(&self) -> Option<String> {
        self.file.failure().map(ToString::to_string)
    }
}
