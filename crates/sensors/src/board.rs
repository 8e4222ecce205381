//! Passes the values of a sensor's own thread to the sampler without a lock.
//!
//! There are two rows: one is published, the other is written and then published. A reader that was
//! overtaken tries again, a limited number of times: the sampler may have preempted the writer.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// An unknown value.
pub const NONE: u64 = u64::MAX;

/// Tries before a reader keeps its old values.
const TRIES: usize = 4;

/// Rows of values that one thread writes and another reads.
#[derive(Debug)]
pub struct Board {
    /// Number of published rows; its lowest bit selects the row.
    published: AtomicU64,
    /// Number of started rows; ahead of `published` while one is written.
    begun: AtomicU64,
    rows: [Box<[AtomicU64]>; 2],
}

impl Board {
    /// For rows of this number of values, all of them unknown.
    pub fn new(values: usize) -> Self {
        let row = || (0..values).map(|_| AtomicU64::new(NONE)).collect();
        Self { published: AtomicU64::new(0), begun: AtomicU64::new(0), rows: [row(), row()] }
    }

    /// Publishes these values. For one thread only.
    pub fn publish(&self, values: &[u64]) {
        let next = self.published.load(Ordering::Relaxed) + 1;
        self.begun.store(next, Ordering::Relaxed);
        fence(Ordering::Release);
        for (slot, value) in self.rows[(next & 1) as usize].iter().zip(values) {
            slot.store(*value, Ordering::Relaxed);
        }
        self.published.store(next, Ordering::Release);
    }

    /// Copies the published values; returns the number of rows published so far. `None` if the writer
    /// was faster every time; `values` is then unchanged. No allocation.
    pub fn copy(&self, scratch: &mut [u64], values: &mut [u64]) -> Option<u64> {
        for _ in 0..TRIES {
            let published = self.published.load(Ordering::Acquire);
            for (value, slot) in scratch.iter_mut().zip(&self.rows[(published & 1) as usize]) {
                *value = slot.load(Ordering::Relaxed);
            }
            fence(Ordering::Acquire);
            // The row that was read is only written again for the second row after it.
            if self.begun.load(Ordering::Relaxed) <= published + 1 {
                values.copy_from_slice(scratch);
                return Some(published);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    #[test]
    fn rows_are_never_mixed() {
        let board = Arc::new(Board::new(64));
        let stop = Arc::new(AtomicBool::new(false));
        let (writer, end) = (Arc::clone(&board), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut n = 0;
            while !end.load(Ordering::Relaxed) {
                writer.publish(&[n; 64]);
                n += 1;
            }
        });
        let (mut scratch, mut values) = ([0; 64], [0; 64]);
        let (mut copied, mut mixed) = (0, None);
        let late = Instant::now() + Duration::from_secs(120);
        while copied < 2000 && mixed.is_none() && Instant::now() < late {
            if board.copy(&mut scratch, &mut values).is_some() {
                mixed = values.iter().any(|v| *v != values[0]).then_some(values);
                copied += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        assert_eq!((mixed, copied), (None, 2000));
    }

    #[test]
    fn values_are_unknown_before_the_first_row() {
        let board = Board::new(2);
        let (mut scratch, mut values) = ([0; 2], [0; 2]);
        assert_eq!(board.copy(&mut scratch, &mut values), Some(0));
        assert_eq!(values, [NONE; 2]);
        board.publish(&[5, NONE]);
        assert_eq!(board.copy(&mut scratch, &mut values), Some(1));
        assert_eq!(values, [5, NONE]);
    }
}
