//! A control group for a program: a partition, if possible, whose CPUs no other process may use.

use numakit_model::{CpuSet, Fix};
use numakit_sys::proc::machine::kernel_release;
use numakit_sys::proc::{TaskDir, cgroup};
use numakit_sys::{ReadError, SysRoot, user};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Where control groups of version 2 are, without or with those of version 1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The folder that is there where systemd is.
const SYSTEMD: &str = "/run/systemd/system";

/// The file with the controllers of child groups.
const CONTROL: &str = "cgroup.subtree_control";
/// Start of the names of our groups; the PID of the process that made it follows.
const PREFIX: &str = "numakit-";

/// A program's control group.
#[derive(Debug)]
pub struct ControlGroup {
    path: PathBuf,
    entrance: File,
    cpus: CpuSet,
    /// Why it is not a partition, if it is not.
    shared: Option<GroupError>,
}

/// Why a program has no control group, or no partition.
#[derive(Debug, Error)]
pub enum GroupError {
    /// The kernel has no control groups.
    #[error("no control groups: {0}")]
    Without(ReadError),
    /// The kernel has only control groups of version 1.
    #[error("this machine has no control groups of version 2")]
    Version,
    /// Control groups of version 2 are not mounted in a usual place.
    #[error("control groups of version 2 are not mounted at {}", ROOTS[0])]
    NotMounted,
    /// Child groups of this one do not get the controller `cpuset`.
    #[error("cpuset is not among the controllers of {}", .0.display())]
    Controller(PathBuf),
    /// The user may not make child groups of this one.
    #[error("{} is not delegated to this user{}", group.display(), in_brackets(error.as_ref()))]
    NotDelegated {
        /// The group.
        group: PathBuf,
        /// The kernel's error, if a group was tried.
        error: Option<io::Error>,
    },
    /// The kernel refuses a child group of this one.
    #[error("no cpuset can be created in {} ({error})", group.display())]
    Refused {
        /// The group.
        group: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// A file of a group cannot be used.
    #[error("{} cannot be {doing}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// The kernel did not make the group a partition, for this reason.
    #[error("the kernel says '{0}'")]
    Partition(String),
    /// The parent group has fewer CPUs.
    #[error("{} gets only CPUs {effective} of {wanted} from its parent group", group.display())]
    Fewer {
        /// The group.
        group: PathBuf,
        /// The CPUs that the group gets.
        effective: CpuSet,
        /// The CPUs that the program needs.
        wanted: CpuSet,
    },
}

fn in_brackets(error: Option<&io::Error>) -> String {
    error.map_or_else(String::new, |error| format!(" ({error})"))
}

impl GroupError {
    /// The fix.
    pub fn fix(&self) -> Fix {
        match self {
            Self::Without(_) | Self::Version => {
                Fix::OtherMachine("a machine with systemd and cgroup v2, which has them".to_owned())
            }
            Self::NotMounted => Fix::command(format!("mount -t cgroup2 none {}", ROOTS[0])),
            Self::Controller(_) | Self::NotDelegated { .. } | Self::Refused { .. }
                if !SysRoot::host().exists(SYSTEMD) =>
            {
                Fix::OtherMachine("a machine with systemd, which delegates control groups".to_owned())
            }
            Self::Controller(_) | Self::NotDelegated { .. } | Self::Refused { .. } => {
                Fix::Step("start it with 'systemd-run --scope -p Delegate=yes'".to_owned())
            }
            Self::File { .. } | Self::Partition(_) | Self::Fewer { .. } => {
                Fix::Step("check which CPUs the parent group allows".to_owned())
            }
        }
    }
}

impl ControlGroup {
    /// The descriptor for [`numakit_sys::start::PreparedCommand::cgroup`]. The program enters the group before its mask is
    /// set, since entering discards the mask.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.entrance.as_raw_fd()
    }

    /// Whether the kernel keeps all other processes off the group's CPUs.
    pub(crate) fn is_partition(&self) -> bool {
        self.shared.is_none()
    }

    /// A warning about the effect that the group has on other processes; `None` if it has none.
    pub(crate) fn warning(&self) -> Option<String> {
        let release = kernel_release(&SysRoot::host()).unwrap_or_default();
        let above = self.path.parent()?.display();
        (self.is_partition() && !keeps_masks(&release)).then(|| {
            format!(
                "Linux {release} resets the CPU masks of all processes in {above} when a partition is made or \
                 removed, those of other programs too; use Linux 6.2 or later, or a group of your own \
                 ('systemd-run --scope -p Delegate=yes')"
            )
        })
    }

    /// Removes the group. The processes in it have ended, but the kernel may still count them.
    pub(crate) fn remove(self) {
        for _ in 0..100 {
            match remove_group(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
    }
}

/// What the program got, in one line.
impl fmt::Display for ControlGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cpus, path) = (&self.cpus, self.path.display());
        match &self.shared {
            None => write!(f, "CPUs {cpus} are a partition of their own: {path}"),
            Some(why) => {
                write!(f, "CPUs {cpus} are a plain cpuset, which other processes may use too ({why}): {path}")
            }
        }
    }
}

/// Whether a kernel restores the masks of processes that a partition changed.
fn keeps_masks(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 2)
}

/// Makes a control group with these CPUs and, if given, these nodes: a partition if the kernel allows it, else a
/// plain cpuset. If it fails, the cores stay reserved all the same.
pub(crate) fn isolate(cpus: &CpuSet, mems: Option<&CpuSet>) -> Result<ControlGroup, GroupError> {
    isolate_below(&own_group()?, std::process::id(), cpus, mems)
}

/// Checks whether a program can have a control group of its own here; the text says where.
pub fn check() -> Result<String, GroupError> {
    let own = own_group()?;
    match is_enabled(&own)? {
        true if user::may_write(&own) => {}
        false if user::may_write(&own) && user::may_write(&own.join(CONTROL)) => {}
        _ => return Err(GroupError::NotDelegated { group: own, error: None }),
    }
    Ok(format!("cpuset of {}", own.display()))
}

/// CPUs of partitions that this process may use again after those are removed.
pub(crate) fn cpus_in_partitions(online: &CpuSet) -> CpuSet {
    let own = own_group().ok();
    own.and_then(|own| missing_cpus(&own, online)).unwrap_or_default()
}

fn missing_cpus(own: &Path, online: &CpuSet) -> Option<CpuSet> {
    let read = |path: PathBuf| CpuSet::parse_list(fs::read_to_string(path).ok()?.trim()).ok();
    let effective = read(own.join("cpuset.cpus.effective"))?;
    // A group without CPUs of its own, such as the root, has those of its parent.
    let groups = own.ancestors().filter_map(|group| read(group.join("cpuset.cpus")));
    let wanted = groups.filter(|cpus| !cpus.is_empty()).fold(online.clone(), |all, cpus| all.and(&cpus));
    Some(wanted.minus(&effective))
}

/// Removes empty control groups whose maker was killed: other processes cannot use their CPUs as long as they
/// exist. Returns whether there were any.
pub fn remove_abandoned() -> bool {
    let Ok(own) = own_group() else { return false };
    let entries = fs::read_dir(&own).into_iter().flatten().flatten();
    let abandoned = entries.map(|entry| entry.path()).filter(|path| is_abandoned(path));
    // If there is a process in the group after all, the kernel refuses to remove it.
    abandoned.filter(|path| remove_group(path).is_ok()).count() > 0
}

/// Removes a group. When this returns, all processes may use its CPUs again: if a partition is just removed, the
/// kernel returns its CPUs later, and a process that starts meanwhile in the root group keeps the narrow mask.
fn remove_group(group: &Path) -> io::Result<()> {
    let _ = write(&group.join("cpuset.cpus.partition"), "member");
    fs::remove_dir(group)
}

/// Writes to an existing file.
fn write(file: &Path, text: &str) -> io::Result<()> {
    File::options().write(true).open(file)?.write_all(text.as_bytes())
}

fn is_abandoned(group: &Path) -> bool {
    let name = group.file_name().and_then(|name| name.to_str());
    let pid = name.and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
    let Some(pid) = pid else { return false };
    let events = fs::read_to_string(group.join("cgroup.events")).unwrap_or_default();
    !TaskDir::of(&SysRoot::host(), pid).exists() && events.lines().any(|line| line == "populated 0")
}

/// The control group (version 2) of this process.
fn own_group() -> Result<PathBuf, GroupError> {
    let lines = TaskDir::own(&SysRoot::host()).text("cgroup").map_err(GroupError::Without)?;
    let own = cgroup::unified(&lines).ok_or(GroupError::Version)?;
    let top = ROOTS.iter().map(Path::new).find(|top| top.join("cgroup.controllers").is_file());
    let top = top.ok_or(GroupError::NotMounted)?;
    // Without a slash at the end.
    Ok(top.join(own.trim_start_matches('/')).components().collect())
}

/// Whether child groups have the controller `cpuset`; an error if they cannot have it.
fn is_enabled(own: &Path) -> Result<bool, GroupError> {
    let read = |path: PathBuf| {
        fs::read_to_string(&path).map_err(|error| GroupError::File { path, doing: "read", error })
    };
    let has = |text: &str| text.split_whitespace().any(|name| name == "cpuset");
    if !has(&read(own.join("cgroup.controllers"))?) {
        return Err(GroupError::Controller(own.to_owned()));
    }
    Ok(has(&read(own.join(CONTROL))?))
}

fn isolate_below(
    own: &Path,
    pid: u32,
    cpus: &CpuSet,
    mems: Option<&CpuSet>,
) -> Result<ControlGroup, GroupError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            GroupError::NotDelegated { group: own.to_owned(), error: Some(error) }
        }
        _ => GroupError::Refused { group: own.to_owned(), error },
    };
    if !is_enabled(own)? {
        write(&own.join(CONTROL), "+cpuset").map_err(refused)?;
    }
    let path = own.join(format!("{PREFIX}{pid}"));
    fs::create_dir(&path).map_err(refused)?;
    let made = make_threaded(&path).map_err(refused).and_then(|()| fill(&path, cpus, mems));
    made.inspect_err(|_| {
        let _ = remove_group(&path);
    })
}

/// Makes a group threaded if its parent has processes. Only a threaded group can then have processes too, except below the
/// root group.
fn make_threaded(group: &Path) -> io::Result<()> {
    let kind = group.join("cgroup.type");
    match fs::read_to_string(&kind) {
        Ok(text) if text.trim() == "domain invalid" => write(&kind, "threaded"),
        _ => Ok(()),
    }
}

fn fill(path: &Path, cpus: &CpuSet, mems: Option<&CpuSet>) -> Result<ControlGroup, GroupError> {
    let cannot = |doing: &'static str, name: &str| {
        let path = path.join(name);
        move |error| GroupError::File { path, doing, error }
    };
    let put = |name: &str, text: &str| write(&path.join(name), text).map_err(cannot("written", name));
    put("cpuset.cpus", &cpus.to_string())?;
    if let Some(mems) = mems {
        put("cpuset.mems", &mems.to_string())?;
    }
    const STATE: &str = "cpuset.cpus.partition";
    let partition = put(STATE, "root").and_then(|()| {
        let state = fs::read_to_string(path.join(STATE)).map_err(cannot("read", STATE))?;
        // The kernel accepts any "root" and reports here whether it took effect.
        if state.trim() == "root" { Ok(()) } else { Err(GroupError::Partition(state.trim().to_owned())) }
    });
    let shared = partition.err().inspect(|_| {
        // An invalid partition is a plain cpuset, but the kernel could make it valid later.
        let _ = put(STATE, "member");
    });
    let effective = fs::read_to_string(path.join("cpuset.cpus.effective")).ok();
    let effective = effective.and_then(|list| CpuSet::parse_list(&list).ok());
    if let Some(effective) = effective.filter(|set| !cpus.is_subset(set)) {
        return Err(GroupError::Fewer { group: path.to_owned(), effective, wanted: cpus.clone() });
    }
    let entrance = File::options().write(true).open(path.join("cgroup.procs"));
    let entrance = entrance.map_err(cannot("opened", "cgroup.procs"))?;
    Ok(ControlGroup { path: path.to_owned(), entrance, cpus: cpus.clone(), shared })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_controller_or_permission_there_is_a_reason() {
        let own = std::env::temp_dir().join(format!("numakit-group-{}", std::process::id()));
        fs::create_dir_all(&own).unwrap();
        let cpus = CpuSet::range(0, 1);
        let why = |text: &str| {
            fs::write(own.join("cgroup.controllers"), text).unwrap();
            isolate_below(&own, 1, &cpus, None).unwrap_err().to_string()
        };
        assert!(why("cpu memory\n").contains("cpuset is not among the controllers of"));
        assert!(why("cpuset cpu\n").contains("cgroup.subtree_control"));
        fs::write(own.join("cgroup.subtree_control"), "cpuset").unwrap();
        // Not a file system of control groups: nothing is left behind.
        assert!(why("cpuset\n").contains("numakit-1/cpuset.cpus cannot be written"));
        assert!(!own.join("numakit-1").exists());
        fs::remove_dir_all(&own).unwrap();
    }

    #[test]
    fn kernels_that_reset_masks_are_known() {
        assert!(["6.2.0", "6.12.3-amd64", "7.0-rc1\n"].into_iter().all(keeps_masks));
        assert!(!["6.1.0-56-cloud-amd64\n", "5.15", ""].into_iter().any(keeps_masks));
    }

    #[test]
    fn cpus_that_a_group_lacks_are_in_partitions() {
        let top = std::env::temp_dir().join(format!("numakit-lent-{}", std::process::id()));
        let own = top.join("own");
        fs::create_dir_all(&own).unwrap();
        let online = CpuSet::range(0, 7);
        let missing = |effective: &str, above: &str, cpus: &str| {
            fs::write(own.join("cpuset.cpus.effective"), effective).unwrap();
            fs::write(top.join("cpuset.cpus"), above).unwrap();
            fs::write(own.join("cpuset.cpus"), cpus).unwrap();
            missing_cpus(&own, &online).unwrap().to_string()
        };
        let seen = [("0-7\n", "\n", "\n"), ("0-1\n", "\n", "\n"), ("2\n", "0-3\n", "2-5\n")];
        let seen = seen.map(|(effective, above, cpus)| missing(effective, above, cpus));
        let nothing = missing_cpus(&top, &online);
        fs::remove_dir_all(&top).unwrap();
        assert_eq!((seen, nothing), (["", "2-7", "3"].map(str::to_owned), None));
    }

    #[test]
    fn empty_groups_of_killed_processes_are_abandoned() {
        let top = std::env::temp_dir().join(format!("numakit-left-{}", std::process::id()));
        let group = |name: &str, populated: u32| {
            let path = top.join(name);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("cgroup.events"), format!("populated {populated}\nfrozen 0\n")).unwrap();
            is_abandoned(&path)
        };
        // Above the largest PID.
        let seen = [("numakit-4194305", 0), ("numakit-4194305", 1), ("numakit-x", 0), ("other", 0)]
            .map(|(name, populated)| group(name, populated));
        let own = group(&format!("numakit-{}", std::process::id()), 0);
        fs::remove_dir_all(&top).unwrap();
        assert_eq!((seen, own), ([true, false, false, false], false));
    }
}
