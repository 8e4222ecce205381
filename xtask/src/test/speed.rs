//! How fast this machine is at the moment: a fixed piece of work, so that two runs can be compared.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Steps of the work: about half a second.
const STEPS: u64 = 1 << 27;
/// The fastest of these is what the machine can do; the slowest tells of others that use it.
const REPEATS: usize = 3;

/// The times of the work.
#[derive(Debug, Clone, Copy)]
pub struct Speed {
    best: Duration,
    worst: Duration,
}

impl Speed {
    /// Measures it on one CPU.
    pub fn measure() -> Self {
        let times: Vec<Duration> = (0..REPEATS).map(|_| work()).collect();
        let (best, worst) = (times.iter().min(), times.iter().max());
        Self { best: best.copied().unwrap_or_default(), worst: worst.copied().unwrap_or_default() }
    }
}

/// Multiplications, each of which needs the result of the one before.
fn work() -> Duration {
    let started = Instant::now();
    let mut value = black_box(1u64);
    for _ in 0..STEPS {
        // The compiler may not do several steps at once.
        value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(value);
    started.elapsed()
}

/// The line at the end of a run.
pub fn line(start: Speed, end: Speed) -> String {
    let of = |speed: Speed| {
        format!("{:.2} s (slowest {:.2})", speed.best.as_secs_f64(), speed.worst.as_secs_f64())
    };
    format!(
        "this machine's speed: a fixed piece of work took {} at the start, {} at the end",
        of(start),
        of(end)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_both_times() {
        let speed =
            |best, worst| Speed { best: Duration::from_millis(best), worst: Duration::from_millis(worst) };
        let line = line(speed(500, 510), speed(750, 1500));
        assert!(
            line.ends_with("0.50 s (slowest 0.51) at the start, 0.75 s (slowest 1.50) at the end"),
            "{line}"
        );
    }
}
