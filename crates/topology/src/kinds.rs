//! Kinds of cores on hybrid machines.

use crate::cpus::CPU;
use crate::reader::Reader;
use crate::values::{self, ValueError};
use numakit_model::CpuSet;
use numakit_model::topology::{Core, CoreKind};
use std::collections::BTreeMap;

/// The PMUs by which hybrid x86 kernels name kinds of cores, slowest first.
const PMUS: [&str; 3] = ["cpu_lowpower", "cpu_atom", "cpu_core"];

/// Finds the kinds of cores and sets each core's kind. If all cores are alike, there are no kinds.
///
/// The most exact source comes first: PMUs, then the model of the core, then the base frequency (equal within a kind, unlike
/// the highest frequency), then the capacity, which varies a little within a kind.
pub(crate) fn read(reader: &mut Reader<'_>, mut cores: Vec<Core>) -> (Vec<CoreKind>, Vec<Core>) {
    let mut kinds = from_pmus(reader, &cores);
    if kinds.is_empty() {
        kinds = by_value(reader, &cores, "regs/identification/midr_el1", hexadecimal, model_name);
        sort_by_capacity(reader, &mut kinds);
    }
    if kinds.is_empty() {
        kinds = by_value(reader, &cores, "cpufreq/base_frequency", decimal, |khz| {
            format!("{} MHz base", khz / 1000)
        });
    }
    if kinds.is_empty() {
        kinds = by_value(reader, &cores, "cpu_capacity", decimal, |c| format!("capacity {c}"));
        merge_near(&mut kinds);
    }
    if kinds.len() < 2 {
        return (Vec::new(), cores);
    }
    for core in &mut cores {
        core.kind = kinds.iter().position(|k| k.cpus.intersects(&core.cpus)).map(|at| at as u32);
    }
    (kinds.into_iter().map(|k| CoreKind { name: k.name, cpus: k.cpus }).collect(), cores)
}

struct Kind {
    value: u64,
    name: String,
    cpus: CpuSet,
}

fn from_pmus(reader: &mut Reader<'_>, cores: &[Core]) -> Vec<Kind> {
    let mut online = CpuSet::new();
    cores.iter().for_each(|core| online.insert_all(&core.cpus));
    let found = PMUS.into_iter().zip(0..).filter_map(|(unit, value)| {
        let cpus = reader.list(format_args!("/sys/devices/{unit}/cpus"))?.and(&online);
        (!cpus.is_empty()).then(|| Kind { value, name: unit.to_owned(), cpus })
    });
    let kinds: Vec<Kind> = found.collect();
    if kinds.len() < 2 { Vec::new() } else { kinds }
}

/// Groups the cores by a number of their first CPU. Empty if the first core does not have it, or
/// if all are equal.
fn by_value(
    reader: &mut Reader<'_>,
    cores: &[Core],
    file: &str,
    parse: fn(&[u8]) -> Result<u64, ValueError>,
    name: fn(u64) -> String,
) -> Vec<Kind> {
    let mut groups: BTreeMap<u64, CpuSet> = BTreeMap::new();
    for core in cores {
        let Some(cpu) = core.cpus.first() else { continue };
        match reader.value(format_args!("{CPU}/cpu{cpu}/{file}"), parse) {
            Some(value) => {
                let group = groups.entry(value).or_default();
                core.cpus.iter().for_each(|cpu| group.insert(cpu));
            }
            None if groups.is_empty() => break,
            None => {}
        }
    }
    if groups.len() < 2 {
        return Vec::new();
    }
    groups.into_iter().map(|(value, cpus)| Kind { value, name: name(value), cpus }).collect()
}

fn decimal(bytes: &[u8]) -> Result<u64, ValueError> {
    let value = values::number(bytes)?;
    u64::try_from(value).map_err(|_| ValueError::Negative(value))
}

fn hexadecimal(bytes: &[u8]) -> Result<u64, ValueError> {
    let text = String::from_utf8_lossy(values::trim(bytes));
    // The lowest four bits are the patch level, in which cores of one kind may differ.
    let value = u64::from_str_radix(text.trim_start_matches("0x"), 16);
    value.map(|v| v & !0xf).map_err(|_| ValueError::Hexadecimal)
}

fn model_name(midr: u64) -> String {
    format!("part {:#x} of implementer {:#x}", midr >> 4 & 0xfff, midr >> 24 & 0xff)
}

fn sort_by_capacity(reader: &mut Reader<'_>, kinds: &mut [Kind]) {
    for kind in kinds.iter_mut() {
        let cpu = kind.cpus.first().unwrap_or_default();
        kind.value = reader.value(format_args!("{CPU}/cpu{cpu}/cpu_capacity"), decimal).unwrap_or(0);
    }
    kinds.sort_by_key(|kind| kind.value);
}

/// Merges kinds whose capacities are within 10% of the smallest.
fn merge_near(kinds: &mut Vec<Kind>) {
    kinds.dedup_by(|next, kept| {
        let near = next.value.saturating_mul(10) <= kept.value.saturating_mul(11);
        if near {
            kept.cpus = kept.cpus.or(&next.cpus);
        }
        near
    });
}
