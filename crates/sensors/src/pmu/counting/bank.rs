//! The events of one PMU on one CPU: opened in groups, read, scaled, and opened again some
//! time after they failed.

use super::unlimited;
use crate::watched::PATIENCE;
use numakit_sys::perf::{Counters, Errno, EventGroup, LARGEST_GROUP, PerfEvent, Times};
use std::io;

/// See the module. Totals go on when counters are opened again, so that nothing jumps.
#[derive(Debug)]
pub struct Bank {
    cpu: u32,
    events: Vec<PerfEvent>,
    counts: Vec<Count>,
    groups: Vec<Open>,
    refused: Vec<RefusedEvent>,
    state: State,
    /// How often it was opened.
    opens: u64,
    /// When it was read last.
    woke: u64,
    /// The share of time, in hundredths, of the group that counted least since it last did.
    share: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unopened,
    Open,
    /// Opened again in this read, after it had gone.
    Reopened,
    /// Nothing can be opened; to be tried again after so many reads.
    Away(u32),
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    last: u64,
    total: u64,
    /// It counted since the last read.
    fresh: bool,
}

/// A group, and which of the events it has.
#[derive(Debug)]
struct Open {
    group: Box<dyn EventGroup>,
    first: usize,
    len: usize,
    /// When it had last counted.
    counted: Times,
    /// How long it had been open when it was read last.
    enabled: Option<u64>,
}

/// An event that could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedEvent {
    /// Where.
    pub cpu: u32,
    /// What.
    pub event: PerfEvent,
    /// The system's number of the error.
    pub code: i32,
}

/// What is known of an event after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterReading {
    /// What was counted since it was first opened.
    Counted(u64),
    /// The same of a CPU that is offline, on which nothing happens.
    Offline(u64),
}

/// Why a bank has no counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// An event was refused.
    Refused(RefusedEvent),
    /// The counters on this CPU had gone, and count again from now on.
    Reopened(u32),
}

impl Bank {
    /// Events of one PMU on a CPU, with what was counted of them before.
    pub fn new(cpu: u32, events: Vec<(PerfEvent, u64)>) -> Self {
        let counts = events.iter().map(|&(_, total)| Count { total, ..Count::default() }).collect();
        let events = events.into_iter().map(|(event, _)| event).collect();
        let (groups, refused) = (Vec::new(), Vec::new());
        Self { cpu, events, counts, groups, refused, state: State::Unopened, opens: 0, woke: 0, share: None }
    }

    /// Reads it, opening what is to be opened.
    pub fn read(&mut self, counters: &dyn Counters, woke: u64) {
        self.counts.iter_mut().for_each(|c| c.fresh = false);
        self.share = None;
        match self.state {
            State::Away(wait) if wait > 1 => {
                self.state = State::Away(wait - 1);
                return;
            }
            State::Unopened | State::Away(_) => self.open(counters),
            State::Open | State::Reopened => self.state = State::Open,
        }
        if !self.take(woke) {
            self.counts.iter_mut().for_each(|c| c.fresh = false);
            self.share = None;
            self.open(counters);
            if self.state == State::Open {
                self.state = State::Reopened;
            }
        }
        self.woke = woke;
    }

    /// What is known of each event; `None` for one that did not count since the last read.
    pub fn values(&self) -> impl Iterator<Item = Option<CounterReading>> {
        let offline = self.offline();
        self.counts.iter().map(move |c| match c.fresh {
            true => Some(CounterReading::Counted(c.total)),
            false => offline.then_some(CounterReading::Offline(c.total)),
        })
    }

    fn offline(&self) -> bool {
        let no_device =
            |r: &RefusedEvent| Errno::of(&io::Error::from_raw_os_error(r.code)) == Some(Errno::NoDevice);
        matches!(self.state, State::Away(_)) && self.refused.iter().any(no_device)
    }

    /// Each event with what was ever counted of it.
    pub fn totals(&self) -> impl Iterator<Item = (u32, PerfEvent, u64)> {
        self.events.iter().zip(&self.counts).map(|(event, count)| (self.cpu, *event, count.total))
    }

    /// The share of time, in hundredths, for which the group counted that did least; `None`
    /// for events that need no counter.
    pub fn share(&self) -> Option<u64> {
        let limited = self.events.first().is_some_and(|event| !unlimited(event));
        self.share.filter(|_| limited)
    }

    /// How often it was tried to open it.
    pub fn opens(&self) -> u64 {
        self.opens
    }

    /// Why values of the last read are missing.
    pub fn troubles(&self) -> impl Iterator<Item = Trouble> {
        let reopened = (self.state == State::Reopened).then_some(Trouble::Reopened(self.cpu));
        reopened.into_iter().chain(self.refused.iter().copied().map(Trouble::Refused))
    }

    /// Opens as many groups as it takes. The kernel says how many events go into one.
    fn open(&mut self, counters: &dyn Counters) {
        self.groups.clear();
        self.refused.clear();
        self.opens += 1;
        let mut first = 0;
        while let Some(event) = self.events.get(first) {
            let end = self.events.len().min(first + LARGEST_GROUP);
            match counters.open(self.cpu, &self.events[first..end]) {
                Ok((group, len)) => {
                    let len = len.clamp(1, end - first);
                    self.groups.push(Open { group, first, len, counted: Times::default(), enabled: None });
                    first += len;
                }
                Err(error) => {
                    self.refused.push(refusal(self.cpu, *event, &error));
                    first += 1;
                    if Errno::of(&error) == Some(Errno::NoDevice) {
                        self.groups.clear();
                        break;
                    }
                }
            }
        }
        self.counts.iter_mut().for_each(|c| c.last = 0);
        self.state = if self.groups.is_empty() { State::Away(PATIENCE) } else { State::Open };
    }

    /// Reads all groups. False when one of them is gone.
    fn take(&mut self, woke: u64) -> bool {
        let mut buffer = [0; LARGEST_GROUP];
        for open in &mut self.groups {
            let counts = &mut buffer[..open.len];
            let Ok(times) = open.group.read(counts) else { return false };
            // The kernel lets what is left of a group stand still when its CPU goes away.
            if woke != self.woke && open.enabled == Some(times.enabled) && times.enabled > 0 {
                return false;
            }
            open.enabled = Some(times.enabled);
            let share = open.add(times, counts, &mut self.counts[open.first..open.first + open.len]);
            self.share = self.share.into_iter().chain(share).min();
        }
        true
    }
}

impl Open {
    /// Adds what was counted since it last counted, as if it had done so all the time. The
    /// share of time for which it did, in hundredths.
    fn add(&mut self, times: Times, counts: &[u64], sums: &mut [Count]) -> Option<u64> {
        let enabled = times.enabled.saturating_sub(self.counted.enabled);
        let running = times.running.saturating_sub(self.counted.running);
        if running > 0 {
            for (sum, &count) in sums.iter_mut().zip(counts) {
                // A count that went back was set anew by somebody; what happened is unknown.
                let moved = count.saturating_sub(sum.last);
                sum.total = sum.total.wrapping_add(scaled(moved, enabled, running));
                (sum.last, sum.fresh) = (count, true);
            }
            self.counted = times;
        }
        (u128::from(running) * 100).checked_div(u128::from(enabled)).map(|share| share.min(100) as u64)
    }
}

/// A count of `running` out of `enabled`, for all of it, rounded.
fn scaled(count: u64, enabled: u64, running: u64) -> u64 {
    if running >= enabled {
        return count;
    }
    let (enabled, running) = (u128::from(enabled), u128::from(running));
    u64::try_from((u128::from(count) * enabled + running / 2) / running).unwrap_or(u64::MAX)
}

fn refusal(cpu: u32, event: PerfEvent, error: &io::Error) -> RefusedEvent {
    RefusedEvent { cpu, event, code: error.raw_os_error().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::scaled;
    use proptest::prelude::*;

    #[test]
    fn a_count_of_a_part_is_made_whole() {
        assert_eq!(scaled(10, 100, 100), 10);
        assert_eq!(scaled(10, 100, 50), 20);
        assert_eq!(scaled(10, 100, 30), 33);
        assert_eq!(scaled(11, 100, 40), 28);
        assert_eq!(scaled(u64::MAX, u64::MAX, u64::MAX - 1), u64::MAX);
        assert_eq!(scaled(1 << 40, 1 << 50, 1 << 40), 1 << 50);
    }

    proptest! {
        #[test]
        fn scaling_errs_by_less_than_one(count in 0u64..1 << 40, running in 1u64..1 << 40, more in 0u64..1 << 20) {
            let enabled = running + more;
            let exact = count as f64 * enabled as f64 / running as f64;
            prop_assert!((scaled(count, enabled, running) as f64 - exact).abs() <= 1.0 + exact * 1e-15);
            prop_assert!(scaled(count, enabled, running) >= count);
        }
    }
}
