//! Caches: each is listed once.

use crate::cpus::CPU;
use crate::packages::Siblings;
use crate::reader::Reader;
use crate::values;
use numakit_model::CpuSet;
use numakit_model::topology::{Cache, CacheKind};
use std::collections::HashMap;

/// Reads the caches of all CPUs.
///
/// A CPU that shares all caches of a CPU read before, as hardware threads of a core do, is skipped.
/// All others are read, because a CPU may have more or fewer caches than the rest.
pub(crate) fn read(reader: &mut Reader<'_>, online: &CpuSet, siblings: &Siblings<'_>) -> Vec<Cache> {
    let mut scan = CacheScan { caches: Vec::new(), covered: HashMap::new(), indexes: 0, online, siblings };
    let mut done = CpuSet::new();
    for cpu in reader.with_directory(online).iter() {
        if done.contains(cpu) {
            continue;
        }
        if let Some(shared) = scan.read_cpu(reader, cpu) {
            done.insert_all(&shared);
        }
    }
    let mut caches = scan.caches;
    caches.sort_by_key(|c| (c.level, c.kind as u8, c.cpus.first()));
    caches.dedup();
    caches
}

/// Which CPUs share the caches beyond the first level, without the caches' other properties. Level
/// and kind of each index are read from the first CPU that has caches; CPUs of a cache that is
/// known already are skipped.
pub(crate) fn read_for_placement(
    reader: &mut Reader<'_>,
    online: &CpuSet,
    siblings: &Siblings<'_>,
) -> Vec<Cache> {
    let present = reader.with_directory(online);
    let mut indexes = |cpu: u32| -> Vec<((u32, CacheKind), u32)> {
        (0..).map_while(|index| Some((identify(reader, cpu, index)?, index))).collect()
    };
    let known = present.iter().map(&mut indexes).find(|known| !known.is_empty()).unwrap_or_default();
    let mut caches = Vec::new();
    for (id, index) in known.into_iter().filter(|((level, _), _)| *level > 1) {
        let mut covered = CpuSet::new();
        for cpu in present.iter() {
            if covered.contains(cpu) {
                continue;
            }
            let Some(mut cpus) = shared(reader, cpu, index, online, siblings) else { continue };
            cpus = cpus.minus(&covered);
            covered.insert_all(&cpus);
            caches.push(Cache { level: id.0, kind: id.1, cpus, ..Cache::default() });
        }
    }
    caches.sort_by_key(|c| (c.level, c.kind as u8, c.cpus.first()));
    caches
}

/// The CPUs that share a cache of a CPU; `None` if the kernel lists it under other CPUs only,
/// or not at all. A map of zeros means the threads of the core, as in hwloc.
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

struct CacheScan<'a> {
    caches: Vec<Cache>,
    covered: HashMap<(u32, CacheKind), CpuSet>,
    /// One more than the highest index so far.
    indexes: u32,
    online: &'a CpuSet,
    siblings: &'a Siblings<'a>,
}

impl CacheScan<'_> {
    /// Reads the caches of a CPU; returns the CPUs that share all of them.
    fn read_cpu(&mut self, reader: &mut Reader<'_>, cpu: u32) -> Option<CpuSet> {
        let mut shared: Option<CpuSet> = None;
        let mut index = 0;
        // One index more than so far: a CPU may have more caches than those before.
        while index <= self.indexes.max(1) {
            if let Some((level, kind)) = identify(reader, cpu, index) {
                self.indexes = self.indexes.max(index + 1);
                let cpus = self.place(reader, cpu, index, (level, kind));
                shared = Some(shared.map_or_else(|| cpus.clone(), |s| s.and(&cpus)));
            }
            index += 1;
        }
        shared
    }

    /// Adds the cache, unless this CPU has one of the same level and kind already; returns the CPUs
    /// that share it.
    fn place(&mut self, reader: &mut Reader<'_>, cpu: u32, index: u32, id: (u32, CacheKind)) -> CpuSet {
        if self.covered.get(&id).is_some_and(|known| known.contains(cpu)) {
            let shares = |c: &&Cache| (c.level, c.kind) == id && c.cpus.contains(cpu);
            return self.caches.iter().rfind(shares).map(|c| c.cpus.clone()).unwrap_or_default();
        }
        let mut value = |name: &str| {
            let number = reader.number(format_args!("{CPU}/cpu{cpu}/cache/index{index}/{name}"));
            number.and_then(|n| u32::try_from(n).ok())
        };
        let line_size = value("coherency_line_size").filter(|&n| n > 0);
        let ways = value("ways_of_associativity");
        let directory = format!("{CPU}/cpu{cpu}/cache/index{index}");
        let size = reader.value(format_args!("{directory}/size"), values::size).filter(|&n| n > 0);
        let Some(shared) = shared(reader, cpu, index, self.online, self.siblings) else {
            return CpuSet::new();
        };
        // A CPU has one cache of a kind.
        let covered = self.covered.entry(id).or_default();
        let cpus = shared.minus(covered);
        covered.insert_all(&cpus);
        self.caches.push(Cache { level: id.0, kind: id.1, size, line_size, ways, cpus: cpus.clone() });
        cpus
    }
}

fn identify(reader: &mut Reader<'_>, cpu: u32, index: u32) -> Option<(u32, CacheKind)> {
    let level = reader.number(format_args!("{CPU}/cpu{cpu}/cache/index{index}/level"))?;
    let level = u32::try_from(level).ok().filter(|level| (1..=9).contains(level))?;
    let kind = reader.bytes(format_args!("{CPU}/cpu{cpu}/cache/index{index}/type"));
    Some((level, kind_of(kind.unwrap_or(b""))))
}

/// The kernel's name of a kind of cache; an unknown name counts as unified.
pub fn kind_of(word: &[u8]) -> CacheKind {
    match values::trim(word) {
        b"Data" => CacheKind::Data,
        b"Instruction" => CacheKind::Instruction,
        _ => CacheKind::Unified,
    }
}
