//! How much of a first touch is zeroing: the touch beside the time to zero the same pages again.

use crate::ground::Ground;
use crate::page_sizes::{Kind, fresh};
use crate::placed::{Misplaced, on_cpu};
use crate::quantiles::Quantiles;
use crate::results::{BenchResult, NamedValue};
use crate::sampled;
use numakit_sys::clock;
use numakit_sys::kernels::{Vectors, write};

/// Bytes between two readings of the clock, if a page is not larger: the second cache of most CPUs holds them.
const PIECE: usize = 256 << 10;

/// Times of a page, in ns.
#[derive(Debug, Clone, Copy)]
struct Pair {
    touch: f64,
    zero: f64,
}

/// Measures it on a CPU.
pub(crate) fn measure(ground: &Ground<'_>, cpu: u32, kind: Kind, result: &mut BenchResult) {
    if ground.is_stopped() {
        return;
    }
    ground.now(format!("faults: {}, zeroing", kind.name));
    let kind = Kind { bytes: kind.page.max(PIECE / kind.page * kind.page), ..kind };
    let name = |what: &str| format!("{}, {what}", kind.name);
    let pairs = match on_cpu(cpu, || pairs(ground, kind)) {
        Ok(Ok(pairs)) => pairs,
        Ok(Err(error)) => {
            return result.leave_out(name("zeroing"), format!("the kernel refuses it: {error}"));
        }
        Err(Misplaced(why)) => return result.leave_out(name("zeroing"), why),
    };
    let mut push = |what: &str, unit: &str, value: Option<Quantiles>| {
        let (name, unit) = (name(what), unit.to_owned());
        result.values.extend(value.map(|value| NamedValue { name, unit, value, best: None }));
    };
    push("zeroed again", "ns a page", sampled::quantiles(&pairs, |pair| pair.zero));
    push("share of zeroing in fresh", "%", sampled::quantiles(&pairs, |pair| 100.0 * pair.zero / pair.touch));
}

/// First touches of fresh memory, each followed by zeroing the same.
fn pairs(ground: &Ground<'_>, kind: Kind) -> std::io::Result<Vec<Pair>> {
    let (pages, vectors) = ((kind.bytes / kind.page) as f64, Vectors::widest());
    let mut refused = None;
    let pairs = sampled::repeat(ground.time(), || {
        let mut memory = match fresh(kind) {
            Ok(memory) if !ground.is_stopped() => memory,
            Ok(_) => return None,
            Err(error) => {
                refused = Some(error);
                return None;
            }
        };
        let begin = clock::monotonic();
        memory.touch(kind.page);
        let touched = clock::monotonic();
        write(&mut memory, 0, vectors);
        let end = clock::monotonic();
        Some(Pair { touch: (touched - begin).max(1) as f64 / pages, zero: (end - touched) as f64 / pages })
    });
    refused.map_or(Ok(pairs), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;
    use numakit_sys::kernels::Advice;

    #[test]
    fn a_share_and_a_time_are_given() {
        on_this_machine(|ground| {
            let (cpu, kind) = (ground.cpus.first().unwrap(), Kind::of(Advice::Small));
            let mut result = BenchResult::default();
            measure(ground, cpu, kind, &mut result);
            let values: Vec<_> = result.values.iter().map(|value| (&*value.name, &*value.unit)).collect();
            assert_eq!(
                values,
                [("small page, zeroed again", "ns a page"), ("small page, share of zeroing in fresh", "%")]
            );
            assert!(result.values.iter().all(|value| value.value.median > 0.0));
            measure(ground, 9999, kind, &mut result);
            assert!(result.left_out[0].why.contains("CPU 9999"));
        });
    }
}
