//! Minimum, maximum and mean of groups of rows.

/// Values that are summed independently, for SIMD.
const LANES: usize = 8;
/// Rows of a group.
pub(crate) const GROUP: usize = 64;

/// The rows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Time of its first row.
    pub first: u64,
    /// Time of its last row.
    pub last: u64,
    /// Number of rows.
    pub rows: u16,
}

/// The values of a series in a group. If `count` is 0, the rest is meaningless.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub min: f32,
    pub max: f32,
    pub mean: f32,
    pub count: u16,
}

impl Summary {
    const NONE: Self = Self { min: f32::NAN, max: f32::NAN, mean: f32::NAN, count: 0 };

    pub fn of(values: &[f32]) -> Self {
        if let Some(flat) = Self::of_flat(values) {
            return flat;
        }
        // Independent lanes, so that no addition waits for another.
        let (mut min, mut max) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
        let (mut sum, mut count) = ([0.0f64; LANES], [0u16; LANES]);
        for chunk in values.chunks(LANES) {
            for (lane, value) in chunk.iter().enumerate() {
                let measured = !value.is_nan();
                min[lane] = if *value < min[lane] { *value } else { min[lane] };
                max[lane] = if *value > max[lane] { *value } else { max[lane] };
                sum[lane] += if measured { f64::from(*value) } else { 0.0 };
                count[lane] += u16::from(measured);
            }
        }
        let count = count.iter().sum();
        if count == 0 {
            return Self::NONE;
        }
        let min = min.into_iter().fold(f32::INFINITY, f32::min);
        let max = max.into_iter().fold(f32::NEG_INFINITY, f32::max);
        Self { min, max, mean: mean(sum.iter().sum(), u64::from(count), min, max), count }
    }

    /// Of equal values, the most frequent case.
    fn of_flat(values: &[f32]) -> Option<Self> {
        let first = *values.first()?;
        let same = !first.is_nan() && values.iter().all(|v| v.to_bits() == first.to_bits());
        same.then_some(Self { min: first, max: first, mean: first, count: values.len() as u16 })
    }

    /// Of all groups together.
    pub fn of_all(groups: &[Self]) -> Self {
        let (mut min, mut max, mut sum, mut count) = (f32::INFINITY, f32::NEG_INFINITY, 0.0, 0u16);
        for group in groups.iter().filter(|g| g.count > 0) {
            (min, max) = (min.min(group.min), max.max(group.max));
            sum += f64::from(group.mean) * f64::from(group.count);
            count += group.count;
        }
        if count == 0 {
            return Self::NONE;
        }
        Self { min, max, mean: mean(sum, u64::from(count), min, max), count }
    }
}

/// Clamped, because rounding may move a mean out of the range of its values.
pub(crate) fn mean(sum: f64, count: u64, min: f32, max: f32) -> f32 {
    ((sum / count as f64) as f32).max(min).min(max)
}

/// The encodings of a series; the first byte.
mod form {
    /// One value for all rows of all groups; NaN: never measured.
    pub const FLAT: u8 = 0;
    /// Three values per group; every row was measured.
    pub const FULL: u8 = 1;
    /// Three values and a count per group.
    pub const COUNTED: u8 = 2;
}

/// Groups of rows, and the summary of each series in each of them.
#[derive(Debug, Default)]
pub(crate) struct Level {
    pub spans: Vec<Span>,
    at: Vec<u32>,
    bytes: Vec<u8>,
}

impl Level {
    pub fn new(spans: Vec<Span>, series: usize) -> Self {
        Self { spans, at: Vec::with_capacity(series), bytes: Vec::new() }
    }

    /// From [`Level::as_bytes`]; `None` if the number of bytes does not fit `series`.
    pub fn of_bytes(spans: Vec<Span>, series: usize, bytes: Vec<u8>) -> Option<Self> {
        let mut at = Vec::with_capacity(series.min(bytes.len()));
        let mut next = 0;
        for _ in 0..series {
            at.push(u32::try_from(next).ok()?);
            next += 1 + match *bytes.get(next)? {
                form::FLAT => 4,
                form::FULL => spans.len() * 12,
                form::COUNTED => spans.len() * 14,
                _ => return None,
            };
        }
        (next == bytes.len()).then_some(Self { spans, at, bytes })
    }

    /// Input of [`Level::of_bytes`].
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Memory in use.
    pub fn size(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.at.capacity() * 4 + self.bytes.capacity()
    }

    /// Appends a series: one summary per group.
    pub fn push(&mut self, groups: &[Summary]) {
        self.at.push(self.bytes.len() as u32);
        let full = groups.iter().zip(&self.spans).all(|(g, s)| g.count == s.rows);
        let none = groups.iter().all(|g| g.count == 0);
        let bits = groups.first().map_or(0, |g| g.min.to_bits());
        let flat = full && groups.iter().all(|g| g.min.to_bits() == bits && g.max.to_bits() == bits);
        if none || flat {
            self.bytes.push(form::FLAT);
            let value = if none { f32::NAN } else { f32::from_bits(bits) };
            return self.bytes.extend(value.to_le_bytes());
        }
        self.bytes.push(if full { form::FULL } else { form::COUNTED });
        for value in groups.iter().flat_map(|g| [g.min, g.max, g.mean]) {
            self.bytes.extend(value.to_le_bytes());
        }
        if !full {
            groups.iter().for_each(|g| self.bytes.extend(g.count.to_le_bytes()));
        }
    }

    /// Frees unused capacity.
    pub fn finish(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// A series in a group; `None` if nothing was measured.
    pub fn get(&self, group: usize, series: usize) -> Option<Summary> {
        let (form, body) = self.bytes.get(*self.at.get(series)? as usize..)?.split_first()?;
        let float = |at: usize| body.get(at..)?.first_chunk().map(|b| f32::from_le_bytes(*b));
        let rows = self.spans.get(group)?.rows;
        if *form == form::FLAT {
            let value = float(0).filter(|v| !v.is_nan())?;
            return Some(Summary { min: value, max: value, mean: value, count: rows });
        }
        let count = match *form {
            form::FULL => rows,
            _ => {
                let at = self.spans.len() * 12 + group * 2;
                u16::from_le_bytes(*body.get(at..)?.first_chunk()?)
            }
        };
        let at = group * 12;
        let summary = Summary { min: float(at)?, max: float(at + 4)?, mean: float(at + 8)?, count };
        (count > 0).then_some(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(rows: &[u16]) -> Vec<Span> {
        rows.iter().map(|&rows| Span { first: 0, last: 1, rows }).collect()
    }

    #[test]
    fn summaries_come_back() {
        let mut level = Level::new(spans(&[4, 2]), 5);
        let of = |a: &[f32], b: &[f32]| [Summary::of(a), Summary::of(b)];
        let nan = f32::NAN;
        let series = [
            of(&[1.0, 2.0, 3.0, 6.0], &[5.0, 5.0]),
            of(&[0.0; 4], &[0.0; 2]),
            of(&[nan; 4], &[nan; 2]),
            of(&[nan, 1.0, nan, 2.0], &[nan; 2]),
            of(&[7.0; 4], &[8.0; 2]),
        ];
        series.iter().for_each(|s| level.push(s));
        level.finish();
        let again = Level::of_bytes(level.spans.clone(), 5, level.as_bytes().to_vec()).unwrap();
        for (number, groups) in series.iter().enumerate() {
            for (group, summary) in groups.iter().enumerate() {
                let expected = (summary.count > 0).then_some(*summary);
                assert_eq!(level.get(group, number), expected);
                assert_eq!(again.get(group, number), expected);
            }
        }
        assert_eq!((level.get(2, 0), level.get(0, 5)), (None, None));
        assert_eq!(Summary::of_all(&series[0]), Summary { min: 1.0, max: 6.0, mean: 22.0 / 6.0, count: 6 });
        assert_eq!(Summary::of_all(&series[3]), Summary { min: 1.0, max: 2.0, mean: 1.5, count: 2 });
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut level = Level::new(spans(&[1]), 1);
        level.push(&[Summary::of(&[1.0])]);
        let bytes = level.as_bytes().to_vec();
        let read = |series: usize, bytes: &[u8]| Level::of_bytes(spans(&[1]), series, bytes.to_vec());
        assert!(read(1, &bytes).is_some());
        assert!(read(2, &bytes).is_none() && read(0, &bytes).is_none());
        assert!(read(1, &bytes[..4]).is_none() && read(1, &[9; 5]).is_none());
        assert!(read(1, &[&bytes[..], &[0]].concat()).is_none());
    }
}
