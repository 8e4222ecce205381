//! The time of a write that bypasses the caches and that the next one waits for.

use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::ground::team::BYTE;
use crate::latency::SEED;
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, PairMatrix};
use crate::sampled;
use numakit_sys::clock;
use numakit_sys::loops::{Region, Vectors, WRITES_ONE_BY_ONE, write_one_by_one, write_past_caches};

/// Writes between two readings of the clock.
const WRITES: usize = 1 << 10;

/// Measures writes from all nodes to this memory, which is that of a column.
pub(crate) fn measure(
    ground: &Ground<'_>,
    mut region: Region,
    column: usize,
    matrix: &mut PairMatrix,
    result: &mut BenchResult,
) {
    if !WRITES_ONE_BY_ONE {
        return result.leave_out(&*matrix.name, "this CPU has no non-temporal writes that numa knows");
    }
    for (row, place) in ground.places.iter().enumerate() {
        let Some(&cpu) = place.cpus.first().filter(|_| !ground.is_stopped()) else { continue };
        let node = matrix.columns.get(column).copied().unwrap_or_default();
        ground.now(format!("write latency: CPUs of node {} to memory of node {node}", place.node));
        match placed::on_cpu(cpu, || one_by_one(ground, &mut region)) {
            Ok(value) => matrix.set(row, column, value),
            Err(Misplaced(why)) => result.leave_out(format!("CPUs of node {}", place.node), why),
        }
    }
}

/// Nanoseconds of a write, on the CPU of the calling thread.
fn one_by_one(ground: &Ground<'_>, region: &mut Region) -> Option<Quantiles> {
    // After this, caches have no line of the memory.
    write_past_caches(region, BYTE, Vectors::widest());
    let mut order = SEED;
    let times = sampled::repeat(ground.time(), || {
        let begin = clock::monotonic();
        let writes = write_one_by_one(region, &mut order, WRITES);
        let time = (clock::monotonic() - begin) as f64 / writes.max(1) as f64;
        (!ground.is_stopped()).then_some(time)
    });
    Quantiles::of(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;
    use numakit_sys::loops::Advice;

    #[test]
    fn a_column_is_measured_or_left_out_with_its_reason() {
        on_this_machine(|ground| {
            let rows: Vec<u32> = ground.places.iter().map(|place| place.node).collect();
            let mut matrix = PairMatrix::new("writes", "ns", true, rows.clone(), ground.memories.clone());
            let mut result = BenchResult::default();
            let region = placed::memory(ground, ground.memories[0], 1 << 20, Advice::Huge).unwrap();
            measure(ground, region, 0, &mut matrix, &mut result);
            let measured = if WRITES_ONE_BY_ONE { rows.len() } else { 0 };
            assert_eq!(matrix.values().count(), measured, "{:?}", result.left_out);
            assert!(matrix.values().all(|value| value.median > 0.0 && value.samples >= 5));
            assert_eq!(result.left_out.is_empty(), WRITES_ONE_BY_ONE);
        });
    }
}
