//! The time of a load by the size of the memory that is used: the caches as a curve.

use crate::caches::reach;
use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::latency::{chain, chase};
use crate::results::{Axis, BenchResult, Curve, CurveMark};
use crate::sampled;
use numakit_model::Topology;
use numakit_sys::proc::Processor;

const FIRST: u64 = 4 << 10;
const LAST: u64 = 1 << 30;
/// The largest size with `--quick`, and where there is less memory.
const LAST_QUICK: u64 = 128 << 20;

/// Measures it on the first node that has CPUs and memory, up to 1 GiB or a smaller `--size`.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let Some((node, cpu)) = ground.near() else {
        return result.leave_out("latency by size", "no node has both CPUs and memory that can be used");
    };
    let name = format!("load latency, CPU {cpu}, memory of node {node}");
    let mut curve = Curve::new(name, "ns", true, Axis::size()).between(node, node);
    curve.marks = marks(ground.topology, cpu);
    let last = if ground.settings.quick { LAST_QUICK } else { LAST };
    let most = ground.settings.size.map_or(last, |size| size.min(last));
    let time = ground.time() / 10;
    for size in sizes(most) {
        if ground.is_stopped() {
            break;
        }
        ground.now(format!("latency by size: {} KiB", size >> 10));
        let measured =
            chain(ground, node, size).and_then(|chain| placed::on_cpu(cpu, || chase(ground, &chain, time)));
        match measured {
            Ok(loads) => {
                curve.add(size as f64, sampled::quantiles(&loads, |load| load.ns));
            }
            Err(Misplaced(why)) => {
                result.leave_out(format!("latency by size from {} MiB on", size >> 20), why);
                break;
            }
        }
    }
    if !ground.is_stopped() {
        result.remarks.extend(reach::judge(&mut curve, Processor::read(&ground.root).is_virtual));
    }
    result.curves.push(curve);
}

/// Sizes: powers of two, and one and a half times these.
fn sizes(most: u64) -> impl Iterator<Item = u64> {
    let powers = std::iter::successors(Some(FIRST), |size| size.checked_mul(2));
    powers.flat_map(|size| [size, size / 2 * 3]).take_while(move |size| *size <= most)
}

/// The data caches of a CPU.
fn marks(topology: &Topology, cpu: u32) -> Vec<CurveMark> {
    let mut marks = Vec::new();
    for level in 1..=4 {
        let cache = topology.caches_of_level(level).find(|cache| cache.cpus.contains(cpu));
        let size = cache.and_then(|cache| cache.size);
        marks.extend(size.map(|size| CurveMark { x: size as f64, name: format!("L{level}") }));
    }
    marks.sort_by(|one, other| one.x.total_cmp(&other.x));
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn sizes_grow_to_the_largest() {
        assert_eq!(sizes(16 << 10).collect::<Vec<_>>(), [4096, 6144, 8192, 12288, 16384]);
        assert_eq!((sizes(LAST).last(), sizes(LAST).count()), (Some(LAST), 37));
    }

    #[test]
    fn caches_are_marked() {
        let mut topology = numakit_topology::synthetic::parse("package:1 node:1 core:2").unwrap();
        let cpus = numakit_model::CpuSet::range(0, 1);
        let cache = |level, size, kind| numakit_model::topology::Cache {
            level,
            size: Some(size),
            kind,
            cpus: cpus.clone(),
            ..Default::default()
        };
        use numakit_model::topology::CacheKind::{Data, Instruction, Unified};
        topology.caches = vec![cache(3, 900, Unified), cache(1, 30, Instruction), cache(1, 50, Data)];
        let names: Vec<_> = marks(&topology, 1).into_iter().map(|mark| (mark.name, mark.x)).collect();
        assert_eq!(names, [("L1".to_owned(), 50.0), ("L3".to_owned(), 900.0)]);
    }

    #[test]
    fn a_pair_and_a_curve_are_measured() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            crate::latency::measure(ground, &mut result);
            let cells = ground.places.len() * ground.memories.len();
            assert_eq!(result.matrices[0].values().count(), cells, "{:?}", result.left_out);
            assert!(result.matrices[0].values().all(|value| value.median > 0.0 && value.samples >= 5));
            assert_eq!(result.curves[0].points.len(), sizes(1 << 20).count());
            assert_eq!(
                result.remarks.iter().filter(|remark| remark.starts_with("memory of")).count(),
                ground.memories.len()
            );
        });
    }
}
