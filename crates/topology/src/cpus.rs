//! Which CPUs are online, and which are present but offline.

use crate::json::MAX_CPUS;
use crate::reader::Reader;
use crate::{TopologyError, cpuset};
use numakit_model::CpuSet;
use numakit_sys::proc::machine::{StatLine, stat_line};
use numakit_sys::sched;

pub(crate) const CPU: &str = "/sys/devices/system/cpu";

pub(crate) struct Cpus {
    pub online: CpuSet,
    pub offline: CpuSet,
}

/// Reads the CPUs from the files `online` and `present`. If these are missing, or `online` is not the kernel's, from the
/// directories of the CPUs; if these are missing too, as in some captures, from /proc/stat.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Cpus, TopologyError> {
    let named = reader.list(format_args!("{CPU}/online")).filter(|cpus| !cpus.is_empty());
    // The highest CPU number bounds the time and memory of all that follows.
    if let Some(last) = named.as_ref().and_then(CpuSet::last).filter(|last| *last >= MAX_CPUS) {
        return Err(TopologyError::TooLarge {
            root: reader.root.name().to_owned(),
            found: format!("CPU {last} in {CPU}/online"),
            max: format!("{MAX_CPUS} CPUs, 0 to {}", MAX_CPUS - 1),
        });
    }
    let present = reader.list(format_args!("{CPU}/present")).filter(|cpus| !cpus.is_empty());
    let known = match (&named, present) {
        (Some(_), Some(present)) => present,
        _ => reader.numbered(CPU, "cpu").unwrap_or_default(),
    };
    let (mut online, known) = match named {
        Some(named) => with_unlisted(reader, named, known),
        None => (running(reader, &known), known),
    };
    online = online.and(&CpuSet::range(0, MAX_CPUS - 1));
    if online.is_empty() {
        online =
            reader.value(format_args!("/proc/stat"), |b| Ok::<_, String>(of_stat(b))).unwrap_or_default();
        online = online.and(&CpuSet::range(0, MAX_CPUS - 1));
        if online.is_empty() {
            let found = format!("neither {CPU} nor /proc/stat names one");
            return Err(TopologyError::NoCpus { root: reader.root.name().to_owned(), found });
        }
        reader.note(format!("{CPU} names no CPU; they were taken from /proc/stat"));
    }
    Ok(Cpus { offline: known.minus(&online), online })
}

/// The CPUs that are online and those that are known, where the file `online` lists these. In a container that file may be
/// another than the kernel's, with CPUs numbered from 0 (lxcfs): then it lacks CPUs that this process may run on, and the files
/// of each CPU count.
fn with_unlisted(reader: &mut Reader<'_>, listed: CpuSet, known: CpuSet) -> (CpuSet, CpuSet) {
    let unlisted = match reader.root.is_host() {
        true => sched::affinity().unwrap_or_default().minus(&listed),
        false => unlisted_in_files(reader, &listed),
    };
    if unlisted.is_empty() {
        return (listed, known);
    }
    reader.note(format!(
        "{CPU}/online lists CPUs {listed}, and this process may run on CPUs {unlisted}: the list is not the kernel's (a \
         container may have its own), and the files of each CPU count"
    ));
    let known = known.or(&reader.numbered(CPU, "cpu").unwrap_or_default()).or(&unlisted);
    (running(reader, &reader.with_directory(&known)).or(&unlisted), known)
}

/// The CPUs that the list lacks although the captured process ran on them. The kernel's mask in a file has CPUs that are offline
/// too, so the list is doubted only if it has no CPU of the mask, and a CPU counts only if it says that it is online.
fn unlisted_in_files(reader: &mut Reader<'_>, listed: &CpuSet) -> CpuSet {
    let mask = cpuset::mask(reader).unwrap_or_default();
    if mask.intersects(listed) {
        return CpuSet::new();
    }
    let own = reader.with_directory(&mask);
    own.iter().filter(|cpu| state(reader, *cpu) == Some(true)).collect()
}

/// Whether the `online` file of a CPU says that it runs.
fn state(reader: &mut Reader<'_>, cpu: u32) -> Option<bool> {
    reader
        .bytes(format_args!("{CPU}/cpu{cpu}/online"))
        .filter(|state| !state.is_empty())
        .map(|state| state != b"0")
}

/// The CPUs without a 0 in their `online` file. The first CPU often has no such file.
fn running(reader: &mut Reader<'_>, known: &CpuSet) -> CpuSet {
    known.iter().filter(|cpu| state(reader, *cpu) != Some(false)).collect()
}

/// The CPUs that have a line in /proc/stat.
pub fn of_stat(bytes: &[u8]) -> CpuSet {
    let lines = bytes.split(|&b| b == b'\n');
    lines
        .filter_map(|line| match stat_line(line) {
            StatLine::Cpu(cpu, _) => Some(cpu),
            StatLine::Other(..) => None,
        })
        .collect()
}
