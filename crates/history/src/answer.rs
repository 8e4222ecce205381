//! What a history answers.

/// Buckets of equal length. Bucket `k` holds the rows with
/// `from_ns + k * step_ns <= time < from_ns + (k + 1) * step_ns`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Buckets {
    /// Where the first bucket begins, ns since 1970.
    pub from_ns: u64,
    /// Length of a bucket.
    pub step_ns: u64,
    /// One for each series that was asked for, in the order of the question.
    pub columns: Vec<Bucketed>,
}

/// One series in buckets, all three of the same length. NaN: nothing was measured there.
///
/// Where the full rate is gone, what is known of a group of rows that reaches over several
/// buckets stands in each of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bucketed {
    /// Least value.
    pub min: Vec<f32>,
    /// Greatest value.
    pub max: Vec<f32>,
    /// Mean of the values.
    pub mean: Vec<f32>,
}

/// Every row of a range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Raw {
    /// Rising, ns since 1970.
    pub times: Vec<u64>,
    /// One for each series that was asked for, all as long as `times`. NaN: not measured.
    pub columns: Vec<Vec<f32>>,
}

/// A value as it is kept: NaN where it is missing or no finite number.
#[inline]
pub fn kept(value: Option<f64>) -> f32 {
    value.map(|v| v as f32).filter(|v| v.is_finite()).unwrap_or(f32::NAN)
}
