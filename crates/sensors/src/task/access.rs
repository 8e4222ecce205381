//! Whether this process may read the memory maps of others, and the fix if not.

use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;

const CAP_SYS_PTRACE: u32 = 19;

/// The rights of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskAccess {
    root: bool,
    capable: bool,
}

impl TaskAccess {
    /// Reads them from /proc.
    pub fn read(root: &SysRoot) -> Self {
        let status = TaskDir::own(root).status().unwrap_or_default();
        Self { root: status.user() == Some(0), capable: status.is_capable(CAP_SYS_PTRACE) }
    }

    /// The fix if the kernel refuses.
    pub fn fix(self) -> &'static str {
        match (self.root, self.capable) {
            (_, true) => {
                "a security module (AppArmor, SELinux) or the user namespace of the process refuses it even \
                 with CAP_SYS_PTRACE; look outside of the container"
            }
            (true, false) => "root lacks CAP_SYS_PTRACE here; start the container with --cap-add SYS_PTRACE",
            (false, false) => "run as root, or as the user of the process",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::root;

    #[test]
    fn root_is_not_told_to_run_as_root() {
        for (uid, capabilities, says) in [
            (1000, "0000000000000000", "run as root"),
            (0, "00000000a80425fb", "--cap-add SYS_PTRACE"),
            (0, "000001ffffffffff", "security module"),
            (1000, "0000000000080000", "security module"),
        ] {
            let status = format!("Name:\tnuma\nUid:\t7\t{uid}\t7\t7\nCapEff:\t{capabilities}\n");
            let access = TaskAccess::read(&root(&[("/proc/self/status", &status)]));
            assert!(access.fix().starts_with(says) || access.fix().contains(says), "{uid} {}", access.fix());
            assert_eq!(access.fix().contains("run as root"), says == "run as root");
        }
        assert!(TaskAccess::read(&root(&[])).fix().contains("run as root"));
    }
}
