//! Which CPUs are online, and which are present but offline.

use crate::TopologyError;
use crate::json::MAX_CPUS;
use crate::reader::Reader;
use numakit_model::CpuSet;
use numakit_sys::proc::machine::{StatLine, stat_line};

pub(crate) const CPU: &str = "/sys/devices/system/cpu";

pub(crate) struct Cpus {
    pub online: CpuSet,
    pub offline: CpuSet,
}

/// Reads the CPUs from the files `online` and `present`. If these are missing, from the directories of the CPUs; if these
/// are missing too, as in some captures, from /proc/stat.
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
    let mut online = named.unwrap_or_else(|| running(reader, &known)).and(&CpuSet::range(0, MAX_CPUS - 1));
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

/// The CPUs without a 0 in their `online` file. The first CPU often has no such file.
fn running(reader: &mut Reader<'_>, known: &CpuSet) -> CpuSet {
    known.iter().filter(|cpu| reader.bytes(format_args!("{CPU}/cpu{cpu}/online")) != Some(b"0")).collect()
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
