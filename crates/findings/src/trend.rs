//! How a value developed, in bounded memory: points at equal distances, which become fewer and wider apart as time goes on.

/// Maximum number of points. When there are more, every second one is dropped.
const MAX_POINTS: usize = 64;

/// Points of a value over time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trend {
    points: Vec<(u64, f64)>,
    /// One of 2^step values is kept.
    step: u32,
    seen: u64,
    last: Option<(u64, f64)>,
}

impl Trend {
    /// The next value.
    pub(crate) fn push(&mut self, time: u64, value: f64) {
        if self.seen.is_multiple_of(1 << self.step) {
            self.points.push((time, value));
        }
        self.seen += 1;
        self.last = Some((time, value));
        if self.points.len() > MAX_POINTS {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.step += 1;
        }
    }

    /// The points that were kept, and the last value: times in ns.
    pub(crate) fn points(&self) -> Vec<(u64, f64)> {
        let mut points = self.points.clone();
        points.extend(self.last.filter(|last| points.last() != Some(last)));
        points
    }

    /// What the value gained in each of four equal parts of the time; `None` with too few values.
    pub(crate) fn quarters(&self) -> Option<[f64; 4]> {
        let points = self.points();
        let (first, last) = (points.first()?, points.last()?);
        let length = last.0.checked_sub(first.0).filter(|&ns| ns > 0 && points.len() >= 12)?;
        let at = |part: u64| {
            let time = first.0 + length / 4 * part;
            points.iter().min_by_key(|point| point.0.abs_diff(time)).map_or(0.0, |point| point.1)
        };
        let ends = [first.1, at(1), at(2), at(3), last.1];
        Some(std::array::from_fn(|part| ends[part + 1] - ends[part]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(values: impl Iterator<Item = f64>) -> Trend {
        let mut trend = Trend::default();
        (0..).zip(values).for_each(|(at, value)| trend.push(at * 100, value));
        trend
    }

    #[test]
    fn points_stay_bounded_and_cover_the_whole_time() {
        let trend = fed((0..10_000).map(f64::from));
        let points = trend.points();
        assert!((32..=MAX_POINTS + 2).contains(&points.len()), "{}", points.len());
        assert_eq!((points[0], *points.last().unwrap()), ((0, 0.0), (999_900, 9999.0)));
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn quarters_tell_steady_growth_from_growth_that_ends() {
        let steady = fed((0..1000).map(f64::from)).quarters().unwrap();
        assert!(steady.iter().all(|gain| (230.0..=270.0).contains(gain)), "{steady:?}");
        let ended = fed((0..1000).map(|at| f64::from(at.min(200)))).quarters().unwrap();
        assert_eq!((ended[2], ended[3]), (0.0, 0.0));
        assert_eq!(fed((0..5).map(f64::from)).quarters(), None);
    }
}
