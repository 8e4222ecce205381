//! A control group of its own for a program: where the kernel lets us, nobody else may use its
//! CPUs.

use numakit_model::CpuSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where control groups of version 2 are, alone or beside those of version 1.
const TOPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// A control group that was made for one program.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    entrance: File,
    told: String,
}

impl Group {
    /// For [`numakit_sys::start::Start::cgroup`]: the program enters before its mask is set, since
    /// entering discards the mask.
    pub fn descriptor(&self) -> RawFd {
        self.entrance.as_raw_fd()
    }

    /// What was obtained, in one line.
    pub fn told(&self) -> &str {
        &self.told
    }

    /// Removes it. The processes in it have ended, but may not be gone yet.
    pub fn remove(self) {
        for _ in 0..100 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
    }
}

/// Makes a control group for these CPUs and, unless that is left open, these nodes: a partition,
/// which is the program's alone, where the kernel allows that, else a plain cpuset. The error says
/// in one line why there is none; the cores are held all the same.
pub fn isolate(cpus: &CpuSet, mems: Option<&CpuSet>) -> Result<Group, String> {
    let lines = fs::read_to_string("/proc/self/cgroup").map_err(|e| format!("no control groups: {e}"))?;
    let own = group_path(&lines).ok_or("this machine has no control groups of version 2")?;
    let top = TOPS.iter().map(Path::new).find(|top| top.join("cgroup.controllers").is_file());
    let top = top.ok_or("control groups of version 2 are not mounted at /sys/fs/cgroup")?;
    let path = top.join(own.trim_start_matches('/'));
    isolate_below(&path, std::process::id(), cpus, mems)
}

/// The path of the version 2 group in the lines of `/proc/self/cgroup`.
pub(crate) fn group_path(lines: &str) -> Option<&str> {
    lines.lines().find_map(|line| line.strip_prefix("0::"))
}

fn isolate_below(own: &Path, pid: u32, cpus: &CpuSet, mems: Option<&CpuSet>) -> Result<Group, String> {
    let read = |path: PathBuf| fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()));
    let has = |text: &str| text.split_whitespace().any(|name| name == "cpuset");
    if !has(&read(own.join("cgroup.controllers"))?) {
        return Err(format!(
            "cpuset is not among the controllers of {}; start it with 'systemd-run --scope -p Delegate=yes'",
            own.display()
        ));
    }
    let control = own.join("cgroup.subtree_control");
    if !has(&read(control.clone())?) {
        fs::write(&control, "+cpuset").map_err(|e| {
            let fix = "start it with 'systemd-run --scope -p Delegate=yes'";
            format!("{} is not delegated to this user ({e}); {fix}", own.display())
        })?;
    }
    let path = own.join(format!("numakit-{pid}"));
    fs::create_dir(&path).map_err(|e| format!("{} cannot be made: {e}", path.display()))?;
    fill(&path, cpus, mems).inspect_err(|_| {
        let _ = fs::remove_dir(&path);
    })
}

fn fill(path: &Path, cpus: &CpuSet, mems: Option<&CpuSet>) -> Result<Group, String> {
    let put = |name: &str, text: &str| {
        let written = File::options()
            .write(true)
            .open(path.join(name))
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|e| format!("{}/{name} cannot be written: {e}", path.display()))
    };
    put("cpuset.cpus", &cpus.to_string())?;
    if let Some(mems) = mems {
        put("cpuset.mems", &mems.to_string())?;
    }
    let partition = put("cpuset.cpus.partition", "root").and_then(|()| {
        let state = fs::read_to_string(path.join("cpuset.cpus.partition")).map_err(|e| e.to_string())?;
        // The kernel takes the word and says only here whether it is so.
        if state.trim() == "root" { Ok(()) } else { Err(format!("the kernel says '{}'", state.trim())) }
    });
    let told = match partition {
        Ok(()) => format!("CPUs {cpus} are a partition of their own: {}", path.display()),
        Err(why) => {
            // A partition that is not valid is a plain cpuset, but not for sure for ever.
            let _ = put("cpuset.cpus.partition", "member");
            format!(
                "CPUs {cpus} are a plain cpuset, which others may use as well ({why}): {}",
                path.display()
            )
        }
    };
    let effective = fs::read_to_string(path.join("cpuset.cpus.effective")).ok();
    let effective = effective.and_then(|list| CpuSet::parse_list(&list).ok());
    if let Some(effective) = effective.filter(|set| !cpus.is_subset(set)) {
        return Err(format!("{} gets only CPUs {effective} of {cpus} from the group above", path.display()));
    }
    let entrance = File::options().write(true).open(path.join("cgroup.procs"));
    let entrance = entrance.map_err(|e| format!("{}/cgroup.procs cannot be opened: {e}", path.display()))?;
    Ok(Group { path: path.to_owned(), entrance, told })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_that_of_version_2() {
        assert_eq!(group_path("5:cpuset:/x\n0::/user.slice/a\n"), Some("/user.slice/a"));
        assert_eq!(group_path("5:cpuset:/x\n"), None);
    }

    #[test]
    fn without_the_controller_or_the_right_it_says_why() {
        let own = std::env::temp_dir().join(format!("numakit-group-{}", std::process::id()));
        fs::create_dir_all(&own).unwrap();
        let cpus = CpuSet::range(0, 1);
        let why = |text: &str| {
            fs::write(own.join("cgroup.controllers"), text).unwrap();
            isolate_below(&own, 1, &cpus, None).unwrap_err()
        };
        assert!(why("cpu memory\n").contains("cpuset is not among the controllers of"));
        assert!(why("cpuset cpu\n").contains("cgroup.subtree_control"));
        fs::write(own.join("cgroup.subtree_control"), "cpuset").unwrap();
        // Not a file system of control groups: nothing is left behind.
        assert!(why("cpuset\n").contains("numakit-1/cpuset.cpus cannot be written"));
        assert!(!own.join("numakit-1").exists());
        fs::remove_dir_all(&own).unwrap();
    }
}
