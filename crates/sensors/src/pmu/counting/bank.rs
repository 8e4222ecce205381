//! The events of one PMU on one CPU: opens them in groups, reads and scales them, and opens them
//! again some time after a failure.

use super::unlimited;
use numakit_sys::perf::{Counters, Errno, EventGroup, MAX_GROUP, PerfEvent, Times};
use numakit_sys::root::PATIENCE;
use std::io;

/// The events of one PMU on one CPU. Totals continue when counters are opened again.
#[derive(Debug)]
pub struct Bank {
    cpu: u32,
    events: Vec<PerfEvent>,
    counts: Vec<Count>,
    groups: Vec<Open>,
    refused: Vec<RefusedEvent>,
    state: State,
    /// Number of times it was opened.
    opens: u64,
    /// Time of the last read.
    woke: u64,
    /// The smallest share of time, in hundredths, for which a group counted.
    share: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unopened,
    Open,
    /// Opened again in this read, after a failure.
    Reopened,
    /// Nothing can be opened; the number of reads until the next try.
    Away(u32),
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    last: u64,
    total: u64,
    /// Whether it counted since the last read.
    fresh: bool,
}

/// A group, and its range of events.
#[derive(Debug)]
struct Open {
    group: Box<dyn EventGroup>,
    first: usize,
    len: usize,
    /// Its times when it last counted.
    counted: Times,
    /// How long it had been open at the last read.
    enabled: Option<u64>,
}

/// An event that could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedEvent {
    /// The CPU.
    pub cpu: u32,
    /// The event.
    pub event: PerfEvent,
    /// The error number.
    pub code: i32,
}

/// The state of an event after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterReading {
    /// The count since it was first opened.
    Counted(u64),
    /// The same on a CPU that is offline.
    Offline(u64),
}

/// Why a bank has no counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// An event was refused.
    Refused(RefusedEvent),
    /// The counters on this CPU had stopped, and count again from now on.
    Reopened(u32),
}

impl Bank {
    /// Events of one PMU on a CPU, with their totals so far.
    pub fn new(cpu: u32, events: Vec<(PerfEvent, u64)>) -> Self {
        let counts = events.iter().map(|&(_, total)| Count { total, ..Count::default() }).collect();
        let events = events.into_iter().map(|(event, _)| event).collect();
        let (groups, refused) = (Vec::new(), Vec::new());
        Self { cpu, events, counts, groups, refused, state: State::Unopened, opens: 0, woke: 0, share: None }
    }

    /// Opens what is not open, and reads everything.
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

    /// The reading of each event; `None` for one that did not count since the last read.
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

    /// Each event with its total.
    pub fn totals(&self) -> impl Iterator<Item = (u32, PerfEvent, u64)> {
        self.events.iter().zip(&self.counts).map(|(event, count)| (self.cpu, *event, count.total))
    }

    /// The smallest share of time, in hundredths, for which a group counted; `None` for events that
    /// need no counter.
    pub fn share(&self) -> Option<u64> {
        let limited = self.events.first().is_some_and(|event| !unlimited(event));
        self.share.filter(|_| limited)
    }

    /// Number of attempts to open it.
    pub fn opens(&self) -> u64 {
        self.opens
    }

    /// Why values of the last read are missing.
    pub fn troubles(&self) -> impl Iterator<Item = Trouble> {
        let reopened = (self.state == State::Reopened).then_some(Trouble::Reopened(self.cpu));
        reopened.into_iter().chain(self.refused.iter().copied().map(Trouble::Refused))
    }

    /// Opens as many groups as needed. The kernel decides how many events fit into one.
    fn open(&mut self, counters: &dyn Counters) {
        self.groups.clear();
        self.refused.clear();
        self.opens += 1;
        let mut first = 0;
        while let Some(event) = self.events.get(first) {
            let end = self.events.len().min(first + MAX_GROUP);
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

    /// Reads all groups. False if one of them fails.
    fn take(&mut self, woke: u64) -> bool {
        let mut buffer = [0; MAX_GROUP];
        for open in &mut self.groups {
            let counts = &mut buffer[..open.len];
            let Ok(times) = open.group.read(counts) else { return false };
            // When a CPU goes offline, the rest of its group stops counting.
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
    /// Adds the scaled counts since it last counted. Returns the share of time for which it
    /// counted, in hundredths.
    fn add(&mut self, times: Times, counts: &[u64], sums: &mut [Count]) -> Option<u64> {
        let enabled = times.enabled.saturating_sub(self.counted.enabled);
        let running = times.running.saturating_sub(self.counted.running);
        if running > 0 {
            for (sum, &count) in sums.iter_mut().zip(counts) {
                // A count that decreased was reset from outside; the difference is unknown.
                let moved = count.saturating_sub(sum.last);
                sum.total = sum.total.wrapping_add(scaled(moved, enabled, running));
                (sum.last, sum.fresh) = (count, true);
            }
            self.counted = times;
        }
        (u128::from(running) * 100).checked_div(u128::from(enabled)).map(|share| share.min(100) as u64)
    }
}

/// Scales a count from the time `running` to the time `enabled`, rounded.
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
    fn a_multiplexed_count_is_scaled() {
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
