//! Binary frames: `[u32 length of the header][header as JSON][0 up to a multiple of 8][columns]`,
//! little-endian. Each column has the smallest type that stores its values exactly.

use crate::wire::{ColumnType, FrameColumn, FrameHeader, FrameKind, Ns, What};
use numakit_history::{Bucketed, Buckets, Raw};

/// A frame. [`Frame::bytes`] fills in [`FrameHeader::seq`] and [`FrameHeader::dropped`], which are
/// known only when it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    header: FrameHeader,
    body: Vec<u8>,
}

impl Frame {
    /// Buckets of a watch, from number `first` on.
    pub fn of_grid(id: u32, source: u32, series: &[u32], first: u64, buckets: &Buckets) -> Self {
        Self::of_columns(id, source, series, first, buckets.step_ns, &buckets.columns)
    }

    /// The same from columns.
    pub fn of_columns(
        id: u32,
        source: u32,
        series: &[u32],
        first: u64,
        step_ns: u64,
        columns: &[Bucketed],
    ) -> Self {
        let mut frame = Self::empty(id, source, FrameKind::Grid);
        frame.header.first = Some(first);
        frame.buckets(series, step_ns, columns);
        frame
    }

    /// Buckets of a fetch.
    pub fn of_range(id: u32, source: u32, series: &[u32], buckets: &Buckets) -> Self {
        let mut frame = Self::empty(id, source, FrameKind::Grid);
        frame.header.from_ns = Some(Ns(buckets.from_ns));
        frame.buckets(series, buckets.step_ns, &buckets.columns);
        frame
    }

    /// Rows of a fetch.
    pub fn of_rows(id: u32, source: u32, series: &[u32], from_ns: u64, raw: &Raw) -> Self {
        let mut frame = Self::of_times(id, source, from_ns, &raw.times);
        frame.values(series, &raw.columns);
        frame
    }

    /// Times of rows, without values.
    pub fn of_times(id: u32, source: u32, from_ns: u64, times: &[u64]) -> Self {
        let mut frame = Self::empty(id, source, FrameKind::Raw);
        frame.header.from_ns = Some(Ns(from_ns));
        frame.header.rows = times.len() as u32;
        let at = frame.body.len() as u32;
        for time in times {
            frame.body.extend_from_slice(&(time.saturating_sub(from_ns) as f64).to_le_bytes());
        }
        let (what, kind) = (What::Time, ColumnType::F64);
        frame.header.columns.push(FrameColumn { series: 0, what, kind, base: Some(0.0), scale: 1.0, at });
        frame
    }

    /// Values of rows, without their times.
    pub fn of_values(id: u32, source: u32, series: &[u32], columns: &[Vec<f32>]) -> Self {
        let mut frame = Self::empty(id, source, FrameKind::Raw);
        frame.header.rows = columns.first().map_or(0, Vec::len) as u32;
        frame.values(series, columns);
        frame
    }

    fn values(&mut self, series: &[u32], columns: &[Vec<f32>]) {
        for (series, column) in series.iter().zip(columns) {
            self.column(*series, What::Value, column);
        }
    }

    fn empty(id: u32, source: u32, kind: FrameKind) -> Self {
        let header = FrameHeader {
            id,
            source,
            seq: 0,
            dropped: 0,
            kind,
            first: None,
            from_ns: None,
            step_ns: None,
            rows: 0,
            columns: Vec::new(),
        };
        Self { header, body: Vec::new() }
    }

    fn buckets(&mut self, series: &[u32], step_ns: u64, columns: &[Bucketed]) {
        self.header.step_ns = Some(Ns(step_ns));
        self.header.rows = columns.first().map_or(0, |c| c.min.len()) as u32;
        for (series, Bucketed { min, max, mean }) in series.iter().zip(columns) {
            self.column(*series, What::Min, min);
            if min.iter().zip(max).any(|(a, b)| a.to_bits() != b.to_bits()) {
                self.column(*series, What::Max, max);
                self.column(*series, What::Mean, mean);
            }
        }
    }

    fn column(&mut self, series: u32, what: What, values: &[f32]) {
        let Packing { kind, base } = Packing::of(values);
        let at = self.body.len() as u32;
        let stored = |value: f32| if value.is_nan() { u32::MAX } else { (f64::from(value) - base) as u32 };
        match kind {
            ColumnType::Const => {}
            ColumnType::U8 => self.body.extend(values.iter().map(|v| stored(*v) as u8)),
            ColumnType::U16 => {
                self.body.extend(values.iter().flat_map(|v| (stored(*v) as u16).to_le_bytes()))
            }
            _ => self.body.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        }
        self.body.resize(self.body.len().next_multiple_of(8), 0);
        let base = Some(base).filter(|b| b.is_finite());
        self.header.columns.push(FrameColumn { series, what, kind, base, scale: 1.0, at });
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.header.rows
    }

    /// Size without the header.
    pub fn len(&self) -> usize {
        self.body.len() + 100 * self.header.columns.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.header.rows == 0
    }

    /// The message.
    pub fn bytes(mut self, seq: u64, dropped: u64) -> Vec<u8> {
        (self.header.seq, self.header.dropped) = (seq, dropped);
        // There are only numbers and names, so this cannot fail.
        let header = serde_json::to_vec(&self.header).unwrap_or_default();
        let mut out = Vec::with_capacity(4 + header.len() + 8 + self.body.len());
        out.extend_from_slice(&(header.len() as u32).to_le_bytes());
        out.extend_from_slice(&header);
        out.resize(out.len().next_multiple_of(8), 0);
        out.extend_from_slice(&self.body);
        out
    }
}

/// The smallest type that stores the values exactly.
struct Packing {
    kind: ColumnType,
    base: f64,
}

impl Packing {
    fn of(values: &[f32]) -> Self {
        let (mut low, mut high, mut whole, mut absent) = (f64::INFINITY, f64::NEG_INFINITY, true, false);
        for value in values {
            let value = f64::from(*value);
            if value.is_nan() {
                absent = true;
                continue;
            }
            low = low.min(value);
            high = high.max(value);
            // As an integer, negative zero would lose its sign.
            whole &= value.fract() == 0.0 && (value != 0.0 || value.is_sign_positive());
        }
        let (kind, base) = match high - low {
            _ if low > high => (ColumnType::Const, f64::NAN),
            0.0 if !absent && low.is_finite() => (ColumnType::Const, low),
            range if whole && range < 255.0 => (ColumnType::U8, low),
            range if whole && range < 65_535.0 => (ColumnType::U16, low),
            _ => (ColumnType::F32, 0.0),
        };
        Self { kind, base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn parts(bytes: &[u8]) -> (Value, &[u8]) {
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let header = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        (header, &bytes[(4 + length).next_multiple_of(8)..])
    }

    /// Reads a column as the page does.
    fn decode(column: &Value, body: &[u8], rows: usize) -> Vec<f64> {
        let at = column["at"].as_u64().unwrap() as usize;
        let base = column["base"].as_f64().unwrap_or(f64::NAN);
        assert_eq!(at % 8, 0);
        (0..rows)
            .map(|row| match column["type"].as_str().unwrap() {
                "const" => base,
                "u8" if body[at + row] == u8::MAX => f64::NAN,
                "u8" => base + f64::from(body[at + row]),
                "u16" => match u16::from_le_bytes(body[at + 2 * row..at + 2 * row + 2].try_into().unwrap()) {
                    u16::MAX => f64::NAN,
                    stored => base + f64::from(stored),
                },
                "f32" => {
                    f64::from(f32::from_le_bytes(body[at + 4 * row..at + 4 * row + 4].try_into().unwrap()))
                }
                _ => f64::from_le_bytes(body[at + 8 * row..at + 8 * row + 8].try_into().unwrap()),
            })
            .collect()
    }

    fn frame(columns: Vec<Vec<f32>>) -> Vec<u8> {
        let series: Vec<u32> = (0..columns.len() as u32).collect();
        let times = (0..columns.first().map_or(0, Vec::len) as u64).map(|t| 100 + t).collect();
        Frame::of_rows(1, 2, &series, 100, &Raw { times, columns }).bytes(5, 6)
    }

    #[test]
    fn columns_have_the_smallest_type() {
        let nan = f32::NAN;
        let bytes = frame(vec![
            vec![7.5, 7.5, 7.5],
            vec![nan, nan, nan],
            vec![1000.0, nan, 1254.0],
            vec![-5.0, 65_529.0, nan],
            vec![0.5, 1.0, nan],
        ]);
        let (header, body) = parts(&bytes);
        let kinds: Vec<&str> =
            header["columns"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["f64", "const", "const", "u8", "u16", "f32"]);
        assert_eq!((&header["seq"], &header["dropped"]), (&5.into(), &6.into()));
        assert_eq!(decode(&header["columns"][0], body, 3), [0.0, 1.0, 2.0]);
        assert_eq!(decode(&header["columns"][4], body, 2), [-5.0, 65_529.0]);
        assert!(decode(&header["columns"][2], body, 1)[0].is_nan());
    }

    #[test]
    fn columns_equal_to_the_minimum_are_left_out() {
        let flat = Bucketed { min: vec![1.0, f32::NAN], max: vec![1.0, f32::NAN], mean: vec![1.0, f32::NAN] };
        let high = Bucketed { max: vec![2.0, f32::NAN], ..flat.clone() };
        let buckets = Buckets { from_ns: 10, step_ns: 5, columns: vec![flat, high] };
        let bytes = Frame::of_grid(1, 0, &[8, 9], 2, &buckets).bytes(0, 0);
        let (header, _) = parts(&bytes);
        let columns = header["columns"].as_array().unwrap();
        let seen: Vec<(u64, &str)> =
            columns.iter().map(|c| (c["series"].as_u64().unwrap(), c["what"].as_str().unwrap())).collect();
        assert_eq!(seen, [(8, "min"), (9, "min"), (9, "max"), (9, "mean")]);
        assert_eq!(
            (&header["first"], &header["step_ns"], &header["rows"]),
            (&2.into(), &5.into(), &2.into())
        );
    }

    proptest! {
        #[test]
        fn values_come_back(values in prop::collection::vec(prop_oneof![
            any::<f32>().prop_filter("finite", |f| f.is_finite()),
            (-300i32..70_000).prop_map(|i| i as f32),
            Just(f32::NAN),
        ], 0..50)) {
            let bytes = frame(vec![values.clone()]);
            let (header, body) = parts(&bytes);
            let back = decode(&header["columns"][1], body, values.len());
            for (value, back) in values.iter().zip(back) {
                // This JSON reader may be off by the last bit of a double.
                let same = f64::from(*value) as f32 == back as f32;
                prop_assert!(same || (value.is_nan() && back.is_nan()));
            }
        }
    }
}
