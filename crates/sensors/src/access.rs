//! `access`: where threads of the observed processes wait for memory, by time samples of their instructions.
//!
//! A separate thread looks at the samples; a read copies its last results.

mod layout;
mod observer;

use crate::Scene;
use crate::board::NONE;
use crate::known::ACCESS;
use crate::pmu::{Need, Privilege};
use crate::sensor::{Absent, Probed, Sensor, SensorEntry, Tick, narrow};
use layout::{AccessSeries, NoSeries};
use numakit_model::{Fix, Kind, Series, Unavailable};
use numakit_sampling::{Landing, landing};
use numakit_sys::sched;
use observer::{AccessBoard, AccessObserver};
use std::sync::Arc;
use std::time::Duration;

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: "access",
    help: "Where threads of the observed processes wait for memory: local, remote, contended lines.",
    default: |_| true,
    known: layout::metrics,
    probe,
};

const MISSING: &str = "samples of instructions";

fn probe(scene: &Scene<'_>) -> Probed {
    let Some(samples) = scene.samples() else {
        let (seen, fix) = match scene.target {
            Some(_) => ("no samples are taken", "give --sample-rate 199"),
            None => {
                ("no process is observed", "give a command after --, --pid PID, or -e access for the machine")
            }
        };
        return Err(Unavailable::new(MISSING, seen, Fix::CommandLine(fix.to_owned())));
    };
    if scene.target.is_none() {
        Privilege::read(scene.root).permits(Need::WholeCpu)?;
    }
    let landing = samples.landing().clone()?;
    let layout = AccessSeries { nodes: nodes(scene), is_precise: is_precise(landing)? };
    let mut sensor = Access {
        series: Vec::new(),
        places: Vec::new(),
        absent: Vec::new(),
        shared: Arc::new(AccessBoard::new(layout.values())),
        row: vec![NONE; layout.values()],
        scratch: vec![NONE; layout.values()],
        seen: 0,
        observer: Some(AccessObserver {
            samples: samples.clone(),
            target: scene.target.cloned(),
            topology: scene.topology.clone(),
            layout,
            urgent: false,
        }),
    };
    sensor.describe();
    Ok(Box::new(sensor))
}

fn is_precise(landing: Landing) -> Result<bool, Unavailable> {
    match landing {
        Landing::Behind | Landing::OneFurther => Ok(true),
        Landing::BlockStart => Ok(false),
        Landing::Other => {
            // On a busy machine that is so for a while; where it stays so, only another machine helps.
            let fix = Fix::Later(
                "the machine is idle; 'numa doctor --calibrate' says whether that helps".to_owned(),
            );
            Err(Unavailable::new(MISSING, landing::sentence(landing), fix))
        }
    }
}

fn nodes(scene: &Scene<'_>) -> Vec<u32> {
    scene.topology.nodes.iter().map(|node| node.os_index).collect()
}

/// One text for all metrics with the same reason, so that reports name them together.
fn why(reason: NoSeries) -> Unavailable {
    let by_node = || Fix::CommandLine("select access.near and access.far".to_owned());
    let (what, seen, fix) = match reason {
        NoSeries::NoTime => (
            "time at memory",
            landing::sentence(Landing::BlockStart).to_owned(),
            Fix::OtherMachine("one whose processor is not emulated".to_owned()),
        ),
        NoSeries::HasTime => {
            ("pages that threads use", "samples tell the time at memory instead".to_owned(), by_node())
        }
        NoSeries::OneNode => {
            let several = Fix::OtherMachine("one with several nodes".to_owned());
            ("memory of other nodes", "the machine has one node".to_owned(), several)
        }
        NoSeries::TooManyNodes(limit) => {
            ("pairs of nodes", format!("the machine has more than {limit} nodes"), by_node())
        }
    };
    Unavailable::new(what, seen, fix)
}

struct Access {
    series: Vec<Series>,
    /// The position of each series' value in a row.
    places: Vec<usize>,
    absent: Vec<Absent>,
    /// The observer, until the first read starts it.
    observer: Option<AccessObserver>,
    shared: Arc<AccessBoard>,
    row: Vec<u64>,
    scratch: Vec<u64>,
    /// Number of the last row that was read.
    seen: u64,
}

impl Access {
    /// Lists the series of this machine, and the metrics that it lacks.
    fn describe(&mut self) {
        let Self { series, places, absent, observer, .. } = self;
        let Some(layout) = observer.as_ref().map(|observer| &observer.layout) else { return };
        for (at, known) in ACCESS.iter().enumerate() {
            let mut metric = layout::metric(at, known);
            metric.resolution = Duration::from_millis(50);
            match layout.check(at) {
                Ok(()) => {
                    let metric = Arc::new(metric);
                    for (instance, place) in layout.instances(at) {
                        series.push(Series::new(&metric, instance));
                        places.push(place);
                    }
                }
                Err(reason) => absent.push(Absent { metric, why: why(reason) }),
            }
        }
    }
}

impl Sensor for Access {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = narrow(&mut self.series, wanted);
        let mut old = successors.iter();
        self.places.retain(|_| old.next().is_some_and(Option::is_some));
    }

    fn read(&mut self, _: &Tick, out: &mut [Option<u64>]) {
        if let Some(observer) = self.observer.take()
            && (AccessObserver { urgent: sched::is_realtime(), ..observer.clone() })
                .start(Arc::clone(&self.shared))
                .is_err()
        {
            // Tried again at the next read.
            self.observer = Some(observer);
        }
        let shown = self.shared.board.copy(&mut self.scratch, &mut self.row).unwrap_or(self.seen);
        let is_fresh = std::mem::replace(&mut self.seen, shown) != shown;
        for ((slot, place), series) in out.iter_mut().zip(&self.places).zip(&self.series) {
            // A counter without new samples would give a rate of 0, and then a peak.
            if is_fresh || series.metric.kind == Kind::Gauge {
                *slot = Some(self.row[*place]).filter(|value| *value != NONE);
            }
        }
    }

    fn settle(&mut self) {
        if self.observer.is_none() {
            self.shared.settle();
        }
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

#[cfg(test)]
mod tests;
