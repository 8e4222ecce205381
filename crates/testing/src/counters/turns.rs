//! The groups of one PMU on one CPU: those that have no room at the same time take turns.

use numakit_sys::perf::Times;
use std::sync::{Arc, Mutex};

/// How long a turn is, in ns (`perf_event_mux_interval_ms`).
pub const TURN: u64 = 4_000_000;

#[derive(Debug)]
pub struct Turns {
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

impl Turns {
    pub fn of(counters: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { counters, groups: Vec::new(), at: 0, next: 0, state: Running::Yes }))
    }

    /// A group of `events` events, of which `needed` need a counter.
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

    /// The CPU goes away.
    pub fn stop(&mut self, now: u64) {
        self.catch_up(now);
        self.state = Running::Stopped;
    }

    /// The PMU goes away.
    pub fn revoke(&mut self, now: u64) {
        self.catch_up(now);
        self.state = Running::Revoked;
    }

    /// The times of a group; `None` if it is no more.
    pub fn read(&mut self, id: u64, now: u64) -> Option<Times> {
        self.catch_up(now);
        let group = self.groups.iter().find(|g| g.id == id)?;
        match self.state {
            Running::Yes => Some(group.times),
            Running::Stopped => (group.events == 1).then_some(group.times),
            Running::Revoked => None,
        }
    }

    /// The numbers of events of the groups.
    pub fn sizes(&self) -> Vec<usize> {
        self.groups.iter().map(|g| g.events).collect()
    }

    fn catch_up(&mut self, now: u64) {
        let needed: usize = self.groups.iter().map(|g| g.needed).sum();
        while self.at < now && self.state == Running::Yes && !self.groups.is_empty() {
            let end = match needed > self.counters {
                true => (self.at / TURN + 1).saturating_mul(TURN).min(now),
                false => now,
            };
            self.run(end - self.at);
            self.at = end;
        }
        self.at = self.at.max(now);
    }

    /// One turn: from the group whose turn it is, as many as have room.
    fn run(&mut self, ns: u64) {
        let (count, mut free) = (self.groups.len(), self.counters);
        let first = (self.at / TURN) as usize % count;
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
