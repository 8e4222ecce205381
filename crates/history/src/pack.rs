//! Compressed columns. Most series of a machine are constant most of the time, and many of the
//! others are small integers.

use std::ops::Range;

/// The encodings of a column; the first byte.
mod form {
    /// One value for all rows.
    pub const CONSTANT: u8 = 0;
    /// Number of runs, the first row of each, the value of each.
    pub const RUNS: u8 = 1;
    /// Number of distinct values minus one, the values, an index of one byte per row.
    pub const DICTIONARY: u8 = 2;
    /// The minimum, and an offset of two bytes per row; 65,535 is NaN.
    pub const INTEGERS: u8 = 3;
    /// Every value.
    pub const PLAIN: u8 = 4;
}

const NOT_MEASURED: u16 = u16::MAX;
/// Larger integers are not exact in an `f32`.
const EXACT: f32 = 16_777_216.0;

/// Packed columns of equal length, at most 65,535 rows.
#[derive(Debug)]
pub(crate) struct Columns {
    at: Vec<u32>,
    bytes: Vec<u8>,
}

impl Columns {
    pub fn new(series: usize) -> Self {
        Self { at: Vec::with_capacity(series), bytes: Vec::new() }
    }

    /// Memory in use.
    pub fn size(&self) -> usize {
        self.at.capacity() * 4 + self.bytes.capacity()
    }

    /// Appends a column.
    pub fn push(&mut self, values: &[f32]) {
        self.at.push(self.bytes.len() as u32);
        let changes = values.windows(2).filter(|w| w[0].to_bits() != w[1].to_bits()).count();
        let (runs, rows) = (changes + 1, values.len());
        if changes == 0 {
            self.bytes.push(form::CONSTANT);
            self.floats(values.first().copied());
        } else if runs * 6 <= rows {
            self.runs(values, runs);
        } else if let Some((known, index)) = dictionary(values) {
            self.bytes.extend([form::DICTIONARY, (known.len() - 1) as u8]);
            self.floats(known);
            self.bytes.extend(index);
        } else if let Some(min) = integers_from(values).filter(|_| runs * 6 > rows * 2) {
            self.bytes.push(form::INTEGERS);
            self.floats([min]);
            let word = |v: &f32| if v.is_nan() { NOT_MEASURED } else { (v - min) as u16 };
            values.iter().for_each(|v| self.bytes.extend(word(v).to_le_bytes()));
        } else if runs * 6 < rows * 4 {
            self.runs(values, runs);
        } else {
            self.bytes.push(form::PLAIN);
            self.floats(values.iter().copied());
        }
    }

    /// Frees unused capacity.
    pub fn finish(&mut self) {
        self.bytes.shrink_to_fit();
    }

    fn runs(&mut self, values: &[f32], runs: usize) {
        self.bytes.push(form::RUNS);
        self.bytes.extend((runs as u16).to_le_bytes());
        let begins = |row: &usize| *row == 0 || values[*row].to_bits() != values[*row - 1].to_bits();
        let starts = || (0..values.len()).filter(begins);
        starts().for_each(|row| self.bytes.extend((row as u16).to_le_bytes()));
        self.floats(starts().map(|row| values[row]));
    }

    fn floats(&mut self, values: impl IntoIterator<Item = f32>) {
        values.into_iter().for_each(|v| self.bytes.extend(v.to_le_bytes()));
    }

    /// Appends the values of these rows of a column to a buffer.
    pub fn read(&self, series: usize, rows: Range<usize>, out: &mut Vec<f32>) {
        let Some((form, body)) = self.at.get(series).and_then(|&at| self.bytes[at as usize..].split_first())
        else {
            return out.extend(rows.map(|_| f32::NAN));
        };
        match *form {
            form::CONSTANT => out.extend(rows.map(|_| float(body, 0))),
            form::RUNS => read_runs(body, rows, out),
            form::DICTIONARY => {
                let (known, index) = body[1..].split_at((usize::from(body[0]) + 1) * 4);
                out.extend(index[rows].iter().map(|&i| float(known, usize::from(i))));
            }
            form::INTEGERS => {
                let min = float(body, 0);
                out.extend(rows.map(|row| match word(&body[4..], row) {
                    NOT_MEASURED => f32::NAN,
                    offset => min + f32::from(offset),
                }));
            }
            _ => out.extend(rows.map(|row| float(body, row))),
        }
    }
}

fn read_runs(body: &[u8], rows: Range<usize>, out: &mut Vec<f32>) {
    let count = usize::from(word(body, 0));
    let (starts, values) = body[2..].split_at(count * 2);
    let start = |run: usize| if run < count { usize::from(word(starts, run)) } else { usize::MAX };
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if start(middle) <= rows.start { low = middle } else { high = middle }
    }
    let mut row = rows.start;
    while row < rows.end {
        let end = start(low + 1).min(rows.end);
        out.extend(std::iter::repeat_n(float(values, low), end - row));
        (row, low) = (end, low + 1);
    }
}

fn float(bytes: &[u8], index: usize) -> f32 {
    bytes[index * 4..].first_chunk().map_or(f32::NAN, |b| f32::from_le_bytes(*b))
}

fn word(bytes: &[u8], index: usize) -> u16 {
    bytes[index * 2..].first_chunk().map_or(NOT_MEASURED, |b| u16::from_le_bytes(*b))
}

/// The distinct values and the index of each row; `None` if they are more than 256 or more than
/// a quarter of the rows.
fn dictionary(values: &[f32]) -> Option<(Vec<f32>, Vec<u8>)> {
    const SLOTS: usize = 1024;
    let max_values = 256.min(values.len() / 4);
    let mut slots = [u16::MAX; SLOTS];
    let mut known: Vec<f32> = Vec::new();
    let mut index = Vec::with_capacity(values.len());
    for value in values {
        let bits = value.to_bits();
        let mut slot = (bits.wrapping_mul(0x9e37_79b1) >> 22) as usize;
        while slots[slot] != u16::MAX && known[usize::from(slots[slot])].to_bits() != bits {
            slot = (slot + 1) % SLOTS;
        }
        if slots[slot] == u16::MAX {
            if known.len() == max_values {
                return None;
            }
            slots[slot] = known.len() as u16;
            known.push(*value);
        }
        index.push(slots[slot] as u8);
    }
    Some((known, index))
}

/// The minimum, if all measured values are integers at most 65,534 apart.
fn integers_from(values: &[f32]) -> Option<f32> {
    let (mut min, mut max) = (f32::INFINITY, f32::NEG_INFINITY);
    for value in values.iter().filter(|v| !v.is_nan()) {
        // Minus zero would come back as zero.
        if value.fract() != 0.0 || value.abs() >= EXACT || (*value == 0.0 && value.is_sign_negative()) {
            return None;
        }
        (min, max) = (min.min(*value), max.max(*value));
    }
    (max - min < f32::from(NOT_MEASURED)).then_some(min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(values: &[f32]) -> usize {
        let mut columns = Columns::new(1);
        columns.push(values);
        columns.bytes.len()
    }

    #[test]
    fn constant_and_repeated_values_take_few_bytes() {
        assert_eq!(size(&[7.5; 1024]), 5);
        assert_eq!(size(&[f32::NAN; 1024]), 5);
        let spikes: Vec<f32> = (0..1024).map(|i| if i % 32 == 0 { i as f32 + 0.3 } else { 0.0 }).collect();
        assert!(size(&spikes) < 400, "{}", size(&spikes));
        let few: Vec<f32> = (0..1024).map(|i| (i % 100) as f32 / 3.0).collect();
        assert!(size(&few) < 1500);
        let whole: Vec<f32> = (0..1024).map(|i| (i * 37 % 1023) as f32 + 1e6).collect();
        assert!(size(&whole) < 2100);
    }

    fn column() -> impl Strategy<Value = Vec<f32>> {
        let value = prop_oneof![
            4 => Just(0.0f32),
            1 => Just(f32::NAN),
            1 => Just(-0.0f32),
            2 => any::<f32>(),
            2 => (0..70_000i32).prop_map(|v| v as f32),
        ];
        let noise = proptest::collection::vec(value, 1..300);
        let few = proptest::collection::vec((0..400u16).prop_map(f32::from), 1..1500);
        let wide = proptest::collection::vec((-9000..70_000i32).prop_map(|v| v as f32), 1..1500);
        let runs = proptest::collection::vec((any::<f32>(), 1usize..60), 1..40).prop_map(|runs| {
            runs.into_iter().flat_map(|(v, n)| std::iter::repeat_n(v, n)).collect::<Vec<_>>()
        });
        prop_oneof![noise, few, wide, runs]
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(columns in proptest::collection::vec(column(), 1..4), cut in any::<(u16, u16)>()) {
            let mut packed = Columns::new(columns.len());
            columns.iter().for_each(|c| packed.push(c));
            packed.finish();
            for (series, values) in columns.iter().enumerate() {
                let a = usize::from(cut.0) % (values.len() + 1);
                let b = usize::from(cut.1) % (values.len() + 1);
                for range in [0..values.len(), a.min(b)..a.max(b)] {
                    let mut out = Vec::new();
                    packed.read(series, range.clone(), &mut out);
                    let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                    // All NaN are equal here.
                    let same = |v: &[f32]| bits(&v.iter().map(|v| if v.is_nan() { f32::NAN } else { *v }).collect::<Vec<_>>());
                    prop_assert_eq!(same(&out), same(&values[range]));
                }
            }
        }
    }
}
