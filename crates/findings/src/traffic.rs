//! Memory traffic against what the memory was measured to do.

use crate::case::place_words;
use crate::facts::Facts;
use crate::limits::PARTS;
use crate::report::{MemoryTraffic, PlaceTraffic};
use numakit_formulas::Fact;
use numakit_model::measured::LoadTime;
use numakit_model::{Instance, Topology};

/// The fact with the measured peak of a place.
const PEAK: &str = "topology.measured_bandwidth";
/// Formulas of the traffic: the counters of memory controllers, else those of caches.
const FORMULAS: [(&str, bool); 2] = [("dram_bandwidth", false), ("resctrl_bandwidth", true)];
const NS: f64 = 1e-9;

/// The measured peak of a place in bytes per second.
pub(crate) fn measured_peak(topology: Option<&Topology>, place: Instance) -> Option<f64> {
    Fact::named(PEAK)?.value(topology?, place)
}

/// How long a load takes while a node has this traffic, by the node's measured curve for the share of reads that counters
/// tell.
pub(crate) fn load_time(facts: &Facts<'_>, place: Instance, per_second: f64) -> Option<LoadTime> {
    let Instance::Node(node) = place else { return None };
    let measured = facts.topology()?.measured.as_ref()?.node(node)?;
    measured.load_at(per_second, read_percent(facts, place))
}

/// The share of reads in the traffic of a place, if counters tell reads and writes apart.
fn read_percent(facts: &Facts<'_>, place: Instance) -> Option<f64> {
    let (reads, writes) = (facts.rate("dram_read", place)?, facts.rate("dram_write", place)?);
    Some(100.0 * reads / (reads + writes)).filter(|percent| percent.is_finite())
}

/// In seconds.
pub(crate) fn seconds(load: LoadTime) -> f64 {
    load.ns * NS
}

/// The traffic of each place that has counters; without any, what was measured of each node.
pub(crate) fn traffic(facts: &Facts<'_>) -> MemoryTraffic {
    let measured = facts.topology().and_then(|topology| topology.measured.as_ref());
    let counted = FORMULAS.into_iter().find_map(|(formula, is_of_caches)| {
        PARTS.iter().find_map(|scope| {
            let rate = |place| Some(of_place(facts, place, Some(facts.rate(formula, place)?), is_of_caches));
            let places: Vec<PlaceTraffic> = facts.places(*scope).into_iter().filter_map(rate).collect();
            (!places.is_empty()).then_some(places)
        })
    });
    let is_measured = measured.is_some_and(|memory| !memory.is_empty());
    let unknown = match &counted {
        Some(_) => None,
        None => facts.missing("dram_bandwidth", Instance::Machine).or_else(|| Some("too short".to_owned())),
    };
    let only_measured = || {
        let nodes = measured.iter().flat_map(|memory| &memory.nodes).map(|node| Instance::Node(node.node));
        nodes.map(|place| of_place(facts, place, None, false)).collect()
    };
    MemoryTraffic {
        is_measured,
        places: counted.unwrap_or_else(only_measured),
        unknown,
        doubts: measured.map(|memory| memory.doubts.clone()).unwrap_or_default(),
    }
}

fn of_place(facts: &Facts<'_>, place: Instance, per_second: Option<f64>, is_of_caches: bool) -> PlaceTraffic {
    let topology = facts.topology();
    let peak = measured_peak(topology, place);
    // Caches transfer from and to all nodes: that is all the traffic of a node's memory only if there is one node.
    let is_all = !is_of_caches || facts.node_count() == Some(1);
    let load = per_second.filter(|_| is_all).and_then(|traffic| load_time(facts, place, traffic));
    let idle = || {
        let Instance::Node(node) = place else { return None };
        Some(topology?.measured.as_ref()?.latency.nearest(node)? * NS)
    };
    PlaceTraffic {
        who: place_words(place),
        per_second,
        is_of_caches,
        peak_per_second: peak,
        percent: peak.zip(per_second).map(|(peak, traffic)| 100.0 * traffic / peak),
        read_percent: read_percent(facts, place).filter(|_| per_second.is_some() && !is_of_caches),
        load_seconds: load.map(seconds),
        load_read_percent: load.and_then(|load| load.read_percent),
        idle_load_seconds: idle(),
    }
}
