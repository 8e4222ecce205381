//! Simulated machines, with the PMUs that a kernel would show on such hardware. Each is described
//! by a text file in `data/machines/`.

mod description;

use crate::sysfs;
use description::{Description, Place, Unit};
use numakit_model::{CpuSet, Topology, suggest};
use numakit_sys::root::FileTree;
use numakit_topology::synthetic;
use std::fmt::Write;
use thiserror::Error;

const DEVICES: &str = "/sys/bus/event_source/devices";

/// A machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its /sys and /proc.
    pub tree: FileTree,
    /// Its topology.
    pub topology: Topology,
    /// Its PMUs.
    pub pmus: Vec<PmuSpec>,
}

/// A PMU of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct PmuSpec {
    /// Name of its directory.
    pub name: String,
    /// The type number of the kernel.
    pub kind: u32,
    /// The CPUs that its events are opened on; empty: any.
    pub cpus: CpuSet,
    /// Number of events that count at the same time.
    pub counters: usize,
}

/// An error in the description of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MachineError {
    /// No file describes it.
    #[error("unknown machine '{name}'; the machines are {known}{}", near.as_ref().map_or(String::new(), |n| format!("; did you mean '{n}'?")))]
    Unknown {
        /// The requested name.
        name: String,
        /// All names.
        known: String,
        /// The most similar one.
        near: Option<String>,
    },
    /// A line of its file is wrong.
    #[error("line {line}: {wrong}; {fix}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong, with the current text.
        wrong: String,
        /// What is expected.
        fix: String,
    },
}

macro_rules! machines {
    ($($name:literal)*) => {
        /// Every description by its name.
        static MACHINES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../data/machines/", $name, ".txt")))),*];
    };
}

machines! {
    "haswell-ep" "skylake-sp" "sapphire-rapids" "opteron-10h" "opteron-15h" "zen3" "zen4" "zen5"
    "altra" "cmn-700" "grace" "kunpeng-920" "kunpeng-hip09" "power10"
}

/// The names of all machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// The machine of that name.
pub fn machine(name: &str) -> Result<Machine, MachineError> {
    let text = MACHINES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text);
    text.map_or_else(|| Err(unknown(name)), parse)
}

fn unknown(name: &str) -> MachineError {
    MachineError::Unknown {
        name: name.to_owned(),
        known: names().collect::<Vec<_>>().join(", "),
        near: suggest::nearest(name, names(), 1).first().map(|&n| n.to_owned()),
    }
}

/// The machine of a description.
pub fn parse(text: &str) -> Result<Machine, MachineError> {
    let description = description::parse(text)?;
    let topology = synthetic::parse(&description.topology.1).map_err(|e| MachineError::Line {
        line: description.topology.0,
        wrong: "invalid topology".to_owned(),
        fix: e.to_string(),
    })?;
    let mut tree = sysfs::tree(&topology);
    write_cpu(&description, &topology, &mut tree);
    tree.file("/proc/sys/kernel/perf_event_paranoid", format!("{}\n", description.paranoid));
    for (name, kind) in [("software", 1), ("tracepoint", 2)] {
        write_pmu(&mut tree, name, &[("type".to_owned(), kind.to_string())]);
    }
    let mut pmus = Vec::new();
    for unit in &description.units {
        add(unit, &topology, &mut tree, &mut pmus)?;
    }
    Ok(Machine { tree, topology, pmus })
}

/// All PMUs of a section.
fn add(unit: &Unit, t: &Topology, tree: &mut FileTree, pmus: &mut Vec<PmuSpec>) -> Result<(), MachineError> {
    let (cpus, file) = cpus(unit, t)?;
    for (kind, name) in (unit.kind..).zip(&unit.names) {
        let mut files = unit.files.clone();
        files.push(("type".to_owned(), kind.to_string()));
        files.extend(file.map(|file| (file.to_owned(), cpus.to_string())));
        write_pmu(tree, name, &files);
        let cpus = if unit.place == Place::All { CpuSet::new() } else { cpus.clone() };
        pmus.push(PmuSpec { name: name.clone(), kind, cpus, counters: unit.counters });
    }
    Ok(())
}

/// The CPUs of the PMUs of a section, and the file that lists them.
fn cpus(unit: &Unit, t: &Topology) -> Result<(CpuSet, Option<&'static str>), MachineError> {
    let first = |set: Option<&CpuSet>| set.and_then(CpuSet::first).into_iter().collect::<CpuSet>();
    let firsts = |sets: Vec<&CpuSet>| sets.into_iter().filter_map(CpuSet::first).collect::<CpuSet>();
    let package = |n: u32| t.packages.get(n as usize).map(|p| &p.cpus);
    let cpus = match unit.place {
        Place::All => return Ok((t.online.clone(), None)),
        Place::Cores => return Ok((t.online.clone(), Some("cpus"))),
        Place::First => first(Some(&t.online)),
        Place::Packages => firsts(t.packages.iter().map(|p| &p.cpus).collect()),
        Place::Nodes => firsts(t.nodes.iter().map(|n| &n.cpus).collect()),
        Place::Package(n) => first(package(n)),
        Place::Node(n) => first(t.nodes.iter().find(|node| node.os_index == n).map(|node| &node.cpus)),
    };
    if cpus.is_empty() {
        let wrong = format!("the machine has no {:?}", unit.place);
        return Err(MachineError::Line {
            line: unit.line,
            wrong,
            fix: "use a package or node of the topology".to_owned(),
        });
    }
    Ok((cpus, Some("cpumask")))
}

/// Writes the files of a PMU; its directory is a symbolic link, as in the real /sys.
fn write_pmu(tree: &mut FileTree, name: &str, files: &[(String, String)]) {
    tree.symlink(&format!("{DEVICES}/{name}"), &format!("../../../devices/{name}"));
    for (file, content) in files {
        tree.file(&format!("/sys/devices/{name}/{file}"), format!("{content}\n"));
    }
}

fn write_cpu(description: &Description, t: &Topology, tree: &mut FileTree) {
    let (key, identity) = &description.identity;
    let parts: Vec<&str> = identity.split('-').collect();
    let lines = match (key.as_str(), parts.as_slice()) {
        ("cpu", [vendor, family, model, stepping]) => {
            let number = |hex: &str| u32::from_str_radix(hex, 16).unwrap_or_default();
            let (model, stepping) = (number(model), number(stepping));
            format!(
                "vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nstepping\t: {stepping}\n"
            )
        }
        ("midr", [by, part]) => format!("CPU implementer\t: {by}\nCPU architecture: 8\nCPU part\t: {part}\n"),
        _ => format!("revision\t: 2.0 (pvr {} 0200)\n", identity.trim_start_matches("0x")),
    };
    let mut text = String::new();
    for cpu in t.online.iter() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "processor\t: {cpu}\n{lines}");
    }
    tree.file("/proc/cpuinfo", text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::SysRoot;

    #[test]
    fn the_directory_of_a_pmu_is_a_link_with_scales_and_units_in_it() {
        let root = SysRoot::of_tree(machine("haswell-ep").unwrap().tree);
        let folder = format!("{DEVICES}/uncore_imc_4");
        assert_eq!(root.link(&folder).unwrap(), "../../../devices/uncore_imc_4");
        let read = |file: &str| root.text(&format!("{folder}/{file}")).unwrap();
        assert_eq!(read("cpumask"), "0,12\n");
        assert_eq!(read("format/event"), "config:0-7\n");
        assert_eq!(read("events/cas_count_read"), "event=0x04,umask=0x03\n");
        assert_eq!(read("events/cas_count_read.scale"), "6.103515625e-5\n");
        assert_eq!(read("events/cas_count_read.unit"), "MiB\n");
    }

    #[test]
    fn errors_name_the_line() {
        let error = machine("zen44").unwrap_err().to_string();
        assert!(error.contains("did you mean 'zen4'?"), "{error}");
        let head = "topology package:2\ncpu GenuineIntel-6-8F-8\nparanoid 2\n";
        for (text, words) in [
            (String::new(), "line 1: the file has no line 'topology'"),
            ("topology pakage:2\ncpu A-6-8F-8\nparanoid 2\n".to_owned(), "line 1: invalid topology"),
            (
                format!("{head}[x type 1 cpus package 7 counters 4]\n"),
                "line 4: the machine has no Package(7)",
            ),
            (
                format!("{head}[x type one cpus all counters 4]\n"),
                "line 4: invalid line '[x type one cpus all counters 4]'",
            ),
            (
                format!("{head}[x type 1 cpus all counters 4]\nformat event\n"),
                "line 5: invalid line 'format event'",
            ),
            (format!("{head}format event config:0-7\n"), "line 4: invalid line 'format event config:0-7'"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
