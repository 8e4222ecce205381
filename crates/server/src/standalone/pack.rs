//! Packs all series of a recording into a number of bytes: every row, or buckets as short as possible.

use super::contents::Stretch;
use super::{html, steps};
use crate::frame::Frame;
use crate::recordings::OpenedRecording;
use crate::wire::Ns;
use numakit_history::{Bucketed, Source};

/// Maximum number of series per frame: to show one, the page unpacks only these.
pub const GROUP: usize = 32;
/// Maximum number of rows of a stretch.
const ROWS: usize = 4096;
/// Minimum of it, if there are very many series.
const FEW_ROWS: usize = 64;
/// Maximum number of values in memory at once.
const VALUES: usize = 2_000_000;
/// Maximum number of rows of a recording that are read at once for buckets.
const READ: u64 = 32_768;
/// A bucket of fewer rows than this is computed from the rows.
const NEAR: u64 = 256;
/// Maximum ratio of unpacked to packed data, so that a browser's memory suffices.
const UNPACKED: u64 = 16;
/// Maximum size of a stretch in the first block.
const STRETCH: u64 = 100;

/// A packed recording.
#[derive(Debug, Default)]
pub struct Packed {
    /// Length of a bucket in ns; `None` if every row is included.
    pub step: Option<u64>,
    /// Stretches of time.
    pub stretches: Vec<Stretch>,
    /// Blocks, as in the file.
    pub blocks: Vec<String>,
    /// Their size.
    pub bytes: u64,
}

/// Not even one bucket of each series fits.
#[derive(Debug)]
pub struct NoRoom;

enum Attempt {
    Fits(Packed),
    /// The room was full after this share of the time.
    Over(f64),
}

/// Packs a recording into `room` bytes.
pub fn pack(source: &OpenedRecording, id: u32, room: u64) -> Result<Packed, NoRoom> {
    let trial = Trial::new(source, id, room);
    let length = trial.end - trial.first;
    let mut step = match trial.rows() {
        Attempt::Fits(packed) => return Ok(packed),
        // Buckets have three values each, but some of them are equal.
        Attempt::Over(share) => steps::at_least(longer(trial.interval.max(1_000_000) * 2, share).min(length)),
    };
    let mut found = None;
    loop {
        match (trial.buckets(step), found.take()) {
            (Attempt::Fits(packed), _) => match steps::finer(step).filter(|finer| *finer > trial.interval) {
                Some(finer) => (step, found) = (finer, Some(packed)),
                None => return Ok(packed),
            },
            (Attempt::Over(_), Some(packed)) => return Ok(packed),
            (Attempt::Over(_), None) if step > length.saturating_mul(2) => return Err(NoRoom),
            // Too long a guess is corrected by the finer steps above.
            (Attempt::Over(share), None) => {
                step = steps::coarser(step).max(steps::at_least(longer(step, share).min(length)));
            }
        }
    }
}

/// A step whose buckets need only this share of the space.
fn longer(step: u64, share: f64) -> u64 {
    (step as f64 / share.max(1e-9)) as u64
}

struct Trial<'a> {
    source: &'a dyn Source,
    id: u32,
    room: u64,
    numbers: Vec<usize>,
    series: Vec<u32>,
    interval: u64,
    first: u64,
    /// Just after the last row.
    end: u64,
}

impl<'a> Trial<'a> {
    fn new(source: &'a OpenedRecording, id: u32, room: u64) -> Self {
        let (first, last) = source.data.span().unwrap_or_default();
        let numbers: Vec<usize> = (0..source.data.series()).collect();
        let series = numbers.iter().map(|n| *n as u32).collect();
        let (interval, end) = (source.info.interval_ns, last.saturating_add(1));
        Self { source: &*source.data, id, room, numbers, series, interval, first, end }
    }

    /// Maximum number of rows at once, with this number of values per row and series.
    fn max_rows(&self, values: usize) -> usize {
        (VALUES / values / self.numbers.len().max(1)).clamp(FEW_ROWS, ROWS)
    }

    fn share(&self, to: u64) -> f64 {
        (to - self.first) as f64 / (self.end - self.first) as f64
    }

    fn rows(&self) -> Attempt {
        let max_rows = self.max_rows(1);
        let mut out = Packer::new(self.room, None);
        let mut from = self.first;
        let mut window = self.interval.max(1).saturating_mul(max_rows as u64);
        while from < self.end {
            let to = from.saturating_add(window).min(self.end);
            let Some(raw) = self.source.raw(&self.numbers, from, to, max_rows) else {
                if window <= 1 {
                    return Attempt::Over(self.share(from));
                }
                window = (to - from) / 2;
                continue;
            };
            let rows = raw.times.len();
            if let Some(first) = raw.times.first() {
                out.stretch(*first, to, rows);
                out.put(Frame::of_times(0, self.id, *first, &raw.times));
                for (series, columns) in self.series.chunks(GROUP).zip(raw.columns.chunks(GROUP)) {
                    out.put(Frame::of_values(0, self.id, series, columns));
                }
            }
            if out.is_over() {
                return Attempt::Over(self.share(to));
            }
            from = to;
            if rows < max_rows / 2 {
                window = window.saturating_mul(2);
            }
        }
        Attempt::Fits(out.packed)
    }

    fn buckets(&self, step: u64) -> Attempt {
        let max_rows = self.max_rows(3) as u64;
        let mut out = Packer::new(self.room, Some(step));
        let (mut first, last) = (self.first / step, (self.end - 1) / step + 1);
        while first < last {
            let next = (first + max_rows).min(last);
            let columns = self.columns(first, next, step);
            if columns.iter().any(|column| column.min.iter().any(|value| !value.is_nan())) {
                out.stretch(first * step, next.saturating_mul(step), (next - first) as usize);
                for (series, columns) in self.series.chunks(GROUP).zip(columns.chunks(GROUP)) {
                    out.put(Frame::of_columns(0, self.id, series, first, step, columns));
                }
            }
            if out.is_over() {
                return Attempt::Over(self.share(next.saturating_mul(step).min(self.end)));
            }
            first = next;
        }
        Attempt::Fits(out.packed)
    }

    /// Buckets `first` to `last`, in parts that are read from the file at once.
    fn columns(&self, first: u64, last: u64, step: u64) -> Vec<Bucketed> {
        let near = step / NEAR < self.interval;
        let read = (4 * VALUES as u64 / self.numbers.len().max(1) as u64).min(READ);
        let part = if near { (read.saturating_mul(self.interval) / step).max(1) } else { u64::MAX };
        let mut columns = vec![Bucketed::default(); self.numbers.len()];
        let mut from = first;
        while from < last {
            let to = from.saturating_add(part).min(last);
            let found = self.source.buckets_on_grid(&self.numbers, from, to, step);
            for (column, found) in columns.iter_mut().zip(found.columns) {
                column.min.extend(found.min);
                column.max.extend(found.max);
                column.mean.extend(found.mean);
            }
            from = to;
        }
        columns
    }
}

/// Packed data, up to `room` bytes.
struct Packer {
    packed: Packed,
    unpacked: u64,
    room: u64,
}

impl Packer {
    fn new(room: u64, step: Option<u64>) -> Self {
        Self { packed: Packed { step, ..Packed::default() }, unpacked: 0, room }
    }

    fn stretch(&mut self, from: u64, to: u64, rows: usize) {
        self.packed.stretches.push(Stretch { from_ns: Ns(from), to_ns: Ns(to), rows: rows as u32 });
        self.packed.bytes += STRETCH;
    }

    /// Adds a frame, unless it is full.
    fn put(&mut self, frame: Frame) {
        if self.is_over() {
            return;
        }
        let bytes = frame.bytes(0, 0);
        let block = html::block(&bytes);
        self.unpacked += bytes.len() as u64;
        self.packed.bytes += block.len() as u64;
        self.packed.blocks.push(block);
    }

    fn is_over(&self) -> bool {
        self.packed.bytes > self.room || self.unpacked > self.room.saturating_mul(UNPACKED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standalone::tests::opened;

    #[test]
    fn buckets_are_as_short_as_they_can_be() {
        let source = opened("a", 20_000);
        for room in [100_000, 60_000, 30_000, 10_000, 3_000] {
            let packed = pack(&source, 0, room).unwrap();
            let taken: usize = packed.blocks.iter().map(String::len).sum();
            assert!(taken as u64 <= packed.bytes && packed.bytes <= room);
            let trial = Trial::new(&source, 0, room);
            assert!(matches!(trial.rows(), Attempt::Over(share) if share > 0.0));
            let finer = steps::finer(packed.step.unwrap()).unwrap();
            assert!(matches!(trial.buckets(finer), Attempt::Over(_)), "{finer} fits into {room}");
        }
        assert_eq!(pack(&source, 0, 10_000_000).unwrap().step, None);
        assert!(pack(&source, 0, 100).is_err());
    }
}
