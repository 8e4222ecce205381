//! Thresholds that several judges have in common: one program gets one answer, from its recording and from its samples.

/// From this part of the use of memory on that goes to other nodes, it is a problem. At the usual distances, remote memory
/// waits twice as long: one access of five then costs a sixth of the time at memory, which is more than noise and worth a change.
pub const REMOTE: f64 = 0.2;

/// With fewer samples of an object nothing is said about its use.
pub const MIN_SAMPLES: u64 = 30;
