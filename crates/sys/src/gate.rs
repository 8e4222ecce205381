//! A barrier for rounds of work: one thread starts a round, all members do their part, and the last one wakes the
//! thread that started it.

use crate::clock;
use crate::futex::{ALL, wait, wake};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The gate. Opening it is one system call, and waiting for all members is a second one, however many members there are;
/// nothing is locked or allocated.
///
/// A member that is late is left out of the rounds that begin before it is back.
#[derive(Debug)]
pub struct Gate {
    /// The number of the round; members sleep on this word.
    round: AtomicU32,
    /// The opener sleeps on it: the round (upper half), and how many members are not back.
    out: AtomicU32,
    /// The round in which each member is out; 0 if the member is back.
    members: Box<[AtomicU32]>,
    closed: AtomicBool,
}

const HALF: u32 = 0xffff;

impl Gate {
    /// A gate for this many members, at most 65,535.
    pub fn new(members: usize) -> Self {
        let members = (0..members.min(HALF as usize)).map(|_| AtomicU32::new(0)).collect();
        Self { round: AtomicU32::new(0), out: AtomicU32::new(0), members, closed: AtomicBool::new(false) }
    }

    /// Starts a round: lets the members that are back through, and waits until they are back again, or until the timeout.
    /// Only one thread may open a gate. False if any member is not back.
    pub fn open(&self, timeout: Duration) -> bool {
        let round = self.round.load(Ordering::Relaxed).wrapping_add(1).max(1);
        // The count is set before members start, so that members that return find it.
        let all = self.members.len() as u32;
        self.out.store(round << 16 | all, Ordering::Relaxed);
        let back = self.members.iter().filter(|m| m.load(Ordering::Acquire) == 0);
        let invited = back.map(|m| m.store(round, Ordering::Release)).count() as u32;
        self.out.fetch_sub(all - invited, Ordering::AcqRel);
        self.round.store(round, Ordering::Release);
        wake(&self.round, ALL);
        let deadline = clock::monotonic().saturating_add(timeout.as_nanos() as u64);
        loop {
            let out = self.out.load(Ordering::Acquire);
            if out & HALF == 0 {
                return invited == all;
            }
            if !wait(&self.out, out, Some(deadline)) {
                return false;
            }
        }
    }

    /// Whether a member is back, so that its results may be read.
    pub fn is_back(&self, member: usize) -> bool {
        self.members[member].load(Ordering::Acquire) == 0
    }

    /// Waits until the gate is opened for this member. False if it was closed.
    pub fn pass(&self, member: usize) -> bool {
        loop {
            let round = self.round.load(Ordering::Acquire);
            if self.closed.load(Ordering::Acquire) {
                return false;
            }
            if self.members[member].load(Ordering::Acquire) != 0 {
                return true;
            }
            wait(&self.round, round, None);
        }
    }

    /// The member is back.
    pub fn back(&self, member: usize) {
        let round = self.members[member].swap(0, Ordering::AcqRel);
        let mut out = self.out.load(Ordering::Acquire);
        // A late member finds the number of a later round, and does not change that round's count.
        while out >> 16 == round & HALF && out & HALF != 0 {
            match self.out.compare_exchange_weak(out, out - 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if out & HALF == 1 => return wake(&self.out, 1),
                Ok(_) => return,
                Err(now) => out = now,
            }
        }
    }

    /// Ends the waiting of all members.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.round.fetch_add(1, Ordering::AcqRel);
        wake(&self.round, ALL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::until;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn every_member_passes_once_in_every_round() {
        let (gate, passed) = (Arc::new(Gate::new(5)), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..5)
            .map(|member| {
                let (gate, passed) = (Arc::clone(&gate), Arc::clone(&passed));
                std::thread::spawn(move || {
                    while gate.pass(member) {
                        passed.fetch_add(1, Ordering::Relaxed);
                        gate.back(member);
                    }
                })
            })
            .collect();
        for round in 1..=numakit_skips::rounds(200, 2000) as u32 {
            assert!(gate.open(LONG));
            assert_eq!(passed.load(Ordering::Relaxed), round * 5);
        }
        gate.close();
        threads.into_iter().for_each(|t| t.join().unwrap());
    }

    #[test]
    fn a_late_member_is_left_out_until_it_is_back() {
        let gate = Arc::new(Gate::new(2));
        let (order, orders) = channel::<()>();
        let (done, answers) = channel::<()>();
        let slow = {
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || {
                while gate.pass(1) {
                    orders.recv().unwrap();
                    gate.back(1);
                    done.send(()).unwrap();
                }
            })
        };
        let quick = {
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || {
                while gate.pass(0) {
                    gate.back(0);
                }
            })
        };
        assert!(!gate.open(Duration::from_millis(20)));
        until!(gate.is_back(0));
        assert!(!gate.is_back(1));
        // The next round does not wait for it.
        assert!(!gate.open(LONG));
        order.send(()).unwrap();
        answers.recv().unwrap();
        assert!(gate.is_back(1));
        order.send(()).unwrap();
        assert!(gate.open(LONG));
        gate.close();
        slow.join().unwrap();
        quick.join().unwrap();
    }
}
