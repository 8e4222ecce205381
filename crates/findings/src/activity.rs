//! What a program does: whether any of its threads is busy, and then where its CPU time goes, else what its threads wait for.
//! Threads that only wait do not change what is said of those that work.

use crate::explained::JudgedReport;
use crate::waits;
use numakit_explain::account::ThreadTimes;
use numakit_explain::code::CodeName;
use numakit_explain::python::PythonTime;
use numakit_explain::waits::{ThreadWaits, WaitKind, WaitTime};
use numakit_explain::{Explanation, TimeShares};
use serde::Serialize;

/// A part of CPU time that dominates.
const MOST: f64 = 0.5;
/// A function with less of the CPU time is not named as where it goes, nor a wait of busy threads with less of the time.
const NAMED: f64 = 0.2;
/// A program that uses this part of a CPU is busy, however many threads take turns.
const BUSY: f64 = 0.1;
/// Waits with less of the time of all waits are not named.
const NAMED_WAIT: f64 = 0.1;
const MAX_WAITS: usize = 3;
/// With fewer looks at functions of Python none is named.
const MIN_LOOKS: u64 = 20;

/// What CPU time is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimePart {
    /// Arithmetic.
    Computing,
    /// Memory that fits the caches.
    Caches,
    /// Memory outside of the caches.
    Memory,
    /// Lines for which threads contend.
    Contended,
    /// Loops that wait for other threads.
    Spinning,
    /// The kernel.
    Kernel,
}

/// What a program does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramActivity<'a> {
    /// How many threads it has.
    pub threads: usize,
    /// How many of them are busy.
    pub busy: usize,
    /// The CPUs that it used on average.
    pub cpus: f64,
    /// Whether CPU time is what matters; else it is what threads wait for.
    pub is_busy: bool,
    /// The largest part of the CPU time, as a share; `None` if samples do not tell time.
    pub part: Option<(TimePart, f64)>,
    /// The function with most of the CPU time, as a share, if that is much.
    pub function: Option<(&'a CodeName, f64)>,
    /// The function for which the kernel worked most, as a share of the CPU time, if that is much.
    pub kernel: Option<(&'a CodeName, f64)>,
    /// The function of Python in which threads were at most looks, as a share, if that is much.
    pub script: Option<(&'a CodeName, f64)>,
    /// Of the time in which threads could run, the part in which they had no CPU; `None` where a finding says it.
    pub without_cpu: Option<f64>,
    /// The wait for storage that takes most time, as a share of the observed time, if that is much.
    pub stored: Option<(&'a WaitTime, f64)>,
    /// How many of them work; others of a pool wait for work.
    pub working: usize,
    /// What those wait for most, as shares of their time.
    pub working_waits: Vec<(&'a WaitTime, f64)>,
    /// What threads wait for most, as shares of the time of all waits, for a CPU too: of those that work, if there are any.
    pub waits: Vec<(&'a WaitTime, f64)>,
    /// Their time without a CPU, as a share of the same time, if that is much.
    pub cpu_wait: Option<f64>,
}

impl ProgramActivity<'_> {
    /// Whether its part of the CPU time is most of it.
    pub fn dominates(share: f64) -> bool {
        share > MOST
    }
}

impl JudgedReport {
    /// What the program does.
    pub fn activity(&self) -> ProgramActivity<'_> {
        let report = &self.report;
        let explanation = &report.explanation;
        let (times, waits) = (&explanation.threads, &explanation.waits);
        let ran = (times.user + times.kernel) as f64;
        let cpus = ran / 1e9 / report.seconds.max(1e-9);
        let functions = explanation
            .functions
            .iter()
            .map(|code| (&code.name, of_cpu_time(explanation, code.time.total())));
        let in_kernel = in_kernel(explanation);
        let kernel = explanation.kernel.first().map(|code| (&code.name, code.share * in_kernel));
        let of_working: u64 = waits.rows.iter().map(|row| row.of_working).sum();
        let time = |row: &WaitTime| if of_working > 0 { row.of_working } else { row.time };
        let runnable = if of_working > 0 { waits.working.times.runnable } else { times.runnable };
        let waited = waits.rows.iter().map(time).sum::<u64>() + runnable;
        ProgramActivity {
            threads: waits.threads,
            busy: waits.busy,
            cpus,
            is_busy: waits.busy > 0 || cpus >= BUSY || waits.rows.is_empty(),
            part: explanation.time.as_ref().map(|time| largest(time, spinning(explanation))),
            function: functions.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share >= NAMED),
            kernel: kernel.filter(|(_, share)| *share >= NAMED),
            script: script(&explanation.python),
            without_cpu: (!self.findings.iter().any(waits::says_cpu_waits)).then(|| without_cpu(explanation)),
            stored: waits
                .rows
                .iter()
                .filter(|row| matches!(row.kind, WaitKind::Storage | WaitKind::PageFault))
                .map(|row| (row, row.time as f64 / 1e9 / report.seconds.max(1e-9)))
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .filter(|(_, share)| *share >= NAMED),
            working: waits.working.threads,
            working_waits: longest(waits, |row| row.of_working, waits.working.times.total()),
            waits: longest(waits, time, waited),
            cpu_wait: Some(runnable as f64 / waited.max(1) as f64).filter(|share| *share >= NAMED_WAIT),
        }
    }
}

/// The waits that take most of this time.
fn longest(waits: &ThreadWaits, time: impl Fn(&WaitTime) -> u64, all: u64) -> Vec<(&WaitTime, f64)> {
    let share = |row| time(row) as f64 / all.max(1) as f64;
    let mut rows: Vec<(&WaitTime, f64)> = waits.rows.iter().map(|row| (row, share(row))).collect();
    rows.retain(|(_, share)| *share >= NAMED_WAIT);
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    rows.truncate(MAX_WAITS);
    rows
}

/// The function of Python with most looks, if that is much and there were enough.
fn script(python: &PythonTime) -> Option<(&CodeName, f64)> {
    let first = python.functions.first().filter(|_| python.looks >= MIN_LOOKS)?;
    Some((&first.name, python.shares(first)[0])).filter(|(_, share)| *share >= NAMED)
}

/// The part of the CPU time that samples in user mode with this time stand for.
pub fn of_cpu_time(explanation: &Explanation, time: u64) -> f64 {
    let sampled: u64 = explanation.functions.iter().map(|code| code.time.total()).sum();
    let ThreadTimes { user, kernel, .. } = explanation.threads;
    time as f64 / sampled.max(1) as f64 * (user as f64 / (user + kernel).max(1) as f64)
}

/// The part of the CPU time in the kernel.
pub(crate) fn in_kernel(explanation: &Explanation) -> f64 {
    let ThreadTimes { user, kernel, .. } = explanation.threads;
    kernel as f64 / (user + kernel).max(1) as f64
}

/// Of the time in which threads could run, the part in which they had no CPU.
pub(crate) fn without_cpu(explanation: &Explanation) -> f64 {
    let ThreadTimes { user, kernel, runnable, .. } = explanation.threads;
    runnable as f64 / (user + kernel + runnable).max(1) as f64
}

/// The part of the CPU time in loops that wait for other threads.
pub fn spinning(explanation: &Explanation) -> f64 {
    of_cpu_time(explanation, explanation.spins.time)
}

/// The largest part of the CPU time. Loops that wait are no computing.
fn largest(time: &TimeShares, spinning: f64) -> (TimePart, f64) {
    // Samples may be missing of the part in user mode.
    let cpu = 1.0 - time.runnable - time.asleep;
    let of_cpu = |share: f64| share / cpu.max(1e-9);
    let parts = [
        (TimePart::Computing, of_cpu(time.computing) - spinning),
        (TimePart::Caches, of_cpu(time.cached)),
        (TimePart::Memory, of_cpu(time.local + time.remote + time.unknown)),
        (TimePart::Contended, of_cpu(time.contended)),
        (TimePart::Spinning, spinning),
        (TimePart::Kernel, of_cpu(time.kernel)),
    ];
    parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((TimePart::Computing, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_explain::python::ScriptFunction;

    #[test]
    fn a_function_of_python_with_many_looks_is_named() {
        let python = |looks, own| PythonTime {
            looks,
            functions: vec![ScriptFunction { own, all: looks, ..ScriptFunction::default() }],
            ..PythonTime::default()
        };
        assert_eq!(script(&python(40, 30)).map(|(_, share)| share), Some(0.75));
        assert!(script(&python(40, 2)).is_none() && script(&python(9, 9)).is_none());
        assert!(script(&PythonTime::default()).is_none());
    }

    #[test]
    fn what_threads_that_work_wait_for_is_not_diluted_by_idle_ones() {
        let row = |kind, time, of_working| WaitTime {
            kind,
            what: None,
            peers: Vec::new(),
            call: None,
            time,
            of_working,
            threads: 4,
            processes: 4,
            chain: Vec::new(),
        };
        let rows = vec![row(WaitKind::Events, 970, 20), row(WaitKind::Semaphore, 30, 30)];
        let waits = ThreadWaits { rows, ..ThreadWaits::default() };
        let kinds = |found: Vec<(&WaitTime, f64)>| -> Vec<(WaitKind, f64)> {
            found.into_iter().map(|(row, share)| (row.kind, share)).collect()
        };
        assert_eq!(kinds(longest(&waits, |row| row.time, 1000)), [(WaitKind::Events, 0.97)]);
        let expected = [(WaitKind::Semaphore, 0.3), (WaitKind::Events, 0.2)];
        assert_eq!(kinds(longest(&waits, |row| row.of_working, 100)), expected);
    }

    #[test]
    fn the_largest_part_is_of_cpu_time() {
        let idle = TimeShares { computing: 0.09, local: 0.01, asleep: 0.9, ..TimeShares::default() };
        let (part, share) = largest(&idle, 0.0);
        assert!(
            part == TimePart::Computing && (share - 0.9).abs() < 1e-9 && ProgramActivity::dominates(share)
        );
        let (part, share) = largest(&idle, 0.6);
        assert!(part == TimePart::Spinning && share == 0.6, "loops that wait do not compute");
        assert_eq!(largest(&TimeShares::default(), 0.0).1, 0.0);
    }
}
