//! What else the machine did during a run: CPU time of other programs, time that the hypervisor took, and how fast a core was.

use numakit_sys::SysRoot;
use numakit_sys::clock::thread_cpu;
use numakit_sys::proc::machine::{StatLine, numbers, stat_line};
use numakit_sys::sched::ticks_per_second;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// A run may be disturbed by this part of all CPU time more than the runs before it.
const MORE: f64 = 0.05;
/// It may be disturbed this many times as much as usual.
const TIMES: f64 = 2.0;
/// A core may be this much slower than usual.
const SLOWER: f64 = 1.15;
/// As many runs say what is usual.
const USUAL: usize = 2;
/// This part of all runs is not unusual, however much they were disturbed: on a machine that is never quiet, runs go on.
const RARE: f64 = 0.9;
/// Steps of the loop that says how fast a core is: about a millisecond.
const STEPS: u64 = 1_000_000;
/// Of as many loops the fastest counts, since the others were interrupted.
const LOOPS: usize = 3;

/// What disturbed a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Disturbance {
    /// CPU time of other programs, as a part of that of all CPUs; `None` if the kernel does not say.
    pub others: Option<f64>,
    /// Time that the hypervisor gave to others, as a part of that of all CPUs.
    pub stolen: Option<f64>,
    /// Seconds of a short loop of arithmetic, before or after the run, whichever was longer: longer at a lower frequency.
    pub arithmetic: f64,
}

/// The counters at the begin of a run.
#[derive(Debug)]
pub struct DisturbanceClock {
    root: SysRoot,
    begun: Option<MachineTicks>,
    arithmetic: f64,
}

/// Ticks of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MachineTicks {
    busy: u64,
    stolen: u64,
    all: u64,
}

impl MachineTicks {
    fn read(root: &SysRoot) -> Option<Self> {
        let text = root.bytes("/proc/stat").ok()?;
        let first = text.split(|byte| *byte == b'\n').next()?;
        let StatLine::Other(b"cpu", rest) = stat_line(first) else { return None };
        let ticks: Vec<u64> = numbers(rest).collect();
        // user nice system idle iowait irq softirq steal; time of guests is in that of users.
        let &[user, nice, system, idle, iowait, irq, softirq, stolen, ..] = ticks.as_slice() else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        Some(Self { busy, stolen, all: busy + idle + iowait + stolen })
    }
}

impl DisturbanceClock {
    /// Begins.
    pub fn start() -> Self {
        let root = SysRoot::host();
        let begun = MachineTicks::read(&root);
        Self { root, begun, arithmetic: arithmetic() }
    }

    /// What disturbed a run that used this CPU time, in seconds.
    pub fn stop(self, own: f64) -> Disturbance {
        let ticks = self.begun.zip(MachineTicks::read(&self.root));
        let part = |of: &dyn Fn(MachineTicks) -> u64, own: f64| {
            let (begun, ended) = ticks?;
            let all = ended.all.saturating_sub(begun.all) as f64;
            let used = of(ended).saturating_sub(of(begun)) as f64 - own * ticks_per_second() as f64;
            // A short run has few ticks, and each CPU may be wrong by one.
            (all > 0.0).then(|| (used.max(0.0) / all).min(1.0))
        };
        Disturbance {
            others: part(&|ticks| ticks.busy, own),
            stolen: part(&|ticks| ticks.stolen, 0.0),
            arithmetic: self.arithmetic.max(arithmetic()),
        }
    }
}

/// Seconds of a loop in which each step needs the result of the one before.
fn arithmetic() -> f64 {
    let steps = || {
        let mut value = black_box(1_u64);
        for _ in 0..STEPS {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        black_box(value);
    };
    (0..LOOPS).map(|_| cpu_seconds(steps)).fold(f64::INFINITY, f64::min)
}

/// CPU time of this thread: that it waited for a CPU says nothing of how fast one is.
fn cpu_seconds(work: impl Fn()) -> f64 {
    let begun = thread_cpu();
    work();
    (thread_cpu() - begun) as f64 / 1e9
}

impl Disturbance {
    fn of_cpus(&self) -> Option<f64> {
        let parts = [self.others, self.stolen];
        parts.iter().any(Option::is_some).then(|| parts.iter().flatten().sum())
    }

    /// Why a run says nothing, where the runs before it were disturbed like this; `None` if it is as good as they.
    pub fn spoils(&self, before: &[Self]) -> Option<SpoiledBy> {
        if before.len() < USUAL {
            return None;
        }
        let parts: Vec<f64> = before.iter().filter_map(Self::of_cpus).collect();
        let rare = quantile(&parts, RARE).unwrap_or(0.0);
        let usual = quantile(&parts, 0.5).unwrap_or(0.0);
        if self.of_cpus().is_some_and(|part| part > (TIMES * usual).max(usual + MORE).max(rare)) {
            let stolen = self.stolen.unwrap_or(0.0);
            let is_stolen = stolen > self.others.unwrap_or(0.0);
            return Some(if is_stolen { SpoiledBy::Steal } else { SpoiledBy::Others });
        }
        let times: Vec<f64> = before.iter().map(|one| one.arithmetic).collect();
        let unusual = quantile(&times, 0.5).zip(quantile(&times, RARE));
        let is_slow = unusual.is_some_and(|(usual, rare)| self.arithmetic > (SLOWER * usual).max(rare));
        is_slow.then_some(SpoiledBy::Frequency)
    }
}

/// What spoiled a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpoiledBy {
    /// Other programs.
    Others,
    /// The hypervisor.
    Steal,
    /// A core was slower.
    Frequency,
    /// Cores were reserved by another program meanwhile.
    Reserved,
    /// It was the program without a setting, and took far longer than before.
    CutOff,
}

impl SpoiledBy {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Others => "other programs used the CPUs",
            Self::Steal => "the hypervisor gave CPUs to other machines",
            Self::Frequency => "cores were slower than before",
            Self::Reserved => "another program reserved cores",
            Self::CutOff => "it had not ended in time without a setting, as runs before had",
        }
    }
}

/// The value below which this part of them is.
pub fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((part * last as f64).round() as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn disturbed(others: f64, stolen: f64, arithmetic: f64) -> Disturbance {
        Disturbance { others: Some(others), stolen: Some(stolen), arithmetic }
    }

    #[test]
    fn a_run_is_spoiled_by_more_than_is_usual() {
        let before = [disturbed(0.10, 0.0, 1.0), disturbed(0.12, 0.01, 1.0), disturbed(0.11, 0.0, 1.02)];
        assert_eq!(disturbed(0.12, 0.02, 1.05).spoils(&before), None);
        assert_eq!(disturbed(0.4, 0.02, 1.0).spoils(&before), Some(SpoiledBy::Others));
        assert_eq!(disturbed(0.1, 0.3, 1.0).spoils(&before), Some(SpoiledBy::Steal));
        assert_eq!(disturbed(0.1, 0.0, 1.3).spoils(&before), Some(SpoiledBy::Frequency));
        // On a machine that is never quiet that is usual.
        let loud: Vec<Disturbance> =
            (0..8).map(|run| disturbed(0.6 * f64::from(run % 2), 0.0, 1.0)).collect();
        assert_eq!(disturbed(0.5, 0.0, 1.0).spoils(&loud), None);
        // Without runs before it, and without counters, nothing is known.
        assert_eq!(disturbed(0.9, 0.0, 1.0).spoils(&before[..1]), None);
        let unknown = Disturbance { others: None, stolen: None, arithmetic: 1.0 };
        assert_eq!(unknown.spoils(&before), None);
    }

    #[test]
    fn what_others_use_is_all_but_the_own_time() {
        let clock = DisturbanceClock::start();
        let begun = Instant::now();
        while begun.elapsed().as_millis() < 120 {
            black_box(arithmetic());
        }
        let seen = clock.stop(begun.elapsed().as_secs_f64());
        assert!(
            seen.arithmetic > 0.0 && seen.others.is_some_and(|part| (0.0..=1.0).contains(&part)),
            "{seen:?}"
        );
    }

    #[test]
    fn waiting_for_a_cpu_makes_no_core_slow() {
        let waited = Duration::from_millis(200);
        assert!(cpu_seconds(|| std::thread::sleep(waited)) < waited.as_secs_f64());
    }
}
