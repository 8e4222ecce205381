//! Performance of memory, as the firmware states it (ACPI HMAT).

use crate::nodes::NODE;
use crate::reader::Reader;
use numakit_model::topology::{Access, MemorySideCache};

/// Reads the performance of a node's memory for the nearest CPUs. Class 0 may name a generic initiator such as a network
/// card; class 1 names CPUs only. Either may be absent.
pub(crate) fn access(reader: &mut Reader<'_>, node: u32) -> Vec<Access> {
    (0..=1).filter_map(|class| one_class(reader, node, class)).collect()
}

fn one_class(reader: &mut Reader<'_>, node: u32, class: u32) -> Option<Access> {
    let directory = format!("{NODE}/node{node}/access{class}/initiators");
    let initiators = reader.numbered(&directory, "node")?;
    // The kernel shows 0 if the firmware states no value.
    let mut value = |name: &str| {
        let number = reader.number(format_args!("{directory}/{name}"))?;
        u64::try_from(number).ok().filter(|&n| n > 0)
    };
    Some(Access {
        class,
        read_bandwidth: value("read_bandwidth"),
        write_bandwidth: value("write_bandwidth"),
        read_latency: value("read_latency"),
        write_latency: value("write_latency"),
        initiators,
    })
}

pub(crate) fn memory_side_caches(reader: &mut Reader<'_>, node: u32) -> Vec<MemorySideCache> {
    let directory = format!("{NODE}/node{node}/memory_side_cache");
    let levels = reader.numbered(&directory, "index").unwrap_or_default();
    let mut caches = Vec::new();
    for level in levels.iter() {
        let mut value = |name: &str| reader.number(format_args!("{directory}/index{level}/{name}"));
        let (size, line) = (value("size"), value("line_size"));
        if let Some(size) = size.and_then(|n| u64::try_from(n).ok()) {
            let line_size = line.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            caches.push(MemorySideCache { level, size, line_size });
        }
    }
    caches
}
