//! Runs the program with an allocator, and gathers what was counted.

use crate::allocations::Counted;
use crate::allocations::report::{
    AllocatingProcess, AllocationRun, LifeRow, MallocTime, MemoryMoment, SizeRow, TouchTime,
};
use crate::allocations::series::MemorySeries;
use crate::allocations::sites::SiteNames;
use numakit_launch::preload::PreloadError;
use numakit_sys::allocation_counts::{AllocationCounts, CountFile, CountsError, LifeCount};
use numakit_sys::clock::{self, EndedUsage};
use numakit_sys::command::Running;
use numakit_sys::signal::{self, Signals};
use numakit_sys::{fault_cost, poll};
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The program cannot be started.
    #[error("{0}")]
    Start(io::Error),
    /// The libraries cannot be extracted.
    #[error(transparent)]
    Preload(#[from] PreloadError),
    /// There is no memory for the counts, or the program cannot be waited for.
    #[error("{what}: {error}")]
    System {
        /// What could not be done.
        what: &'static str,
        /// The reason.
        error: io::Error,
    },
}

/// Runs a program.
#[derive(Debug)]
pub struct Profiler {
    words: Vec<OsString>,
    every: u64,
    chains: bool,
    fault_ns: Option<u64>,
    names: SiteNames,
}

impl Profiler {
    /// A profiler of a program with its arguments. One block in `every` bytes is sampled, with its call chain if `chains`.
    pub fn new(words: &[OsString], every: u64, chains: bool) -> Self {
        let names = SiteNames::default();
        Self { words: words.to_vec(), every, chains, fault_ns: fault_cost::small_page(), names }
    }

    /// A run. The second value is whether a signal to this process ended it.
    pub fn run(
        &mut self,
        allocator: Counted,
        signals: &Signals,
    ) -> Result<(AllocationRun, bool), ProfileError> {
        let file = CountFile::create(self.every, self.chains)
            .map_err(|error| ProfileError::System { what: "cannot make the file of counts", error })?;
        let mut variables = allocator.variables(std::env::var_os("LD_PRELOAD").as_deref())?;
        let (name, value) = file.environment();
        variables.push((name.into(), value.into()));
        let (before, begin) = (clock::ended_children(), Instant::now());
        let mut running = Running::start_with(&self.words, &variables).map_err(ProfileError::Start)?;
        let mut series = MemorySeries::new();
        let (status, interrupted) = wait(&mut running, &file, &mut series, signals)
            .map_err(|error| ProfileError::System { what: "cannot wait for the program", error })?;
        let seconds = begin.elapsed().as_secs_f64();
        let used = difference(clock::ended_children(), before);
        let mut run =
            AllocationRun { allocator: Some(allocator), status, seconds, ..AllocationRun::default() };
        match file.read() {
            Ok(counts) => self.fill(&mut run, &counts, used, series.finish()),
            Err(error @ (CountsError::Damaged | CountsError::Size(_))) => run.missing.push(error.to_string()),
        }
        Ok((run, interrupted))
    }

    fn fill(
        &mut self,
        run: &mut AllocationRun,
        counts: &AllocationCounts,
        used: EndedUsage,
        (series, peak): (Vec<MemoryMoment>, MemoryMoment),
    ) {
        let totals = counts.totals;
        let seconds = |ns: u64| ns as f64 / 1e9;
        run.counting_seconds = seconds(totals.counting_ns);
        run.cpu_seconds = (seconds(used.cpu()) - run.counting_seconds).max(0.0);
        run.kernel_seconds = seconds(used.kernel);
        (run.threads, run.process_count) = (counts.threads, counts.process_count);
        (run.allocations, run.frees, run.failed) = (totals.allocations, totals.frees, totals.failed);
        (run.reallocs, run.zeroed, run.aligned) = (totals.reallocs, totals.zeroed, totals.aligned);
        run.requested = totals.requested;
        self.memory(run, counts, peak);
        run.malloc = malloc_time(run, seconds(totals.taking_ns), seconds(totals.giving_ns));
        let own = counts.own_faults;
        run.first_touch = first_touch(run, used.faults.saturating_sub(own), self.fault_ns);
        let size = |size: &numakit_sys::allocation_counts::SizeCount| SizeRow {
            from: size.from,
            to: size.to,
            blocks: size.blocks,
            bytes: size.bytes,
        };
        run.sizes = counts.sizes.iter().map(size).collect();
        run.lives_by_ns = counts.by_time.iter().map(life).collect();
        run.lives_by_bytes = counts.by_bytes.iter().map(life).collect();
        run.sites = self.names.chains(counts);
        run.series = series;
        run.missing.extend(missing(counts));
    }

    fn memory(&self, run: &mut AllocationRun, counts: &AllocationCounts, peak: MemoryMoment) {
        run.peak_resident = (peak.resident > 0).then_some(peak.resident);
        run.processes = counts
            .processes
            .iter()
            .map(|process| AllocatingProcess {
                pid: process.pid,
                parent: process.parent,
                allocated: process.allocated,
                peak_live: process.peak,
                live_at_end: process.live,
            })
            .collect();
        if counts.without_live > 0 || counts.totals.allocations == 0 {
            return;
        }
        run.usable = Some(counts.totals.usable);
        run.live_at_end = Some(counts.processes.iter().fold(0u64, |sum, one| sum.saturating_add(one.live)));
        let largest = counts.processes.iter().map(|process| process.peak).max().unwrap_or(0);
        run.peak_live_is_read = counts.processes.len() > 1;
        run.peak_live = Some(if run.peak_live_is_read { largest.max(peak.live) } else { largest });
    }
}

/// Waits for the end of the program, and reads memory meanwhile. A signal from another process is passed on to the program;
/// one from the terminal has reached it already. If the program goes on all the same, the second signal ends the waiting and
/// leaves the program alone.
fn wait(
    running: &mut Running,
    file: &CountFile,
    series: &mut MemorySeries,
    signals: &Signals,
) -> io::Result<(i32, bool)> {
    let mut interrupted = false;
    loop {
        poll::readable(&[signals.as_fd()], Some(series.pause()))?;
        series.read(|| file.processes());
        while let Some(signal) = signals.next() {
            if signal.number == signal::CHILD {
                continue;
            }
            if interrupted {
                return Ok((128 + signal.number, true));
            }
            if signal.from_process {
                running.signal(signal.number);
            }
            interrupted = true;
        }
        if let Some(status) = running.ended()? {
            return Ok((status, interrupted));
        }
    }
}

fn difference(after: EndedUsage, before: EndedUsage) -> EndedUsage {
    EndedUsage {
        user: after.user.saturating_sub(before.user),
        kernel: after.kernel.saturating_sub(before.kernel),
        faults: after.faults.saturating_sub(before.faults),
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| (part / whole).min(1.0))
}

fn malloc_time(run: &AllocationRun, allocating: f64, freeing: f64) -> MallocTime {
    let share = share(allocating + freeing, run.cpu_seconds).filter(|_| run.allocations > 0);
    MallocTime { allocating_seconds: allocating, freeing_seconds: freeing, share }
}

fn first_touch(run: &AllocationRun, faults: u64, fault_ns: Option<u64>) -> TouchTime {
    let seconds = fault_ns.map(|ns| (faults as f64 * ns as f64 / 1e9).min(run.cpu_seconds));
    let in_malloc = run.malloc.allocating_seconds + run.malloc.freeing_seconds;
    let share = seconds.and_then(|seconds| share(in_malloc + seconds, run.cpu_seconds));
    TouchTime { faults, fault_ns, seconds, share: share.filter(|_| run.allocations > 0) }
}

fn life(life: &LifeCount) -> LifeRow {
    LifeRow { from: life.from, to: life.to, blocks: life.blocks, bytes: life.bytes }
}

/// What the counts do not tell, and why.
fn missing(counts: &AllocationCounts) -> Vec<String> {
    let mut missing = Vec::new();
    let mut say = |count: u64, text: String| {
        if count > 0 {
            missing.push(text);
        }
    };
    let (lives, sites) = (counts.lost_lives, counts.lost_sites);
    say(lives, format!("the lives of {lives} sampled blocks are unknown: too many lived at a time"));
    say(sites, format!("the call chains of {sites} sampled blocks are unknown: there were too many chains"));
    let unwinder = counts.without_unwinder;
    say(
        unwinder,
        format!("{unwinder} processes have no libgcc_s.so.1: their chains are the caller of malloc only"),
    );
    let live = counts.without_live;
    say(
        live,
        format!("live memory is unknown: in {live} processes malloc_usable_size is not the allocator's"),
    );
    let unlisted = counts.process_count.saturating_sub(counts.processes.len() as u64);
    say(unlisted, format!("{unlisted} processes are counted together, and not listed"));
    missing
}
