//! Whether this process may read the memory maps of others, and the fix if not.

use numakit_sys::SysRoot;
use numakit_sys::permissions::{Runtime, Surroundings};
use numakit_sys::proc::TaskDir;

const CAP_SYS_PTRACE: u32 = 19;

/// What this process may read of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskAccess {
    root: bool,
    capable: bool,
    runtime: Runtime,
}

impl TaskAccess {
    /// Reads the rights of this process from /proc.
    pub fn read(root: &SysRoot) -> Self {
        Self::of(root, |name| std::env::var(name).ok())
    }

    /// Reads them with this environment.
    fn of(root: &SysRoot, variable: impl Fn(&str) -> Option<String>) -> Self {
        let status = TaskDir::own(root).status().unwrap_or_default();
        let capable = status.is_capable(CAP_SYS_PTRACE);
        let surroundings = Surroundings::of(root, variable);
        Self { root: surroundings.is_root, capable, runtime: surroundings.runtime }
    }

    /// Whether this process has the capability to read the memory maps of all processes.
    pub fn is_capable(&self) -> bool {
        self.capable
    }

    /// What permits to read a process if the kernel refuses.
    pub fn fix(&self) -> String {
        match (self.root, self.capable) {
            (_, true) => {
                let outside = match self.runtime.is_container() {
                    true => "; look from outside of the container",
                    false => ", as of programs that forbid it: nothing permits it",
                };
                format!(
                    "a security module (AppArmor, SELinux) or the user namespace of the process refuses it even with \
                     CAP_SYS_PTRACE{outside}"
                )
            }
            (true, false) => {
                format!("root lacks CAP_SYS_PTRACE here; {}", self.runtime.with_capability("SYS_PTRACE"))
            }
            (false, false) => "run as root, or as the user of the process".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::sysfs::root;

    #[test]
    fn the_fix_is_one_that_is_not_in_place_yet() {
        for (uid, capabilities, says) in [
            (1000, "0000000000000000", "run as root"),
            (0, "00000000a80425fb", "docker run --cap-add SYS_PTRACE"),
            (0, "000001ffffffffff", "security module"),
            (1000, "0000000000080000", "security module"),
        ] {
            let status = format!("Name:\tnuma\nUid:\t7\t{uid}\t7\t7\nCapEff:\t{capabilities}\n");
            let files = [("/proc/self/status", status.as_str()), ("/.dockerenv", "")];
            let access = TaskAccess::of(&root(&files), |_| None);
            assert!(access.fix().contains(says), "{uid} {}", access.fix());
            assert_eq!(access.fix().contains("run as root"), says == "run as root");
        }
        assert!(TaskAccess::of(&root(&[]), |_| None).fix().contains("run as root"));
        let capable = ("/proc/self/status", "Name:\tnuma\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n");
        for (file, is_contained) in [("/.dockerenv", true), ("/nothing", false)] {
            let fix = TaskAccess::of(&root(&[capable, (file, "")]), |_| None).fix();
            assert_eq!(fix.contains("container"), is_contained, "{fix}");
        }
    }
}
