//! What the kernel says of the time of threads: running in user mode, in the kernel, waiting for a CPU, asleep.

use serde::{Deserialize, Serialize};

/// The time of one or several threads, in ns, and their page faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimes {
    /// In user mode.
    pub user: u64,
    /// In the kernel.
    pub kernel: u64,
    /// Ready to run, but without a CPU.
    pub runnable: u64,
    /// Time in which the thread neither ran nor waited for a CPU.
    pub asleep: u64,
    /// Page faults.
    pub faults: u64,
}

impl ThreadTimes {
    /// The time of a thread between two readings, `elapsed` apart. Clocks are read one after the other, so sums may
    /// exceed the elapsed time by a little; then nothing was asleep.
    pub fn between(elapsed: u64, user: u64, kernel: u64, runnable: u64, faults: u64) -> Self {
        let asleep = elapsed.saturating_sub(user + kernel + runnable);
        Self { user, kernel, runnable, asleep, faults }
    }

    /// The sum of all four times, which is about the elapsed time of all threads together.
    pub fn total(&self) -> u64 {
        self.user + self.kernel + self.runnable + self.asleep
    }
}

impl std::ops::AddAssign for ThreadTimes {
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.kernel += other.kernel;
        self.runnable += other.runnable;
        self.asleep += other.asleep;
        self.faults += other.faults;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_asleep() {
        let times = ThreadTimes::between(100, 40, 20, 10, 3);
        assert_eq!((times.asleep, times.total()), (30, 100));
        assert_eq!(ThreadTimes::between(100, 90, 20, 0, 0).asleep, 0);
    }
}
