//! Which registers a loop is fastest with.

use crate::results::quantiles::Quantiles;
use numakit_sys::loops::Vectors;

/// The one with the highest rate; none where no rate is known.
pub(crate) fn fastest<E>(
    candidates: Vec<Vectors>,
    mut rate: impl FnMut(Vectors) -> Result<Option<Quantiles>, E>,
) -> Result<Option<Vectors>, E> {
    let mut best = (None, 0.0);
    for vectors in candidates {
        let rate = rate(vectors)?.map_or(0.0, |value| value.median);
        best = if rate > best.1 { (Some(vectors), rate) } else { best };
    }
    Ok(best.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_counts_and_a_failure_ends_the_trial() {
        let all = || vec![Vectors::Avx512, Vectors::Avx2, Vectors::Plain];
        let of = |vectors| Quantiles::of(vec![if vectors == Vectors::Avx2 { 2.0 } else { 1.0 }]);
        assert_eq!(fastest(all(), |vectors| Ok::<_, ()>(of(vectors))), Ok(Some(Vectors::Avx2)));
        assert_eq!(fastest(all(), |_| Ok::<_, ()>(None)), Ok(None));
        assert_eq!(fastest(all(), |_| Err(7)), Err(7));
    }
}
