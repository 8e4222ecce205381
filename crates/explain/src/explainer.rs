//! One observation: takes samples until the program ends, and says where its time went.

mod answer;
mod cures;
mod names;
mod objects;
mod waiting;

use crate::caches::CacheSizes;
use crate::collector::{Collector, ObservedProcesses};
use crate::cpu_waits::CpuWaitWatch;
use crate::file_use::FileUses;
use crate::hint_windows::{HintFaultError, HintWindows};
use crate::huge_pages::HugePageShares;
use crate::java::JavaWatch;
use crate::kernel_time::KernelTime;
use crate::memory_policies::MemoryPolicies;
use crate::memory_use::MemoryUses;
use crate::pace::SamplePace;
use crate::processes::Processes;
use crate::projection::ProjectedMachine;
use crate::python::watch::PythonWatch;
use crate::report::{SampledObject, UNKNOWN_ARGUMENTS};
use crate::residence::Residence;
use crate::tally::{ProcessTotals, Tally};
use crate::threads::ThreadAccounts;
use crate::traffic::Traffic;
use crate::waits::{WaitScene, WaitWatch};
use numakit_model::CpuSet;
use numakit_model::topology::Topology;
use numakit_processes::start_line;
use numakit_sampling::calibration::MachineKind;
use numakit_sampling::{Method, MethodError, MethodEvent};
use numakit_sys::allocation_log::AllocationLog;
use numakit_sys::clock::EndedUsage;
use numakit_sys::{SysRoot, clock};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// Threads are looked at this often, and at most for a twentieth of the time.
const VISIT: Duration = Duration::from_millis(100);
const VISIT_SHARE: u32 = 19;
/// The clock is read again after this many samples.
const TIMED: u64 = 16;
/// Nodes of pages are asked for this often, in ns, while more samples come than are looked at: a process may end meanwhile.
const LOCATED: u64 = 5_000_000;
/// Bytes of code that an observer for series keeps, and more of them for each CPU.
const CODE: (usize, usize) = (3 << 20, 32 << 10);

/// What is observed, for the report.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The command line, or the process.
    pub program: String,
    /// How samples are taken.
    pub method: String,
    /// Why a better method is closed.
    pub method_reason: Option<String>,
    /// Samples for each second of CPU time of a thread.
    pub frequency: u32,
    /// The running processes that it was attached to; none: it was started for the observation.
    pub attached: Vec<u32>,
    /// The file of the program that was started, if one was: a program may end before anybody has looked at it.
    pub file: Option<PathBuf>,
}

/// A running observation.
#[derive(Debug)]
pub struct Explainer {
    method: Box<dyn Method>,
    observed: Observed,
    collector: Collector,
    processes: Processes,
    accounts: ThreadAccounts,
    topology: Topology,
    machine: MachineKind,
    started: u64,
    visited: u64,
    pause: u64,
    late: u64,
    /// Samples that the method delivered.
    delivered: u64,
    pace: SamplePace,
    /// Whether names of code and objects that have ended are kept, as a report needs them.
    keeps_ended: bool,
    huge_pages: HugePageShares,
    policies: MemoryPolicies,
    residence: Residence,
    /// The machine on which the run is to be projected, if the user asked for that.
    projected: Option<ProjectedMachine>,
    /// The windows in which hint faults are taken, if the user asked for hint faults.
    hints: Option<HintWindows>,
    /// The command line that starts the program, read while the program ran; `None` if it is not known.
    start: Option<String>,
    /// The processes at the begin, and those that have ended.
    first: Vec<u32>,
    ended: HashSet<u32>,
    /// The log of what the program allocates, if the program writes one.
    log: Option<AllocationLog>,
    /// What children used that had ended before the observation began.
    ended_before: EndedUsage,
    /// What keeps threads from running. Series do not tell that.
    cpu_waits: Option<CpuWaitWatch>,
    /// What threads wait for that do not run. Series do not tell that either.
    waits: Option<WaitWatch>,
    /// What the kernel did for which code. Series do not tell that either.
    kernel: KernelTime,
    /// What Java machines tell of themselves.
    java: JavaWatch,
    /// Whether processes of Node.js write maps for this observation.
    writes_maps: bool,
    /// What running threads do in terms of Python. Nor this.
    python: Option<PythonWatch>,
}

impl Explainer {
    /// Observes what the method samples: these processes and those that they start.
    pub fn new(method: Box<dyn Method>, observed: Observed, processes: &[u32], topology: Topology) -> Self {
        let mut explainer = Self::open(method, observed, topology);
        processes.iter().for_each(|process| explainer.processes.mapped(*process));
        explainer.first = processes.to_vec();
        let watch = |first: &u32| CpuWaitWatch::new(&SysRoot::host(), *first, explainer.started);
        explainer.cpu_waits = processes.first().map(watch);
        explainer.waits = Some(WaitWatch::new(&SysRoot::host()));
        explainer.python = Some(PythonWatch::new(&SysRoot::host()));
        explainer.visit();
        explainer
    }

    /// Also reads the log of what the program allocates.
    pub fn with_log(mut self, log: Option<AllocationLog>) -> Self {
        log.iter().for_each(|log| self.processes.threshold = log.threshold());
        Self { log, ..self }
    }

    /// Also asks Java machines for the names of their code and for what their threads do.
    pub fn asking_java(self) -> Self {
        Self { java: JavaWatch::new(true), ..self }
    }

    /// Removes the maps that processes of Node.js write, at the end of the observation, if they write them for it.
    pub fn removing_maps(self, writes_maps: bool) -> Self {
        Self { writes_maps, ..self }
    }

    /// Also answers what the run would be on this other machine.
    pub fn projected_on(self, projected: Option<ProjectedMachine>) -> Self {
        Self { projected, ..self }
    }

    /// Also takes hint faults in these windows.
    pub fn with_hint_faults(self, hints: Option<HintWindows>) -> Self {
        Self { hints, ..self }
    }

    /// Makes an observer for series, of these processes with those that they start, or of all that run if there are none. It reads no
    /// accounts of threads, since series have no share of all time, and forgets what has ended, since they may last for months.
    pub fn for_series(method: Box<dyn Method>, processes: &[u32], topology: Topology) -> Self {
        let mut explainer = Self::open(method, Observed::default(), topology);
        explainer.processes = explainer.processes.without_variables();
        processes.iter().for_each(|process| explainer.processes.mapped(*process));
        let cpus = explainer.topology.online.len();
        let collector = explainer.collector.without_lists().keeping_code(CODE.0 + cpus * CODE.1);
        Self { collector, pause: u64::MAX, keeps_ended: false, ..explainer }
    }

    /// Makes the observer look at so few samples that it takes at most this many ten-thousandths of the time of one CPU.
    pub fn within_share(self, limit: u64) -> Self {
        Self { pace: SamplePace::of_few(self.started, limit), ..self }
    }

    /// Makes an observer of nothing but the use of files, by these processes with those that they start.
    pub fn for_files(
        method: Box<dyn Method>,
        processes: &[u32],
        topology: Topology,
        files: FileUses,
    ) -> Self {
        let explainer = Self::for_series(method, processes, topology);
        let collector = explainer.collector.for_files(files);
        let pace = SamplePace::of_one_cpu(explainer.started);
        Self { collector, pace, ..explainer }
    }

    /// Makes an observer of which memory threads use, by these processes with those that they start.
    pub fn for_moves(method: Box<dyn Method>, processes: &[u32], topology: Topology) -> Self {
        let mut explainer = Self::open(method, Observed::default(), topology);
        processes.iter().for_each(|process| explainer.processes.mapped(*process));
        let collector = explainer.collector.for_uses();
        let pace = SamplePace::of_one_cpu(explainer.started);
        Self { collector, pace, pause: u64::MAX, keeps_ended: false, ..explainer }
    }

    /// The use of memory, and the objects by their places; `None` unless [`Self::for_moves`] made this observer.
    pub fn into_memory_uses(mut self) -> Option<(MemoryUses, Vec<SampledObject>)> {
        let objects = self.collector.sampled_objects(&mut self.processes);
        Some((self.collector.uses?, objects))
    }

    /// The use of files so far; `None` unless [`Self::for_files`] made this observer.
    pub fn file_uses(&self) -> Option<&FileUses> {
        self.collector.files.as_ref()
    }

    fn open(method: Box<dyn Method>, observed: Observed, topology: Topology) -> Self {
        let root = SysRoot::host();
        let started = clock::monotonic();
        let residence = Residence::new(&root, memory_nodes(&topology).len() > 1);
        let pace = SamplePace::new(started, topology.cores.iter().map(|core| core.cpus.len()).sum());
        let start = observed
            .attached
            .first()
            .and_then(|process| start_line(&SysRoot::host(), *process, UNKNOWN_ARGUMENTS));
        Self {
            start,
            collector: Collector::new(method.landing()),
            accounts: ThreadAccounts::new(&root, observed.attached.is_empty()),
            processes: Processes::new(&topology),
            method,
            observed,
            machine: MachineKind::of(&root),
            started,
            visited: started,
            pause: 0,
            late: 0,
            delivered: 0,
            pace,
            keeps_ended: true,
            huge_pages: HugePageShares::new(started),
            policies: MemoryPolicies::new(memory_nodes(&topology), started),
            residence,
            topology,
            projected: None,
            hints: None,
            first: Vec::new(),
            ended: HashSet::new(),
            log: None,
            ended_before: clock::ended_children(),
            cpu_waits: None,
            waits: None,
            kernel: KernelTime::default(),
            java: JavaWatch::new(false),
            writes_maps: false,
            python: None,
        }
    }

    /// Also observes these processes, which run already, with those that descend from them. A process that is observed already
    /// is left as it is, and one that has ended meanwhile is left out.
    pub fn attach(&mut self, processes: &[u32]) -> Result<(), MethodError> {
        for process in self.method.attach(processes)? {
            self.accounts.join(process);
            self.processes.mapped(process);
        }
        Ok(())
    }

    /// Takes the samples since the last call. Call it every few milliseconds: the registers of a sample belong to what
    /// memory contains at that moment.
    pub fn drain(&mut self) -> Result<(), MethodError> {
        let Self {
            method,
            collector,
            processes,
            residence,
            accounts,
            late,
            pace,
            keeps_ended,
            kernel,
            python,
            ..
        } = self;
        let mut ended = Vec::new();
        if let Some(log) = &mut self.log {
            log.drain(&mut |record| processes.log(record));
        }
        // While hint faults are taken, the kernel moves the pages that it marks: samples of that time would find them near.
        let is_disturbed = self.hints.as_ref().is_some_and(HintWindows::is_open);
        let (mut from, mut samples) = (clock::monotonic(), 0u64);
        let mut located = from;
        let result = method.drain(&mut |event| match event {
            // What 'numa run' does beside the program is not the program's.
            MethodEvent::Sample(sample) if processes.is_launcher(sample.process) => {}
            MethodEvent::Sample(sample) => {
                // Series have no accounts.
                if *keeps_ended {
                    let thread = (sample.process, sample.thread);
                    accounts.sampled(thread, sample.time, sample.in_kernel, sample.weight);
                    kernel.take(sample, processes);
                }
                python.iter_mut().for_each(|watch| watch.sampled(sample));
                collector.touch_sampled(sample, processes);
                if sample.in_kernel || is_disturbed {
                    return;
                }
                collector.take(sample, processes);
                *late += u64::from(processes.has_ended(sample.process));
                samples += 1;
                // While more samples come than are looked at, the ring is never empty.
                if samples.is_multiple_of(TIMED) {
                    let now = clock::monotonic();
                    pace.worked(from, now).into_iter().for_each(|each| collector.set_pace(each));
                    from = now;
                    if now >= located + LOCATED {
                        collector.locate(processes);
                        located = clock::monotonic();
                    }
                }
            }
            other => take_news(other, collector, processes, residence, &mut ended),
        });
        // What threads do is nearest to their samples now.
        python.iter_mut().for_each(|watch| watch.visit(processes));
        self.collector.locate(&mut self.processes);
        self.take_hint_faults();
        self.note_ended(&ended);
        let end = clock::monotonic();
        self.pace.worked(from, end).into_iter().for_each(|each| self.collector.set_pace(each));
        if end.saturating_sub(self.visited) >= self.pause {
            self.visit();
            self.take_names(false);
        }
        self.look_at_waits();
        result.map(|delivered| self.delivered += delivered)
    }

    /// Looks at what threads wait for, if it is time for that.
    fn look_at_waits(&mut self) {
        let Self { waits: Some(waits), accounts, collector, processes, java, .. } = self else { return };
        waits.visit(&mut WaitScene { accounts, collector, processes, java });
    }

    /// Keeps what these processes and threads had, or forgets it.
    fn note_ended(&mut self, ended: &[(u32, u32)]) {
        for &(process, thread) in ended {
            if !self.keeps_ended {
                self.forget_thread(process, thread);
            } else if process == thread {
                self.ended.insert(process);
            }
        }
    }

    /// Forgets a thread that has ended, and with the first one its process.
    fn forget_thread(&mut self, process: u32, thread: u32) {
        self.collector.forget_thread(process, thread, &mut self.processes);
        if process == thread {
            self.processes.forget(process);
        }
    }

    /// Takes the hint faults since the last call.
    fn take_hint_faults(&mut self) {
        let Self { hints: Some(hints), collector, processes, .. } = self else { return };
        hints.drain(&mut |used| collector.object_at(used.process, used.address, used.time, processes));
    }

    /// Switches NUMA balancing on or off when it is time for that, if hint faults are asked for.
    pub fn hint(&mut self) -> Result<(), HintFaultError> {
        self.take_hint_faults();
        let processes = self.processes.numbers();
        self.hints.as_mut().map_or(Ok(()), |hints| hints.visit(&processes, clock::monotonic()))
    }

    /// Moves the observations since the last call into sums.
    pub fn add_to(&mut self, tally: &mut Tally) {
        let new = std::mem::take(&mut self.collector.observations);
        tally.add(new, self.caches());
    }

    /// The sums of each process since the last call, of a tally that has them.
    pub fn take_processes(&self, tally: &mut Tally) -> Vec<(u32, ProcessTotals)> {
        let numbered = |(place, totals)| Some((self.processes.number_at(place)?, totals));
        tally.take_processes().into_iter().filter_map(numbered).collect()
    }

    /// The caches of each of the threads that were sampled, of which no more can be busy than there are CPUs.
    fn caches(&self) -> CacheSizes {
        let threads = self.collector.threads().min(self.topology.online.len());
        CacheSizes::of(&self.topology, threads, self.machine.is_virtual())
    }

    /// The traffic so far; `None` where samples tell time, which says more.
    pub fn traffic(&self) -> Option<Traffic> {
        self.collector.traffic(self.caches())
    }

    /// Samples that the method delivered, and those that it lost.
    pub fn delivered_and_lost(&self) -> (u64, u64) {
        (self.delivered, self.method.losses().total())
    }

    /// Samples that were lost or dropped.
    pub fn missing(&self) -> u64 {
        self.method.losses().total() + self.collector.thinned + self.late
    }

    /// Reads the accounts of the threads.
    pub fn visit(&mut self) {
        let start = clock::monotonic();
        let processes = self.processes.numbers();
        self.accounts.visit(&processes, start);
        let end = clock::monotonic();
        self.huge_pages.visit(&SysRoot::host(), &processes, start);
        self.policies.visit(&SysRoot::host(), &processes, start);
        self.cpu_waits.iter_mut().for_each(|watch| watch.visit(&processes, start));
        // While the kernel moves pages, their nodes are not those of the rest of the run.
        if !self.hints.as_ref().is_some_and(HintWindows::is_open) {
            self.residence.visit(&processes, start);
        }
        // All others than the accounts bound their own time: a look at large memory is no reason to miss the end of a thread.
        self.visited = clock::monotonic();
        self.pause = (VISIT.as_nanos() as u64).max((end - start) * u64::from(VISIT_SHARE));
    }
}

/// Notes what a method tells beside samples. Threads that have ended are added to `ended`.
fn take_news(
    event: MethodEvent<'_>,
    collector: &mut Collector,
    processes: &mut Processes,
    residence: &mut Residence,
    ended: &mut Vec<(u32, u32)>,
) {
    match event {
        MethodEvent::Fault(fault) => {
            let by = collector.touch(fault, processes);
            residence.touched.add(fault.process, fault.address, by);
        }
        MethodEvent::Touched(touch) => {
            let node = touch.cpu.and_then(|cpu| processes.node_of_cpu(cpu));
            residence.touched.add_touch(touch.process, touch.address, touch.thread, node);
        }
        MethodEvent::Executed { process, time } => {
            collector.forget(process, processes);
            residence.touched.forget(process);
            processes.executed(process, time);
        }
        MethodEvent::Mapped { process } => processes.mapped(process),
        MethodEvent::Ended { process, thread } => {
            if process == thread {
                processes.ended(process);
            }
            ended.push((process, thread));
        }
        // One that only sleeps may never have a sample.
        MethodEvent::Started { process, thread } if process == thread => _ = processes.place(process),
        MethodEvent::Sample(_) | MethodEvent::Started { .. } => {}
    }
}

fn memory_nodes(topology: &Topology) -> CpuSet {
    topology.nodes.iter().filter(|node| node.memory_kb != Some(0)).map(|node| node.os_index).collect()
}
