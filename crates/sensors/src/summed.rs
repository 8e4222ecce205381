//! A sensor with the sums over all instances: one series of the machine per metric.

use crate::sensor::{Absent, Sensor, Tick, narrow};
use numakit_model::{Instance, Kind, Metric, Scope, Series};
use std::sync::Arc;
use std::time::Duration;

/// The sums of a sensor's series.
struct Summed {
    inner: Box<dyn Sensor>,
    series: Vec<Series>,
    /// For each series of the inner sensor, the index of its sum.
    sums: Vec<usize>,
    row: Vec<Option<u64>>,
}

/// Sums the instances of each metric. A sum of counters wraps like each of them, so that its
/// differences are right; it is absent if any part is.
pub fn summed(inner: Box<dyn Sensor>) -> Box<dyn Sensor> {
    let mut sensor = Summed { inner, series: Vec::new(), sums: Vec::new(), row: Vec::new() };
    sensor.arrange();
    Box::new(sensor)
}

impl Summed {
    fn arrange(&mut self) {
        let parts = self.inner.series();
        self.series.clear();
        self.sums.clear();
        for part in parts {
            let known = self.series.iter().position(|sum| sum.metric.name == part.metric.name);
            self.sums.push(known.unwrap_or(self.series.len()));
            if known.is_none() {
                let metric = Metric { scope: Scope::Machine, ..Metric::clone(&part.metric) };
                self.series.push(Series::new(&Arc::new(metric), Instance::Machine));
            }
        }
        self.row = vec![None; parts.len()];
    }
}

/// A sum of raw values of this kind.
fn sum(kind: Kind, a: u64, b: u64) -> u64 {
    match kind {
        Kind::Counter { bits } if bits < 64 => a.wrapping_add(b) & ((1 << bits) - 1),
        Kind::Counter { .. } | Kind::Rate => a.wrapping_add(b),
        Kind::Gauge => a.saturating_add(b),
    }
}

impl Sensor for Summed {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        self.inner.absent()
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = narrow(&mut self.series, wanted);
        let names: Vec<&str> = self.series.iter().map(|s| s.metric.name.as_str()).collect();
        if successors.contains(&None) {
            self.inner.keep(&|part| names.contains(&part.metric.name.as_str()));
            self.arrange();
        }
    }

    fn period(&self) -> Duration {
        self.inner.period()
    }

    fn files(&self) -> usize {
        self.inner.files()
    }

    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]) {
        self.row.fill(None);
        self.inner.read(tick, &mut self.row);
        // All start at 0; a missing part makes its sum `None`.
        out.fill(Some(0));
        for (value, &at) in self.row.iter().zip(&self.sums) {
            if let (Some(slot), Some(series)) = (out.get_mut(at), self.series.get(at)) {
                let kind = series.metric.kind;
                *slot = slot.zip(*value).map(|(a, b)| sum(kind, a, b));
            }
        }
    }

    fn failure(&self) -> Option<String> {
        self.inner.failure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;
    use crate::{numaconnect2, testing};
    use numakit_model::Topology;
    use numakit_sys::SysRoot;
    use numakit_sys::root::FileTree;
    use numakit_testing::cards;
    use proptest::prelude::*;

    fn machine(cards: u32) -> (SysRoot, Box<dyn Sensor>) {
        let mut tree = FileTree::new();
        cards::put(&mut tree, cards, 0);
        let root = SysRoot::of_tree(tree);
        let cards = testing::sensor(&numaconnect2::ENTRY, &root, &Topology::default());
        (root, summed(cards))
    }

    #[test]
    fn cards_are_summed_and_never_averaged() {
        let (root, mut sensor) = machine(3);
        assert_eq!(sensor.series().len(), 120);
        let mask = (1u64 << 48) - 1;
        let mut before = read(sensor.as_mut());
        for steps in 1..6 {
            root.change(|tree| cards::put(tree, 3, steps));
            let now = read(sensor.as_mut());
            let moved = |name: &str| now[name].unwrap().wrapping_sub(before[name].unwrap()) & mask;
            assert_eq!(moved("numaconnect2.n2Cyc"), 3 * 200_000);
            // The second counter grows by 1, 1001 and 2001.
            assert_eq!(moved("numaconnect2.n2CycRmpeHalf"), 3003);
            before = now;
        }
    }

    #[test]
    fn a_part_that_is_missing_makes_the_sum_missing() {
        let (root, mut sensor) = machine(2);
        sensor.keep(&|s| s.name().contains("Cachelines"));
        assert_eq!(sensor.series().len(), 4);
        assert_eq!(sensor.series()[0].name(), "numaconnect2.n2CachelinesRecv");
        assert!(read(sensor.as_mut()).values().all(Option::is_some));
        root.change(|tree| _ = tree.remove("/dev/mem/0x3f01000c8000.bin"));
        assert!(read(sensor.as_mut()).values().all(Option::is_none));
    }

    proptest! {
        #[test]
        fn a_sum_moves_by_what_its_parts_move(
            a in 0u64..1 << 48, b in 0u64..1 << 48, x in 0u64..1 << 46, y in 0u64..1 << 46,
        ) {
            let (kind, mask) = (Kind::Counter { bits: 48 }, (1u64 << 48) - 1);
            let before = sum(kind, a, b);
            let after = sum(kind, (a + x) & mask, (b + y) & mask);
            prop_assert_eq!(after.wrapping_sub(before) & mask, x + y);
        }
    }
}
