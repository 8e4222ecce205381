//! Performance counters that behave like the kernel's without any hardware.
//!
//! Simulated are PMUs with few counters, groups that are larger or span PMUs, multiplexing, CPUs
//! that are offline or have no such PMU, PMUs that are removed, levels of
//! `kernel.perf_event_paranoid`, and the cost of a read from another package.
//!
//! ```
//! # use numakit_testing::counters::Script;
//! # use numakit_sys::{SysRoot, root::FileTree};
//! # use std::sync::Arc;
//! let script = Script::new();
//! script.pmu(17, 4, "0,28");
//! let root = SysRoot::of_tree(FileTree::new()).with_counters(Arc::new(script.clone()));
//! script.advance(1_000_000_000);
//! ```

mod multiplexing;

use multiplexing::Multiplexer;
use numakit_model::CpuSet;
use numakit_sys::clock;
use numakit_sys::perf::{Counters, Errno, EventGroup, PerfEvent, Times};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of events of a kind on a CPU per second.
pub type Rate = fn(u32, &PerfEvent) -> u64;

/// The script. Clones share it.
#[derive(Debug, Clone)]
pub struct Script(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    // The simulated time in ns; unused in real time.
    now: AtomicU64,
    real: bool,
    spent: AtomicU64,
    reads: AtomicU64,
    opens: AtomicU64,
}

#[derive(Debug)]
struct State {
    pmus: BTreeMap<u32, Pmu>,
    removed: BTreeMap<u32, Pmu>,
    offline: CpuSet,
    refused: HashMap<PerfEvent, Errno>,
    /// Level, and whether the process has the capability.
    paranoid: (i64, bool),
    rate: Rate,
    packages: Vec<CpuSet>,
    /// Duration of a read from the same package and from another, ns.
    costs: (u64, u64),
    /// Additional time per read of the groups of a CPU, ns.
    slow: HashMap<u32, u64>,
    /// By CPU and PMU.
    multiplexers: BTreeMap<(u32, u32), Arc<Mutex<Multiplexer>>>,
}

#[derive(Debug, Clone)]
struct Pmu {
    counters: usize,
    /// Empty: every CPU.
    cpus: CpuSet,
}

/// Measured for a group of 8 events: 1.9 us from the same package, 7.3 us from another.
pub const MEASURED: (u64, u64) = (1_900, 7_300);

thread_local! {
    /// A CPU of the package on which this thread runs.
    static CURRENT_CPU: Cell<u32> = const { Cell::new(0) };
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl Script {
    /// A kernel with software events and tracepoints, whose time changes only by [`Self::advance`].
    pub fn new() -> Self {
        Self::with_time(false)
    }

    /// The same with the real time.
    pub fn in_real_time() -> Self {
        Self::with_time(true)
    }

    fn with_time(real: bool) -> Self {
        let anywhere = Pmu { counters: usize::MAX, cpus: CpuSet::new() };
        let state = State {
            pmus: [PerfEvent::SOFTWARE, PerfEvent::TRACEPOINT].map(|kind| (kind, anywhere.clone())).into(),
            removed: BTreeMap::new(),
            offline: CpuSet::new(),
            refused: HashMap::new(),
            paranoid: (2, true),
            rate: |_, event| 1000 * (event.config[0] % 1000 + 1),
            packages: Vec::new(),
            costs: (0, 0),
            slow: HashMap::new(),
            multiplexers: BTreeMap::new(),
        };
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            now: AtomicU64::new(1),
            real,
            spent: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            opens: AtomicU64::new(0),
        }))
    }

    /// Adds a PMU with this many counters, whose events are opened on these CPUs (a list as the
    /// kernel writes it; empty: on any).
    pub fn pmu(&self, kind: u32, counters: usize, cpus: &str) -> &Self {
        let cpus = CpuSet::parse_list(cpus).unwrap_or_default();
        self.state().pmus.insert(kind, Pmu { counters, cpus });
        self
    }

    /// Sets the rates of events.
    pub fn rates(&self, rate: Rate) -> &Self {
        self.state().rate = rate;
        self
    }

    /// Sets `kernel.perf_event_paranoid`, and whether the process has CAP_PERFMON. The default
    /// permits everything.
    pub fn paranoid(&self, level: i64, capable: bool) -> &Self {
        self.state().paranoid = (level, capable);
        self
    }

    /// Makes opening this event fail.
    pub fn refuse(&self, event: PerfEvent, errno: Errno) -> &Self {
        self.state().refused.insert(event, errno);
        self
    }

    /// Sets the duration of a read in ns, for a thread on the same package as the group's CPU, and
    /// for any other. A thread that is not pinned runs on CPU 0.
    pub fn costs(&self, packages: &[CpuSet], costs: (u64, u64)) -> &Self {
        let mut state = self.state();
        (state.packages, state.costs) = (packages.to_vec(), costs);
        drop(state);
        self
    }

    /// Makes every read of a group of this CPU take longer by `ns`.
    pub fn slow(&self, cpu: u32, ns: u64) -> &Self {
        self.state().slow.insert(cpu, ns);
        self
    }

    /// Advances the time.
    pub fn advance(&self, ns: u64) {
        self.0.now.fetch_add(ns, Ordering::AcqRel);
    }

    /// Takes a CPU offline. Reads of its groups fail, and its single events stop counting, also
    /// when the CPU is online again.
    pub fn offline(&self, cpu: u32) {
        self.state().offline.insert(cpu);
        self.detach(|(on, _)| *on == cpu, Multiplexer::stop);
    }

    /// Takes a CPU online.
    pub fn online(&self, cpu: u32) {
        self.state().offline.remove(cpu);
    }

    /// Removes a PMU, as unloading its driver does: reads of its groups fail.
    pub fn remove(&self, kind: u32) {
        let mut state = self.state();
        if let Some(pmu) = state.pmus.remove(&kind) {
            state.removed.insert(kind, pmu);
        }
        drop(state);
        self.detach(|(_, of)| *of == kind, Multiplexer::revoke);
    }

    /// Restores a removed PMU.
    pub fn restore(&self, kind: u32) {
        let mut state = self.state();
        if let Some(pmu) = state.removed.remove(&kind) {
            state.pmus.insert(kind, pmu);
        }
    }

    /// The simulated duration of all reads so far, in ns.
    pub fn spent(&self) -> u64 {
        self.0.spent.load(Ordering::Relaxed)
    }

    /// Number of reads of groups so far.
    pub fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// Number of opened groups so far.
    pub fn opens(&self) -> u64 {
        self.0.opens.load(Ordering::Relaxed)
    }

    /// The number of events of each open group, by CPU and PMU.
    pub fn open_groups(&self) -> Vec<((u32, u32), Vec<usize>)> {
        let state = self.state();
        let sizes = state.multiplexers.iter().map(|(key, one)| (*key, lock(one).sizes()));
        sizes.filter(|(_, sizes)| !sizes.is_empty()).collect()
    }

    fn now(&self) -> u64 {
        if self.0.real { clock::monotonic() } else { self.0.now.load(Ordering::Acquire) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    fn detach(&self, which: impl Fn(&(u32, u32)) -> bool, end: fn(&mut Multiplexer, u64)) {
        let now = self.now();
        self.state().multiplexers.retain(|key, multiplexer| {
            let ends = which(key);
            if ends {
                end(&mut lock(multiplexer), now);
            }
            !ends
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_software(event: &PerfEvent) -> bool {
    matches!(event.pmu, PerfEvent::SOFTWARE | PerfEvent::TRACEPOINT)
}

impl State {
    /// Whether one event can be opened on a CPU.
    fn check(&self, cpu: u32, event: &PerfEvent) -> Result<(), Errno> {
        if let Some(errno) = self.refused.get(event) {
            return Err(*errno);
        }
        let (level, capable) = self.paranoid;
        if !capable && level > 0 {
            return Err(Errno::Denied);
        }
        let pmu = self.pmus.get(&event.pmu).ok_or(Errno::NoSuchPmu)?;
        if !pmu.cpus.is_empty() && !pmu.cpus.contains(cpu) {
            return Err(Errno::Invalid);
        }
        if self.offline.contains(cpu) { Err(Errno::NoDevice) } else { Ok(()) }
    }

    /// The number of events that form a group, from the first on, and the PMU of its counters.
    fn group(&self, cpu: u32, events: &[PerfEvent]) -> Result<(usize, u32), Errno> {
        let first = events.first().ok_or(Errno::Invalid)?;
        self.check(cpu, first)?;
        let mut pmu = first.pmu;
        let mut needed = usize::from(!is_software(first));
        for (taken, event) in events.iter().enumerate().skip(1) {
            if self.check(cpu, event).is_err() {
                return Ok((taken, pmu));
            }
            if !is_software(event) {
                let counters = self.pmus.get(&event.pmu).map_or(0, |p| p.counters);
                let foreign = needed > 0 && event.pmu != pmu;
                if foreign || needed == counters {
                    return Ok((taken, pmu));
                }
                (pmu, needed) = (event.pmu, needed + 1);
            }
        }
        Ok((events.len(), pmu))
    }

    fn cost(&self, cpu: u32) -> (CpuSet, (u64, u64)) {
        let near = self.packages.iter().find(|p| p.contains(cpu));
        (near.cloned().unwrap_or_default(), self.costs)
    }
}

impl Counters for Script {
    fn open(&self, cpu: u32, events: &[PerfEvent]) -> io::Result<(Box<dyn EventGroup>, usize)> {
        let mut state = self.state();
        let (taken, pmu) = state.group(cpu, events).map_err(Errno::error)?;
        let counters = state.pmus.get(&pmu).map_or(0, |p| p.counters);
        let rates = events[..taken].iter().map(|e| (state.rate)(cpu, e)).collect();
        let needed = events[..taken].iter().filter(|e| !is_software(e)).count();
        let (near, costs) = state.cost(cpu);
        let multiplexer = state.multiplexers.entry((cpu, pmu)).or_insert_with(|| Multiplexer::of(counters));
        let (multiplexer, now) = (Arc::clone(multiplexer), self.now());
        let id = lock(&multiplexer).join(now, taken, needed);
        self.0.opens.fetch_add(1, Ordering::Relaxed);
        Ok((Box::new(Scripted { script: self.clone(), cpu, multiplexer, id, rates, near, costs }), taken))
    }

    fn pin_to(&self, cpus: &CpuSet) -> io::Result<()> {
        CURRENT_CPU.set(cpus.first().unwrap_or(0));
        Ok(())
    }
}

/// An open group.
#[derive(Debug)]
struct Scripted {
    script: Script,
    cpu: u32,
    multiplexer: Arc<Mutex<Multiplexer>>,
    id: u64,
    rates: Vec<u64>,
    near: CpuSet,
    costs: (u64, u64),
}

impl EventGroup for Scripted {
    fn read(&mut self, counts: &mut [u64]) -> io::Result<Times> {
        let started = clock::monotonic();
        let inner = &self.script.0;
        let from_here = self.near.is_empty() || self.near.contains(CURRENT_CPU.get());
        let cost = if from_here { self.costs.0 } else { self.costs.1 };
        inner.reads.fetch_add(1, Ordering::Relaxed);
        inner.spent.fetch_add(cost, Ordering::Relaxed);
        let extra = self.script.state().slow.get(&self.cpu).copied().unwrap_or(0);
        let times = lock(&self.multiplexer).read(self.id, self.script.now());
        if extra > 0 {
            std::thread::sleep(Duration::from_nanos(extra));
        }
        while clock::monotonic() < started + cost {
            std::hint::spin_loop();
        }
        let times = times.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        for (count, rate) in counts.iter_mut().zip(&self.rates) {
            *count = (u128::from(*rate) * u128::from(times.running) / 1_000_000_000) as u64;
        }
        Ok(times)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        lock(&self.multiplexer).leave(self.id, self.script.now());
    }
}

#[cfg(test)]
mod tests;
