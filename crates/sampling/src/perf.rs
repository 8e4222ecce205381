//! Samples by performance events: the clock of CPU time, with the registers of the program.

use crate::faults::{self, FaultRings};
use crate::landing::Landing;
use crate::method::{Losses, Method, MethodError, MethodEvent, MethodKind};
use crate::sample::{MeasuredAccess, Sample, SampleSettings};
use numakit_model::CpuSet;
use numakit_sys::perf::record::{PerfRecord, RawSample};
use numakit_sys::perf::sampling::{
    SampleContent, SampledEvent, SampledRings, SampledTasks, SamplingError, SamplingRequest,
};
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::{SysRoot, sched};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::time::Duration;

/// Pages of a ring, which has room for a second of samples: at 199 Hz with 512 bytes of stack 142 KiB.
const PAGES: std::ops::RangeInclusive<usize> = 8..=64;
const PAGE: usize = 4096;
/// Bytes of a sample without its stack.
const SAMPLE: usize = 200;

/// Place of the event that counts page faults.
const FAULTS: usize = 1;

/// Open files that are left for all other purposes.
const OTHER_FILES: usize = 64;

/// Maximum number of times that the threads of a process are listed until no new one is found.
const MAX_LISTINGS: u32 = 8;
/// After this time the record of a new thread is in the ring.
const RECORD_DELAY: Duration = Duration::from_millis(1);

/// The method.
#[derive(Debug)]
pub struct PerfMethod {
    rings: SampledRings,
    /// The rings of page faults, if the settings ask for them and they could be opened.
    first_touch: Option<FaultRings>,
    landing: Landing,
    /// The processes whose samples are taken, if the rings are those of all CPUs.
    only: Option<HashSet<u32>>,
    /// The threads that are sampled and the CPUs of their events, if the method was attached to running processes.
    attached: Option<AttachedThreads>,
    has_addresses: bool,
    faults_each: u32,
    faults: HashMap<u32, u32>,
    losses: Losses,
    sample: Sample,
}

/// Threads of running processes that are sampled.
#[derive(Debug)]
struct AttachedThreads {
    threads: BTreeSet<u32>,
    cpus: CpuSet,
}

impl PerfMethod {
    /// Samples the program that `start` starts as a child, from its first instruction, with all its descendants.
    /// `start` runs on a thread of its own, so that nothing else that this process starts is sampled.
    pub fn for_command<T: Send>(
        settings: &SampleSettings,
        landing: Landing,
        start: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<(Self, T), MethodError> {
        // The program may bind itself to other CPUs than those that this process is bound to.
        let cpus = sched::permitted().map_err(MethodError::Start)?;
        let sampled = || {
            let method = Self::open(settings, landing, SampledTasks::Executed(&cpus))?;
            Ok((method, start().map_err(MethodError::Start)?))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("starter".to_owned()).spawn_scoped(scope, sampled);
            let ended = thread.map_err(MethodError::Start)?.join();
            ended.unwrap_or_else(|_| {
                Err(MethodError::Start(io::Error::other("the thread that starts it panicked")))
            })
        })
    }

    /// Samples all threads of these processes and of their descendants, and the threads and processes that they create.
    pub fn for_processes(
        settings: &SampleSettings,
        landing: Landing,
        roots: &[u32],
    ) -> Result<Self, MethodError> {
        let root = SysRoot::host();
        // Some may end meanwhile, but not all of them.
        let mut missing = roots.iter().map(|process| TaskDir::of(&root, *process).threads());
        if let Some(Err(error)) =
            missing.next().filter(|first| first.is_err() && missing.all(|other| other.is_err()))
        {
            return Err(error.into());
        }
        let families = tree::families(&root, roots);
        let threads = threads_of(&root, &families);
        let mut cpus = CpuSet::new();
        for thread in &threads {
            // A thread that has ended has no mask.
            cpus = cpus.or(&sched::affinity_of(*thread).unwrap_or_default());
        }
        let limit = usize::try_from(sched::raise_open_files().unwrap_or(1024)).unwrap_or(usize::MAX);
        let fault_files = if settings.first_touch { faults::files(settings.every_touch) } else { 0 };
        let files =
            |cpus: &CpuSet| threads.len() * cpus.len() * (events(settings).len() + fault_files) + OTHER_FILES;
        // Threads may bind themselves to other CPUs later, so those CPUs are included if there are enough files.
        let wide = cpus.or(&sched::permitted().unwrap_or_default());
        let cpus = if files(&wide) <= limit { wide } else { cpus };
        let needed = files(&cpus);
        if needed <= limit {
            let mut method = Self::open(settings, landing, SampledTasks::Threads(&threads, &cpus))?;
            method.attached = Some(AttachedThreads { threads: threads.into_iter().collect(), cpus });
            method.add_missed(&root, roots)?;
            return Ok(method);
        }
        // One event on each CPU needs fewer files, but may be refused.
        match Self::for_machine(settings, landing, &cpus) {
            Ok(method) => Ok(Self { only: Some(families.into_iter().collect()), ..method }),
            Err(_) => Err(SamplingError::OpenFiles { needed, limit: limit as u64 }.into()),
        }
    }

    /// Adds the threads of these processes and of their descendants that are not sampled, and returns their numbers. A thread
    /// that a record announces was created by a sampled one, and is sampled already.
    fn add_missed(&mut self, root: &SysRoot, roots: &[u32]) -> Result<BTreeSet<u32>, MethodError> {
        let Self { rings, first_touch, attached: Some(AttachedThreads { threads: known, cpus }), .. } = self
        else {
            return Ok(BTreeSet::new());
        };
        let mut added = BTreeSet::new();
        for _ in 0..MAX_LISTINGS {
            // What has ended stays in the list until its parent takes its status.
            let runs = |thread: &u32| TaskDir::of(root, *thread).stat().is_ok_and(|stat| !stat.exited);
            let is_missed = |thread: &u32, known: &BTreeSet<u32>| !known.contains(thread) && runs(thread);
            let listed = threads_of(root, &tree::families(root, roots));
            if !listed.iter().any(|thread| is_missed(thread, known)) {
                break;
            }
            // A thread is in the list shortly before its record is written.
            std::thread::sleep(RECORD_DELAY);
            known.extend(rings.started());
            let missed: Vec<u32> = listed.into_iter().filter(|thread| is_missed(thread, known)).collect();
            rings.add(&missed, cpus)?;
            first_touch.iter_mut().try_for_each(|faults| faults.add(&missed, cpus))?;
            known.extend(&missed);
            added.extend(missed);
        }
        Ok(added)
    }

    /// Samples everything that runs on these CPUs.
    pub fn for_machine(
        settings: &SampleSettings,
        landing: Landing,
        cpus: &CpuSet,
    ) -> Result<Self, MethodError> {
        Self::open(settings, landing, SampledTasks::Machine(cpus))
    }

    /// Samples the calling thread alone.
    pub fn for_caller(settings: &SampleSettings, landing: Landing) -> Result<Self, MethodError> {
        Self::open(settings, landing, SampledTasks::Caller)
    }

    fn open(
        settings: &SampleSettings,
        landing: Landing,
        tasks: SampledTasks<'_>,
    ) -> Result<Self, MethodError> {
        let method = Self::of_events(&events(settings), settings, landing, tasks)?;
        // An emulated processor is too slow to look at every page fault. If only page faults are refused, samples without
        // them are still useful.
        let are_wanted = settings.first_touch && landing != Landing::BlockStart;
        let first_touch = are_wanted.then(|| FaultRings::open(tasks, settings.every_touch).ok()).flatten();
        Ok(Self { first_touch, ..method })
    }

    /// Opens the method with other events, such as those of a processor that measures addresses and latencies. The first
    /// event takes the samples; a second one counts page faults.
    pub fn of_events(
        events: &[SampledEvent],
        settings: &SampleSettings,
        landing: Landing,
        tasks: SampledTasks<'_>,
    ) -> Result<Self, MethodError> {
        let request = SamplingRequest {
            events,
            tasks,
            content: SampleContent::Registers { stack: settings.stack_bytes() },
            pages: pages(settings),
        };
        Ok(Self {
            rings: SampledRings::open(&request)?,
            first_touch: None,
            landing,
            only: None,
            attached: None,
            has_addresses: events.first().is_some_and(|event| event.has_addresses),
            faults_each: settings.faults,
            faults: HashMap::new(),
            losses: Losses::default(),
            sample: Sample::default(),
        })
    }

    /// Whether there are samples of the kernel.
    pub fn sees_kernel(&self) -> bool {
        self.rings.sees_kernel()
    }
}

/// The threads of these processes, as far as they have not ended.
fn threads_of(root: &SysRoot, processes: &[u32]) -> Vec<u32> {
    let of = |process: &u32| TaskDir::of(root, *process).threads().unwrap_or_default();
    processes.iter().flat_map(of).collect()
}

/// On a machine with thousands of CPUs, large rings of few samples would take a gigabyte.
fn pages(settings: &SampleSettings) -> usize {
    let second = settings.frequency as usize * (settings.stack_bytes() as usize + SAMPLE);
    second.div_ceil(PAGE).next_power_of_two().clamp(*PAGES.start(), *PAGES.end())
}

fn events(settings: &SampleSettings) -> Vec<SampledEvent> {
    let faults = (settings.faults > 0).then(|| SampledEvent::page_faults(settings.faults.into()));
    [SampledEvent::cpu_clock(settings.period())].into_iter().chain(faults).collect()
}

impl Method for PerfMethod {
    fn kind(&self) -> MethodKind {
        MethodKind::Perf
    }

    fn drain(&mut self, take: &mut dyn FnMut(MethodEvent<'_>)) -> Result<u64, MethodError> {
        let Self { rings, only, attached, has_addresses, faults_each, faults, losses, sample, .. } = self;
        let mut count = 0;
        let drained = rings.drain(&mut |record, event| {
            if only.as_mut().is_some_and(|only| !is_of(only, record)) {
                return count_loss(record, losses);
            }
            match record {
                PerfRecord::Sample(raw) if event == Some(FAULTS) => {
                    let sum = faults.entry(raw.thread).or_default();
                    *sum = sum.saturating_add(*faults_each);
                }
                PerfRecord::Sample(raw) => {
                    let found = faults.remove(&raw.thread).unwrap_or(0);
                    if fill(sample, raw, found, *has_addresses) {
                        count += 1;
                        take(MethodEvent::Sample(sample));
                    } else if !raw.in_kernel {
                        losses.without_registers += 1;
                    }
                }
                PerfRecord::Forked { process, thread, .. } => {
                    attached.iter_mut().for_each(|attached| _ = attached.threads.insert(*thread));
                    take(MethodEvent::Started { process: *process, thread: *thread });
                }
                PerfRecord::Exited { process, thread } => {
                    faults.remove(thread);
                    attached.iter_mut().for_each(|attached| _ = attached.threads.remove(thread));
                    take(MethodEvent::Ended { process: *process, thread: *thread });
                }
                PerfRecord::Named { process, executed: true, time, .. } => {
                    take(MethodEvent::Executed { process: *process, time: *time });
                }
                PerfRecord::Mapped { process, .. } => take(MethodEvent::Mapped { process: *process }),
                other => count_loss(other, losses),
            }
        });
        self.losses.damaged += drained.damaged;
        // Faults come after the news of executed programs, as the news are older.
        if let Some(faults) = &mut self.first_touch {
            let only = &self.only;
            let is_wanted = |process: u32| only.as_ref().is_none_or(|only| only.contains(&process));
            faults.drain_touches(&mut |touch| {
                if is_wanted(touch.process) {
                    take(MethodEvent::Touched(touch));
                }
            });
            let result = faults.drain(&mut |fault| {
                if is_wanted(fault.process) {
                    take(MethodEvent::Fault(fault));
                }
            });
            // Samples continue without page faults.
            if result.is_err() {
                self.first_touch = None;
            }
        }
        Ok(count)
    }

    fn attach(&mut self, processes: &[u32]) -> Result<Vec<u32>, MethodError> {
        let root = SysRoot::host();
        if let Some(only) = &mut self.only {
            let families = tree::families(&root, processes);
            return Ok(families.into_iter().filter(|process| only.insert(*process)).collect());
        }
        // The first thread of a process has its number.
        let added = self.add_missed(&root, processes)?;
        let families = tree::families(&root, processes);
        Ok(families.into_iter().filter(|process| added.contains(process)).collect())
    }

    fn losses(&self) -> Losses {
        let faults = self.first_touch.as_ref();
        Losses {
            faults: faults.map_or(0, FaultRings::lost),
            without_faults: faults.map_or(0, FaultRings::paused),
            ..self.losses
        }
    }

    fn landing(&self) -> Landing {
        self.landing
    }
}

fn count_loss(record: &PerfRecord<'_>, losses: &mut Losses) {
    match record {
        PerfRecord::Lost(records) => losses.overflowed += records,
        PerfRecord::Throttled => losses.throttled += 1,
        _ => {}
    }
}

/// Whether a record is about one of these processes, or about a new child of one, which then belongs to them.
fn is_of(only: &mut HashSet<u32>, record: &PerfRecord<'_>) -> bool {
    if let PerfRecord::Forked { process, parent, .. } = record
        && only.contains(parent)
    {
        only.insert(*process);
    }
    concerns(only, record)
}

/// Whether a record is about one of these processes.
fn concerns(only: &HashSet<u32>, record: &PerfRecord<'_>) -> bool {
    match record {
        PerfRecord::Sample(RawSample { process, .. })
        | PerfRecord::Named { process, .. }
        | PerfRecord::Forked { process, .. }
        | PerfRecord::Exited { process, .. }
        | PerfRecord::Mapped { process, .. } => only.contains(process),
        _ => false,
    }
}

/// False if the sample has no registers: it is of a thread of the kernel or of a 32-bit program.
fn fill(sample: &mut Sample, raw: &RawSample<'_>, faults: u32, has_addresses: bool) -> bool {
    let Some(registers) = raw.registers else { return false };
    let measured = raw.address.filter(|_| has_addresses).map(|address| MeasuredAccess {
        instruction: raw.ip,
        address,
        latency: raw.latency.unwrap_or(0),
        source: raw.source.unwrap_or(0),
    });
    sample.process = raw.process;
    sample.thread = raw.thread;
    sample.time = raw.time;
    sample.cpu = raw.cpu;
    sample.weight = raw.period;
    sample.registers = registers;
    sample.in_kernel = raw.in_kernel;
    sample.stack.set(registers.stack_pointer(), raw.stack);
    sample.faults = faults;
    sample.measured = measured;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::registers::UserRegisters;

    #[test]
    fn rings_have_room_for_a_second_of_samples_and_are_small_where_these_are_few() {
        let of = |frequency, stack| pages(&SampleSettings { frequency, stack, ..SampleSettings::default() });
        assert_eq!((of(199, 512), of(19, 256), of(0, 0), of(10_000, 32 << 10)), (64, 8, 8, 64));
    }

    #[test]
    fn a_measured_access_takes_the_place_of_a_recovered_one() {
        let registers = UserRegisters { ip: 0x1004, ..UserRegisters::default() };
        let raw = RawSample {
            ip: 0x1000,
            address: Some(0x7000),
            latency: Some(231),
            source: Some(5),
            registers: Some(registers),
            stack: &[1, 2],
            period: 7,
            ..RawSample::default()
        };
        let mut sample = Sample::default();
        assert!(fill(&mut sample, &raw, 3, true));
        let access = MeasuredAccess { instruction: 0x1000, address: 0x7000, latency: 231, source: 5 };
        assert_eq!((sample.measured, sample.faults, sample.weight), (Some(access), 3, 7));
        assert_eq!((sample.registers.ip, &sample.stack.bytes[..]), (0x1004, &[1, 2][..]));
        // The address of a clock is nothing, whatever the record contains.
        assert!(fill(&mut sample, &raw, 0, false) && sample.measured.is_none());
        assert!(!fill(&mut sample, &RawSample { registers: None, ..raw }, 0, true));
    }

    #[test]
    fn records_of_other_processes_do_not_concern() {
        let only = HashSet::from([7]);
        let exited = |process| PerfRecord::Exited { process, thread: 9 };
        assert!(concerns(&only, &exited(7)) && !concerns(&only, &exited(8)));
        assert!(!concerns(&only, &PerfRecord::Lost(1)));
        let mut losses = Losses::default();
        count_loss(&PerfRecord::Lost(4), &mut losses);
        count_loss(&PerfRecord::Throttled, &mut losses);
        assert_eq!((losses.overflowed, losses.throttled, losses.total()), (4, 1, 4));
    }
}
