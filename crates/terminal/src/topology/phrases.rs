//! Sizes, counts and names in trees and drawings.

use numakit_model::topology::{Access, Cache, CacheKind, ControlLimits, Package};
use numakit_model::{CpuSet, Topology};

/// `32 GiB`, `30.1 GiB`, `980 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

pub fn memory(kb: u64) -> String {
    size(kb.saturating_mul(1024))
}

/// `1 node`, `2 nodes`.
pub fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The machine in one line.
pub fn summary(t: &Topology) -> String {
    let mut parts = Vec::new();
    if !t.boards.is_empty() {
        parts.push(count(t.boards.len(), "board"));
    }
    if !t.packages.is_empty() {
        parts.push(count(t.packages.len(), "package"));
    }
    parts.push(count(t.nodes.len(), "node"));
    parts.push(count(t.cores.len(), "core"));
    parts.push(count(t.online.len(), "PU"));
    // A sum of some nodes would read as all of the memory.
    let least = if t.nodes.iter().all(|node| node.memory_kb.is_some()) { "" } else { "at least " };
    let known = t.memory_kb().filter(|sum| least.is_empty() || *sum > 0);
    parts.extend(known.map(|sum| format!("{least}{}", memory(sum))));
    parts.join(", ")
}

/// `at most the CPU time of 2.5 CPUs, 8 GiB of memory`; nothing without a limit.
pub fn limits(limits: &ControlLimits) -> Option<String> {
    let cpus = limits.cpus.map(|cpus| format!("the CPU time of {cpus} CPUs"));
    let bytes = limits.memory_kb.map(|kb| format!("{} of memory", memory(kb)));
    let pages = limits
        .huge_pages
        .iter()
        .map(|limit| format!("{} of it in huge pages of {}", memory(limit.memory_kb), memory(limit.size_kb)));
    let parts: Vec<String> = cpus.into_iter().chain(bytes).chain(pages).collect();
    (!parts.is_empty()).then(|| format!("at most {}", parts.join(", ")))
}

/// Advice for programs on machines with units.
pub fn units(t: &Topology) -> Option<String> {
    let first = t.units.first()?;
    let cores = t.cores.iter().filter(|core| core.cpus.intersects(first)).count();
    let alike = t.units.iter().all(|unit| unit.len() == first.len());
    let option = if alike { format!("--stride {cores}") } else { "--policy spread:unit".to_owned() };
    Some(format!("cores of a unit share its caches and more: with {option} each thread has its own unit"))
}

pub fn package(package: &Package) -> String {
    package.os_index.map_or_else(|| "package".to_owned(), |id| format!("package {id}"))
}

/// `L3`, `L1d`, `L1i`.
pub fn cache_name(cache: &Cache) -> String {
    let kind = match (cache.level, cache.kind) {
        (_, CacheKind::Unified) => "",
        (_, CacheKind::Data) => "d",
        (_, CacheKind::Instruction) => "i",
    };
    format!("L{}{kind}", cache.level)
}

/// `L3 32 MiB`; only the name if the size is unknown.
pub fn cache(cache: &Cache) -> String {
    match cache.size {
        Some(bytes) => format!("{} {}", cache_name(cache), size(bytes)),
        None => cache_name(cache),
    }
}

/// `read 77 ns, 82.5 GB/s; write 90 ns, 40 GB/s`, or once if both are equal.
pub fn performance(access: &Access) -> Option<String> {
    let one = |latency: Option<u64>, bandwidth: Option<u64>| {
        let parts: Vec<String> =
            latency.map(|ns| format!("{ns} ns")).into_iter().chain(bandwidth.map(rate)).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let read = one(access.read_latency, access.read_bandwidth);
    let write = one(access.write_latency, access.write_bandwidth);
    match (read, write) {
        (read, write) if read == write => read,
        (Some(read), Some(write)) => Some(format!("read {read}; write {write}")),
        (Some(read), None) => Some(format!("read {read}")),
        (None, write) => write.map(|write| format!("write {write}")),
    }
}

/// In decimal units; the kernel has MiB/s.
fn rate(mib_per_second: u64) -> String {
    let text = format!("{:.1}", mib_per_second as f64 * 1.048_576e-3);
    format!("{} GB/s", text.strip_suffix(".0").unwrap_or(&text))
}

/// Nodes with the word before them.
pub fn nodes(set: &CpuSet) -> String {
    format!("{} {set}", if set.len() == 1 { "node" } else { "nodes" })
}

/// CPUs with the word before them.
pub fn cpus(set: &CpuSet) -> String {
    format!("{} {set}", if set.len() == 1 { "CPU" } else { "CPUs" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(memory(32 << 20), "32 GiB");
        assert_eq!(memory(8_387_892), "8 GiB");
        assert_eq!(memory(430_000), "420 MiB");
        assert_eq!(memory(31_600_000), "30.1 GiB");
        assert_eq!(size(1280 << 10), "1.2 MiB");
        assert_eq!(size(0), "0 B");
        assert_eq!(memory(u64::MAX), "16384 PiB");
    }

    #[test]
    fn equal_performance_is_printed_once() {
        let both = Access {
            read_latency: Some(77),
            write_latency: Some(77),
            read_bandwidth: Some(78644),
            write_bandwidth: Some(78644),
            ..Access::default()
        };
        assert_eq!(performance(&both).unwrap(), "77 ns, 82.5 GB/s");
        let read = Access { read_latency: Some(26), ..Access::default() };
        assert_eq!(performance(&read).unwrap(), "read 26 ns");
        assert_eq!(performance(&Access::default()), None);
    }
}
