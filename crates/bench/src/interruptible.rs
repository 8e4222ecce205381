//! Running benchmarks so that the user sees how far they are, and can end them and keep what was measured.

use crate::ground::Ground;
use crate::results::conditions::{BenchConditions, Noise, judge_spread};
use crate::results::{BenchResult, BenchResults, VERSION};
use crate::results::{agreement, kept};
use crate::settings::BenchSettings;
use crate::{ALL, BENCHMARKS, BenchError, Benchmark, runs};
use numakit_model::Topology;
use numakit_sys::SysRoot;
use numakit_sys::permissions::{Permission, Permissions};
use numakit_sys::poll;
use numakit_sys::signal::Signals;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two looks at the benchmark's progress.
const LOOK: Duration = Duration::from_millis(200);

/// What a running benchmark reports, and the user's request to end it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    stopped: AtomicBool,
    now: Mutex<String>,
    /// Words in front of each report, which say which run it is.
    run: Mutex<String>,
}

impl Watch {
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub fn now(&self, what: String) {
        if let Ok(mut now) = self.now.lock() {
            *now = what;
        }
    }

    /// Says which of several runs begins.
    fn begin(&self, run: u32, runs: u32) {
        if runs > 1
            && let Ok(mut words) = self.run.lock()
        {
            *words = format!("run {run} of {runs}: ");
        }
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn text(&self) -> String {
        let of = |text: &Mutex<String>| text.lock().map(|text| text.clone()).unwrap_or_default();
        of(&self.run) + &of(&self.now)
    }
}

/// How far benchmarks are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchProgress {
    /// What is measured now.
    pub what: String,
}

/// The signal that ended a run; `None` if it ended without one.
pub type Interrupted = Option<i32>;

/// The benchmarks of this name; `all` names all benchmarks.
pub fn select(word: &str) -> Result<Vec<&'static Benchmark>, BenchError> {
    let chosen: Vec<_> =
        BENCHMARKS.iter().filter(|benchmark| word == ALL || benchmark.name == word).collect();
    if chosen.is_empty() {
        let known = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect::<Vec<_>>().join(", ");
        return Err(BenchError::Unknown { word: word.to_owned(), known });
    }
    Ok(chosen)
}

/// Runs benchmarks on this machine. A signal ends them: then what was measured before is returned, of several runs those
/// that had ended.
pub fn run(
    chosen: &[&Benchmark],
    topology: &Topology,
    settings: &BenchSettings,
    signals: &Signals,
    mut show: impl FnMut(&BenchProgress),
) -> (BenchResults, Interrupted) {
    let (root, watch) = (SysRoot::host(), Watch::default());
    let permissions = Permissions::own_of(&[Permission::Policies, Permission::MovePages]);
    let conditions = BenchConditions::read(&root, topology, &permissions);
    let binds = permissions.check(Permission::Policies).is_ok();
    let ground = Ground::new(root, topology, settings, binds, &watch);
    let (runs, interrupted) = std::thread::scope(|scope| {
        let work = scope.spawn(|| measure_runs(chosen, &ground));
        let mut interrupted = None;
        while !work.is_finished() {
            let woken = poll::readable(&[signals.as_fd()], Some(LOOK));
            if woken.is_err() {
                std::thread::sleep(LOOK);
            }
            if let Some(signal) = signals.next() {
                interrupted = Some(signal.number);
                watch.stop();
            }
            show(&BenchProgress { what: watch.text() });
        }
        (work.join().unwrap_or_default(), interrupted)
    });
    let count = runs.len() as u32;
    let mut benchmarks = in_one(runs);
    agreement::judge(&mut benchmarks);
    let complete = interrupted.is_none() && benchmarks.len() == chosen.len();
    (BenchResults { runs: count.max(1), ..whole(conditions, topology, benchmarks, complete) }, interrupted)
}

/// Results that were measured by other means than [`run`], with the conditions of this machine.
pub fn results_of(topology: &Topology, measured: BenchResult, complete: bool) -> BenchResults {
    let permissions = Permissions::own_of(&[Permission::Policies, Permission::MovePages]);
    let conditions = BenchConditions::read(&SysRoot::host(), topology, &permissions);
    whole(conditions, topology, vec![measured], complete)
}

fn whole(
    conditions: BenchConditions,
    topology: &Topology,
    benchmarks: Vec<BenchResult>,
    complete: bool,
) -> BenchResults {
    let machine_key = kept::machine_key(&conditions.processor, topology);
    let topology = Some(topology.clone());
    BenchResults { version: VERSION, machine_key, conditions, topology, benchmarks, runs: 1, complete }
}

/// Runs all benchmarks as often as the settings say. If the user ends a run, it counts only if it is the first.
fn measure_runs(chosen: &[&Benchmark], ground: &Ground<'_>) -> Vec<Vec<BenchResult>> {
    let (mut ended, runs) = (Vec::new(), ground.settings.runs());
    for run in 1..=runs {
        ground.watch.begin(run, runs);
        let results = measure(chosen, ground);
        if ground.is_stopped() && run > 1 {
            break;
        }
        ended.push(results);
        if ground.is_stopped() {
            break;
        }
    }
    ended
}

/// Merges the results that each benchmark had in all runs.
fn in_one(runs: Vec<Vec<BenchResult>>) -> Vec<BenchResult> {
    let count = runs.first().map_or(0, Vec::len);
    let of = |at: usize| {
        let each: Vec<BenchResult> = runs.iter().filter_map(|run| run.get(at).cloned()).collect();
        let mut result = runs::merged(&each);
        judge_spread(&mut result);
        result
    };
    (0..count).map(of).collect()
}

/// Runs one benchmark after the other, until the user ends the run.
fn measure(chosen: &[&Benchmark], ground: &Ground<'_>) -> Vec<BenchResult> {
    let mut results = Vec::new();
    for benchmark in chosen {
        if ground.is_stopped() {
            break;
        }
        let before = Noise::read(&ground.root, &ground.cpus);
        let mut result = BenchResult { name: benchmark.name.to_owned(), ..BenchResult::default() };
        ground.explain(&mut result);
        (benchmark.measure)(ground, &mut result);
        Noise::read(&ground.root, &ground.cpus).judge(before, &ground.cpus, &mut result);
        results.push(result);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_are_selected_by_name() {
        assert_eq!(select("all").unwrap_or_default().len(), BENCHMARKS.len());
        for benchmark in BENCHMARKS {
            assert_eq!(select(benchmark.name).unwrap_or_default().len(), 1);
        }
        let refused = select("speed").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("'speed'") && refused.contains("latency"), "{refused}");
    }

    #[test]
    fn a_stopped_run_measures_nothing() {
        let topology = numakit_topology::read(&SysRoot::host()).unwrap();
        let (settings, watch) = (BenchSettings::default(), Watch::default());
        watch.stop();
        let ground = Ground::new(SysRoot::host(), &topology, &settings, true, &watch);
        assert_eq!(measure(&select("all").unwrap_or_default(), &ground), []);
    }

    /// Stops at the start of the third run.
    fn third_time(ground: &Ground<'_>, result: &mut BenchResult) {
        if ground.watch.text().starts_with("run 3 of 5: ") {
            ground.watch.stop();
        }
        result.remarks.push("one".to_owned());
    }

    #[test]
    fn a_stop_in_a_later_run_keeps_the_runs_before() {
        let topology = numakit_topology::read(&SysRoot::host()).unwrap();
        let of = |runs| {
            let (settings, watch) = (BenchSettings { runs, ..BenchSettings::default() }, Watch::default());
            let ground = Ground::new(SysRoot::host(), &topology, &settings, true, &watch);
            let stops = Benchmark { name: "stops", about: "", measure: third_time };
            measure_runs(&[&stops], &ground)
        };
        let ended = of(Some(5));
        assert_eq!(ended.len(), 2);
        assert_eq!(in_one(ended)[0].remarks, ["one"]);
        assert_eq!((of(Some(2)).len(), of(None).len()), (2, 1));
    }
}
