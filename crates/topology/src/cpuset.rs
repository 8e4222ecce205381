//! Which CPUs and nodes this process may use.

use crate::reader::Reader;
use crate::values;
use numakit_model::CpuSet;
use numakit_sys::proc::cgroup::{self, GroupLine};
use numakit_sys::proc::mounts::{self, MountLine};
use numakit_sys::proc::status;

const STATUS: &str = "/proc/self/status";

pub(crate) struct Allowed {
    pub cpus: CpuSet,
    pub nodes: CpuSet,
}

/// Reads the allowed CPUs and nodes from `/proc/self/status`, which is the result of cpusets and affinity. In captures
/// without that file, from the files of the cpuset; if these are missing too, everything is allowed.
pub(crate) fn read(reader: &mut Reader<'_>, online: &CpuSet, nodes: &CpuSet) -> Allowed {
    let status = reader.text(format_args!("{STATUS}")).map(of_status).unwrap_or_default();
    let (cpus, mems) = match status {
        (None, None) => of_cpuset(reader, "self").unwrap_or_default(),
        known => known,
    };
    Allowed { cpus: limit(cpus, online), nodes: limit(mems, nodes) }
}

/// Reads what another process may be given: its cpuset, whatever its threads or this process are bound to. Everything if there
/// is no cpuset.
pub(crate) fn of_process(reader: &mut Reader<'_>, process: u32, online: &CpuSet, nodes: &CpuSet) -> Allowed {
    let (cpus, mems) = of_cpuset(reader, &process.to_string()).unwrap_or_default();
    Allowed { cpus: limit(cpus, online), nodes: limit(mems, nodes) }
}

/// A cpuset may name CPUs that are not online. If it names none that is online, it was misread and is ignored.
fn limit(set: Option<CpuSet>, all: &CpuSet) -> CpuSet {
    set.map(|set| set.and(all)).filter(|set| !set.is_empty()).unwrap_or_else(|| all.clone())
}

/// The CPU mask of this process, or of the one that made the capture.
pub(crate) fn mask(reader: &mut Reader<'_>) -> Option<CpuSet> {
    reader.text(format_args!("{STATUS}")).and_then(|text| of_status(text).0)
}

/// The lists of allowed CPUs and nodes in a status file.
pub fn of_status(text: &str) -> (Option<CpuSet>, Option<CpuSet>) {
    let list = |name: &str| values::list(status::field(text, name)?.as_bytes()).ok();
    (list("Cpus_allowed_list"), list("Mems_allowed_list"))
}

/// Where cpusets are mounted, and the names of their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The mount point.
    pub path: String,
    /// The kind.
    pub kind: MountKind,
}

/// The versions of cpusets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountKind {
    /// cgroup v2, for cpusets only if its root says so.
    Unified,
    /// cgroup v1 with the cpuset controller.
    Controller,
    /// cgroup v1 mounted with `noprefix`, and its predecessor, the cpuset file system.
    Legacy,
}

impl MountKind {
    fn files(self) -> [&'static str; 2] {
        match self {
            Self::Unified => ["cpuset.cpus.effective", "cpuset.mems.effective"],
            Self::Controller => ["cpuset.cpus", "cpuset.mems"],
            Self::Legacy => ["cpus", "mems"],
        }
    }
}

/// The mounts in /proc/mounts that may have cpusets, in that order.
pub fn mounts(text: &str) -> Vec<Mount> {
    let one = |mount: MountLine<'_>| {
        let kind = match mount.system {
            "cgroup2" => MountKind::Unified,
            "cgroup" if mount.has("cpuset") && mount.has("noprefix") => MountKind::Legacy,
            "cgroup" if mount.has("cpuset") => MountKind::Controller,
            "cpuset" => MountKind::Legacy,
            _ => return None,
        };
        Some(Mount { path: mount.path.to_owned(), kind })
    };
    mounts::lines(text).filter_map(one).collect()
}

/// The path of this process's group in /proc/self/cgroup: of the cpuset controller, or of v2.
pub fn group(text: &str, kind: MountKind) -> Option<&str> {
    let fits = |line: &GroupLine<'_>| match kind {
        MountKind::Unified => line.is_unified,
        MountKind::Controller | MountKind::Legacy => line.has("cpuset"),
    };
    cgroup::lines(text).find(fits).map(|line| line.path)
}

/// The sets of a process's cpuset.
fn of_cpuset(reader: &mut Reader<'_>, process: &str) -> Option<(Option<CpuSet>, Option<CpuSet>)> {
    let mut mounts = mounts(reader.text(format_args!("/proc/mounts"))?);
    mounts.retain(|m| m.kind != MountKind::Unified || has_cpusets(reader, &m.path));
    let mount = mounts.first()?;
    let groups = reader.text(format_args!("/proc/{process}/cgroup")).and_then(|text| group(text, mount.kind));
    let path = match groups.map(str::to_owned) {
        Some(path) => path,
        None => reader.text(format_args!("/proc/{process}/cpuset")).unwrap_or("/").to_owned(),
    };
    let [cpus, mems] = mount.kind.files().map(|file| nearest(reader, &mount.path, &path, file));
    Some((cpus, mems))
}

fn has_cpusets(reader: &mut Reader<'_>, mount: &str) -> bool {
    let controllers = reader.text(format_args!("{mount}/cgroup.controllers")).unwrap_or("");
    controllers.split_ascii_whitespace().any(|c| c == "cpuset")
}

/// The set in the group's file, or in that of the nearest parent where it is not empty.
fn nearest(reader: &mut Reader<'_>, mount: &str, group: &str, file: &str) -> Option<CpuSet> {
    let mut group = group.trim_end_matches('/');
    loop {
        let set = reader.list(format_args!("{mount}{group}/{file}")).filter(|set| !set.is_empty());
        if set.is_some() {
            return set;
        }
        group = &group[..group.rfind('/')?];
    }
}
