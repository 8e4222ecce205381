//! How much memory a thread uses of an object, from repeats among its samples.
//!
//! Of an object with `N` pages that are accessed alike, some of `n` samples hit the same page again: the more often, the
//! smaller `N`. Parts of an object that are accessed far more often than the rest, as the root of a tree, would make it
//! look small. So only pages that were hit once (`f1`) and twice (`f2`) count, as in the estimator of Chao for the number
//! of species: `N` is about what was seen plus `f1² / 2 f2`.

use crate::observation::{LINE, PAGE};
use std::collections::HashMap;

/// Lines that are seen this often are accessed far more often than the rest. They are in the cache, and would hide
/// that the rest is not.
const HOT: u32 = 3;
/// With fewer repeats than this, an estimate says little.
const MIN_REPEATS: f64 = 3.0;
/// Bytes of what is counted, the most exact first: blocks count where samples are too few for repeats of pages.
const UNITS: [u64; 3] = [LINE, PAGE, 64 << 10];
/// Lines count where most samples hit lines that others hit too: then little was not seen.
const MIN_COVERAGE: f64 = 0.5;

/// The lines that samples hit.
#[derive(Debug, Clone, Default)]
pub struct Footprint {
    lines: HashMap<u64, u32>,
}

impl Footprint {
    /// Adds the line of a sample.
    pub fn add(&mut self, line: u64) {
        *self.lines.entry(line).or_default() += 1;
    }

    /// Whether a line is accessed far more often than the others.
    pub fn is_hot(&self, line: u64) -> bool {
        self.lines.get(&line).is_some_and(|count| *count >= HOT)
    }

    /// An estimate of the bytes in use, without hot lines. `None` where repeats are too few, since the object is large
    /// or samples are few.
    pub fn bytes(&self) -> Option<u64> {
        Repeats::of(self).bytes()
    }

    /// How often each unit of memory was hit, without hot lines.
    fn cold(&self, unit: u64) -> HashMap<u64, u32> {
        let mut units: HashMap<u64, u32> = HashMap::new();
        for (line, count) in self.lines.iter().filter(|(_, count)| **count < HOT) {
            *units.entry(line * LINE / unit).or_default() += count;
        }
        units
    }
}

/// How often lines, pages and blocks were hit again, of one thread or of several that each use an object on their own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Repeats {
    threads: f64,
    units: [Counts; UNITS.len()],
}

/// Units by how often they were hit.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    seen: f64,
    once: f64,
    twice: f64,
    samples: f64,
}

impl Repeats {
    /// The repeats of one thread.
    pub fn of(footprint: &Footprint) -> Self {
        let counts = |unit| {
            footprint.cold(unit).into_values().fold(Counts::default(), |mut counts, hits| {
                counts.seen += 1.0;
                counts.samples += f64::from(hits);
                counts.once += f64::from(u8::from(hits == 1));
                counts.twice += f64::from(u8::from(hits == 2));
                counts
            })
        };
        Self { threads: 1.0, units: UNITS.map(counts) }
    }

    /// Adds the repeats of a second thread.
    pub fn add(&mut self, other: &Self) {
        self.threads += other.threads;
        for (sum, more) in self.units.iter_mut().zip(other.units) {
            sum.seen += more.seen;
            sum.once += more.once;
            sum.twice += more.twice;
            sum.samples += more.samples;
        }
    }

    /// An estimate of the bytes that a thread uses, the mean of several.
    pub fn bytes(&self) -> Option<u64> {
        let [lines, ..] = &self.units;
        let is_covered = lines.samples - lines.once >= MIN_COVERAGE * lines.samples;
        let first = if is_covered { 0 } else { 1 };
        let estimate = |(counts, unit): (&Counts, u64)| Some(counts.places()? * unit as f64 / self.threads);
        let places = self.units.iter().zip(UNITS).skip(first).find_map(estimate);
        places.map(|bytes| bytes as u64)
    }
}

impl Counts {
    /// The number of places, seen or not.
    fn places(&self) -> Option<f64> {
        let is_enough = self.seen - self.once >= MIN_REPEATS;
        is_enough.then(|| self.seen + self.once * self.once / (2.0 * self.twice.max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers without pattern.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % limit
        }
    }

    fn sampled(lines: u64, samples: u64) -> Footprint {
        let (mut footprint, mut random) = (Footprint::default(), Random(88_172_645_463_325_252));
        (0..samples).for_each(|_| footprint.add(random.below(lines)));
        footprint
    }

    #[test]
    fn the_size_comes_from_repeats() {
        for bytes in [256 << 10, 1 << 20, 24 << 20, 120 << 20] {
            let found = sampled(bytes / LINE, 1200).bytes().unwrap();
            assert!(found > bytes / 2 && found < bytes * 2, "{bytes}: {found}");
        }
        assert_eq!(sampled(1 << 30, 100).bytes(), None);
        assert_eq!(Footprint::default().bytes(), None);
    }

    #[test]
    fn hot_lines_do_not_hide_a_large_object() {
        let mut footprint = sampled(1 << 24, 500);
        (0..1000).for_each(|n| footprint.add((1 << 30) + n % 4));
        assert!(footprint.is_hot(1 << 30) && !footprint.is_hot(1 << 31));
        assert!(footprint.bytes().is_none_or(|bytes| bytes > 200 << 20));
    }

    #[test]
    fn a_tree_is_as_large_as_its_lowest_levels() {
        // Each level has twice the lines of the one above; samples hit all levels that are not in the cache alike.
        let (mut footprint, mut random) = (Footprint::default(), Random(88_172_645_463_325_252));
        // A third of them in the levels that fit the last-level cache, which answers sooner.
        for n in 0..1000u64 {
            let level = if n % 3 == 0 { 14 + n % 5 } else { 19 + n % 4 };
            footprint.add((1 << level) + random.below(1 << level));
        }
        assert!(footprint.bytes().is_none_or(|bytes| bytes > 32 << 20), "{:?}", footprint.bytes());
    }

    #[test]
    fn few_lines_that_all_are_hot_have_no_other_footprint() {
        assert_eq!(sampled(16, 500).bytes(), None);
    }

    proptest! {
        #[test]
        fn an_estimate_is_not_below_what_was_seen_cold(lines in 1u64..5000, samples in 0u64..600) {
            let footprint = sampled(lines, samples);
            let cold = footprint.lines.values().filter(|count| **count < HOT).count() as u64;
            if let Some(bytes) = footprint.bytes() {
                prop_assert!(bytes >= cold * LINE, "{bytes} {cold}");
            }
        }
    }
}
