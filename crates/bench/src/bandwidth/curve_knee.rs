//! Where a curve of latency by bandwidth bends.

/// The least distance of two rates, as a share of the largest.
const FINEST: f64 = 1.0 / 24.0;
/// A difference of times below this share of the least one is noise.
const NOISE: f64 = 0.05;
/// Saturated memory is slower than idle memory by this factor.
const SATURATED: f64 = 1.2;
/// How far a bend is below the straight line from the first point to the last, as a share of what the line covers.
const BEND: f64 = 0.1;

/// The rate to measure next, of points of rate and time in ascending order of rates: in the middle of where the time changes most.
/// None if that is fine enough, or if nothing changes.
pub(crate) fn next_rate(points: &[(f64, f64)]) -> Option<f64> {
    let points = rising(points);
    let (least, most) = (points.first()?.1, points.last()?.0);
    let wide = points.windows(2).filter(|pair| pair[1].0 - pair[0].0 > FINEST * most);
    let changes = wide.map(|pair| ((pair[1].1 - pair[0].1).abs(), (pair[0].0 + pair[1].0) / 2.0));
    let (change, middle) = changes.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (change > NOISE * least).then_some(middle)
}

/// The point that is farthest below the straight line from the first point, where memory is idle, to the last, where it is
/// saturated; `None` if memory is not saturated or if the curve does not bend.
pub(crate) fn knee(points: &[(f64, f64)]) -> Option<usize> {
    let points = rising(points);
    let (idle, full) = (points.first()?.1, points.last()?.1);
    let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
    if !is_saturated(idle, full) || most <= 0.0 {
        return None;
    }
    let below = |&(rate, time): &(f64, f64)| rate / most - (time - idle) / (full - idle);
    let far = points.iter().map(below).enumerate().max_by(|one, other| one.1.total_cmp(&other.1))?;
    (far.1 > BEND).then_some(far.0)
}

/// Whether memory is saturated, by the time of a load while it is idle and the time beside full traffic.
pub(crate) fn is_saturated(idle: f64, full: f64) -> bool {
    full >= SATURATED * idle
}

/// The points, each with at most the time beside more traffic: a longer time was disturbed.
fn rising(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut points = points.to_vec();
    for at in (1..points.len()).rev() {
        points[at - 1].1 = points[at - 1].1.min(points[at].1);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of memory that is saturated at a rate of 100: slowly more until 80, then steep.
    fn time(rate: f64) -> f64 {
        100.0 + rate / 10.0 + if rate > 80.0 { 20.0 * (rate - 80.0) } else { 0.0 }
    }

    #[test]
    fn rates_gather_at_the_knee() {
        let mut points = vec![(12.5, time(12.5)), (100.0, time(100.0))];
        while let Some(rate) = next_rate(&points) {
            points.push((rate, time(rate)));
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(points.len() < 16, "{points:?}");
        }
        assert!((5..=12).contains(&points.len()), "{points:?}");
        points.insert(0, (0.0, time(0.0)));
        let at = points[knee(&points).unwrap()].0;
        assert!((76.0..=84.0).contains(&at), "{at} of {points:?}");
    }

    #[test]
    fn nothing_is_sought_where_nothing_changes() {
        assert_eq!(next_rate(&[(10.0, 100.0), (80.0, 101.0)]), None);
        assert_eq!(next_rate(&[]), None);
        assert_eq!(knee(&[(0.0, 100.0), (40.0, 101.0), (80.0, 105.0)]), None);
        // A straight line has no bend.
        assert_eq!(knee(&[(0.0, 100.0), (40.0, 150.0), (80.0, 200.0)]), None);
        assert_eq!(knee(&[]), None);
    }

    #[test]
    fn a_time_that_was_disturbed_does_not_count() {
        let points = [(0.0, 100.0), (20.0, 900.0), (60.0, 104.0), (80.0, 110.0), (100.0, 400.0)];
        assert_eq!((next_rate(&points), knee(&points)), (Some(90.0), Some(3)));
    }
}
