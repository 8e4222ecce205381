//! Threads on their CPU, memory on its node.

use crate::ground::Ground;
use numakit_model::CpuSet;
use numakit_model::numbers::NumberStyle;
use numakit_sys::loops::{Advice, Region};
use numakit_sys::sched;
use std::collections::BTreeMap;

/// Maximum number of pages of a region whose nodes are asked for.
const SAMPLES: usize = 4096;
/// The share of these pages that may be on other nodes.
const MAX_ASTRAY: f64 = 0.01;

/// Does something in a thread on a CPU; the reason if the kernel refuses the CPU.
pub fn on_cpu<T: Send>(cpu: u32, work: impl FnOnce() -> T + Send) -> Result<T, Misplaced> {
    let pinned = || sched::set_affinity(&CpuSet::range(cpu, cpu)).map(|()| work());
    let thread = std::thread::scope(|scope| {
        let started = std::thread::Builder::new().name(format!("bench-cpu{cpu}")).spawn_scoped(scope, pinned);
        started.map(|thread| thread.join())
    });
    match thread {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(error))) | Err(error) => {
            Err(Misplaced(format!("a thread cannot be bound to CPU {cpu}: {error}")))
        }
        Ok(Err(_)) => Err(Misplaced(format!("the thread on CPU {cpu} failed"))),
    }
}

/// Prepares memory of a node: on one of its CPUs, or on the first CPU that may be used, and never on any other.
pub fn beside<T: Send>(
    ground: &Ground<'_>,
    node: u32,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Misplaced> {
    let first = ground.places.first().and_then(|place| place.cpus.first());
    match ground.cpus_of(node).first().or(first) {
        Some(&cpu) => on_cpu(cpu, work),
        None => Ok(work()),
    }
}

/// Why a thread or memory is not where it should be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misplaced(pub String);

/// Memory of a node, with all its pages on that node. It is bound there if policies are permitted; else a thread on the node
/// touches it first. The kernel's list of pages verifies the place if that is permitted.
pub(crate) fn memory(ground: &Ground<'_>, node: u32, bytes: u64, pages: Advice) -> Result<Region, Misplaced> {
    if let Some(lack) = ground.lacks(node, bytes) {
        return Err(Misplaced(lack));
    }
    let refused = |what: &str, error: std::io::Error| Misplaced(format!("{what}: {error}"));
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut region = Region::map(bytes).map_err(|error| refused("the kernel maps no memory", error))?;
    // Kernels without huge pages refuse the advice, and give small pages.
    let _ = region.advise(pages);
    if ground.binds {
        region.bind(node).map_err(|error| refused("the kernel binds no memory to it", error))?;
    }
    let page = sched::page_size() as usize;
    if !beside(ground, node, || region.touch_unless(page, &|| ground.is_stopped()))? {
        return Err(Misplaced(STOPPED.to_owned()));
    }
    verify(&region, node)?;
    Ok(region)
}

/// Memory of a node in pages of this size, which the administrator has reserved for the node.
pub(crate) fn reserved(ground: &Ground<'_>, node: u32, bytes: u64, page: usize) -> Result<Region, Misplaced> {
    let refused = |error| Misplaced(format!("the kernel gives none of the reserved pages: {error}"));
    let mut region =
        Region::map_reserved(usize::try_from(bytes).unwrap_or(usize::MAX), page).map_err(refused)?;
    if ground.binds {
        region.bind(node).map_err(refused)?;
    }
    beside(ground, node, || region.advise(Advice::Populate))?.map_err(refused)?;
    verify(&region, node)?;
    Ok(region)
}

/// Checks whether the pages are on the node, by the kernel's list of pages, else by its list of mappings. The conditions of
/// a result say which of them was used, and whether neither tells.
fn verify(region: &Region, node: u32) -> Result<(), Misplaced> {
    let Ok(nodes) = region.nodes(SAMPLES) else {
        return region.mapped_bytes().map_or(Ok(()), |mapped| verify_mapping(&mapped, node));
    };
    let astray = nodes.iter().filter(|found| **found != Some(node)).count();
    if astray as f64 > MAX_ASTRAY * nodes.len() as f64 {
        return Err(Misplaced(format!(
            "{astray} of {} pages that were looked at are not there, though they were bound or touched there; is its memory full?",
            nodes.len()
        )));
    }
    Ok(())
}

fn verify_mapping(mapped: &BTreeMap<u32, u64>, node: u32) -> Result<(), Misplaced> {
    let all: u64 = mapped.values().sum();
    let astray = all - mapped.get(&node).copied().unwrap_or(0);
    if astray as f64 > MAX_ASTRAY * all as f64 {
        let [astray, all] = [astray, all].map(|bytes| NumberStyle::Bytes.words(bytes as f64));
        return Err(Misplaced(format!(
            "{astray} of the {all} of its mapping are not there, though they were bound or touched there; is its memory full?"
        )));
    }
    Ok(())
}

/// Why there is no result of what was interrupted.
pub const STOPPED: &str = "the run was interrupted while its memory was prepared";

/// In words, which pages memory has.
pub fn pages(region: &Region) -> String {
    match region.huge_bytes() {
        None => "the kernel does not say whether its pages are huge".to_owned(),
        Some(0) => "small pages".to_owned(),
        Some(huge) => format!("{:.0} % in huge pages", 100.0 * huge as f64 / region.bytes().max(1) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interruptible::Watch;
    use crate::settings::BenchSettings;
    use numakit_sys::SysRoot;
    use numakit_sys::loops::HUGE_PAGE;

    #[test]
    fn work_is_done_on_its_cpu() {
        let cpu = sched::affinity().unwrap().last().unwrap();
        assert_eq!(on_cpu(cpu, || sched::affinity().unwrap()).unwrap(), CpuSet::range(cpu, cpu));
        let refused = on_cpu(9999, || ()).unwrap_err().to_string();
        assert!(refused.contains("CPU 9999"), "{refused}");
    }

    #[test]
    fn a_mapping_is_on_its_node_but_for_one_in_a_hundred() {
        let of = |astray: u64| verify_mapping(&BTreeMap::from([(0, 1000 << 20), (3, astray << 20)]), 0);
        assert_eq!((of(0), of(10)), (Ok(()), Ok(())));
        let refused = of(24).unwrap_err().to_string();
        assert!(refused.starts_with("24.0 MiB of the 1.00 GiB of its mapping are not there"), "{refused}");
        assert!(verify_mapping(&BTreeMap::from([(0, 1)]), 1).is_err());
    }

    #[test]
    fn memory_is_on_its_node_or_there_is_a_reason() {
        let topology = numakit_topology::read(&SysRoot::host()).unwrap();
        let (settings, watch) = (BenchSettings::default(), Watch::default());
        for binds in [true, false] {
            let ground = Ground::new(SysRoot::host(), &topology, &settings, binds, &watch);
            let node = ground.memories[0];
            let region = memory(&ground, node, 4 << 20, Advice::Small).unwrap();
            assert_eq!(region.bytes(), 4 << 20);
            if let Ok(nodes) = region.nodes(10) {
                assert!(nodes.iter().all(|found| *found == Some(node)), "{nodes:?}");
                assert!(verify(&region, node + 1).unwrap_err().0.contains("1024 of 1024 pages"));
            }
            assert!(memory(&ground, node, 1 << 50, Advice::Small).unwrap_err().0.contains("--size"));
            assert!(reserved(&ground, node, 1 << 46, HUGE_PAGE).unwrap_err().0.contains("reserved pages"));
        }
    }
}
