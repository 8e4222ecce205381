//! A machine's /sys and /proc in a file: what was read of them, without personal data.

use crate::page_size::vector_of;
use crate::{TopologyError, cpus, read};
use numakit_model::Topology;
use numakit_sys::SysRoot;
use numakit_sys::root::{FileTree, archive};
use std::io::{self, Write};

/// The folders from which files are captured. None of them has names of people, machines or networks, or serial numbers. Of
/// resctrl only the root group is captured, since users name the other groups.
const PLACES: [&str; 18] = [
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/devices/cpu_core",
    "/sys/devices/cpu_atom",
    "/sys/devices/cpu_lowpower",
    "/sys/bus/pci/devices",
    EVENT_SOURCES,
    "/sys/kernel/mm",
    "/sys/fs/resctrl/info",
    "/sys/fs/resctrl/mon_data",
    CPUINFO,
    "/proc/meminfo",
    "/proc/stat",
    "/proc/vmstat",
    "/proc/pressure",
    "/proc/sys/vm",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/perf_event_paranoid",
];
/// Files that are captured even if they were not read: they help a person who reads a capture.
const ALWAYS: [&str; 4] =
    [CPUINFO, "/proc/meminfo", "/proc/sys/vm/stat_interval", "/proc/sys/kernel/perf_event_paranoid"];
/// The PMUs: links to folders elsewhere, captured as folders.
const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";
const CPUINFO: &str = "/proc/cpuinfo";
/// The captured lines of [`CPUINFO`]; on some machines, others have names of boards and serial numbers.
const CPUINFO_KEYS: [&str; 15] = [
    "processor",
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "cpu",
    "clock",
    "revision",
];
/// Files below this path are generated: of the process that captures, only its allowed CPUs and nodes and its page size are
/// captured.
const REWRITTEN: &str = "/proc/self";

/// The folder in the archive.
const FOLDER: &str = "machine";

/// The captured files of a machine.
#[derive(Debug)]
pub struct Capture {
    tree: FileTree,
    topology: Topology,
}

/// What a capture has of one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The folder.
    pub place: &'static str,
    /// Number of files.
    pub files: usize,
    /// Bytes in them.
    pub bytes: usize,
}

impl Capture {
    /// Captures the files that are read for the topology, and those that `also` reads.
    pub fn take(root: &SysRoot, also: impl FnOnce(&SysRoot, &Topology)) -> Result<Self, TopologyError> {
        let traced = root.traced();
        let topology = read(&traced)?;
        also(&traced, &topology);
        ALWAYS.iter().for_each(|path| _ = traced.exists(path));
        let mut tree = FileTree::new();
        for path in traced.touched().iter().filter(|path| place_of(path).is_some()) {
            add(root, path, &mut tree);
        }
        // A container may have a list of its own, which the CPUs that the process may run on contradict.
        let online = format!("{}/online", cpus::CPU);
        if root.exists(&online) {
            tree.file(&online, format!("{}\n", topology.online));
        }
        let status = format!(
            "Cpus_allowed_list:\t{}\nMems_allowed_list:\t{}\n",
            topology.allowed, topology.allowed_nodes
        );
        tree.file(&format!("{REWRITTEN}/status"), status);
        tree.file(&format!("{REWRITTEN}/auxv"), vector_of(topology.page_size));
        Ok(Self { tree, topology })
    }

    /// The machine as it was read.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The files.
    pub fn tree(&self) -> &FileTree {
        &self.tree
    }

    /// What was captured, by folder.
    pub fn contents(&self) -> Vec<Content> {
        let places = PLACES.into_iter().chain([REWRITTEN]);
        let of = |place: &'static str| {
            let mut content = Content { place, files: 0, bytes: 0 };
            for (_, bytes) in self.tree.files().filter(|(path, _)| is_in(path, place)) {
                content.files += 1;
                content.bytes += bytes.len();
            }
            content
        };
        places.map(of).filter(|content| content.files > 0).collect()
    }

    /// Writes an archive that [`SysRoot::open`] reads.
    pub fn write(&self, to: impl Write) -> io::Result<()> {
        archive::write(&self.tree, to, FOLDER)
    }
}

fn is_in(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn place_of(path: &str) -> Option<&'static str> {
    PLACES.into_iter().find(|place| is_in(path, place))
}

/// The lines of [`CPUINFO`] that are captured, with the empty lines between CPUs.
fn without_names(text: &str) -> String {
    let key = |line: &str| line.split(':').next().unwrap_or_default().trim().to_owned();
    let kept = |line: &&str| line.trim().is_empty() || CPUINFO_KEYS.contains(&key(line).as_str());
    text.lines().filter(kept).map(|line| format!("{line}\n")).collect()
}

/// Adds a file with its content, a link to a directory as a link, or a directory with the names
/// of its subdirectories, because some code only lists it.
fn add(root: &SysRoot, path: &str, tree: &mut FileTree) {
    if path == CPUINFO {
        root.text(path).iter().for_each(|text| _ = tree.file(path, without_names(text)));
    } else if let Ok(content) = root.bytes(path) {
        tree.file(path, content);
    } else if let Some(target) = root.link(path).ok().filter(|_| !is_in(path, EVENT_SOURCES)) {
        tree.symlink(path, &target);
    } else if let Ok(names) = root.list(path) {
        tree.directory(path);
        for name in names.iter().map(|name| format!("{path}/{name}")) {
            if root.list(&name).is_ok() {
                tree.directory(&name);
            }
        }
    }
}
