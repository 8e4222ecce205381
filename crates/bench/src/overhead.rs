//! What a recording costs a program: its time beside a recorder and its time alone, measured in turns.

use crate::results::quantiles::Quantiles;
use crate::results::{Axis, BenchResult, Curve, NamedValue};
use numakit_sys::clock::{self, EndedUsage};
use numakit_sys::command::Running;
use numakit_sys::proc::TaskDir;
use numakit_sys::signal::{self, Signals};
use numakit_sys::{SysRoot, poll, sched};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The name of its results.
pub const OVERHEAD: &str = "overhead";

/// A recorder begins within this time, or does not.
const BEGINNING: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);
/// How long a recorder runs before anything is measured, so that the work of its start is over.
const SETTLING: Duration = Duration::from_millis(300);
/// How long a recorder may take at its end to write what it holds, and a command to clean up. After that it is killed.
const PATIENCE: Duration = Duration::from_secs(10);
const NS: f64 = 1e9;

/// What is to be compared.
#[derive(Debug)]
pub struct Overhead<'a> {
    /// The program with its arguments.
    pub command: &'a [OsString],
    /// The recorders, each with its samples per second.
    pub recorders: &'a [(f64, Vec<OsString>)],
    /// The file that all recorders write. It is removed after each.
    pub file: &'a Path,
    /// How often each is run.
    pub rounds: usize,
}

/// Why the overhead cannot be measured.
#[derive(Debug, Error)]
pub enum OverheadError {
    /// The program cannot be started.
    #[error("the command cannot be started: {0}")]
    Start(#[source] io::Error),
    /// The program fails.
    #[error(
        "the command ended with status {0}; give one that ends with 0, as the time of one that fails says little"
    )]
    Status(i32),
    /// The recorder does not record.
    #[error("the recorder at {hz} Hz {why}; see what it says with: numa record -i {hz}Hz -o FILE -- sleep 1")]
    Recorder {
        /// Its samples per second.
        hz: f64,
        /// How the recorder ended, or failed.
        why: String,
    },
    /// The system refuses something else.
    #[error("the command cannot be measured: {0}")]
    System(#[from] io::Error),
}

/// How a measurement ended.
#[derive(Debug)]
enum Ended {
    /// It ended by itself.
    With(Run),
    /// This signal came.
    Interrupted(i32),
}

/// A run of the program.
#[derive(Debug, Clone, Copy)]
struct Run {
    wall: f64,
    cpu: f64,
}

/// A run beside a recorder, as shares of the run alone of the same round.
#[derive(Debug, Default)]
struct Shares {
    wall: Vec<f64>,
    cpu: Vec<f64>,
    /// CPU time of the recorder while the program ran, of one CPU.
    recorder: Vec<f64>,
}

/// Runs the program alone and beside each recorder, in turns. A signal ends it; what was measured until then is returned.
/// `signals` has those of children too.
pub fn measure(
    overhead: &Overhead<'_>,
    signals: &Signals,
    mut show: impl FnMut(&str),
) -> Result<(BenchResult, Option<i32>), OverheadError> {
    let mut alone: Vec<Run> = Vec::new();
    let mut shares: Vec<Shares> = overhead.recorders.iter().map(|_| Shares::default()).collect();
    let mut interrupted = None;
    'rounds: for round in 0..overhead.rounds {
        show(&format!("overhead: round {} of {}, alone", round + 1, overhead.rounds));
        let base = match run(overhead.command, signals)? {
            Ended::With(base) => base,
            Ended::Interrupted(signal) => {
                interrupted = Some(signal);
                break;
            }
        };
        alone.push(base);
        // There and back again, so that a machine that becomes slower or faster does not look like a difference between
        // rates.
        let there: Vec<usize> = (0..overhead.recorders.len()).collect();
        let order: Vec<usize> = if round % 2 == 0 { there } else { there.into_iter().rev().collect() };
        for at in order {
            show(&format!(
                "overhead: round {} of {}, {} Hz",
                round + 1,
                overhead.rounds,
                overhead.recorders[at].0
            ));
            if let Some(signal) = beside(overhead, at, base, signals, &mut shares[at])? {
                interrupted = Some(signal);
                break 'rounds;
            }
        }
    }
    Ok((result(overhead, alone, shares), interrupted))
}

/// Runs the program beside a recorder. Returns the signal that ended it, if one did.
fn beside(
    overhead: &Overhead<'_>,
    at: usize,
    base: Run,
    signals: &Signals,
    shares: &mut Shares,
) -> Result<Option<i32>, OverheadError> {
    let (hz, words) = &overhead.recorders[at];
    let failed = |why: String| OverheadError::Recorder { hz: *hz, why };
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    let mut recorder =
        Running::start_to(words, &[], Some(&nothing)).map_err(|e| failed(format!("does not start: {e}")))?;
    let begun = begins(&mut recorder, *hz, overhead.file);
    let (before, started) = (cpu_of(recorder.id()), clock::monotonic());
    let ended = begun.and_then(|()| run(overhead.command, signals));
    let (after, lived) = (cpu_of(recorder.id()), (clock::monotonic() - started) as f64);
    recorder.end(PATIENCE)?;
    // Nobody needs the rest of the file, and a file that is not there needs no removal.
    let _ = fs::remove_file(overhead.file);
    let run = match ended? {
        Ended::With(run) => run,
        Ended::Interrupted(signal) => return Ok(Some(signal)),
    };
    shares.wall.push(100.0 * (run.wall / base.wall - 1.0));
    shares.cpu.push(100.0 * (run.cpu / base.cpu.max(1.0) - 1.0));
    shares
        .recorder
        .extend(before.zip(after).map(|(before, after)| 100.0 * after.saturating_sub(before) as f64 / lived));
    Ok(None)
}

/// Waits until the recorder has written the head of its file, and has come to rest.
fn begins(recorder: &mut Running, hz: f64, file: &Path) -> Result<(), OverheadError> {
    let deadline = clock::monotonic() + BEGINNING.as_nanos() as u64;
    while !fs::metadata(file).is_ok_and(|data| data.len() > 0) {
        if let Some(status) = recorder.ended()? {
            return Err(OverheadError::Recorder { hz, why: format!("ended with status {status}") });
        }
        if clock::monotonic() > deadline {
            return Err(OverheadError::Recorder { hz, why: format!("wrote nothing within {BEGINNING:?}") });
        }
        std::thread::sleep(LOOK);
    }
    std::thread::sleep(SETTLING);
    Ok(())
}

/// Runs the program once, its output thrown away.
fn run(command: &[OsString], signals: &Signals) -> Result<Ended, OverheadError> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    let (before, started) = (clock::ended_children(), clock::monotonic());
    let mut running = Running::start_to(command, &[], Some(&nothing)).map_err(OverheadError::Start)?;
    let status = loop {
        if let Some(status) = running.ended()? {
            break status;
        }
        poll::readable(&[signals.as_fd()], Some(Duration::from_secs(1)))?;
        let received = std::iter::from_fn(|| signals.next()).find(|signal| signal.number != signal::CHILD);
        if let Some(received) = received {
            running.end(PATIENCE)?;
            return Ok(Ended::Interrupted(received.number));
        }
    };
    let wall = (clock::monotonic() - started) as f64;
    match status {
        0 => Ok(Ended::With(Run { wall, cpu: cpu(before, clock::ended_children()) })),
        status => Err(OverheadError::Status(status)),
    }
}

/// CPU time that a process has used, in ns; `None` if the kernel does not count it.
fn cpu_of(process: u32) -> Option<u64> {
    let root = SysRoot::host();
    let task = TaskDir::of(&root, process);
    let of_thread =
        |thread| task.thread(thread).text("schedstat").ok()?.split(' ').next()?.parse::<u64>().ok();
    task.threads().ok()?.into_iter().map(of_thread).sum()
}

fn cpu(before: EndedUsage, after: EndedUsage) -> f64 {
    (after.cpu() - before.cpu()) as f64
}

fn result(overhead: &Overhead<'_>, alone: Vec<Run>, shares: Vec<Shares>) -> BenchResult {
    let mut result = BenchResult { name: OVERHEAD.to_owned(), ..BenchResult::default() };
    let alone_is_empty = alone.is_empty();
    let mut value = |name: &str, values: Vec<f64>| {
        let value = Quantiles::of(values);
        result.values.extend(value.map(|value| NamedValue {
            name: name.to_owned(),
            unit: "s".to_owned(),
            value,
            best: None,
        }));
    };
    value("time of the command alone", alone.iter().map(|run| run.wall / NS).collect());
    value("CPU time of the command alone", alone.iter().map(|run| run.cpu / NS).collect());
    let names = [
        "time that a recording adds to the command",
        "CPU time that a recording adds to the command",
        "CPU time of the recorder, of one CPU",
    ];
    let mut curves = names.map(|name| Curve::new(name, "%", true, rate()));
    for ((hz, _), shares) in overhead.recorders.iter().zip(shares) {
        for (curve, values) in curves.iter_mut().zip([shares.wall, shares.cpu, shares.recorder]) {
            curve.add(*hz, Quantiles::of(values));
        }
    }
    let noise = Quantiles::of(alone.iter().map(|run| run.wall).collect()).map(|wall| 100.0 * wall.spread());
    result.remarks.extend(noise.map(|percent| {
        format!(
            "alone, the command's time differs by {percent:.1} % from the 10 % to the 90 % quantile: what a recording adds and is \
             less is noise"
        )
    }));
    if sched::affinity().is_ok_and(|cpus| cpus.len() == 1) {
        result.warnings.push("there is one CPU, which the command and the recorder share".to_owned());
    }
    if curves[2].points.is_empty() && !alone_is_empty {
        result.leave_out(names[2], "the kernel does not count the CPU time of threads (schedstat)");
    }
    result.curves.extend(curves.into_iter().filter(|curve| !curve.points.is_empty()));
    result
}

fn rate() -> Axis {
    Axis { name: "rate".to_owned(), unit: "Hz".to_owned(), logarithmic: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// A stand-in for a recorder: it writes a line and sleeps until it is ended.
    fn recorder(file: &Path, script: &str) -> Vec<OsString> {
        vec!["sh".into(), "-c".into(), script.into(), "sh".into(), file.into()]
    }

    fn measured(name: &str, command: &str, script: &str) -> (Result<BenchResult, OverheadError>, bool) {
        let file = std::env::temp_dir().join(format!("numakit-overhead-{name}-{}", std::process::id()));
        let command = words(command);
        let recorders = [(1.0, recorder(&file, script)), (50.0, recorder(&file, script))];
        let overhead = Overhead { command: &command, recorders: &recorders, file: &file, rounds: 3 };
        let signals = Signals::collect(&[signal::CHILD]).unwrap();
        let result = measure(&overhead, &signals, |_| ()).map(|(result, interrupted)| {
            assert_eq!(interrupted, None);
            result
        });
        (result, file.exists())
    }

    #[test]
    fn each_rate_has_its_values_and_no_file_is_left() {
        let (result, is_left) = measured("whole", "sleep 0.02", "echo a >\"$1\"; exec sleep 60");
        let result = result.unwrap();
        assert!(!is_left);
        assert_eq!(result.values.iter().map(|value| value.value.samples).collect::<Vec<_>>(), [3, 3]);
        assert!(result.values[0].value.low >= 0.02);
        assert_eq!(result.curves.len(), 3, "{:?}", result.left_out);
        for curve in &result.curves {
            let rates: Vec<(f64, usize)> =
                curve.points.iter().map(|point| (point.x, point.value.samples)).collect();
            assert_eq!(rates, [(1.0, 3), (50.0, 3)], "{}", curve.name);
        }
    }

    #[test]
    fn what_fails_is_said() {
        let said = |name, command, script| measured(name, command, script).0.unwrap_err().to_string();
        let writes = "echo a >\"$1\"; exec sleep 60";
        assert!(said("false", "false", writes).contains("ended with status 1"));
        assert!(said("start", "/nonexistent/program", writes).contains("cannot be started"));
        assert!(said("recorder", "true", "exit 7").contains("the recorder at 1 Hz ended with status 7"));
    }
}
