//! `resctrl`: bandwidth to memory and cache in use, for each L3 cache and each group of tasks,
//! from the kernel's resource control filesystem.
//!
//! A name has the path of the group: `resctrl.mbm_total_bytes` is the root group,
//! `resctrl.GROUP.mbm_total_bytes` a control group, and `resctrl.mon_groups.M.mbm_total_bytes`
//! and `resctrl.GROUP.mon_groups.M.mbm_total_bytes` are monitoring groups. The values of a control
//! group include its monitoring groups. Groups that are created later are not sampled.

mod domains;

use crate::Scene;
use crate::events::Identity;
use crate::layout::digits;
use crate::sensor::{Absent, Probed, Sensor, SensorEntry, Tick, metric, narrow};
use domains::{Domain, Domains};
use numakit_model::{Fix, Kind, Metric, Scope, Series, Unavailable, Unit};
use numakit_sys::root::Watched;
use numakit_sys::{ReadError, SysRoot};
use std::collections::HashSet;
use std::sync::Arc;

const FOLDER: &str = "/sys/fs/resctrl";
const FEATURES: &str = "/sys/fs/resctrl/info/L3_MON/mon_features";
const MISSING: &str = "memory bandwidth and cache occupancy of groups";

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: "resctrl",
    help: "Memory bandwidth and occupancy of each L3 cache, for each resctrl group.",
    default: |_| true,
    known: || VALUES.iter().map(|value| value.metric("", "/", Scope::Package)).collect(),
    probe,
};

/// A file of each domain of a group.
struct Value {
    file: &'static str,
    kind: Kind,
    help: &'static str,
    /// Its flag in /proc/cpuinfo, and the word of the kernel parameter `rdt=` that enables it.
    flag: &'static str,
    option: &'static str,
}

const VALUES: [Value; 3] = [
    Value {
        file: "llc_occupancy",
        kind: Kind::Gauge,
        help: "L3 cache in use",
        flag: "cqm_occup_llc",
        option: "cmt",
    },
    Value {
        file: "mbm_total_bytes",
        kind: Kind::COUNTER,
        help: "Bytes between the L3 cache and all memory, local and remote",
        flag: "cqm_mbm_total",
        option: "mbmtotal",
    },
    Value {
        file: "mbm_local_bytes",
        kind: Kind::COUNTER,
        help: "Bytes between the L3 cache and the memory of its own node",
        flag: "cqm_mbm_local",
        option: "mbmlocal",
    },
];

impl Value {
    /// The metric of a group; `prefix` is its part of the name, with the final dot.
    fn metric(&self, prefix: &str, group: &str, scope: Scope) -> Metric {
        let help = match group {
            "/" => format!("{}, by tasks in no other control group.", self.help),
            group => format!("{}, by tasks of the group {group}.", self.help),
        };
        let source = match group {
            "/" => format!("{FOLDER}/mon_data/mon_L3_*/{}", self.file),
            group => format!("{FOLDER}/{group}/mon_data/mon_L3_*/{}", self.file),
        };
        metric(&format!("resctrl.{prefix}{}", self.file), Unit::Bytes, self.kind, scope, &help, &source)
    }
}

#[derive(Debug, Default)]
struct Resctrl {
    series: Vec<Series>,
    absent: Vec<Absent>,
    files: Vec<File>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct File {
    watched: Watched,
    slot: usize,
    refusal: Option<Refusal>,
}

/// Why a file has no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Unavailable,
    Error,
    Unassigned,
    NoNumber,
}

fn probe(scene: &Scene<'_>) -> Probed {
    let root = scene.root;
    let features = root.text(FEATURES).map_err(|error| why_not(root, &error))?;
    let domains = Domains::of(scene, &format!("{FOLDER}/mon_data"));
    let mut sensor = Resctrl::default();
    let mut names = HashSet::new();
    let mut failure = None;
    for group in groups(root) {
        let prefix = unique(&mut names, &group);
        let wanted = VALUES.iter().filter(|v| features.lines().any(|line| line.trim() == v.file));
        for value in wanted {
            let metric = Arc::new(value.metric(&prefix, &group, domains.scope));
            for domain in &domains.found {
                let path = domain.file(&group, value.file);
                match Watched::open(root, path) {
                    Ok(watched) => sensor.add(watched, &metric, domain),
                    Err(error) => _ = failure.get_or_insert(error),
                }
            }
        }
    }
    let flags = Identity::read(root).flags.unwrap_or_default();
    for value in VALUES.iter().filter(|v| !features.lines().any(|line| line.trim() == v.file)) {
        sensor.absent.push(value.not_offered(&features, &flags, domains.scope));
    }
    if sensor.series.is_empty() {
        let seen = failure.map_or_else(
            || format!("{FOLDER}/mon_data has no mon_L3_* with a known file"),
            |e| e.to_string(),
        );
        return Err(Unavailable::new(MISSING, seen, root.fix_for(FOLDER)));
    }
    Ok(Box::new(sensor))
}

impl Value {
    fn not_offered(&self, features: &str, flags: &HashSet<String>, scope: Scope) -> Absent {
        let metric = self.metric("", "/", scope);
        let words: Vec<&str> = features.split_whitespace().collect();
        let seen =
            format!("{FEATURES} has {}", if words.is_empty() { "nothing".into() } else { words.join(", ") });
        let fix = monitoring(flags, self.flag, self.option);
        Absent { why: Unavailable::new(self.help, seen, fix), metric }
    }
}

/// The fix for a missing feature: the kernel parameter `rdt=` if the CPU has the flag.
fn monitoring(flags: &HashSet<String>, flag: &str, option: &str) -> Fix {
    let parameter = format!("rdt={option}");
    match flags.contains(flag) {
        true => Fix::KernelParameter { parameter, option: None },
        false => Fix::OtherMachine(format!(
            "a CPU whose flags have {flag}, with {parameter} on the kernel's command line"
        )),
    }
}

/// Why there is no list of features, and the fix.
fn why_not(root: &SysRoot, error: &ReadError) -> Unavailable {
    let info = root.list(&format!("{FOLDER}/info")).unwrap_or_default();
    if !info.is_empty() {
        let seen = match error.is_missing() {
            true => format!("{FOLDER}/info has only {}", info.join(", ")),
            false => error.to_string(),
        };
        let flags = Identity::read(root).flags.unwrap_or_default();
        let fix = monitoring(&flags, "cqm_llc", "cmt,mbmtotal,mbmlocal");
        return Unavailable::new(MISSING, seen, fix);
    }
    let known = root.text("/proc/filesystems").unwrap_or_default();
    if root.exists(FOLDER) || known.split_whitespace().any(|word| word == "resctrl") {
        let seen = format!("{FOLDER} is not mounted");
        return Unavailable::new(MISSING, seen, Fix::command(format!("mount -t resctrl resctrl {FOLDER}")));
    }
    let Some(flags) = Identity::read(root).flags else {
        return Unavailable::new(MISSING, format!("no {FOLDER}"), root.fix_for(FOLDER));
    };
    let has: Vec<&str> = VALUES.iter().map(|v| v.flag).filter(|f| flags.contains(*f)).collect();
    if has.is_empty() {
        let seen = match flags.is_empty() {
            true => format!("no {FOLDER}"),
            false => format!("no {FOLDER}, and the flags in /proc/cpuinfo have no cqm_mbm_total"),
        };
        let machine = "a CPU that monitors bandwidth (Intel RDT, AMD QoS), outside of a virtual machine";
        return Unavailable::new(MISSING, seen, Fix::OtherMachine(machine.to_owned()));
    }
    let seen = format!("the flags in /proc/cpuinfo have {}, but there is no {FOLDER}", has.join(", "));
    let fix = match root.is_host() {
        true => Fix::BuildOption("CONFIG_X86_CPU_RESCTRL".to_owned()),
        false => root.fix_for(FOLDER),
    };
    Unavailable::new(MISSING, seen, fix)
}

/// The paths of all groups below the folder; the root group is `/`.
fn groups(root: &SysRoot) -> Vec<String> {
    let mut found = vec!["/".to_owned()];
    let monitors = |group: &str| -> Vec<String> {
        let names = root.list(&format!("{FOLDER}/{group}mon_groups")).unwrap_or_default();
        names.into_iter().map(|name| format!("{group}mon_groups/{name}")).collect()
    };
    found.extend(monitors(""));
    for name in root.list(FOLDER).unwrap_or_default() {
        if !["info", "mon_data", "mon_groups"].contains(&name.as_str()) {
            found.push(name.clone());
            found.extend(monitors(&format!("{name}/")));
        }
    }
    found.retain(|group| group == "/" || root.list(&format!("{FOLDER}/{group}/mon_data")).is_ok());
    found
}

/// The part of the names for a group: its path with dots. Characters with a meaning in lists of
/// events become `_`.
fn unique(used: &mut HashSet<String>, group: &str) -> String {
    let plain = |c: char| match c {
        '/' => '.',
        c if c.is_ascii_alphanumeric() || c == '-' => c,
        _ => '_',
    };
    if group == "/" {
        return String::new();
    }
    let name: String = group.chars().map(plain).collect();
    let mut prefix = format!("{name}.");
    let mut more = 2;
    while !used.insert(prefix.clone()) {
        prefix = format!("{name}_{more}.");
        more += 1;
    }
    prefix
}

impl Resctrl {
    fn add(&mut self, watched: Watched, metric: &Arc<Metric>, domain: &Domain) {
        self.files.push(File { watched, slot: self.series.len(), refusal: None });
        self.series.push(Series::new(metric, domain.instance));
    }
}

/// The number in a file, or why there is none.
fn value(text: &[u8]) -> Result<u64, Refusal> {
    match digits(text) {
        Some((value, b"" | b"\n")) => Ok(value),
        _ => Err(match text.trim_ascii() {
            b"Unavailable" => Refusal::Unavailable,
            b"Error" => Refusal::Error,
            b"Unassigned" => Refusal::Unassigned,
            _ => Refusal::NoNumber,
        }),
    }
}

impl Sensor for Resctrl {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = narrow(&mut self.series, wanted);
        self.files.retain_mut(|file| match successors[file.slot] {
            Some(new) => {
                file.slot = new;
                true
            }
            None => false,
        });
    }

    fn files(&self) -> usize {
        self.files.len()
    }

    fn read(&mut self, _: &Tick, out: &mut [Option<u64>]) {
        for file in &mut self.files {
            file.refusal = None;
            if file.watched.read(&mut self.buffer) {
                match value(&self.buffer) {
                    Ok(value) => out[file.slot] = Some(value),
                    Err(refusal) => file.refusal = Some(refusal),
                }
            }
        }
    }

    fn failure(&self) -> Option<String> {
        self.files.iter().find_map(|file| {
            if let Some(error) = file.watched.failure() {
                return Some(error.to_string());
            }
            let reason = match file.refusal? {
                Refusal::Unavailable => "the hardware has no count at the moment",
                Refusal::Error => "the hardware refuses the number of the group",
                Refusal::Unassigned => "no counter is assigned to this group",
                Refusal::NoNumber => "not a number",
            };
            Some(format!("{}: {reason}", file.watched.path()))
        })
    }
}

#[cfg(test)]
mod tests;
