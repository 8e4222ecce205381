//! What can go wrong, with what fixes it.

use numakit_model::{CpuSet, Fix};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the file of the registry cannot be used.
#[derive(Debug, Error)]
#[error("{problem}; {fix}")]
pub struct FileError {
    /// What is wrong with which file.
    pub problem: String,
    /// What to do.
    pub fix: Fix,
}

/// Why cores cannot be taken or told.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// CPUs that were chosen are not free.
    #[error("CPUs {cpus} are held by {who}")]
    Held {
        /// The CPUs.
        cpus: CpuSet,
        /// Their holders.
        who: String,
    },
    /// No CPU at all was chosen, or one that there cannot be.
    #[error("CPUs '{0}' cannot be taken; choose at least one, and none above {MAX}", MAX = crate::record::MAX_CPUS - 1)]
    Choice(CpuSet),
    /// More holders than there is room for.
    #[error("{0} programs hold cores, and there is no room for more; wait for one to end, or use --share")]
    Crowded(u64),
    /// The user may not hold so many cores.
    #[error(
        "{asked} cores were asked for, and {user} may hold {limit}, of which {held} are held; ask for fewer, wait, use --share, or change {}:{line}",
        file.display()
    )]
    Limit {
        /// Cores that were chosen.
        asked: u32,
        /// The user.
        user: String,
        /// How many the user may hold.
        limit: u32,
        /// How many the user holds.
        held: u32,
        /// The file of limits.
        file: PathBuf,
        /// Its line.
        line: usize,
    },
}

impl RegistryError {
    /// Whether it may be otherwise after somebody else gave cores back.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Crowded(_))
            || matches!(self, Self::Limit { asked, limit, .. } if asked <= limit)
    }
}

impl FileError {
    /// The file cannot be opened, made, read or written.
    pub(crate) fn of(path: &Path, doing: &str, error: &io::Error) -> Self {
        use io::ErrorKind::{InvalidInput, NotFound, PermissionDenied, ReadOnlyFilesystem, StorageFull};
        let (reason, fix) = match error.kind() {
            PermissionDenied => (
                format!("permission denied{}", owner(path)),
                "its owner or root can allow it to all with 'chmod 666'; or name another file in NUMAKIT_REGISTRY",
            ),
            ReadOnlyFilesystem => (
                "its file system is read-only".to_owned(),
                "name a file in NUMAKIT_REGISTRY that can be written, the same for all who share the machine",
            ),
            StorageFull => (
                "its file system is full".to_owned(),
                "make room there, or name another file in NUMAKIT_REGISTRY, the same for all who share the machine",
            ),
            NotFound => (
                "there is no such folder".to_owned(),
                "make the folder, or name another file in NUMAKIT_REGISTRY",
            ),
            InvalidInput => (error.to_string(), "remove it, or name a regular file in NUMAKIT_REGISTRY"),
            _ => (error.to_string(), "name another file in NUMAKIT_REGISTRY, or use --share"),
        };
        let problem = format!("the registry of cores {} cannot be {doing}: {reason}", path.display());
        Self { problem, fix: Fix::Step(fix.to_owned()) }
    }

    /// The file holds something else, which begins so.
    pub(crate) fn foreign(path: &Path, start: &[u8]) -> Self {
        let found = String::from_utf8_lossy(start);
        let problem = format!("{} is not a registry of cores: it begins with {found:?}", path.display());
        Self { problem, fix: Fix::Step("remove it, or name another file in NUMAKIT_REGISTRY".to_owned()) }
    }
}

/// Whose file it is and who may use it, where that can be seen.
fn owner(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    match std::fs::symlink_metadata(path) {
        Ok(meta) => {
            format!(" (it belongs to {}, mode {:o})", crate::user_name(meta.uid()), meta.mode() & 0o777)
        }
        Err(_) => String::new(),
    }
}

/// Why nothing was taken.
#[derive(Debug, Error)]
pub enum TakeError<E> {
    /// The registry did not allow it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Whoever chose did not find what was asked for.
    #[error("{0}")]
    Choice(E),
}
