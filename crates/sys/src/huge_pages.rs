//! Transparent huge pages: the machine's setting, and the mode of one program.

use crate::{SysRoot, check};
use std::{fmt, io};

/// The file of the machine's setting.
pub const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// The flag of `prctl` that keeps huge pages for memory with madvise (Linux 6.18).
const EXCEPT_ADVISED: libc::c_ulong = 2;

/// When the kernel gives a program huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugePages {
    /// As the machine's setting says, even if our parent process turned them off.
    On,
    /// Never.
    Off,
    /// Only for memory with madvise.
    Advised,
}

impl HugePages {
    /// Sets the mode of the calling process; children inherit it, also across exec.
    pub fn set(self) -> io::Result<()> {
        let (disable, flags) = match self {
            Self::On => (0, 0),
            Self::Off => (1, 0),
            Self::Advised => (1, EXCEPT_ADVISED),
        };
        let disable: libc::c_ulong = disable;
        // SAFETY: plain integers.
        check(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, flags, 0, 0) } as i64).map(drop)
    }

    /// Whether the kernel supports the mode: sets it for this process, then restores the previous one.
    pub fn attempt(self) -> io::Result<()> {
        // SAFETY: plain integers.
        let before = check(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) } as i64)?;
        self.set()?;
        match before {
            0 => Self::On.set(),
            1 => Self::Off.set(),
            _ => Self::Advised.set(),
        }
    }
}

/// The machine's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// For all memory.
    Always,
    /// For memory with madvise.
    Advised,
    /// Nowhere.
    Never,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "always",
            Self::Advised => "madvise",
            Self::Never => "never",
        })
    }
}

impl Setting {
    /// Reads it; none if the kernel has no huge pages.
    pub fn read(root: &SysRoot) -> Option<Self> {
        Self::of(&root.text(SETTING).ok()?)
    }

    /// The word in brackets, as in `always [madvise] never`.
    fn of(text: &str) -> Option<Self> {
        match text.split('[').nth(1)?.split(']').next()? {
            "always" => Some(Self::Always),
            "madvise" => Some(Self::Advised),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_the_word_in_brackets() {
        assert_eq!(Setting::of("always [madvise] never\n"), Some(Setting::Advised));
        assert_eq!(Setting::of("[always] madvise never\n"), Some(Setting::Always));
        assert_eq!(Setting::of("always madvise never"), None);
    }

    #[test]
    fn trying_changes_nothing() {
        HugePages::Off.attempt().unwrap();
        // SAFETY: plain integers.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) }, 0);
        // Kernels before 6.18 refuse the flag; either way nothing stays.
        let known = HugePages::Advised.attempt();
        assert!(known.is_ok() || known.unwrap_err().raw_os_error() == Some(libc::EINVAL));
        // SAFETY: plain integers.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) }, 0);
    }
}
