//! From a value to a place on an axis, and the values at which the axis has ticks.

/// Ticks of an axis, at most about.
const TICKS: usize = 8;

/// An axis from one value to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    from: f64,
    to: f64,
    /// Equal factors have equal distances.
    pub logarithmic: bool,
    /// Where the axis begins and ends in the drawing.
    places: (f64, f64),
}

impl Scale {
    /// An axis that has room for all values. One that cannot be logarithmic is not.
    pub fn over(
        values: impl Iterator<Item = f64> + Clone,
        logarithmic: bool,
        places: (f64, f64),
    ) -> Option<Self> {
        let (from, to) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), v| (from.min(v), to.max(v)));
        if from > to {
            return None;
        }
        let logarithmic = logarithmic && from > 0.0;
        let (from, to) = match (logarithmic, from < to) {
            (_, true) => (from, to),
            (true, false) => (from / 2.0, to * 2.0),
            (false, false) => (from - from.abs().max(1.0), to + to.abs().max(1.0)),
        };
        Some(Self { from, to, logarithmic, places })
    }

    /// The same with room above the largest value, from 0 on if no value is below.
    pub fn from_zero(self) -> Self {
        match self.logarithmic {
            true => Self { from: self.from / 1.2, to: self.to * 1.2, ..self },
            false => {
                let from = self.from.min(0.0);
                Self { from, to: self.to + (self.to - from) * 0.08, ..self }
            }
        }
    }

    /// Where a value is. Values beyond the ends are at the ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        self.places.0 + (self.places.1 - self.places.0) * share.clamp(0.0, 1.0)
    }

    /// Whether the value is between the ends.
    pub fn has(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// Values of the ticks: powers of the base, or round values.
    pub fn ticks(&self, base: f64) -> Vec<f64> {
        let powers = if self.logarithmic { self.powers(base) } else { Vec::new() };
        if powers.len() > 1 { powers } else { self.round() }
    }

    fn powers(&self, base: f64) -> Vec<f64> {
        let exponent = |value: f64| value.ln() / base.ln();
        // A power that was computed may be a little beside its exponent.
        let first = (exponent(self.from) - 1e-9).ceil() as i32;
        let last = (exponent(self.to) + 1e-9).floor() as i32;
        let count = usize::try_from(last - first + 1).unwrap_or(0);
        let fine = base == 10.0 && count <= 3;
        let steps: &[f64] = if fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = if fine { first - 1 } else { first };
        let powers = (first..=last).step_by(count.div_ceil(TICKS).max(1));
        let ticks = powers.flat_map(|power| steps.iter().map(move |step| step * base.powi(power)));
        ticks.filter(|tick| self.has(*tick)).collect()
    }

    fn round(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / (TICKS - 2) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].into_iter().map(|step| step * power).find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.from / step).ceil();
        (0..2 * TICKS).map(|at| (first + at as f64) * step).filter(|tick| self.has(*tick)).collect()
    }
}

/// The number at a tick, without digits that rounding left.
pub fn tick(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(values: &[f64], logarithmic: bool) -> Scale {
        Scale::over(values.iter().copied(), logarithmic, (0.0, 100.0)).unwrap()
    }

    #[test]
    fn equal_factors_or_differences_have_equal_distances() {
        let sizes = over(&[4096.0, 16384.0, 65536.0], true);
        assert!((sizes.at(16384.0) - 50.0).abs() < 1e-9);
        assert_eq!((sizes.at(1.0), sizes.at(1e9)), (0.0, 100.0));
        let threads = over(&[1.0, 5.0], false);
        assert_eq!((threads.at(2.0), threads.has(6.0)), (25.0, false));
        assert!(!over(&[0.0, 5.0], true).logarithmic);
        assert_eq!(Scale::over([].into_iter(), true, (0.0, 1.0)), None);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(over(&[4096.0, 65536.0], true).ticks(2.0), [4096.0, 8192.0, 16384.0, 32768.0, 65536.0]);
        assert_eq!(over(&[0.9, 140.0], true).ticks(10.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(over(&[0.0, 12.0], false).ticks(10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        for (from, to) in [(1e-300, 1e30), (1.0, 1.0), (0.0, 0.0), (-5.0, 1e-9), (1e30, 1e30), (3.0, 3.1)] {
            for logarithmic in [false, true] {
                let scale = over(&[from, to], logarithmic).from_zero();
                let ticks = scale.ticks(10.0);
                assert!(ticks.len() <= 2 * TICKS, "{from} {to}: {ticks:?}");
                assert!(ticks.iter().all(|tick| scale.at(*tick).is_finite()), "{from} {to}: {ticks:?}");
            }
        }
    }

    #[test]
    fn numbers_at_ticks_are_short() {
        let texts = [0.30000000000000004, 20.0, 0.0, 1e6, 1e-5, -0.5].map(tick);
        assert_eq!(texts, ["0.3", "20", "0", "1e6", "1e-5", "-0.5"]);
    }
}
