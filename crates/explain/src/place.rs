//! Where each sample's time went.

use crate::caches::CacheSizes;
use crate::contended::{ContendedLine, LineKey};
use crate::footprint::{Footprint, Repeats};
use crate::observation::{Observation, ObservedAccess, Waited};
use numakit_sampling::operand::AccessKind;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Where the time of a sample went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimePlace {
    /// To the thread's own arithmetic.
    Computing,
    /// To memory that fits the caches of the thread's core.
    PrivateCache,
    /// To memory that fits the thread's share of the last-level cache.
    SharedCache,
    /// To a line that other threads use at the same time.
    Contended,
    /// To memory of the node of the CPU.
    Local,
    /// To memory of another node.
    Remote,
    /// To memory of an unknown node.
    Unknown,
}

impl TimePlace {
    /// Whether the thread waited for memory, in a cache or not.
    pub fn is_memory(self) -> bool {
        self != Self::Computing
    }
}

/// What fits which cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Private,
    Shared,
    Neither,
}

/// How a thread uses an object: how much of it, and which cache that fits.
#[derive(Debug)]
struct Use {
    footprint: Footprint,
    fit: Fit,
}

/// Assigns samples to places.
#[derive(Debug)]
pub struct Places {
    contended: HashSet<LineKey>,
    by_thread: HashMap<(u32, u32), Use>,
    by_object: HashMap<u32, Fit>,
}

impl Places {
    /// Prepares to assign samples, from all samples, the lines that were found to be contended, the caches of each thread,
    /// and the sizes of objects in bytes, as far as they are known.
    pub fn new(
        observations: &[Observation],
        contended: &[ContendedLine],
        caches: CacheSizes,
        sizes: &HashMap<u32, u64>,
    ) -> Self {
        let contended: HashSet<LineKey> = contended.iter().map(|line| line.key).collect();
        let is_contended = |process, access| {
            LineKey::of(process, access).is_some_and(|line: LineKey| contended.contains(&line))
        };
        let mut threads: HashMap<(u32, u32), Footprint> = HashMap::new();
        for (at, access, line) in lines(observations) {
            if !is_contended(at.process, access) {
                threads.entry((at.thread, access.object)).or_default().add(line);
            }
        }
        let mut objects: HashMap<u32, Repeats> = HashMap::new();
        let mut by_thread = HashMap::new();
        for (key, footprint) in threads {
            let repeats = Repeats::of(&footprint);
            objects.entry(key.1).or_default().add(&repeats);
            let size = sizes.get(&key.1).copied();
            by_thread.insert(key, Use { fit: fit(&repeats, size, caches), footprint });
        }
        let of_all = |(object, all): (u32, Repeats)| (object, fit(&all, sizes.get(&object).copied(), caches));
        let by_object = objects.into_iter().map(of_all).collect();
        Self { contended, by_thread, by_object }
    }

    /// The place of a sample.
    pub fn of(&self, at: &Observation) -> TimePlace {
        let access = match &at.waited {
            Waited::Computing => return TimePlace::Computing,
            Waited::Unknown => return TimePlace::Unknown,
            Waited::Memory(access) => access,
        };
        if LineKey::of(at.process, access).is_some_and(|line| self.contended.contains(&line)) {
            return TimePlace::Contended;
        }
        match self.fit(at, access) {
            Fit::Private if access.kind == AccessKind::Operand => return TimePlace::Computing,
            Fit::Private => return TimePlace::PrivateCache,
            Fit::Shared => return TimePlace::SharedCache,
            Fit::Neither => {}
        }
        match (at.cpu_node, access.home) {
            (Some(cpu), Some(home)) if cpu == home => TimePlace::Local,
            (Some(_), Some(_)) => TimePlace::Remote,
            _ => TimePlace::Unknown,
        }
    }

    /// A line that a thread hits again and again is in its caches, whatever the size of the object. Else the thread's
    /// own footprint counts; where its samples are too few for one, the mean of all threads.
    fn fit(&self, at: &Observation, access: &ObservedAccess) -> Fit {
        let Some(used) = self.by_thread.get(&(at.thread, access.object)) else { return Fit::Neither };
        if access.line_of_object().is_some_and(|line| used.footprint.is_hot(line)) {
            return Fit::Private;
        }
        match used.fit {
            Fit::Neither => self.by_object.get(&access.object).copied().unwrap_or(Fit::Neither),
            fit => fit,
        }
    }
}

/// Which cache the used part of an object fits. It is no larger than the object, however few repeats there are: a handful of
/// samples at a variable of four bytes does not make it large.
fn fit(repeats: &Repeats, size: Option<u64>, caches: CacheSizes) -> Fit {
    match repeats.bytes().into_iter().chain(size).min() {
        Some(bytes) if bytes <= caches.private => Fit::Private,
        Some(bytes) if bytes <= caches.last_level => Fit::Shared,
        _ => Fit::Neither,
    }
}

fn lines(observations: &[Observation]) -> impl Iterator<Item = (&Observation, &ObservedAccess, u64)> {
    observations.iter().filter_map(|at| {
        let access = at.access()?;
        Some((at, access, access.line_of_object()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{LINE, MemoryPart};
    use numakit_sampling::operand::RecoveryRule;

    const CACHES: CacheSizes = CacheSizes { private: 2 << 20, last_level: 32 << 20 };

    /// Samples of a thread on node 0 at lines of an object without pattern.
    fn samples(thread: u32, object: u32, home: Option<u32>, lines: u64, count: u64) -> Vec<Observation> {
        let mut state = 88_172_645_463_325_252u64 + u64::from(thread);
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % lines
        };
        let mut one = |n| Observation {
            thread,
            process: 0,
            time: n * 5_000_000,
            weight: 5_000_000,
            cpu_node: Some(0),
            instruction: 0x400,
            chain: 0,
            waited: Waited::Memory(ObservedAccess {
                address: (u64::from(object) << 40) + next() * LINE,
                size: 8,
                kind: AccessKind::Load,
                rule: RecoveryRule::Direct,
                object,
                home,
                part: MemoryPart::Heap,
                shared: None,
            }),
        };
        (0..count).map(&mut one).collect()
    }

    fn places(all: &[Observation]) -> HashMap<TimePlace, usize> {
        let places = Places::new(all, &[], CACHES, &HashMap::new());
        all.iter().fold(HashMap::new(), |mut counts, at| {
            *counts.entry(places.of(at)).or_default() += 1;
            counts
        })
    }

    #[test]
    fn what_fits_a_cache_is_neither_near_nor_far() {
        let all = [
            samples(0, 1, Some(1), 1 << 13, 600),
            samples(0, 2, Some(1), 1 << 18, 2000),
            samples(0, 3, Some(0), 1 << 26, 300),
            samples(0, 4, Some(1), 1 << 26, 200),
            samples(0, 5, None, 1 << 26, 100),
        ]
        .concat();
        let counts = places(&all);
        let count = |place| counts.get(&place).copied().unwrap_or(0);
        assert_eq!((count(TimePlace::PrivateCache), count(TimePlace::SharedCache)), (600, 2000));
        assert_eq!(
            (count(TimePlace::Local), count(TimePlace::Remote), count(TimePlace::Unknown)),
            (300, 200, 100)
        );
    }

    #[test]
    fn numbers_in_the_own_caches_are_there_before_they_are_computed_with() {
        let mut all = [samples(0, 1, Some(0), 1 << 13, 600), samples(0, 2, Some(0), 1 << 18, 2000)].concat();
        for at in &mut all {
            if let Waited::Memory(access) = &mut at.waited {
                access.kind = AccessKind::Operand;
            }
        }
        assert_eq!(
            places(&all),
            HashMap::from([(TimePlace::Computing, 600), (TimePlace::SharedCache, 2000)])
        );
    }

    #[test]
    fn threads_with_few_samples_are_taken_together() {
        let all: Vec<_> = (0..64).flat_map(|thread| samples(thread, 1, Some(1), 1 << 13, 20)).collect();
        assert_eq!(places(&all), HashMap::from([(TimePlace::PrivateCache, 64 * 20)]));
    }

    #[test]
    fn an_object_smaller_than_a_cache_fits_it_with_a_handful_of_samples() {
        let all = samples(0, 1, Some(1), 1 << 20, 5);
        let place = |size| {
            let places = Places::new(&all, &[], CACHES, &HashMap::from([(1, size)]));
            places.of(&all[0])
        };
        assert_eq!((place(4), place(2 << 20)), (TimePlace::PrivateCache, TimePlace::PrivateCache));
        assert_eq!((place(3 << 20), place(1 << 30)), (TimePlace::SharedCache, TimePlace::Remote));
    }

    #[test]
    fn computing_and_unknown_need_no_address() {
        let mut all = samples(0, 1, Some(1), 1 << 26, 2);
        all[0].waited = Waited::Computing;
        all[1].waited = Waited::Unknown;
        assert_eq!(places(&all), HashMap::from([(TimePlace::Computing, 1), (TimePlace::Unknown, 1)]));
    }
}
