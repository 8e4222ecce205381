//! Loads that follow stores to other memory with the same low 12 bits of the address. Many CPUs compare only these at first, and
//! let such a load wait for a store that it does not need.
//!
//! A load at offset 0 has the low bits of the store before it, one 8 bytes below a period those of the store before that one, and
//! so on: with several stores on their way to the cache, a CPU that suffers is slower at several of these offsets, and at no other.

use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::results::quantiles::Quantiles;
use crate::results::short::{ShortRow, ShortTable, numbers, table};
use crate::results::{Axis, BenchResult, Curve, CurvePoint};
use crate::sampled;
use numakit_sys::clock;
use numakit_sys::loops::StoresAndLoads;

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
/// Offsets that make a pattern.
const SEVERAL: usize = 2;

/// Measures the loads on the first CPU.
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

/// Times of a store and a load at all offsets, in ns. The offsets take turns, so that whatever else runs disturbs all of
/// them alike.
fn turns(ground: &Ground<'_>, offsets: &[usize]) -> std::io::Result<Vec<Vec<f64>>> {
    let mut memory = StoresAndLoads::map()?;
    let mut one = |&offset: &usize| {
        // The CPU learns which loads have had to wait. This pass lets it learn that for this offset.
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

/// Whether a load at this offset has the low bits of a store that may still be on its way.
fn is_aliased(offset: f64) -> bool {
    offset == 0.0 || NEAR.iter().any(|near| offset == (PERIOD - near) as f64)
}

/// A sentence if the offsets that are slower than most, beyond noise, are those of aliasing. If only one of them is slower,
/// or a different offset is, there is another cause, which these times do not tell.
fn verdict(curve: &Curve) -> Option<String> {
    let usual = Quantiles::of(curve.points.iter().map(|point| point.value.median).collect())?.median;
    let highs = curve.points.iter().map(|point| point.value.high).collect();
    let noise = Quantiles::of(highs)?.median;
    let is_slower = |p: &&CurvePoint| p.value.low > noise && p.value.median >= WORTH * usual;
    let slower: Vec<&CurvePoint> = curve.points.iter().filter(is_slower).collect();
    let aliased = slower.iter().filter(|point| is_aliased(point.x)).count();
    let by_median =
        |one: &&&CurvePoint, other: &&&CurvePoint| one.value.median.total_cmp(&other.value.median);
    let Some(worst) = slower.iter().max_by(by_median) else {
        return Some(format!(
            "no sign of 4 KiB aliasing: no offset is slower than the others ({usual:.2} ns), beyond noise"
        ));
    };
    let (factor, all) = (worst.value.median / usual, curve.points.len());
    let worst = format!(
        "a load {} bytes ahead of a store, modulo 4 KiB, takes {factor:.2} times as long as usual ({usual:.2} ns)",
        worst.x
    );
    if aliased < SEVERAL || aliased < slower.len() {
        return Some(format!(
            "cannot tell whether this CPU suffers from 4 KiB aliasing: {worst}; {} of {all} offsets are slower, {aliased} of them at \
             0 or right below 4 KiB, where aliasing makes several slower and no other",
            slower.len()
        ));
    }
    Some(format!(
        "this CPU suffers from 4 KiB aliasing: {worst}; {aliased} of {all} offsets are slower, all at 0 or right below 4 KiB. \
         Arrays that begin at different distances from 4 KiB avoid it, as large blocks of libnumalloc do"
    ))
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

    /// Times of 1 ns at all offsets but these.
    fn curve(slow: &[(f64, [f64; 3])]) -> Curve {
        let axis = Axis { name: "offset".to_owned(), unit: "bytes".to_owned(), logarithmic: false };
        let mut curve = Curve::new("it", "ns", true, axis);
        for offset in offsets() {
            let usual = [0.9, 1.0, 1.1];
            let found = slow.iter().find(|(slow, _)| *slow == offset as f64);
            let [low, median, high] = found.map_or(usual, |(_, times)| *times);
            curve.add(offset as f64, Some(Quantiles { median, low, high, samples: 9 }));
        }
        curve
    }

    #[test]
    fn aliasing_is_several_slow_offsets_where_stores_are_on_their_way() {
        const SLOW: [f64; 3] = [2.0, 2.5, 3.0];
        let of =
            |slow: &[f64]| verdict(&curve(&slow.iter().map(|at| (*at, SLOW)).collect::<Vec<_>>())).unwrap();
        for pattern in [&[0.0, 4088.0][..], &[4088.0, 4080.0, 4072.0], &[0.0, 4048.0]] {
            let text = of(pattern);
            assert!(text.starts_with("this CPU suffers") && text.contains("2.50 times"), "{text}");
            assert!(text.contains(&format!("{} of 74 offsets", pattern.len())), "{text}");
        }
        // However slow, one offset is no pattern, and other offsets are another one.
        for other in [&[4088.0][..], &[0.0], &[8.0, 16.0], &[0.0, 4088.0, 2048.0]] {
            let text = of(other);
            assert!(text.starts_with("cannot tell") && !text.contains("avoid it"), "{text}");
        }
        assert!(of(&[4088.0]).contains("1 of 74 offsets are slower, 1 of them at 0"), "{}", of(&[4088.0]));
    }

    #[test]
    fn what_is_slow_at_times_or_by_little_is_no_sign() {
        let curve = curve(&[(0.0, [1.0, 5.0, 9.0]), (4088.0, [1.11, 1.04, 1.2])]);
        let text = verdict(&curve).unwrap();
        assert!(text.starts_with("no sign of 4 KiB aliasing"), "{text}");
        let short = short(&[&curve]).unwrap();
        assert_eq!((short.rows[0].words[1].as_str(), &*short.rows[0].values), ("0", &[5.0, 1.0, 9.0][..]));
        assert_eq!((&*short.rows[1].values, short.of), (&[1.0, 0.9, 1.1][..], 74));
        let axis = Axis { name: "offset".to_owned(), unit: "bytes".to_owned(), logarithmic: false };
        assert_eq!(verdict(&Curve::new("it", "ns", true, axis)), None);
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
