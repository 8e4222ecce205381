//! Caches: each is listed once.

use crate::cpus::CPU;
use crate::packages::Siblings;
use crate::reader::Reader;
use crate::values;
use numakit_model::CpuSet;
use numakit_model::topology::{Cache, CacheKind};
use std::collections::HashMap;

/// Reads the caches of all CPUs.
pub(crate) fn read(reader: &mut Reader<'_>, online: &CpuSet, siblings: &Siblings<'_>) -> Vec<Cache> {
    CacheScan::new(online, siblings).run(reader)
}

/// Which CPUs share the caches beyond the first level, without the caches' other properties.
pub(crate) fn read_for_placement(
    reader: &mut Reader<'_>,
    online: &CpuSet,
    siblings: &Siblings<'_>,
) -> Vec<Cache> {
    CacheScan { lowest: 2, with_properties: false, ..CacheScan::new(online, siblings) }.run(reader)
}

/// The CPUs that share a cache of a CPU; `None` if the kernel lists the cache under other CPUs only, or not at all. A map of
/// zeros means the threads of the core, as in hwloc.
fn shared(
    reader: &mut Reader<'_>,
    cpu: u32,
    index: u32,
    online: &CpuSet,
    siblings: &Siblings<'_>,
) -> Option<CpuSet> {
    let directory = format!("{CPU}/cpu{cpu}/cache/index{index}");
    let map = reader
        .set(format_args!("{directory}/shared_cpu_map"), format_args!("{directory}/shared_cpu_list"))?;
    if map.is_empty() {
        return Some(siblings.get(cpu).cloned().unwrap_or_else(|| CpuSet::range(cpu, cpu)));
    }
    if !map.contains(cpu) {
        reader
            .note(format!("{directory} lists CPUs {map} and not CPU {cpu}; it is not counted for CPU {cpu}"));
        return None;
    }
    Some(map.and(online))
}

/// One pass over the directories of all CPUs.
///
/// A CPU may list more or fewer caches than the rest, and than those that share a cache with it. So every directory is listed.
struct CacheScan<'a> {
    caches: Vec<Cache>,
    /// By level and kind: the CPUs whose cache is known.
    covered: HashMap<(u32, CacheKind), CpuSet>,
    /// Directories by the set of their numbers: CPUs that share a cache and have the same numbers list the cache under the
    /// same number.
    listings: HashMap<CpuSet, Listing>,
    /// Caches below this level are left out.
    lowest: u32,
    with_properties: bool,
    online: &'a CpuSet,
    siblings: &'a Siblings<'a>,
}

/// What is known of directories with the same numbers, and is not read again.
#[derive(Default)]
struct Listing {
    /// Numbers of caches that are left out: a kernel counts from the first level on.
    below: CpuSet,
    /// For each number, the CPUs that share a cache of which one has listed it.
    known: HashMap<u32, CpuSet>,
}

impl<'a> CacheScan<'a> {
    /// Makes a scan of all caches with their properties.
    fn new(online: &'a CpuSet, siblings: &'a Siblings<'a>) -> Self {
        let (caches, covered, listings) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { caches, covered, listings, lowest: 1, with_properties: true, online, siblings }
    }

    fn run(mut self, reader: &mut Reader<'_>) -> Vec<Cache> {
        for cpu in reader.with_directory(self.online).iter() {
            let indexes = reader.numbered(&format!("{CPU}/cpu{cpu}/cache"), "index").unwrap_or_default();
            let mut listing = self.listings.remove(&indexes).unwrap_or_default();
            for index in indexes.minus(&listing.below).iter() {
                if listing.known.get(&index).is_some_and(|known| known.contains(cpu)) {
                    continue;
                }
                match level(reader, cpu, index) {
                    Some(level) if level < self.lowest => listing.below.insert(index),
                    Some(level) => {
                        let shared = self.read(reader, cpu, index, level);
                        listing.known.entry(index).or_default().insert_all(&shared);
                    }
                    None => {}
                }
            }
            self.listings.insert(indexes, listing);
        }
        self.caches.sort_by_key(|c| (c.level, c.kind as u8, c.cpus.first()));
        self.caches
    }

    /// Adds a cache, unless this CPU has one of the same level and kind already. Returns the CPUs that share a new one.
    fn read(&mut self, reader: &mut Reader<'_>, cpu: u32, index: u32, level: u32) -> CpuSet {
        let kind = kind(reader, cpu, index);
        if self.covered.get(&(level, kind)).is_some_and(|known| known.contains(cpu)) {
            return CpuSet::new();
        }
        let Some(shared) = shared(reader, cpu, index, self.online, self.siblings) else {
            return CpuSet::new();
        };
        // A CPU has one cache of each level and kind.
        let covered = self.covered.entry((level, kind)).or_default();
        let cpus = shared.minus(covered);
        covered.insert_all(&cpus);
        let mut cache = Cache { level, kind, cpus: cpus.clone(), ..Cache::default() };
        if self.with_properties {
            add_properties(reader, cpu, index, &mut cache);
        }
        self.caches.push(cache);
        cpus
    }
}

fn add_properties(reader: &mut Reader<'_>, cpu: u32, index: u32, cache: &mut Cache) {
    let directory = format!("{CPU}/cpu{cpu}/cache/index{index}");
    let mut value = |name: &str| {
        let number = reader.number(format_args!("{directory}/{name}"));
        number.and_then(|n| u32::try_from(n).ok())
    };
    cache.line_size = value("coherency_line_size").filter(|&n| n > 0);
    cache.ways = value("ways_of_associativity");
    cache.size = reader.value(format_args!("{directory}/size"), values::size).filter(|&n| n > 0);
}

fn level(reader: &mut Reader<'_>, cpu: u32, index: u32) -> Option<u32> {
    let level = reader.number(format_args!("{CPU}/cpu{cpu}/cache/index{index}/level"))?;
    u32::try_from(level).ok().filter(|level| (1..=9).contains(level))
}

fn kind(reader: &mut Reader<'_>, cpu: u32, index: u32) -> CacheKind {
    kind_of(reader.bytes(format_args!("{CPU}/cpu{cpu}/cache/index{index}/type")).unwrap_or(b""))
}

/// The kernel's name of a kind of cache; an unknown name counts as unified.
pub fn kind_of(word: &[u8]) -> CacheKind {
    match values::trim(word) {
        b"Data" => CacheKind::Data,
        b"Instruction" => CacheKind::Instruction,
        _ => CacheKind::Unified,
    }
}
