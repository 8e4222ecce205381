//! Where the walker puts its values for the sampler, without a lock.
//!
//! Two rows: one is shown, the other is written and then shown. A reader that was overtaken
//! tries again, but not for ever: the sampler may have displaced the writer from its CPU.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A value that is not known.
pub const NONE: u64 = u64::MAX;

/// Tries before a reader keeps what it had.
const TRIES: usize = 4;

/// Rows of values that one thread writes and another reads.
#[derive(Debug)]
pub struct Board {
    /// How often a row was shown; its lowest bit tells which.
    shown: AtomicU64,
    /// Rows that have been begun; ahead of `shown` while one is written.
    begun: AtomicU64,
    rows: [Box<[AtomicU64]>; 2],
}

impl Board {
    /// For rows of that many values, none of which is known.
    pub fn new(values: usize) -> Self {
        let row = || (0..values).map(|_| AtomicU64::new(NONE)).collect();
        Self { shown: AtomicU64::new(0), begun: AtomicU64::new(0), rows: [row(), row()] }
    }

    /// Shows these values from now on. For one thread only.
    pub fn show(&self, values: &[u64]) {
        let next = self.shown.load(Ordering::Relaxed) + 1;
        self.begun.store(next, Ordering::Relaxed);
        fence(Ordering::Release);
        for (slot, value) in self.rows[(next & 1) as usize].iter().zip(values) {
            slot.store(*value, Ordering::Relaxed);
        }
        self.shown.store(next, Ordering::Release);
    }

    /// Copies the values that are shown, and tells how many rows were shown up to them. `None`
    /// when the writer was faster every time; the copy is then as it was. No allocation.
    pub fn copy(&self, scratch: &mut [u64], values: &mut [u64]) -> Option<u64> {
        for _ in 0..TRIES {
            let shown = self.shown.load(Ordering::Acquire);
            for (value, slot) in scratch.iter_mut().zip(&self.rows[(shown & 1) as usize]) {
                *value = slot.load(Ordering::Relaxed);
            }
            fence(Ordering::Acquire);
            // The row that was read is written again only as the second one from here.
            if self.begun.load(Ordering::Relaxed) <= shown + 1 {
                values.copy_from_slice(scratch);
                return Some(shown);
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

    #[test]
    fn rows_are_never_mixed() {
        let board = Arc::new(Board::new(64));
        let stop = Arc::new(AtomicBool::new(false));
        let (writer, end) = (Arc::clone(&board), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut n = 0;
            while !end.load(Ordering::Relaxed) {
                writer.show(&[n; 64]);
                n += 1;
            }
        });
        let (mut scratch, mut values) = ([0; 64], [0; 64]);
        let mut copied = 0;
        while copied < 10_000 {
            if board.copy(&mut scratch, &mut values).is_some() {
                assert!(values.iter().all(|v| *v == values[0]), "{values:?}");
                copied += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
    }

    #[test]
    fn nothing_is_known_before_the_first_row() {
        let board = Board::new(2);
        let (mut scratch, mut values) = ([0; 2], [0; 2]);
        assert_eq!(board.copy(&mut scratch, &mut values), Some(0));
        assert_eq!(values, [NONE; 2]);
        board.show(&[5, NONE]);
        assert_eq!(board.copy(&mut scratch, &mut values), Some(1));
        assert_eq!(values, [5, NONE]);
    }
}
