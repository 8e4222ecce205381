//! Medians and interleaved pairs.

use anyhow::Result;

/// Number of pairs of a comparison.
pub const PAIRS: usize = 5;

/// The median; of an even number of values, the mean of the middle two; 0 of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Measures two things in turn, so that other load affects both equally. The order alternates.
pub fn pairs<A, B>(
    count: usize,
    mut one: impl FnMut() -> Result<A>,
    mut other: impl FnMut() -> Result<B>,
) -> Result<Vec<(A, B)>> {
    let mut measured = Vec::new();
    for pair in 0..count {
        if pair % 2 == 0 {
            let first = one()?;
            measured.push((first, other()?));
        } else {
            let first = other()?;
            measured.push((one()?, first));
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 100.0]), 3.0);
        assert_eq!(median([4.0, 1.0, 3.0, 100.0]), 3.5);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn pairs_change_order_but_not_places() {
        let order = RefCell::new(Vec::new());
        let note = |name| {
            order.borrow_mut().push(name);
            Ok(name)
        };
        assert_eq!(pairs(2, || note('a'), || note('b')).unwrap(), [('a', 'b'), ('a', 'b')]);
        assert_eq!(order.into_inner(), ['a', 'b', 'b', 'a']);
    }
}
