//! Loads that follow stores to other memory with the same low 12 bits of the address. Many CPUs compare only these at first, and
//! let such a load wait for a store that it does not need.

use crate::ground::Ground;
use crate::placed::{self, Misplaced};
use crate::quantiles::Quantiles;
use crate::results::{Axis, BenchResult, Curve};
use crate::sampled;
use crate::short::{ShortRow, ShortTable, numbers, table};
use numakit_sys::clock;
use numakit_sys::kernels::StoresAndLoads;

/// The name of the curve's axis.
pub(crate) const OFFSET: &str = "offset";
/// The distance of offsets, and others around 0, where a load is a few words beside a store.
const STEP: usize = 64;
const PERIOD: usize = 4096;
const NEAR: [usize; 5] = [8, 16, 24, 32, 48];
/// Passes between two readings of the clock.
const PASSES: usize = 8;
/// A smaller factor is not worth a word.
const WORTH: f64 = 1.05;

/// Measures it on the first CPU.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let Some(&cpu) = ground.places.first().and_then(|place| place.cpus.first()) else {
        return result.leave_out("4 KiB aliasing", "no CPU can be used");
    };
    ground.now("alias: all offsets in turn");
    let offsets = offsets();
    let times = match placed::on_cpu(cpu, || turns(ground, &offsets)) {
        Ok(Ok(times)) => times,
        Ok(Err(error)) => {
            return result.leave_out("4 KiB aliasing", format!("the kernel maps no memory: {error}"));
        }
        Err(Misplaced(why)) => return result.leave_out("4 KiB aliasing", why),
    };
    let axis = Axis { name: OFFSET.to_owned(), unit: "bytes".to_owned(), logarithmic: false };
    let name = format!("a store, then a load this far ahead of it modulo 4 KiB, CPU {cpu}");
    let mut curve = Curve::new(name, "ns", true, axis);
    for (at, &offset) in offsets.iter().enumerate() {
        curve.add(offset as f64, sampled::quantiles(&times, |turn| turn[at]));
    }
    result.remarks.extend(verdict(&curve));
    result.curves.push(curve);
}

/// In ascending order.
fn offsets() -> Vec<usize> {
    let even = (0..PERIOD).step_by(STEP);
    let mut offsets: Vec<usize> = even.chain(NEAR).chain(NEAR.map(|near| PERIOD - near)).collect();
    offsets.sort_unstable();
    offsets
}

/// Times of a store and a load at all offsets, in ns; offsets take turns, so that what else runs hits all of them.
fn turns(ground: &Ground<'_>, offsets: &[usize]) -> std::io::Result<Vec<Vec<f64>>> {
    let mut memory = StoresAndLoads::map()?;
    let mut one = |&offset: &usize| {
        // The CPU learns which loads have waited; here it learns it of this offset.
        memory.pass(offset);
        let begin = clock::monotonic();
        let pairs: usize = (0..PASSES).map(|_| memory.pass(offset)).sum();
        (clock::monotonic() - begin) as f64 / pairs as f64
    };
    Ok(sampled::repeat(ground.time(), || {
        (!ground.is_stopped()).then(|| offsets.iter().map(&mut one).collect())
    }))
}

/// The worst offset and a usual one.
pub(crate) fn short(curves: &[&Curve]) -> Option<ShortTable> {
    let [curve] = curves else { return None };
    let mut points: Vec<_> = curve.points.iter().collect();
    points.sort_by(|one, other| one.value.median.total_cmp(&other.value.median));
    let row = |what: &str, place: String, value: &Quantiles| ShortRow {
        words: vec![what.to_owned(), place],
        values: numbers(value),
    };
    let (worst, usual) = (points.last()?, points.get((points.len() - 1) / 2)?);
    let rows = vec![
        row("worst", format!("{}", worst.x), &worst.value),
        row("usual", format!("median of {}", points.len()), &usual.value),
    ];
    let headings = vec!["", "offset in bytes", "median", "10 %", "90 %"];
    table(&curve.name, headings, curves, rows)
}

/// Whether an offset is slower than most, beyond noise.
fn verdict(curve: &Curve) -> Option<String> {
    let usual = Quantiles::of(curve.points.iter().map(|point| point.value.median).collect())?.median;
    let highs = curve.points.iter().map(|point| point.value.high).collect();
    let noise = Quantiles::of(highs)?.median;
    let slower = curve.points.iter().filter(|p| p.value.low > noise && p.value.median >= WORTH * usual);
    let worst = slower.clone().max_by(|one, other| one.value.median.total_cmp(&other.value.median));
    Some(match worst {
        Some(worst) => format!(
            "this CPU suffers from 4 KiB aliasing: a load {} bytes ahead of a store, modulo 4 KiB, takes {:.2} times as long as \
             usual ({:.2} ns); {} of {} offsets are slower. Arrays that begin at different distances from 4 KiB avoid it, as \
             large blocks of libnumalloc do",
            worst.x,
            worst.value.median / usual,
            usual,
            slower.count(),
            curve.points.len()
        ),
        None => format!(
            "no offset is slower than the others ({usual:.2} ns), beyond noise: this CPU does not suffer from 4 KiB aliasing"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn offsets_are_a_period_with_more_around_its_ends() {
        let offsets = offsets();
        assert_eq!((offsets.len(), offsets[..7].to_vec()), (74, vec![0, 8, 16, 24, 32, 48, 64]));
        assert_eq!(offsets.last(), Some(&4088));
        assert!(offsets.is_sorted_by(|one, other| one < other));
    }

    #[test]
    fn an_offset_that_is_clearly_slower_is_named() {
        let axis = Axis { name: "offset".to_owned(), unit: "bytes".to_owned(), logarithmic: false };
        let mut curve = Curve::new("it", "ns", true, axis);
        assert_eq!(verdict(&curve), None);
        let value = |low, median, high| Some(Quantiles { median, low, high, samples: 9 });
        (0..5).for_each(|at| curve.add(f64::from(at) * 64.0, value(0.9, 1.0, 1.1)));
        // Slow at times only, and slow by little.
        curve.add(320.0, value(1.0, 5.0, 9.0));
        curve.add(384.0, value(1.11, 1.04, 1.2));
        assert!(verdict(&curve).unwrap().contains("does not suffer"));
        curve.add(448.0, value(2.0, 3.0, 4.0));
        let text = verdict(&curve).unwrap();
        assert!(text.contains("a load 448 bytes ahead") && text.contains("3.00 times"), "{text}");
        assert!(text.contains("1 of 8 offsets"), "{text}");
        let short = short(&[&curve]).unwrap();
        assert_eq!((short.rows[0].words[1].as_str(), &*short.rows[0].values), ("320", &[5.0, 1.0, 9.0][..]));
        assert_eq!((&*short.rows[1].values, short.of), (&[1.0, 0.9, 1.1][..], 8));
    }

    #[test]
    fn every_offset_is_measured() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure(ground, &mut result);
            let points = &result.curves[0].points;
            assert_eq!(points.iter().map(|p| p.x as usize).collect::<Vec<_>>(), offsets());
            assert!(points.iter().all(|p| p.value.median > 0.0 && p.value.samples >= sampled::MIN_SAMPLES));
            assert_eq!(result.remarks.len(), 1);
        });
    }
}
