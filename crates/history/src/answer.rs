//! Answers of a history.

/// Buckets of equal length. Bucket `k` holds the rows with
/// `from_ns + k * step_ns <= time < from_ns + (k + 1) * step_ns`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Buckets {
    /// Start of the first bucket, ns since 1970.
    pub from_ns: u64,
    /// Length of a bucket.
    pub step_ns: u64,
    /// One for each requested series, in the order of the request.
    pub columns: Vec<Bucketed>,
}

/// One series in buckets, all three of the same length. NaN: nothing was measured there.
///
/// Without the full rate, the summary of a group of rows counts in each bucket that the group
/// overlaps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bucketed {
    /// Minimum.
    pub min: Vec<f32>,
    /// Maximum.
    pub max: Vec<f32>,
    /// Mean of the values.
    pub mean: Vec<f32>,
}

/// Every row of a range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Raw {
    /// Strictly increasing, ns since 1970.
    pub times: Vec<u64>,
    /// One for each requested series, all as long as `times`. NaN: not measured.
    pub columns: Vec<Vec<f32>>,
}

/// A value as it is stored: NaN if it is missing or not finite.
#[inline]
pub fn stored_value(value: Option<f64>) -> f32 {
    value.map(|v| v as f32).filter(|v| v.is_finite()).unwrap_or(f32::NAN)
}
