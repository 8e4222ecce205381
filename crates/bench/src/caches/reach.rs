//! How much of the last cache loads reach, by their times, beside the size that the CPU states.

use crate::results::{Curve, CurveMark};
use numakit_model::numbers::NumberStyle;

/// Memory that takes less than this many times as long as the cache has no edge to see.
const EDGE: f64 = 2.0;

/// Sizes of memory between which loads leave the cache, of those that were measured.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reach {
    /// The largest size with which loads still hit the cache.
    within: f64,
    /// The next larger size that was measured.
    beyond: f64,
}

/// Compares the last cache that is marked on a curve of times by size with the times. If they disagree, marks both sizes and
/// returns a sentence; `None` if they agree or if the times do not tell.
pub(crate) fn judge(curve: &mut Curve, is_guest: bool) -> Option<String> {
    let (last, inner) = curve.marks.split_last()?;
    let inner = inner.last().map_or(0.0, |mark| mark.x);
    let stated = last.x;
    // With a small --size, no time on the curve is that of memory.
    curve.points.last().filter(|point| point.x >= 2.0 * stated)?;
    let found = reach(curve, inner)?;
    // The edge of a cache is not sharp: a little more or less is no other size.
    if found.beyond >= stated && found.within < 2.0 * stated {
        return None;
    }
    let (name, size) = (last.name.clone(), |bytes: f64| NumberStyle::Bytes.words(bytes));
    let why = match (found.beyond < stated, is_guest) {
        (false, _) => "the CPU or its hypervisor states less than there is",
        (true, true) => {
            "a guest of a hypervisor has a share of the cache of its host, which other guests use too"
        }
        (true, false) => "other programs use it too, or a control group limits this process to a part of it",
    };
    let sentence = format!(
        "{name}: the CPU states {}, but loads leave the cache between {} and {}: {why}",
        size(stated),
        size(found.within),
        size(found.beyond)
    );
    curve.marks.pop();
    curve.marks.push(CurveMark { x: stated, name: format!("{name} as stated by the CPU") });
    curve.marks.push(CurveMark { x: found.within, name: format!("{name} as measured") });
    curve.marks.sort_by(|one, other| one.x.total_cmp(&other.x));
    Some(sentence)
}

/// Where times leave those of the cache for those of memory, which the largest sizes show. `inner` is the size of the next
/// smaller cache. Other programs make loads slower, never faster: a time that is longer than a time with more memory was
/// disturbed.
fn reach(curve: &Curve, inner: f64) -> Option<Reach> {
    let mut points: Vec<(f64, f64)> =
        curve.points.iter().map(|point| (point.x, point.value.median)).filter(|(x, _)| *x > inner).collect();
    for at in (1..points.len()).rev() {
        points[at - 1].1 = points[at - 1].1.min(points[at].1);
    }
    let (cache, memory) = (points.first()?.1, points.last()?.1);
    let middle = (cache * memory).sqrt();
    let edge = points.partition_point(|(_, time)| *time < middle);
    let (within, beyond) = (points.get(edge.checked_sub(1)?)?.0, points.get(edge)?.0);
    (memory >= EDGE * cache).then_some(Reach { within, beyond })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Axis;
    use crate::results::quantiles::Quantiles;

    const MIB: f64 = 1048576.0;

    /// Times of a guest, by MiB: L2 has 1 MiB, and the times leave L3 between 8 and 12 MiB.
    const GUEST: [(f64, f64); 11] = [
        (0.5, 4.8),
        (1.0, 8.7),
        (1.5, 11.7),
        (3.0, 16.2),
        (4.0, 15.8),
        (8.0, 22.9),
        (12.0, 108.6),
        (24.0, 143.7),
        (48.0, 153.8),
        (64.0, 160.7),
        (128.0, 153.1),
    ];

    fn curve(points: &[(f64, f64)], caches: &[f64]) -> Curve {
        let mut curve = Curve::new("load latency", "ns", true, Axis::size());
        for (mib, time) in points {
            let value = Quantiles { median: *time, low: *time, high: *time, samples: 9 };
            curve.add(mib * MIB, Some(value));
        }
        let mark = |(at, mib): (usize, &f64)| CurveMark { x: mib * MIB, name: format!("L{}", at + 1) };
        curve.marks = caches.iter().enumerate().map(mark).collect();
        curve
    }

    fn marks(curve: &Curve) -> Vec<(f64, &str)> {
        curve.marks.iter().map(|mark| (mark.x / MIB, mark.name.as_str())).collect()
    }

    #[test]
    fn a_share_of_the_stated_cache_is_said_with_both_sizes() {
        let mut curve = curve(&GUEST, &[0.05, 1.0, 32.0]);
        let text = judge(&mut curve, true).unwrap();
        assert!(text.starts_with("L3: the CPU states 32.0 MiB, but loads leave the cache between"), "{text}");
        assert!(
            text.contains("between 8.00 MiB and 12.0 MiB: a guest of a hypervisor has a share"),
            "{text}"
        );
        assert_eq!(
            marks(&curve),
            [(0.05, "L1"), (1.0, "L2"), (8.0, "L3 as measured"), (32.0, "L3 as stated by the CPU")]
        );
    }

    #[test]
    fn what_the_times_agree_with_is_the_size() {
        for stated in [10.0, 12.0, 6.0] {
            let mut curve = curve(&GUEST, &[0.05, 1.0, stated]);
            assert_eq!((judge(&mut curve, true), curve.marks.len()), (None, 3), "{stated}");
            assert_eq!(curve.marks[2].name, "L3");
        }
        let text = judge(&mut curve(&GUEST, &[0.05, 1.0, 4.0]), false).unwrap();
        assert!(text.contains("states 4.00 MiB") && text.ends_with("less than there is"), "{text}");
        let text = judge(&mut curve(&GUEST, &[0.05, 1.0, 32.0]), false).unwrap();
        assert!(text.ends_with("to a part of it"), "{text}");
    }

    #[test]
    fn a_disturbed_time_is_no_edge_and_times_without_one_tell_nothing() {
        let mut disturbed = GUEST;
        disturbed[3].1 = 150.0;
        let text = judge(&mut curve(&disturbed, &[0.05, 1.0, 32.0]), true).unwrap();
        assert!(text.contains("between 8.00 MiB and 12.0 MiB"), "{text}");
        for (points, stated) in [(5, 32.0), (8, 32.0), (5, 2.0)] {
            assert_eq!(judge(&mut curve(&GUEST[..points], &[0.05, 1.0, stated]), true), None, "{points}");
        }
        assert_eq!(judge(&mut curve(&GUEST, &[]), true), None);
        assert_eq!(judge(&mut curve(&[], &[1.0]), true), None);
    }
}
