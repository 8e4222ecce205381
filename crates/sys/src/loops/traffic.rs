//! Reading and writing of cache lines at a chosen rate: the work of other cores while one core is measured.

use super::Region;
use crate::ticks;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Distance of two lines. A load of a word fetches the whole line, and a store to a word lets the whole line be written
/// back.
const LINE: usize = 64;
/// Lines between two looks at the clock: each kind of traffic repeats within.
const CHUNK: usize = 48;

/// Which lines are written after they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// No line is written.
    Reads,
    /// Every third.
    Third,
    /// Every second.
    Half,
    /// Each.
    All,
}

impl Mix {
    /// All, with most reads first.
    pub const ALL: [Self; 4] = [Self::Reads, Self::Third, Self::Half, Self::All];

    /// One in this many lines that are read is written back; `None` if no line is.
    fn one_in(self) -> Option<usize> {
        match self {
            Self::Reads => None,
            Self::Third => Some(3),
            Self::Half => Some(2),
            Self::All => Some(1),
        }
    }

    /// The share of reads in what moves between caches and memory, in percent.
    pub fn read_percent(self) -> u32 {
        let written = self.one_in().map_or(0.0, |lines| 1.0 / lines as f64);
        (100.0 / (1.0 + written)).round() as u32
    }

    /// Bytes that move for a chunk: all lines are read, some are written.
    fn bytes(self) -> usize {
        (CHUNK + self.one_in().map_or(0, |lines| CHUNK / lines)) * LINE
    }
}

/// What a thread that makes traffic and the thread that measures tell each other. It has cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct TrafficGauge {
    moved: AtomicU64,
}

impl TrafficGauge {
    /// Bytes that have moved until now.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }
}

/// Passes over a region again and again until `end` is set. `pause` is the time from the beginning of a chunk to that of
/// the next, in ticks of [`ticks::ticks`] for each byte: 0 is as fast as it can be. A chunk that was late is not made up
/// for.
pub fn traffic(region: &mut Region, mix: Mix, pause: f64, gauge: &TrafficGauge, end: &AtomicBool) {
    let chunks = region.bytes() / (CHUNK * LINE);
    if chunks == 0 {
        return;
    }
    let interval = (pause * mix.bytes() as f64).round() as u64;
    let (mut at, mut next) = (0, ticks::ticks());
    while !end.load(Ordering::Relaxed) {
        // SAFETY: the chunk is within the region, to which the caller has the only reference.
        unsafe { chunk(region.start().add(at * CHUNK * LINE), mix) };
        at = (at + 1) % chunks;
        // Only this thread writes the count.
        gauge.moved.store(gauge.moved() + mix.bytes() as u64, Ordering::Relaxed);
        if interval == 0 {
            continue;
        }
        next = next.saturating_add(interval).max(ticks::ticks().saturating_sub(interval));
        while ticks::ticks() < next && !end.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
}

/// Reads every line of a chunk, and writes some of them.
///
/// # Safety
/// The chunk is memory that nobody else uses, and is aligned to a line.
unsafe fn chunk(start: *mut u8, mix: Mix) {
    // SAFETY: the caller's promise.
    unsafe {
        match mix {
            Mix::Reads => lines::<0>(start),
            Mix::Third => lines::<3>(start),
            Mix::Half => lines::<2>(start),
            Mix::All => lines::<1>(start),
        }
    }
}

/// With one of `EACH` lines written; none for 0.
///
/// # Safety
/// As for [`chunk`].
#[inline(always)]
unsafe fn lines<const EACH: usize>(start: *mut u8) {
    for line in 0..CHUNK {
        let word = start.wrapping_add(line * LINE).cast::<u64>();
        // SAFETY: the caller's promise.
        unsafe {
            let value = word.read_volatile();
            if EACH != 0 && line % EACH.max(1) == 0 {
                word.write_volatile(value.wrapping_add(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Traffic over two chunks until at least this many bytes have moved; the words at the beginning of lines.
    fn words(mix: Mix, pause: f64, bytes: u64) -> (Vec<u64>, u64) {
        let mut region = Region::map(2 * CHUNK * LINE).unwrap();
        let (gauge, end) = (TrafficGauge::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| traffic(&mut region, mix, pause, &gauge, &end));
            let limit = Instant::now() + Duration::from_secs(120);
            while gauge.moved() < bytes && Instant::now() < limit {
                std::thread::yield_now();
            }
            end.store(true, Ordering::Relaxed);
        });
        assert!(gauge.moved() >= bytes, "{} bytes", gauge.moved());
        let lines = region.doubles().chunks(LINE / 8).take(2 * CHUNK).map(|line| line[0].to_bits());
        (lines.collect(), gauge.moved())
    }

    #[test]
    fn shares_of_reads_are_those_of_memory() {
        assert_eq!(Mix::ALL.map(Mix::read_percent), [100, 75, 67, 50]);
        assert_eq!(Mix::ALL.map(|mix| mix.bytes() / LINE), [48, 64, 72, 96]);
    }

    #[test]
    fn lines_are_written_as_often_as_is_counted() {
        for mix in Mix::ALL {
            for pause in [0.0, 0.1] {
                let (words, moved) = words(mix, pause, 20 * mix.bytes() as u64);
                assert_eq!(moved % mix.bytes() as u64, 0);
                let written = mix.one_in().map_or(0, |lines| CHUNK / lines) as u64;
                let chunks = moved / mix.bytes() as u64;
                assert_eq!(words.iter().sum::<u64>(), written * chunks, "{mix:?}");
                let lines = words.iter().filter(|word| **word > 0).count() as u64;
                assert_eq!(lines, 2 * written, "{mix:?}");
            }
        }
    }

    #[test]
    fn traffic_that_pauses_for_ever_ends_when_it_is_told() {
        let (_, moved) = words(Mix::All, f64::MAX, 1);
        assert_eq!(moved, Mix::All.bytes() as u64);
    }

    #[test]
    fn paused_traffic_is_not_faster_than_it_may_be() {
        let begin = ticks::ticks();
        let pause = 2.0;
        let (_, moved) = words(Mix::Half, pause, 40 * Mix::Half.bytes() as u64);
        let least = (moved as f64 - 2.0 * Mix::Half.bytes() as f64) * pause;
        assert!((ticks::ticks() - begin) as f64 >= least, "{moved} bytes");
    }
}
