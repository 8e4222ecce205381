//! A machine's /sys and /proc in a file: what a reader looked at, and nothing about people.

use crate::page_size::vector_of;
use crate::{TopologyError, read};
use numakit_model::Topology;
use numakit_sys::SysRoot;
use numakit_sys::root::{FileTree, archive};
use std::io::{self, Write};

/// Where files are taken from; whatever else was looked at stays behind. None of these holds
/// names of people, machines or networks, nor serial numbers. Of resctrl only the root group is
/// taken: people choose the names of the others.
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
/// Taken even when nobody looked: people ask for them when they read a capture.
const ALWAYS: [&str; 4] =
    [CPUINFO, "/proc/meminfo", "/proc/sys/vm/stat_interval", "/proc/sys/kernel/perf_event_paranoid"];
/// The PMUs: links to folders outside of these places, kept as folders.
const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";
const CPUINFO: &str = "/proc/cpuinfo";
/// What is kept of [`CPUINFO`], since on some machines it has the names of boards and serial
/// numbers.
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
/// Written anew: of the process that captures, only what it may use and its page size are kept.
const REWRITTEN: &str = "/proc/self";

/// The folder in the archive.
const FOLDER: &str = "machine";

/// Files of a machine, ready to be written.
#[derive(Debug)]
pub struct Capture {
    tree: FileTree,
    topology: Topology,
}

/// What a capture holds of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The start of the paths.
    pub place: &'static str,
    /// How many files.
    pub files: usize,
    /// Bytes in them.
    pub bytes: usize,
}

impl Capture {
    /// Takes the files that reading the topology looks at, and those that `also` looks at.
    pub fn take(root: &SysRoot, also: impl FnOnce(&SysRoot, &Topology)) -> Result<Self, TopologyError> {
        let traced = root.traced();
        let topology = read(&traced)?;
        also(&traced, &topology);
        ALWAYS.iter().for_each(|path| _ = traced.exists(path));
        let mut tree = FileTree::new();
        for path in traced.touched().iter().filter(|path| place_of(path).is_some()) {
            keep(root, path, &mut tree);
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

    /// What was taken, place by place.
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

/// The lines of [`CPUINFO`] that are kept, and the empty ones between CPUs.
fn without_names(text: &str) -> String {
    let key = |line: &str| line.split(':').next().unwrap_or_default().trim().to_owned();
    let kept = |line: &&str| line.trim().is_empty() || CPUINFO_KEYS.contains(&key(line).as_str());
    text.lines().filter(kept).map(|line| format!("{line}\n")).collect()
}

/// A file with its content, a link to a directory as a link, and a directory with the names of
/// the directories in it, because a reader that lists it goes by them.
fn keep(root: &SysRoot, path: &str, tree: &mut FileTree) {
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
