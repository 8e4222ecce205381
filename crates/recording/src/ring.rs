//! The ring buffer, the only connection between the sampler and a consumer of samples: a bounded
//! queue of rows and labels with one producer and one consumer, without locks.
//!
//! Its memory is an array of words. For a recording they are the content of the tail file
//! `FILE.tail`, so that rows that are not yet in the recording survive a kill of the process.

use crate::batch::Batch;
use crate::header::Header;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::memory::SharedWords;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// The words at the start. Their order is part of the format of tail files.
mod head {
    pub const MAGIC: usize = 0;
    pub const COLUMNS: usize = 1;
    pub const CAPACITY: usize = 2;
    pub const ROWS: usize = 3;
    pub const ROWS_DONE: usize = 4;
    pub const LABELS: usize = 5;
    pub const LABELS_DONE: usize = 6;
    pub const LABEL_WORDS: usize = 7;
    pub const LABEL_WORDS_DONE: usize = 8;
    pub const WORDS: usize = 16;
}

/// First word of a tail file: `numatail` in little-endian, version 1 in the last byte.
const MAGIC: u64 = u64::from_le_bytes(*b"numatai1");

/// Words for pending labels: 64 labels of maximum length, thousands of short ones.
const LABEL_SPACE: usize = 32 * 1024;

/// Words of the smallest page.
const PAGE: usize = 512;

/// Words before the values of a row: time, took.
const ROW_HEAD: usize = 2;
/// Words before the text of a label: the number of rows before it, time, bytes.
const LABEL_HEAD: usize = 3;

/// The queue.
#[derive(Debug)]
pub struct Ring {
    words: SharedWords,
    shape: Shape,
    dropped: AtomicU64,
    closed: AtomicBool,
    wake_at: AtomicU64,
    alarm: Alarm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    columns: usize,
    capacity: usize,
}

impl Shape {
    fn row_words(self) -> usize {
        ROW_HEAD + self.columns.div_ceil(64) + self.columns
    }

    fn label_start(self) -> usize {
        head::WORDS + self.capacity * self.row_words()
    }

    fn words(self) -> usize {
        self.label_start() + LABEL_SPACE
    }

    fn row_start(self, row: u64) -> usize {
        head::WORDS + (row % self.capacity as u64) as usize * self.row_words()
    }
}

/// The number of rows in a batch with `columns` columns: 1,000, or what fits into 12 MiB.
pub fn rows_per_batch(columns: usize) -> usize {
    ((12 << 20) / (columns.max(1) * 8)).clamp(1, 1000)
}

impl Ring {
    /// A queue in memory.
    pub fn in_memory(columns: usize, capacity: usize) -> io::Result<Self> {
        let shape = Shape { columns, capacity: capacity.max(1) };
        Ok(Self::over(SharedWords::anonymous(shape.words())?, shape))
    }

    /// A queue whose memory is this (empty) file, with room for a batch and half of the next.
    pub fn in_file(header: &Header, file: &File) -> io::Result<Self> {
        let columns = header.series.len();
        let batch = rows_per_batch(columns);
        let shape = Shape { columns, capacity: batch + (batch / 2).max(8) };
        let words = SharedWords::of_file(file, shape.words())?;
        // The memory of rows is touched here, so that the first store to each does not wait for the
        // file system.
        words[..shape.label_start()].iter().step_by(PAGE).for_each(|word| word.store(0, Ordering::Relaxed));
        Ok(Self::over(words, shape))
    }

    fn over(words: SharedWords, shape: Shape) -> Self {
        words[head::COLUMNS].store(shape.columns as u64, Ordering::Relaxed);
        words[head::CAPACITY].store(shape.capacity as u64, Ordering::Relaxed);
        words[head::MAGIC].store(MAGIC, Ordering::Release);
        Self {
            words,
            shape,
            dropped: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            wake_at: AtomicU64::new(u64::MAX),
            alarm: Alarm::new(),
        }
    }

    fn get(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Acquire)
    }

    fn set(&self, word: usize, value: u64) {
        self.words[word].store(value, Ordering::Release);
    }

    /// Producer: adds a row, or counts it as dropped if the queue is full.
    pub fn push(&self, time: u64, took: u64, values: &[Option<u64>]) {
        let row = self.get(head::ROWS);
        if row - self.get(head::ROWS_DONE) >= self.shape.capacity as u64 {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let start = self.shape.row_start(row);
        let words = &self.words[start..start + self.shape.row_words()];
        words[0].store(time, Ordering::Relaxed);
        words[1].store(took, Ordering::Relaxed);
        let (valid, out) = words[ROW_HEAD..].split_at(self.shape.columns.div_ceil(64));
        for ((valid, out), values) in valid.iter().zip(out.chunks(64)).zip(values.chunks(64)) {
            let mut bits = 0;
            for (bit, (out, value)) in out.iter().zip(values).enumerate() {
                bits |= u64::from(value.is_some()) << bit;
                out.store(value.unwrap_or(0), Ordering::Relaxed);
            }
            valid.store(bits, Ordering::Relaxed);
        }
        self.set(head::ROWS, row + 1);
        // Pairs with the fence in `wait`: at least one side sees the other's store.
        fence(Ordering::SeqCst);
        if row + 1 >= self.wake_at.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Producer: adds a label before the next row. False if there is no room for it now.
    pub fn push_label(&self, time: u64, text: &str) -> bool {
        let at = self.get(head::LABEL_WORDS);
        let need = LABEL_HEAD + text.len().div_ceil(8);
        if at + need as u64 - self.get(head::LABEL_WORDS_DONE) > LABEL_SPACE as u64 {
            return false;
        }
        let put =
            |index: usize, value: u64| self.label_word(at + index as u64).store(value, Ordering::Relaxed);
        put(0, self.get(head::ROWS));
        put(1, time);
        put(2, text.len() as u64);
        for (index, chunk) in text.as_bytes().chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            put(LABEL_HEAD + index, u64::from_le_bytes(bytes));
        }
        self.set(head::LABEL_WORDS, at + need as u64);
        self.set(head::LABELS, self.get(head::LABELS) + 1);
        // When labels take more than half of their space, the batch is written early.
        let pending = at + need as u64 - self.get(head::LABEL_WORDS_DONE);
        if pending as usize > LABEL_SPACE / 2 || self.wake_at.load(Ordering::Relaxed) != u64::MAX {
            self.wake();
        }
        true
    }

    fn label_word(&self, at: u64) -> &AtomicU64 {
        &self.words[self.shape.label_start() + (at % LABEL_SPACE as u64) as usize]
    }

    /// Producer: no more entries follow.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether the producer is done.
    pub fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Rows dropped since the last call, because the consumer was too slow.
    pub fn take_dropped(&self) -> u64 {
        if self.dropped.load(Ordering::Relaxed) == 0 { 0 } else { self.dropped.swap(0, Ordering::Relaxed) }
    }

    fn wake(&self) {
        self.wake_at.store(u64::MAX, Ordering::Relaxed);
        self.alarm.ring();
    }

    /// Consumer: waits until `rows` rows are pending, labels are half full, the queue is closed, or the
    /// monotonic time is reached. True while the queue is open.
    pub fn wait(&self, rows: usize, until: u64) -> bool {
        self.wake_at.store(self.get(head::ROWS_DONE) + rows as u64, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let ready = || self.pending_rows() >= rows || self.labels_half_full();
        if !ready() && !self.closed() {
            self.alarm.sleep_until(until);
        }
        !self.closed()
    }

    /// Consumer: number of pending rows.
    pub fn pending_rows(&self) -> usize {
        (self.get(head::ROWS) - self.get(head::ROWS_DONE)) as usize
    }

    /// Producer: whether the next row would be dropped.
    pub fn is_full(&self) -> bool {
        self.pending_rows() >= self.shape.capacity
    }

    /// Consumer: whether labels take more than half of their space.
    pub fn labels_half_full(&self) -> bool {
        (self.get(head::LABEL_WORDS) - self.get(head::LABEL_WORDS_DONE)) as usize > LABEL_SPACE / 2
    }

    /// Values of a row.
    pub fn columns(&self) -> usize {
        self.shape.columns
    }

    /// Rows that were consumed or are pending.
    pub fn total_rows(&self) -> u64 {
        self.get(head::ROWS)
    }

    /// Consumer: a view of up to `max` pending rows and the labels among them.
    pub fn pending(&self, max: usize) -> Pending<'_> {
        let first = self.get(head::ROWS_DONE);
        // The number of labels is read before that of rows: each label precedes a row number
        // that is read too, unless it is at the end.
        let labels = self.get(head::LABELS);
        let rows = self.get(head::ROWS).min(first.saturating_add(max as u64));
        let all = rows == self.get(head::ROWS);
        let mut pending = Pending { ring: self, first, rows, labels: Vec::new(), label_words: 0 };
        let mut at = self.get(head::LABEL_WORDS_DONE);
        for _ in self.get(head::LABELS_DONE)..labels {
            let before_row = self.label_word(at).load(Ordering::Relaxed);
            if before_row > rows || (before_row == rows && !all) {
                break;
            }
            let bytes = self.label_word(at + 2).load(Ordering::Relaxed).min(LABEL_SPACE as u64 * 8) as usize;
            pending.labels.push(Label { before_row, at, bytes });
            at += (LABEL_HEAD + bytes.div_ceil(8)) as u64;
        }
        pending.label_words = at;
        pending
    }

    /// Consumer: the pending entries, until the queue is closed and empty. Each view is returned
    /// when `rows` rows are pending or after `time` ns, and has at most `max` rows.
    pub fn views(&self, rows: usize, max: usize, time: u64) -> impl Iterator<Item = Pending<'_>> {
        std::iter::from_fn(move || {
            let open = self.wait(rows, clock::monotonic().saturating_add(time));
            let pending = self.pending(max);
            (open || !pending.is_empty()).then_some(pending)
        })
    }

    /// The content of a tail file, for readers. `None` if it is not a tail file of such a
    /// recording, or was not initialised when its writer was killed.
    pub fn of_tail_file(content: &[u8], columns: usize) -> Option<Self> {
        let word = |index: usize| {
            content.get(index * 8..index * 8 + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes)
        };
        if word(head::MAGIC)? != MAGIC || word(head::COLUMNS)? != columns as u64 {
            return None;
        }
        let shape = Shape { columns, capacity: usize::try_from(word(head::CAPACITY)?).ok()? };
        let plausible = (1..=1 << 20).contains(&shape.capacity) && shape.words() * 8 == content.len();
        let order = |done, all, max| -> Option<bool> {
            let all = word(all)?;
            Some(all < 1 << 56 && all.checked_sub(word(done)?)? <= max)
        };
        let ordered = order(head::ROWS_DONE, head::ROWS, shape.capacity as u64)?
            && order(head::LABELS_DONE, head::LABELS, LABEL_SPACE as u64)?
            && order(head::LABEL_WORDS_DONE, head::LABEL_WORDS, LABEL_SPACE as u64)?;
        if !plausible || !ordered {
            return None;
        }
        let words = SharedWords::anonymous(shape.words()).ok()?;
        for (target, bytes) in words.iter().zip(content.chunks_exact(8)) {
            target.store(u64::from_le_bytes(bytes.try_into().ok()?), Ordering::Relaxed);
        }
        Some(Self::over(words, shape))
    }

    /// Rows and labels that are already in the recording, as the tail file counts them.
    pub fn consumed(&self) -> (u64, u64) {
        (self.get(head::ROWS_DONE), self.get(head::LABELS_DONE))
    }

    /// Reader of a tail file: skips the entries that are in the recording.
    pub fn skip_to(&self, rows: u64, labels: u64) {
        let rows = rows.clamp(self.get(head::ROWS_DONE), self.get(head::ROWS));
        self.set(head::ROWS_DONE, rows);
        let mut at = self.get(head::LABEL_WORDS_DONE);
        let mut done = self.get(head::LABELS_DONE);
        while done < labels.min(self.get(head::LABELS)) {
            let bytes = self.label_word(at + 2).load(Ordering::Relaxed).min(LABEL_SPACE as u64 * 8);
            at = at.saturating_add(LABEL_HEAD as u64 + bytes.div_ceil(8)).min(self.get(head::LABEL_WORDS));
            done += 1;
        }
        self.set(head::LABEL_WORDS_DONE, at);
        self.set(head::LABELS_DONE, done);
    }
}

/// Pending rows and labels, in order. They stay in the queue until [`Pending::release`].
#[derive(Debug)]
pub struct Pending<'a> {
    ring: &'a Ring,
    first: u64,
    rows: u64,
    labels: Vec<Label>,
    label_words: u64,
}

#[derive(Debug, Clone, Copy)]
struct Label {
    before_row: u64,
    at: u64,
    bytes: usize,
}

/// A pending row or label.
#[derive(Debug, Clone, Copy)]
pub enum RingEntry<'a> {
    /// A sample.
    Row(Row<'a>),
    /// A label: its time, and its index for [`Pending::label_text`].
    Label {
        /// ns since 1970.
        time: u64,
        /// Position among the labels of this view.
        index: usize,
    },
}

/// A pending sample.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    words: &'a [AtomicU64],
    columns: usize,
}

impl Row<'_> {
    /// Start of the acquisition, ns since 1970.
    pub fn time(&self) -> u64 {
        self.words[0].load(Ordering::Relaxed)
    }

    /// Its length in ns.
    pub fn took(&self) -> u64 {
        self.words[1].load(Ordering::Relaxed)
    }

    /// The value of a column.
    pub fn value(&self, column: usize) -> Option<u64> {
        let valid = self.words[ROW_HEAD + column / 64].load(Ordering::Relaxed) >> (column % 64) & 1 == 1;
        valid.then(|| self.words[ROW_HEAD + self.columns.div_ceil(64) + column].load(Ordering::Relaxed))
    }

    /// All values.
    pub fn values(&self, out: &mut [Option<u64>]) {
        for (column, slot) in out.iter_mut().enumerate().take(self.columns) {
            *slot = self.value(column);
        }
    }
}

impl<'a> Pending<'a> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        (self.rows - self.first) as usize + self.labels.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows and labels that were consumed before.
    pub fn before(&self) -> (u64, u64) {
        (self.first, self.ring.get(head::LABELS_DONE))
    }

    /// Number of labels among the entries.
    pub fn labels(&self) -> usize {
        self.labels.len()
    }

    /// The entries as rows.
    pub fn batch(&self) -> Batch {
        let columns = self.ring.columns();
        let mut batch = Batch::empty(columns);
        let mut values = vec![None; columns];
        for entry in self.entries() {
            match entry {
                RingEntry::Row(row) => {
                    row.values(&mut values);
                    batch.push_sample(row.time(), row.took(), &values);
                }
                RingEntry::Label { time, index } => batch.push_label(time, self.label_text(index)),
            }
        }
        batch
    }

    /// The entries in order.
    pub fn entries(&self) -> impl Iterator<Item = RingEntry<'a>> + '_ {
        let mut labels = self.labels.iter().enumerate().peekable();
        let mut row = self.first;
        std::iter::from_fn(move || {
            if let Some((index, label)) = labels.next_if(|(_, l)| l.before_row <= row) {
                let time = self.ring.label_word(label.at + 1).load(Ordering::Relaxed);
                return Some(RingEntry::Label { time, index });
            }
            if row >= self.rows {
                return None;
            }
            let start = self.ring.shape.row_start(row);
            row += 1;
            let words = &self.ring.words[start..start + self.ring.shape.row_words()];
            Some(RingEntry::Row(Row { words, columns: self.ring.shape.columns }))
        })
    }

    /// The text of a label.
    pub fn label_text(&self, index: usize) -> String {
        let label = self.labels[index];
        let mut bytes = Vec::with_capacity(label.bytes + 8);
        for word in 0..label.bytes.div_ceil(8) {
            let value = self.ring.label_word(label.at + (LABEL_HEAD + word) as u64).load(Ordering::Relaxed);
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.truncate(label.bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Removes the entries from the queue.
    pub fn release(self) {
        let labels = self.ring.get(head::LABELS_DONE) + self.labels.len() as u64;
        self.ring.set(head::LABEL_WORDS_DONE, self.label_words);
        self.ring.set(head::LABELS_DONE, labels);
        self.ring.set(head::ROWS_DONE, self.rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn drain(ring: &Ring, max: usize) -> Vec<String> {
        let pending = ring.pending(max);
        let text = pending
            .entries()
            .map(|entry| match entry {
                RingEntry::Row(row) => format!("{}:{:?}", row.time(), row.value(0)),
                RingEntry::Label { time, index } => format!("{time}={}", pending.label_text(index)),
            })
            .collect();
        pending.release();
        text
    }

    #[test]
    fn rows_and_labels_keep_their_order() {
        let ring = Ring::in_memory(70, 8).unwrap();
        let mut values = vec![None; 70];
        values[0] = Some(5);
        values[69] = Some(9);
        ring.push(1, 0, &values);
        assert!(ring.push_label(2, "one"));
        assert!(ring.push_label(2, "two"));
        ring.push(3, 0, &[None; 70]);
        let pending = ring.pending(10);
        let Some(RingEntry::Row(row)) = pending.entries().next() else { panic!("a row comes first") };
        assert_eq!((row.value(69), row.value(68)), (Some(9), None));
        assert_eq!(drain(&ring, 1), ["1:Some(5)"]);
        assert_eq!(drain(&ring, 10), ["2=one", "2=two", "3:None"]);
        assert!(ring.pending(10).is_empty());
    }

    #[test]
    fn views_end_when_the_queue_is_closed_and_empty() {
        let ring = Ring::in_memory(1, 8).unwrap();
        (1..=3).for_each(|time| ring.push(time, 0, &[Some(time)]));
        assert!(ring.push_label(4, "end"));
        ring.close();
        let mut views = Vec::new();
        // This does not wait: enough rows are pending, or the queue is closed.
        for view in ring.views(1, 2, u64::MAX) {
            views.push((view.len() - view.labels(), view.labels()));
            view.release();
        }
        assert_eq!((views, ring.columns()), (vec![(2, 0), (1, 1)], 1));
    }

    #[test]
    fn a_slow_consumer_costs_the_newest_rows_and_they_are_counted() {
        let ring = Ring::in_memory(1, 3).unwrap();
        for time in 0..5 {
            ring.push(time, 0, &[Some(time)]);
        }
        assert_eq!(ring.take_dropped(), 2);
        assert_eq!(ring.take_dropped(), 0);
        assert_eq!(drain(&ring, 10).len(), 3);
        ring.push(9, 0, &[Some(9)]);
        assert_eq!(drain(&ring, 10), ["9:Some(9)"]);
    }

    #[test]
    fn labels_are_refused_when_their_space_is_full_and_wrap_around_it() {
        let ring = Ring::in_memory(1, 3).unwrap();
        let long = "x".repeat(numakit_model::label::MAX_BYTES);
        let fit = (0..1000).take_while(|_| ring.push_label(0, &long)).count();
        assert_eq!(fit, LABEL_SPACE / (LABEL_HEAD + long.len() / 8));
        assert!(ring.labels_half_full());
        assert_eq!(drain(&ring, 10).len(), fit);
        for round in 0..200 {
            assert!(ring.push_label(round, &long[..round as usize * 17]));
            assert_eq!(drain(&ring, 10), [format!("{round}={}", &long[..round as usize * 17])]);
        }
    }

    #[test]
    fn nothing_is_lost_between_two_threads() {
        const ROWS: u64 = 2000;
        let ring = std::sync::Arc::new(Ring::in_memory(3, 64).unwrap());
        let producer = std::sync::Arc::clone(&ring);
        let thread = std::thread::spawn(move || {
            let mut pushed = 0;
            while pushed < ROWS {
                producer.push(pushed, 1, &[Some(pushed), None, Some(!pushed)]);
                if producer.take_dropped() == 0 {
                    pushed += 1;
                }
            }
            producer.close();
        });
        let mut next = 0;
        let late = Instant::now() + Duration::from_secs(120);
        while Instant::now() < late {
            let open = ring.wait(16, numakit_sys::clock::monotonic() + 1_000_000_000);
            let pending = ring.pending(32);
            for entry in pending.entries() {
                let RingEntry::Row(row) = entry else { panic!("no labels were pushed") };
                assert_eq!((row.time(), row.value(0), row.value(2)), (next, Some(next), Some(!next)));
                next += 1;
            }
            let empty = pending.is_empty();
            pending.release();
            if !open && empty {
                break;
            }
        }
        assert_eq!(next, ROWS);
        thread.join().unwrap();
    }
}
