//! Intervals of measured values: whether two values differ by more than their noise.

/// Where a value that was measured several times lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueInterval {
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

impl ValueInterval {
    /// Whether all of it is less than all of another one.
    pub fn is_below(self, other: Self) -> bool {
        self.high < other.low
    }

    /// Whether two values differ beyond noise: their intervals have nothing in common.
    pub fn is_apart_from(self, other: Self) -> bool {
        self.is_below(other) || other.is_below(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_touch_are_not_apart() {
        let of = |low, high| ValueInterval { low, high };
        for (one, other, apart) in [
            (of(1.0, 2.0), of(2.0, 3.0), false),
            (of(1.0, 2.0), of(2.1, 3.0), true),
            (of(0.0, 9.0), of(2.0, 3.0), false),
        ] {
            assert_eq!(
                (one.is_apart_from(other), other.is_apart_from(one)),
                (apart, apart),
                "{one:?} {other:?}"
            );
        }
    }
}
