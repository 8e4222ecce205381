//! One move: observe, decide, write down what is there, bind threads, move pages, observe again.

use crate::cores::{CoreChoice, Decided};
use crate::cured::cured_processes;
use crate::error::{ESRCH, MoveError, of_process};
use crate::observed::{MoveObservation, observe};
use crate::recent::{PAUSE, Recent};
use crate::record::{MoveRecord, PageRange, ThreadMask};
use crate::report::{MoveReport, RemoteSamples, StoppedBy};
use crate::threads::{BusyThread, FreeCore, ThreadDecision, ThreadReason, plan};
use numakit_cure::Cure;
use numakit_model::{CpuSet, Topology};
use numakit_placement::PlacementRequest;
use numakit_processes::ChosenProcesses;
use numakit_sys::balancing::BalancingFiles;
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::sched::set_affinity_of;
use numakit_sys::signal::{self, Signals};
use numakit_sys::{SysRoot, clock, poll};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Files are named that have this number and this part of the remote samples.
const MIN_FILE: u64 = 20;
const FILES: f64 = 0.1;

/// What is wanted.
#[derive(Debug, Clone)]
pub struct MoveSettings {
    /// Threads go to cores.
    pub threads: bool,
    /// Pages go to threads.
    pub pages: bool,
    /// How long is observed.
    pub time: Duration,
    /// Bytes of pages in a second, at most.
    pub rate: u64,
    /// Only these nodes, CPUs and so on.
    pub request: PlacementRequest,
    /// Says which nodes variables get, before samples do.
    pub cure: Option<Cure>,
    /// Decide, and change nothing.
    pub dry_run: bool,
}

/// What ended watching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// A signal.
    Signal,
    /// The processes have ended.
    Ended,
}

/// Moves processes, once or again and again.
#[derive(Debug)]
pub struct MoveSession<'a> {
    pub(crate) root: &'a SysRoot,
    pub(crate) chosen: &'a ChosenProcesses,
    pub(crate) settings: MoveSettings,
    pub(crate) topology: Topology,
    pub(crate) signals: Signals,
    pub(crate) records: BTreeMap<u32, MoveRecord>,
    pub(crate) recent: Recent,
}

/// What was decided and is to be done.
pub(crate) struct Decisions {
    pub(crate) threads: Vec<(ThreadDecision, CpuSet)>,
    cores: Decided,
    /// The pages of each part, with its process.
    pub(crate) pages: Vec<(u32, Vec<PageRange>)>,
}

impl<'a> MoveSession<'a> {
    /// Prepares moving these processes. Must be called before other threads exist.
    pub fn new(
        root: &'a SysRoot,
        chosen: &'a ChosenProcesses,
        settings: MoveSettings,
    ) -> Result<Self, MoveError> {
        let system = |what| move |error| MoveError::System { what, error };
        let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
            .map_err(system("cannot receive signals"))?;
        let mut session = Self {
            root,
            chosen,
            settings,
            topology: Topology::default(),
            signals,
            records: BTreeMap::new(),
            recent: Recent::default(),
        };
        session.check()?;
        session.read_machine()?;
        // What cannot be had is said before the user waits for an observation.
        if let Some(cure) = &session.settings.cure {
            cured_processes(root, cure, &session.processes())?;
        }
        if session.settings.threads {
            session.choose_cores(true, |_| Vec::new())?;
        }
        Ok(session)
    }

    /// Moves once.
    pub fn once(&mut self) -> Result<MoveReport, MoveError> {
        let observed = observe(self.chosen, &self.topology, self.settings.time)?;
        let (threads, pages) = (self.settings.threads, self.settings.pages);
        self.act(&observed, (threads, pages), self.settings.time)
    }

    /// Decides by an observation of this length, and does it. Afterwards observes as long again.
    pub(crate) fn act(
        &mut self,
        observed: &MoveObservation,
        (threads, pages): (bool, bool),
        time: Duration,
    ) -> Result<MoveReport, MoveError> {
        self.read_machine()?;
        let mut report = self.report(observed, time);
        report.stopped = observed.interrupted.then_some(StoppedBy::Signal);
        if report.too_few || observed.interrupted {
            return Ok(report);
        }
        self.load_records()?;
        let pages = pages && report.nodes > 1;
        let decisions = self.decide(observed, threads, pages, &mut report)?;
        if threads && pages {
            self.check_room(&decisions, &report)?;
        }
        if self.settings.dry_run || !report.changes() {
            return Ok(report);
        }
        self.write_down(&decisions)?;
        self.bind(&decisions, &mut report)?;
        if let Some(reservation) = decisions.cores.reservation {
            reservation.release();
        }
        self.move_parts(&decisions.pages, &mut report)?;
        report.forgotten = self.records.values().map(|record| record.forgotten).sum();
        if report.stopped.is_none() {
            let after = observe(self.chosen, &self.topology, time)?;
            report.after = after.is_enough().then(|| remote(&after));
            report.stopped = after.interrupted.then_some(StoppedBy::Signal);
        }
        Ok(report)
    }

    /// An error if nothing can be observed.
    fn check(&self) -> Result<(), MoveError> {
        for &process in self.chosen.numbers() {
            let dir = TaskDir::of(self.root, process);
            let stat = dir.stat().map_err(|_| MoveError::NoProcess(process))?;
            if stat.stopped {
                let tracer = dir.status().ok().and_then(|status| status.field("TracerPid")?.parse().ok());
                return Err(match tracer.filter(|tracer| *tracer != 0) {
                    Some(tracer) => MoveError::Traced { process, tracer },
                    None => MoveError::Stopped(process),
                });
            }
        }
        Ok(())
    }

    fn read_machine(&mut self) -> Result<(), MoveError> {
        let read = numakit_topology::read_for_placement(self.root, false);
        let failed = |error: String| MoveError::System {
            what: "cannot read the topology",
            error: io::Error::other(error),
        };
        self.topology = read.map_err(|error| failed(error.to_string()))?;
        if let Some(process) = self.chosen.numbers().iter().next() {
            numakit_topology::allow_as(&mut self.topology, self.root, *process);
        }
        self.recent.look(clock::monotonic());
        Ok(())
    }

    fn report(&self, observed: &MoveObservation, time: Duration) -> MoveReport {
        let before = remote(observed);
        let mut files = observed.remote_files(self.root);
        files.retain(|(_, samples)| *samples >= MIN_FILE && *samples as f64 >= FILES * before.remote as f64);
        let has_memory = |node: &&numakit_model::topology::Node| node.memory_kb != Some(0);
        MoveReport {
            dry_run: self.settings.dry_run,
            processes: self.processes(),
            nodes: self.topology.nodes.iter().filter(has_memory).count(),
            samples: observed.samples(),
            too_few: !observed.is_enough() && self.settings.cure.is_none(),
            observed: time,
            before,
            files,
            balancing: BalancingFiles::default().is_on() == Some(true),
            ..MoveReport::default()
        }
    }

    /// The chosen processes with those that descend from them.
    pub(crate) fn processes(&self) -> Vec<u32> {
        tree::families(self.root, self.chosen.numbers())
    }

    /// Loads the records of earlier moves.
    fn load_records(&mut self) -> Result<(), MoveError> {
        for process in self.processes() {
            if self.records.contains_key(&process) {
                continue;
            }
            if let Some(record) = MoveRecord::load(process)? {
                if clock::monotonic() < record.moved.saturating_add(PAUSE) {
                    let ranges = record.pages.iter().map(|pages| pages.start..pages.end);
                    ranges.for_each(|range| self.recent.moved_at(process, &range, record.moved));
                }
                self.records.insert(process, record);
            }
        }
        Ok(())
    }

    fn decide(
        &self,
        observed: &MoveObservation,
        threads: bool,
        pages: bool,
        report: &mut MoveReport,
    ) -> Result<Decisions, MoveError> {
        let (busy, places) = observed.busy_threads(self.root, &self.topology, &self.records);
        let mut cores = Decided::default();
        let mut decided: Vec<ThreadDecision> = busy.iter().map(left_where_it_is).collect();
        if threads && observed.is_enough() {
            cores = self.choose_cores(self.settings.dry_run, |free| plan(&busy, free, pages))?;
            decided = std::mem::take(&mut cores.threads);
            report.warnings = std::mem::take(&mut cores.warnings);
            report.threads.clone_from(&decided);
        }
        let of_parts = match pages {
            true => self.choose_pages(observed, &decided, &places, report)?,
            false => Vec::new(),
        };
        let masks = busy.into_iter().map(|thread| thread.mask);
        let decisions =
            Decisions { threads: decided.into_iter().zip(masks).collect(), cores, pages: of_parts };
        self.keep_reserves(&decisions, report);
        Ok(decisions)
    }

    fn choose_cores(
        &self,
        dry_run: bool,
        decide: impl Fn(&[FreeCore]) -> Vec<ThreadDecision>,
    ) -> Result<Decided, MoveError> {
        let processes = self.processes();
        let (root, topology, request) = (self.root, &self.topology, &self.settings.request);
        CoreChoice { root, topology, request, processes: &processes }.decide(dry_run, decide)
    }

    /// Writes the records, before anything changes.
    fn write_down(&mut self, decisions: &Decisions) -> Result<(), MoveError> {
        let now = clock::monotonic();
        for process in self.processes() {
            let changed: Vec<&(ThreadDecision, CpuSet)> =
                decisions.threads.iter().filter(|(of, _)| of.process == process && of.changes).collect();
            let pages: Vec<PageRange> = decisions.of_process(process).copied().collect();
            if changed.is_empty() && pages.is_empty() {
                continue;
            }
            let known = self.records.remove(&process);
            let Some(mut record) = known.or_else(|| MoveRecord::of(process)) else { continue };
            for (decision, mask) in changed {
                let stat = TaskDir::of(self.root, process).thread(decision.thread).stat();
                if let Ok(stat) = stat {
                    let (thread, cpus) = (decision.thread, mask.clone());
                    record.add_thread(ThreadMask { thread, start: stat.start, cpus });
                }
            }
            record.add_pages(pages);
            record.moved = now;
            record.store()?;
            self.records.insert(process, record);
        }
        Ok(())
    }

    fn bind(&self, decisions: &Decisions, report: &mut MoveReport) -> Result<(), MoveError> {
        for (decision, _) in decisions.threads.iter().filter(|(decision, _)| decision.changes) {
            let Some(cpu) = decision.cpu else { continue };
            match set_affinity_of(decision.thread, &CpuSet::range(cpu, cpu)) {
                Ok(()) => {}
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(ESRCH) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(of_process(decision.process, "threads cannot be bound")(error));
                }
                Err(error) => report
                    .warnings
                    .push(format!("thread {} cannot run on CPU {cpu}: {error}", decision.thread)),
            }
        }
        Ok(())
    }
}

impl Decisions {
    fn of_process(&self, process: u32) -> impl Iterator<Item = &PageRange> {
        self.pages.iter().filter(move |(of, _)| *of == process).flat_map(|(_, pages)| pages)
    }
}

/// Waits for this time; true if a signal asks for the end.
pub(crate) fn is_ended(signals: &Signals, time: Duration) -> bool {
    // An error of the wait is no reason to end: the next pause waits again.
    let _ = poll::readable(&[signals.as_fd()], Some(time));
    signals.next().is_some()
}

pub(crate) fn remote(observed: &MoveObservation) -> RemoteSamples {
    let (all, remote) = observed.uses.remote();
    RemoteSamples { all, remote }
}

/// The decision for a thread where none is moved.
fn left_where_it_is(thread: &BusyThread) -> ThreadDecision {
    ThreadDecision {
        process: thread.process,
        thread: thread.thread,
        name: thread.name.clone(),
        from_cpu: thread.cpu,
        from_node: thread.node,
        cpu: None,
        node: thread.node,
        reason: ThreadReason::Stays,
        changes: false,
        samples: thread.samples,
    }
}
