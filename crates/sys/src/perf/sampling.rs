//! Events that write samples: opened for threads, commands or CPUs, drained from rings.

use super::record::{PerfRecord, PerfRecords, SampleLayout};
use super::ring::{self, EventRing};
use super::{PerfEvent, enable};
use crate::check;
use crate::registers::PERF_MASK;
use numakit_model::CpuSet;
use perf_event_open_sys::bindings::{self as kernel, perf_event_attr};
use rustix::process::{Resource, getrlimit};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use thiserror::Error;

/// An event that takes samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledEvent {
    /// The event.
    pub event: PerfEvent,
    /// A sample is taken whenever this many were counted; of a clock, nanoseconds.
    pub period: u64,
    /// Ask the processor for the exact instruction: 0 is no, 3 is always.
    pub precise: u8,
    /// Whether samples have the data address, the latency and the source of the data.
    pub has_addresses: bool,
}

impl SampledEvent {
    /// The clock of CPU time, with a period in ns.
    pub fn cpu_clock(period: u64) -> Self {
        Self::software(kernel::PERF_COUNT_SW_CPU_CLOCK, period)
    }

    /// An event for page faults. The address of its samples is the one that was accessed.
    pub fn page_faults(period: u64) -> Self {
        Self::software(kernel::PERF_COUNT_SW_PAGE_FAULTS, period)
    }

    fn software(config: kernel::perf_sw_ids, period: u64) -> Self {
        let event = PerfEvent::new(PerfEvent::SOFTWARE, u64::from(config));
        Self { event, period, precise: 0, has_addresses: false }
    }
}

/// What samples contain beside the thread, time, CPU and instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleContent {
    /// The registers, and this many bytes of the stack, a multiple of 8. Records of new threads, executed programs and mapped
    /// code come with them.
    Registers {
        /// The bytes.
        stack: u32,
    },
    /// The registers and the stack as above, with the address that the event is about, and without those records.
    Accessed {
        /// The bytes of the stack.
        stack: u32,
    },
    /// The address that the event is about, and no more: a tenth of a record with the stack.
    Address,
}

impl SampleContent {
    /// The number of bytes of the stack; `None` if there are no registers either.
    fn stack(self) -> Option<u32> {
        match self {
            Self::Registers { stack } | Self::Accessed { stack } => Some(stack),
            Self::Address => None,
        }
    }
}

/// Whose samples are taken.
#[derive(Debug, Clone, Copy)]
pub enum SampledTasks<'a> {
    /// The programs that children of the calling thread execute from now on, with all their descendants.
    Executed(&'a CpuSet),
    /// These threads, and those that they create.
    Threads(&'a [u32], &'a CpuSet),
    /// The calling thread alone, wherever it runs.
    Caller,
    /// All that runs on these CPUs.
    Machine(&'a CpuSet),
}

/// What is sampled, and how.
#[derive(Debug, Clone)]
pub struct SamplingRequest<'a> {
    /// The events, the most important first. The records of forks and the like come with the first.
    pub events: &'a [SampledEvent],
    /// The threads whose samples are taken.
    pub tasks: SampledTasks<'a>,
    /// What each sample contains.
    pub content: SampleContent,
    /// Pages of each ring.
    pub pages: usize,
}

/// Why samples cannot be taken.
#[derive(Debug, Error)]
pub enum SamplingError {
    /// The event cannot be opened.
    #[error("perf_event_open")]
    Open(#[source] io::Error),
    /// The ring cannot be mapped.
    #[error(
        "the ring of samples cannot be mapped: {0}; raise kernel.perf_event_mlock_kb or the limit of locked memory \
         (ulimit -l)"
    )]
    Map(#[source] io::Error),
    /// There are more events than open files.
    #[error("{needed} events are needed, and only {limit} files may be open; raise the limit (ulimit -n)")]
    OpenFiles {
        /// Events.
        needed: usize,
        /// The limit.
        limit: u64,
    },
    /// There is no thread or no CPU.
    #[error("there is nothing to sample: the process has ended")]
    Nothing,
}

/// What was drained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainedRecords {
    /// Records.
    pub records: u64,
    /// Bytes that were not a record; always 0 unless the kernel and this program disagree.
    pub damaged: u64,
}

/// Open events with their rings. Dropping it ends the sampling.
#[derive(Debug)]
pub struct SampledRings {
    rings: Vec<CpuRing>,
    /// The files of the events, which keep the events open.
    files: Vec<File>,
    /// Place of each event in the request, by the kernel's number.
    numbers: BTreeMap<u64, usize>,
    setup: Setup,
}

/// The ring of the events on one CPU.
#[derive(Debug)]
struct CpuRing {
    /// The CPU; `None` for a thread that is followed to all CPUs.
    cpu: Option<u32>,
    ring: EventRing,
    /// Place of the file that owns the ring.
    owner: usize,
    /// Bytes that were drained from the ring and not parsed yet.
    drained: Vec<u8>,
}

/// What all events have in common.
#[derive(Debug)]
struct Setup {
    events: Vec<SampledEvent>,
    layout: SampleLayout,
    content: SampleContent,
    pages: usize,
    sees_kernel: bool,
    /// Whether threads and processes that a sampled one creates are sampled too.
    inherits: bool,
    /// Sampling begins when a program is executed.
    on_exec: bool,
    /// Records of new threads, executed programs and mapped code are written too.
    tells_changes: bool,
}

impl SampledRings {
    /// Opens the events. Samples of the kernel are included if that is permitted. Samples of [`SampledTasks::Executed`]
    /// begin when the program is executed, all others at once.
    pub fn open(request: &SamplingRequest<'_>) -> Result<Self, SamplingError> {
        match Self::open_with(request, true) {
            Err(SamplingError::Open(error)) if error.raw_os_error() == Some(libc::EACCES) => {
                Self::open_with(request, false)
            }
            opened => opened,
        }
    }

    fn open_with(request: &SamplingRequest<'_>, sees_kernel: bool) -> Result<Self, SamplingError> {
        let on_exec = matches!(request.tasks, SampledTasks::Executed(_));
        let setup = Setup {
            events: request.events.to_vec(),
            layout: layout(request),
            content: request.content,
            pages: request.pages,
            sees_kernel,
            inherits: on_exec || matches!(request.tasks, SampledTasks::Threads(..)),
            on_exec,
            tells_changes: !matches!(request.tasks, SampledTasks::Caller)
                && matches!(request.content, SampleContent::Registers { .. }),
        };
        let (rings, files, numbers) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut opened = Self { rings, files, numbers, setup };
        match request.tasks {
            SampledTasks::Executed(cpus) => opened.add(&[0], cpus)?,
            SampledTasks::Threads(threads, cpus) => opened.add(threads, cpus)?,
            SampledTasks::Caller => opened.add_on(Some(0), None)?,
            SampledTasks::Machine(cpus) => cpus.iter().try_for_each(|cpu| opened.add_on(None, Some(cpu)))?,
        }
        if opened.rings.is_empty() { Err(SamplingError::Nothing) } else { Ok(opened) }
    }

    /// Samples these threads too.
    pub fn add(&mut self, threads: &[u32], cpus: &CpuSet) -> Result<(), SamplingError> {
        for cpu in cpus.iter() {
            for &thread in threads {
                self.add_on(Some(thread), Some(cpu)).map_err(|error| match error {
                    SamplingError::Open(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
                        let needed = threads.len() * cpus.len() * self.setup.events.len();
                        SamplingError::OpenFiles { needed, limit }
                    }
                    other => other,
                })?;
            }
        }
        Ok(())
    }

    /// Opens the events of a thread on a CPU.
    fn add_on(&mut self, thread: Option<u32>, cpu: Option<u32>) -> Result<(), SamplingError> {
        for place in 0..self.setup.events.len() {
            let attributes = self.setup.attributes(place);
            let file = match open(&attributes, thread, cpu) {
                Ok(file) => file,
                // The thread has ended since it was listed, or the CPU went offline.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {
                    return Ok(());
                }
                Err(error) => return Err(SamplingError::Open(error)),
            };
            let number = ring::number(&file).map_err(SamplingError::Open)?;
            match self.rings.iter().find(|ring| ring.cpu == cpu) {
                Some(ring) => ring::redirect(&file, &self.files[ring.owner]).map_err(SamplingError::Open)?,
                None => {
                    let ring = EventRing::map(&file, self.setup.pages).map_err(SamplingError::Map)?;
                    self.rings.push(CpuRing { cpu, ring, owner: self.files.len(), drained: Vec::new() });
                }
            }
            if !self.setup.on_exec {
                enable(&file).map_err(SamplingError::Open)?;
            }
            self.numbers.insert(number, place);
            self.files.push(file);
        }
        Ok(())
    }

    /// Whether samples of the kernel are included.
    pub fn sees_kernel(&self) -> bool {
        self.setup.sees_kernel
    }

    /// Bytes of the smallest ring.
    pub fn ring_size(&self) -> usize {
        self.rings.iter().map(|ring| ring.ring.size()).min().unwrap_or(0)
    }

    /// Stops or resumes sampling, also of tasks that sampled threads have created.
    pub fn set_running(&self, is_running: bool) -> io::Result<()> {
        let set = if is_running { enable } else { ring::disable };
        self.files.iter().try_for_each(set)
    }

    /// The threads that have started since the last [`SampledRings::drain`], as far as records say so. They are sampled
    /// already. All records stay for the next drain.
    pub fn started(&mut self) -> BTreeSet<u32> {
        let mut started = BTreeSet::new();
        for ring in &mut self.rings {
            ring.ring.drain(&mut ring.drained);
            started.extend(PerfRecords::new(&ring.drained, self.setup.layout).filter_map(
                |record| match record {
                    PerfRecord::Forked { thread, .. } => Some(thread),
                    _ => None,
                },
            ));
        }
        started
    }

    /// Takes the records since the last call, ring after ring, with the place of each sample's event. Records of one CPU are
    /// in the order of time.
    pub fn drain(&mut self, take: &mut dyn FnMut(&PerfRecord<'_>, Option<usize>)) -> DrainedRecords {
        let mut sum = DrainedRecords::default();
        for CpuRing { ring, drained, .. } in &mut self.rings {
            ring.drain(drained);
            let mut records = PerfRecords::new(drained, self.setup.layout);
            for record in records.by_ref() {
                sum.records += 1;
                let event = match &record {
                    PerfRecord::Sample(sample) => self.numbers.get(&sample.id).copied(),
                    _ => None,
                };
                take(&record, event);
            }
            sum.damaged += records.rest() as u64;
            drained.clear();
        }
        sum
    }
}

impl Setup {
    fn attributes(&self, place: usize) -> perf_event_attr {
        let event = &self.events[place];
        let mut attr = perf_event_attr {
            type_: event.event.pmu,
            size: size_of::<perf_event_attr>() as u32,
            config: event.event.config[0],
            sample_type: self.layout.fields,
            sample_regs_user: if self.content.stack().is_some() { self.layout.registers } else { 0 },
            clockid: libc::CLOCK_MONOTONIC,
            ..perf_event_attr::default()
        };
        attr.sample_stack_user = self.content.stack().unwrap_or(0);
        attr.__bindgen_anon_1.sample_period = event.period;
        attr.__bindgen_anon_3.config1 = event.event.config[1];
        attr.__bindgen_anon_4.config2 = event.event.config[2];
        attr.config3 = event.event.config[3];
        attr.set_use_clockid(1);
        attr.set_disabled(1);
        attr.set_exclude_kernel(u64::from(!self.sees_kernel));
        attr.set_exclude_hv(1);
        attr.set_exclude_idle(1);
        attr.set_precise_ip(u64::from(event.precise));
        attr.set_inherit(u64::from(self.inherits));
        attr.set_enable_on_exec(u64::from(self.on_exec));
        let tells = u64::from(self.tells_changes && place == 0);
        attr.set_task(tells);
        attr.set_comm(tells);
        attr.set_comm_exec(tells);
        attr.set_mmap(tells);
        attr.set_sample_id_all(1);
        attr.set_mmap2(tells);
        attr
    }
}

fn layout(request: &SamplingRequest<'_>) -> SampleLayout {
    let mut fields = kernel::PERF_SAMPLE_IDENTIFIER
        | kernel::PERF_SAMPLE_IP
        | kernel::PERF_SAMPLE_TID
        | kernel::PERF_SAMPLE_TIME
        | kernel::PERF_SAMPLE_CPU;
    if let Some(stack) = request.content.stack() {
        fields |= kernel::PERF_SAMPLE_REGS_USER;
        fields |= if stack > 0 { kernel::PERF_SAMPLE_STACK_USER } else { 0 };
    }
    // With the period among their fields, the kernel writes a sample of a software event for each count, whatever the period
    // is.
    match request.content {
        SampleContent::Registers { .. } => fields |= kernel::PERF_SAMPLE_PERIOD,
        SampleContent::Accessed { .. } | SampleContent::Address => fields |= kernel::PERF_SAMPLE_ADDR,
    }
    // All events of a ring have the same fields; otherwise their records could not be distinguished.
    if request.events.iter().any(|event| event.has_addresses) {
        fields |= kernel::PERF_SAMPLE_ADDR | kernel::PERF_SAMPLE_WEIGHT | kernel::PERF_SAMPLE_DATA_SRC;
    }
    SampleLayout { fields: fields.into(), registers: PERF_MASK }
}

fn open(attributes: &perf_event_attr, thread: Option<u32>, cpu: Option<u32>) -> io::Result<File> {
    let thread = thread.map_or(-1, |thread| thread as i32);
    let cpu = cpu.map_or(-1, |cpu| cpu as i32);
    let flags = u64::from(kernel::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes have their size in them and outlive the call; everything else is plain integers.
    let fd = check(unsafe {
        libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(attributes), thread, cpu, -1, flags)
    })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests;
