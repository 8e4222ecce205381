//! Thresholds that several judges have in common: one program gets one answer, from its recording and from its samples.

/// From this part of the use of memory on that goes to other nodes, it is a problem. At the usual distances, remote memory
/// waits twice as long: one access of five then costs a sixth of the time at memory, which is more than noise and worth a change.
pub const REMOTE: f64 = 0.2;

/// A node with less free memory than this, and less than this part of its memory, is full: most programs need more, and the
/// kernel then allocates on other nodes although the program runs here. In KiB.
pub const FULL_KB: u64 = 1 << 20;
const FULL_PART: u64 = 8;

/// Whether a node with these KiB free of all its KiB is full.
pub fn is_full(free_kb: u64, all_kb: u64) -> bool {
    free_kb < FULL_KB && free_kb < all_kb / FULL_PART
}

/// With fewer samples of an object nothing is said about its use.
pub const MIN_SAMPLES: u64 = 30;

/// With fewer points of an object nothing is said about the parts of its threads: one in each of the 64 fractions in which parts are
/// given.
pub const MIN_POINTS: u64 = 64;

/// Parts are those of threads if at least this part of the samples in them is of the thread that has the part. The rest is filling,
/// borders, and what neighbours look up.
pub const SURE: f64 = 0.75;

/// With fewer samples, a fraction of an object belongs to the thread that has the fractions around it.
pub const FEW: u64 = 3;

/// Threads that share data get another order than that of their creation from this part of all uses on that it brings onto one node. Of
/// data that two threads use in turn, half of the uses follow one by the other thread: then it is a tenth of the data.
pub const SHARING_GAIN: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_node_has_little_memory_free_and_a_small_part_of_it() {
        let mib = |free: u64, all: u64| is_full(free << 10, all << 10);
        assert!(mib(400, 96 << 10) && mib(0, 1) && mib(67, 974) && mib(1023, 96 << 10));
        assert!(!mib(1024, 96 << 10) && !mib(190, 256) && !mib(128, 1024) && !mib(0, 0));
    }
}
