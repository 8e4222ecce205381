//! The kernel's performance counters (`perf_event_open`), behind a trait that tests can implement.

pub mod record;
pub mod ring;
pub mod sampling;

use crate::{check, sched};
use numakit_model::CpuSet;
use perf_event_open_sys::bindings::{self, perf_event_attr};
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// An event: the kernel's number of a PMU, and that PMU's code for the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PerfEvent {
    /// The PMU: content of its file `type`.
    pub pmu: u32,
    /// `config`, `config1`, `config2` and `config3` of the kernel's interface.
    pub config: [u64; 4],
}

impl PerfEvent {
    /// The PMU of software events.
    pub const SOFTWARE: u32 = bindings::PERF_TYPE_SOFTWARE;
    /// The PMU of tracepoints.
    pub const TRACEPOINT: u32 = bindings::PERF_TYPE_TRACEPOINT;
    /// The generic hardware events.
    pub const HARDWARE: u32 = bindings::PERF_TYPE_HARDWARE;
    /// The generic cache events, which include those of nodes.
    pub const CACHE: u32 = bindings::PERF_TYPE_HW_CACHE;

    /// An event with one code.
    pub fn new(pmu: u32, config: u64) -> Self {
        Self { pmu, config: [config, 0, 0, 0] }
    }
}

/// For how long a group was enabled and for how long it counted, in ns since it was opened. If the PMU has fewer counters
/// than there are events, the group counts only for a part of the time (multiplexing).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Time enabled.
    pub enabled: u64,
    /// Time running.
    pub running: u64,
}

/// A source of counters: the kernel, or a test double.
pub trait Counters: Debug + Send + Sync {
    /// Opens events for everything that runs on a CPU, as one group: they count at the same times. Takes as many of the
    /// first events as fit into one group, at least one, and returns how many. An error is about the first event.
    fn open(&self, cpu: u32, events: &[PerfEvent]) -> io::Result<(Box<dyn EventGroup>, usize)>;

    /// Binds the calling thread to these CPUs, where reading their counters is cheap.
    fn pin_to(&self, cpus: &CpuSet) -> io::Result<()>;
}

/// Why an event was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// EACCES, EPERM: not permitted.
    Denied,
    /// ENOENT: there is no such PMU, or it has no such event.
    NoSuchPmu,
    /// EOPNOTSUPP: the PMU cannot do this.
    NoSupport,
    /// EINVAL: the PMU has no such event, not on this CPU, or not in this group.
    Invalid,
    /// ENODEV, ENXIO: the CPU is offline.
    NoDevice,
    /// EMFILE, ENFILE: too many open files.
    OpenFiles,
    /// EBUSY: another user has it exclusively.
    Busy,
    /// ENOSYS: the kernel has no performance events.
    NoCall,
    /// Any other error.
    Other,
}

impl Errno {
    /// The class of an error of the system; `None` for any other.
    pub fn of(error: &io::Error) -> Option<Self> {
        Some(match error.raw_os_error()? {
            libc::EACCES | libc::EPERM => Self::Denied,
            libc::ENOENT => Self::NoSuchPmu,
            libc::EOPNOTSUPP => Self::NoSupport,
            libc::EINVAL => Self::Invalid,
            libc::ENODEV | libc::ENXIO => Self::NoDevice,
            libc::EMFILE | libc::ENFILE => Self::OpenFiles,
            libc::EBUSY => Self::Busy,
            libc::ENOSYS => Self::NoCall,
            _ => Self::Other,
        })
    }

    /// An error of this class; for `Other`, it is EIO.
    pub fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Self::Denied => libc::EACCES,
            Self::NoSuchPmu => libc::ENOENT,
            Self::NoSupport => libc::EOPNOTSUPP,
            Self::Invalid => libc::EINVAL,
            Self::NoDevice => libc::ENODEV,
            Self::OpenFiles => libc::EMFILE,
            Self::Busy => libc::EBUSY,
            Self::NoCall => libc::ENOSYS,
            Self::Other => libc::EIO,
        })
    }
}

/// Events that count at the same times.
pub trait EventGroup: Debug + Send {
    /// Writes one count per event, in their order, and returns the times. Does not allocate.
    fn read(&mut self, counts: &mut [u64]) -> io::Result<Times>;
}

/// The counters of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelCounters;

/// Maximum of events in a group, for the buffer of one read.
pub const MAX_GROUP: usize = 64;

/// Words before the counts in the result of a read: number of events, time enabled, time running.
const HEAD: usize = 3;

/// `PERF_EVENT_IOC_ENABLE`, which is `_IO('$', 0)`.
const ENABLE: libc::Ioctl = libc::_IO(b'$' as u32, 0);

#[derive(Debug)]
struct KernelGroup {
    /// The files of the group's events. The first one is the leader; the others only keep their events open.
    files: Vec<File>,
}

impl Counters for KernelCounters {
    fn open(&self, cpu: u32, events: &[PerfEvent]) -> io::Result<(Box<dyn EventGroup>, usize)> {
        let mut files: Vec<File> = Vec::new();
        for event in events.iter().take(MAX_GROUP) {
            match open(event, cpu, files.first()) {
                Ok(file) => files.push(file),
                // The group is full.
                Err(_) if !files.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        if files.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no event was given"));
        }
        let taken = files.len();
        enable(&files[0])?;
        Ok((Box::new(KernelGroup { files }), taken))
    }

    fn pin_to(&self, cpus: &CpuSet) -> io::Result<()> {
        sched::set_affinity(cpus)
    }
}

/// Opens an event of the calling thread that counts nothing, and closes it: so a refusal is found out. The kernels of Debian
/// and Ubuntu refuse an event only after they have read its attributes, so these must be valid.
pub fn attempt() -> io::Result<()> {
    let mut attr = perf_event_attr {
        type_: bindings::PERF_TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: bindings::PERF_COUNT_SW_DUMMY.into(),
        ..perf_event_attr::default()
    };
    attr.set_disabled(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let flags = u64::from(bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes have the size in them and outlive the call.
    let fd = check(unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, 0, -1, -1, flags) })?;
    // SAFETY: the descriptor is new and has no other owner.
    drop(unsafe { File::from_raw_fd(fd as i32) });
    Ok(())
}

fn open(event: &PerfEvent, cpu: u32, leader: Option<&File>) -> io::Result<File> {
    let mut attr = perf_event_attr {
        type_: event.pmu,
        size: size_of::<perf_event_attr>() as u32,
        config: event.config[0],
        read_format: u64::from(
            bindings::PERF_FORMAT_GROUP
                | bindings::PERF_FORMAT_TOTAL_TIME_ENABLED
                | bindings::PERF_FORMAT_TOTAL_TIME_RUNNING,
        ),
        ..perf_event_attr::default()
    };
    // The leader is disabled until the group is complete. An event that joins a running group of another PMU (a
    // tracepoint in a group of software events) would not count, and the times of the group would not show it.
    attr.set_disabled(u64::from(leader.is_none()));
    attr.__bindgen_anon_3.config1 = event.config[1];
    attr.__bindgen_anon_4.config2 = event.config[2];
    attr.config3 = event.config[3];
    let group = leader.map_or(-1, AsRawFd::as_raw_fd);
    let flags = u64::from(bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes have the size in them and outlive the call; PID -1 with a CPU means everything on that CPU.
    let fd = check(unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attr, -1, cpu as i32, group, flags)
    })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

/// Enables the group of this leader.
fn enable(leader: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call takes no pointer.
    check(unsafe { libc::ioctl(leader.as_raw_fd(), ENABLE, 0) } as i64)?;
    Ok(())
}

impl EventGroup for KernelGroup {
    fn read(&mut self, counts: &mut [u64]) -> io::Result<Times> {
        let mut answer = [0u64; HEAD + MAX_GROUP];
        let length = (HEAD + self.files.len()) * size_of::<u64>();
        // SAFETY: any bytes are valid integers, and the slice covers part of the array.
        let bytes = unsafe { std::slice::from_raw_parts_mut(answer.as_mut_ptr().cast::<u8>(), length) };
        let read = (&self.files[0]).read(bytes)?;
        // If the CPU of a group went offline, the group has fewer counts or none.
        if read < length || answer[0] != self.files.len() as u64 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the group of counters no longer exists",
            ));
        }
        counts.iter_mut().zip(&answer[HEAD..]).for_each(|(to, from)| *to = *from);
        Ok(Times { enabled: answer[1], running: answer[2] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PERF_COUNT_SW_PAGE_FAULTS` and `PERF_COUNT_SW_CONTEXT_SWITCHES`.
    const FAULTS: PerfEvent = PerfEvent { pmu: PerfEvent::SOFTWARE, config: [2, 0, 0, 0] };
    const SWITCHES: PerfEvent = PerfEvent { pmu: PerfEvent::SOFTWARE, config: [3, 0, 0, 0] };

    #[test]
    fn software_events_of_a_cpu_are_counted_as_a_group() {
        let cpus = crate::sched::affinity().unwrap();
        let (mut group, taken) = match KernelCounters.open(cpus.first().unwrap(), &[FAULTS, SWITCHES]) {
            Ok(opened) => opened,
            Err(error) => {
                return numakit_skips::PRIVILEGES
                    .skip(format_args!("perf_event_open of a whole CPU is refused: {error}"));
            }
        };
        assert_eq!(taken, 2);
        let (mut first, mut second) = ([0; 2], [0; 2]);
        let start = group.read(&mut first).unwrap();
        let end = group.read(&mut second).unwrap();
        assert!(end.enabled > start.enabled && end.running > start.running);
        assert!(second[0] >= first[0] && second[1] >= first[1]);
    }

    #[test]
    fn an_invalid_event_is_refused() {
        let nonsense = PerfEvent::new(PerfEvent::SOFTWARE, 9999);
        assert!(KernelCounters.open(0, &[nonsense]).is_err());
        assert!(KernelCounters.open(0, &[]).is_err());
    }
}
