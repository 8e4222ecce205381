//! A control group of its own for a program: where the kernel lets us, nobody else may use its
//! CPUs.

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

/// Where control groups of version 2 are, alone or beside those of version 1.
const TOPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Which controllers the groups below have.
const CONTROL: &str = "cgroup.subtree_control";
/// The names of our groups; the process that made it follows.
const PREFIX: &str = "numakit-";

/// A control group that was made for one program.
#[derive(Debug)]
pub struct ControlGroup {
    path: PathBuf,
    entrance: File,
    cpus: CpuSet,
    /// Why it is no partition, if it is none.
    shared: Option<GroupError>,
}

/// Why there is no control group for a program, or no partition.
#[derive(Debug, Error)]
pub enum GroupError {
    /// The kernel has none.
    #[error("no control groups: {0}")]
    Without(ReadError),
    /// There are only those of version 1.
    #[error("this machine has no control groups of version 2")]
    Version,
    /// They are nowhere to be found.
    #[error("control groups of version 2 are not mounted at {}", TOPS[0])]
    NotMounted,
    /// The groups below this one do not get the controller.
    #[error("cpuset is not among the controllers of {}", .0.display())]
    Controller(PathBuf),
    /// The user may not make groups below this one.
    #[error("{} is not delegated to this user{}", group.display(), in_brackets(error.as_ref()))]
    NotDelegated {
        /// The group.
        group: PathBuf,
        /// What the kernel said, where it was asked.
        error: Option<io::Error>,
    },
    /// The kernel makes no group below this one.
    #[error("no cpuset can be made below {} ({error})", group.display())]
    Refused {
        /// The group.
        group: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A file of a group cannot be used.
    #[error("{} cannot be {doing}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// The kernel did not make it a partition, and says why.
    #[error("the kernel says '{0}'")]
    Partition(String),
    /// The group above has fewer CPUs.
    #[error("{} gets only CPUs {effective} of {wanted} from the group above", group.display())]
    Fewer {
        /// The group.
        group: PathBuf,
        /// What it gets.
        effective: CpuSet,
        /// What it was to get.
        wanted: CpuSet,
    },
}

fn in_brackets(error: Option<&io::Error>) -> String {
    error.map_or_else(String::new, |error| format!(" ({error})"))
}

impl GroupError {
    /// What to do about it.
    pub fn fix(&self) -> Fix {
        match self {
            Self::Without(_) | Self::Version => {
                Fix::OtherMachine("a machine with systemd and cgroup v2, which has them".to_owned())
            }
            Self::NotMounted => Fix::command(format!("mount -t cgroup2 none {}", TOPS[0])),
            Self::Controller(_) | Self::NotDelegated { .. } | Self::Refused { .. } => {
                Fix::Step("start it with 'systemd-run --scope -p Delegate=yes'".to_owned())
            }
            Self::File { .. } | Self::Partition(_) | Self::Fewer { .. } => {
                Fix::Step("see what the group above allows".to_owned())
            }
        }
    }
}

impl ControlGroup {
    /// For [`numakit_sys::start::PreparedCommand::cgroup`]: the program enters before its mask is set, since
    /// entering discards the mask.
    pub fn descriptor(&self) -> RawFd {
        self.entrance.as_raw_fd()
    }

    /// Whether nobody else may use its CPUs.
    pub fn is_partition(&self) -> bool {
        self.shared.is_none()
    }

    /// What it does to others, which its user should know; one line.
    pub fn warning(&self) -> Option<String> {
        let release = kernel_release(&SysRoot::host()).unwrap_or_default();
        let above = self.path.parent()?.display();
        (self.is_partition() && !keeps_masks(&release)).then(|| {
            format!(
                "Linux {} unbinds all processes of {above} when a partition comes or goes, those that \
                 others placed too; Linux 6.2 does not, nor is anybody else in a group of your own \
                 ('systemd-run --scope -p Delegate=yes')",
                release
            )
        })
    }

    /// Removes it. The processes in it have ended, but may not be gone yet.
    pub fn remove(self) {
        for _ in 0..100 {
            match give_back(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
    }
}

/// What was obtained, in one line.
impl fmt::Display for ControlGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cpus, path) = (&self.cpus, self.path.display());
        match &self.shared {
            None => write!(f, "CPUs {cpus} are a partition of their own: {path}"),
            Some(why) => {
                write!(f, "CPUs {cpus} are a plain cpuset, which others may use as well ({why}): {path}")
            }
        }
    }
}

/// Whether a kernel remembers what masks processes asked for.
fn keeps_masks(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 2)
}

/// Makes a control group for these CPUs and, unless that is left open, these nodes: a partition,
/// which is the program's alone, where the kernel allows that, else a plain cpuset. The error says
/// in one line why there is none; the cores are held all the same.
pub fn isolate(cpus: &CpuSet, mems: Option<&CpuSet>) -> Result<ControlGroup, GroupError> {
    isolate_below(&own_group()?, std::process::id(), cpus, mems)
}

/// Whether [`isolate`] can make a control group here, without making one.
pub fn possible() -> Result<String, GroupError> {
    let own = own_group()?;
    match is_enabled(&own)? {
        true if user::may_write(&own) => {}
        false if user::may_write(&own) && user::may_write(&own.join(CONTROL)) => {}
        _ => return Err(GroupError::NotDelegated { group: own, error: None }),
    }
    Ok(format!("cpuset of {}", own.display()))
}

/// CPUs that partitions have now and that this process may use again once those go.
pub fn lent(online: &CpuSet) -> CpuSet {
    let own = own_group().ok();
    own.and_then(|own| lent_of(&own, online)).unwrap_or_default()
}

fn lent_of(own: &Path, online: &CpuSet) -> Option<CpuSet> {
    let read = |path: PathBuf| CpuSet::parse_list(fs::read_to_string(path).ok()?.trim()).ok();
    let effective = read(own.join("cpuset.cpus.effective"))?;
    // A group without CPUs of its own, as the topmost one, has those of the one above.
    let groups = own.ancestors().filter_map(|group| read(group.join("cpuset.cpus")));
    let wanted = groups.filter(|cpus| !cpus.is_empty()).fold(online.clone(), |all, cpus| all.and(&cpus));
    Some(wanted.minus(&effective))
}

/// Removes control groups that nobody uses and whose maker is gone without removing them: as long
/// as they are there, nobody else may use their CPUs. Returns whether there were any.
pub fn sweep() -> bool {
    let Ok(own) = own_group() else { return false };
    let entries = fs::read_dir(&own).into_iter().flatten().flatten();
    let left = entries.map(|entry| entry.path()).filter(|path| is_left(path));
    // The kernel refuses where a process is in it after all.
    left.filter(|path| give_back(path).is_ok()).count() > 0
}

/// Removes a group. Its CPUs are everybody's again when this returns: the kernel would give those
/// of a partition that is only removed back some time later, and what the caller starts at that
/// moment in the topmost group would keep the narrow mask for ever.
fn give_back(group: &Path) -> io::Result<()> {
    let _ = write(&group.join("cpuset.cpus.partition"), "member");
    fs::remove_dir(group)
}

/// Writes to a file that is there; where the kernel has none, none is made.
fn write(file: &Path, text: &str) -> io::Result<()> {
    File::options().write(true).open(file)?.write_all(text.as_bytes())
}

fn is_left(group: &Path) -> bool {
    let name = group.file_name().and_then(|name| name.to_str());
    let pid = name.and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
    let Some(pid) = pid else { return false };
    let events = fs::read_to_string(group.join("cgroup.events")).unwrap_or_default();
    !TaskDir::of(&SysRoot::host(), pid).exists() && events.lines().any(|line| line == "populated 0")
}

/// The group of version 2 that this process is in.
fn own_group() -> Result<PathBuf, GroupError> {
    let lines = TaskDir::own(&SysRoot::host()).text("cgroup").map_err(GroupError::Without)?;
    let own = cgroup::unified(&lines).ok_or(GroupError::Version)?;
    let top = TOPS.iter().map(Path::new).find(|top| top.join("cgroup.controllers").is_file());
    let top = top.ok_or(GroupError::NotMounted)?;
    // Without a slash at the end, for people.
    Ok(top.join(own.trim_start_matches('/')).components().collect())
}

/// Whether the groups below have the controller; an error where they cannot.
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
    let made = share_domain(&path).map_err(refused).and_then(|()| fill(&path, cpus, mems));
    made.inspect_err(|_| {
        let _ = give_back(&path);
    })
}

/// Below a group with processes of its own, as that of this process is unless it is the topmost
/// one, a group takes processes only as a threaded one.
fn share_domain(group: &Path) -> io::Result<()> {
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
        // The kernel takes the word and says only here whether it is so.
        if state.trim() == "root" { Ok(()) } else { Err(GroupError::Partition(state.trim().to_owned())) }
    });
    let shared = partition.err().inspect(|_| {
        // A partition that is not valid is a plain cpuset, but the kernel may make it one later.
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
    fn without_the_controller_or_the_right_it_says_why() {
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
    fn kernels_that_forget_masks_are_known() {
        assert!(["6.2.0", "6.12.3-amd64", "7.0-rc1\n"].into_iter().all(keeps_masks));
        assert!(!["6.1.0-56-cloud-amd64\n", "5.15", ""].into_iter().any(keeps_masks));
    }

    #[test]
    fn what_a_group_lacks_is_lent() {
        let top = std::env::temp_dir().join(format!("numakit-lent-{}", std::process::id()));
        let own = top.join("own");
        fs::create_dir_all(&own).unwrap();
        let online = CpuSet::range(0, 7);
        let lent = |effective: &str, above: &str, cpus: &str| {
            fs::write(own.join("cpuset.cpus.effective"), effective).unwrap();
            fs::write(top.join("cpuset.cpus"), above).unwrap();
            fs::write(own.join("cpuset.cpus"), cpus).unwrap();
            lent_of(&own, &online).unwrap().to_string()
        };
        let seen = [("0-7\n", "\n", "\n"), ("0-1\n", "\n", "\n"), ("2\n", "0-3\n", "2-5\n")];
        let seen = seen.map(|(effective, above, cpus)| lent(effective, above, cpus));
        let nothing = lent_of(&top, &online);
        fs::remove_dir_all(&top).unwrap();
        assert_eq!((seen, nothing), (["", "2-7", "3"].map(str::to_owned), None));
    }

    #[test]
    fn groups_are_left_when_they_are_empty_and_their_maker_is_gone() {
        let top = std::env::temp_dir().join(format!("numakit-left-{}", std::process::id()));
        let group = |name: &str, populated: u32| {
            let path = top.join(name);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("cgroup.events"), format!("populated {populated}\nfrozen 0\n")).unwrap();
            is_left(&path)
        };
        // No process has so high a number.
        let seen = [("numakit-4194305", 0), ("numakit-4194305", 1), ("numakit-x", 0), ("other", 0)]
            .map(|(name, populated)| group(name, populated));
        let own = group(&format!("numakit-{}", std::process::id()), 0);
        fs::remove_dir_all(&top).unwrap();
        assert_eq!((seen, own), ([true, false, false, false], false));
    }
}
