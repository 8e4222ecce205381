//! Where threads used objects: the addresses of which an object's parts are told.

use super::Collector;
use crate::observation::PAGE;
use crate::traffic::LineAhead;
use numakit_sampling::operand::Landing;

/// Maximum number of points in memory. When there are more, every second one is dropped.
const MAX_POINTS: usize = 1 << 19;

/// A use of an object by a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsePoint {
    /// Place of the object in the list of objects.
    pub object: u32,
    /// Place of the process in the list of processes.
    pub process: u32,
    /// Place of the thread in the list of threads.
    pub thread: u32,
    /// The address.
    pub address: u64,
    /// When that was, monotonic ns.
    pub time: u64,
}

/// The points of samples that do not name the instruction that waited: the pages that threads were about to use.
#[derive(Debug, Default)]
pub struct AheadPoints {
    points: Vec<UsePoint>,
    /// One in two to this power is kept.
    halved: u32,
    seen: u64,
}

impl AheadPoints {
    /// Adds the lines that a thread is about to use, each page once.
    pub(super) fn add(&mut self, (process, thread): (u32, u32), time: u64, lines: &[LineAhead]) {
        let mut last = None;
        for ahead in lines {
            let address = ahead.address();
            if last == Some(address / PAGE) {
                continue;
            }
            last = Some(address / PAGE);
            self.seen += 1;
            // The high bits of this product have no pattern, where samples of threads come in turn.
            let mixed = self.seen.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            if mixed.is_multiple_of(1 << self.halved) {
                self.points.push(UsePoint { object: ahead.object, process, thread, address, time });
            }
        }
        if self.points.len() >= MAX_POINTS {
            let mut at = 0u64;
            self.points.retain(|_| {
                at += 1;
                (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(2)
            });
            self.halved += 1;
        }
    }
}

impl Collector {
    /// Where threads used objects, in the order of samples. Addresses count that are the accessed ones, or as good.
    pub fn points(&self) -> Vec<UsePoint> {
        if self.landing == Landing::BlockStart {
            return self.ahead.points.clone();
        }
        let start = self.start.unwrap_or(0);
        let point = |at: &crate::Observation| {
            let access = at.access().filter(|access| access.line_of_object().is_some())?;
            let (object, process, thread) = (access.object, at.process, at.thread);
            Some(UsePoint { object, process, thread, address: access.address, time: start + at.time })
        };
        self.observations.iter().filter_map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_sample_is_one_point_and_memory_is_bounded() {
        let line = |line| LineAhead { line, object: 3, home: None };
        let mut ahead = AheadPoints::default();
        ahead.add((1, 2), 9, &[line(0), line(1), line(64)]);
        let point = |address| UsePoint { object: 3, process: 1, thread: 2, address, time: 9 };
        assert_eq!(ahead.points, [point(0), point(PAGE)]);
        for thread in 0..2 * MAX_POINTS as u32 {
            ahead.add((1, thread % 8), 10, &[line(u64::from(thread % 8))]);
        }
        assert!(ahead.points.len() < MAX_POINTS && ahead.points.len() > MAX_POINTS / 4);
        let of = |thread| ahead.points.iter().filter(|point| point.thread == thread).count();
        let all: Vec<usize> = (0..8).map(of).collect();
        assert!(
            all.iter().all(|count| *count * 12 > ahead.points.len()),
            "each thread has its part: {all:?}"
        );
    }
}
