//! Multiplexing of the groups of one PMU on one CPU.

use numakit_sys::perf::Times;
use std::sync::{Arc, Mutex};

/// Time until the next rotation, ns (`perf_event_mux_interval_ms`).
pub const INTERVAL: u64 = 4_000_000;

#[derive(Debug)]
pub struct Multiplexer {
    counters: usize,
    groups: Vec<Member>,
    at: u64,
    next: u64,
    state: Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Running {
    Yes,
    Stopped,
    Revoked,
}

#[derive(Debug)]
struct Member {
    id: u64,
    events: usize,
    needed: usize,
    times: Times,
}

impl Multiplexer {
    pub fn of(counters: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { counters, groups: Vec::new(), at: 0, next: 0, state: Running::Yes }))
    }

    /// Adds a group of `events` events, of which `needed` need a counter.
    pub fn join(&mut self, now: u64, events: usize, needed: usize) -> u64 {
        self.catch_up(now);
        self.next += 1;
        self.groups.push(Member { id: self.next, events, needed, times: Times::default() });
        self.next
    }

    pub fn leave(&mut self, id: u64, now: u64) {
        self.catch_up(now);
        self.groups.retain(|g| g.id != id);
    }

    /// The CPU goes offline.
    pub fn stop(&mut self, now: u64) {
        self.catch_up(now);
        self.state = Running::Stopped;
    }

    /// The PMU is removed.
    pub fn revoke(&mut self, now: u64) {
        self.catch_up(now);
        self.state = Running::Revoked;
    }

    /// The times of a group; `None` if it no longer exists.
    pub fn read(&mut self, id: u64, now: u64) -> Option<Times> {
        self.catch_up(now);
        let group = self.groups.iter().find(|g| g.id == id)?;
        match self.state {
            Running::Yes => Some(group.times),
            Running::Stopped => (group.events == 1).then_some(group.times),
            Running::Revoked => None,
        }
    }

    /// The number of events of each group.
    pub fn sizes(&self) -> Vec<usize> {
        self.groups.iter().map(|g| g.events).collect()
    }

    fn catch_up(&mut self, now: u64) {
        let needed: usize = self.groups.iter().map(|g| g.needed).sum();
        while self.at < now && self.state == Running::Yes && !self.groups.is_empty() {
            let end = match needed > self.counters {
                true => (self.at / INTERVAL + 1).saturating_mul(INTERVAL).min(now),
                false => now,
            };
            self.run(end - self.at);
            self.at = end;
        }
        self.at = self.at.max(now);
    }

    /// Runs for `ns` the groups that fit the counters, beginning with the one at the head of the rotation.
    fn run(&mut self, ns: u64) {
        let (count, mut free) = (self.groups.len(), self.counters);
        let first = (self.at / INTERVAL) as usize % count;
        let mut room = true;
        for place in 0..count {
            let group = &mut self.groups[(first + place) % count];
            room &= group.needed <= free;
            group.times.enabled += ns;
            if room {
                free -= group.needed;
                group.times.running += ns;
            }
        }
    }
}
