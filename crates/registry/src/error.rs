//! Errors, with their fixes.

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

/// Why cores cannot be taken or listed.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Selected CPUs are not free.
    #[error("CPUs {cpus} are held by {holders}")]
    Held {
        /// The CPUs.
        cpus: CpuSet,
        /// Their holders.
        holders: String,
    },
    /// No CPU was selected, or an impossible one.
    #[error("CPUs '{0}' cannot be taken; select at least one, and none above {MAX}", MAX = crate::record::MAX_CPUS - 1)]
    InvalidCpus(CpuSet),
    /// The registry has no room for another holder.
    #[error("{0} programs hold cores, which is the maximum; wait for one to end, or use --share")]
    Full(u64),
    /// The user's limit.
    #[error(
        "{requested} cores were requested, but {user} may hold {limit} and holds {held}; request fewer, wait, use --share, or change {}:{line}",
        file.display()
    )]
    Limit {
        /// Cores that were selected.
        requested: u32,
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
    /// Whether waiting for others to release cores may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Full(_))
            || matches!(self, Self::Limit { requested, limit, .. } if requested <= limit)
    }
}

impl FileError {
    /// The file cannot be opened, created, read or written.
    pub(crate) fn of(path: &Path, doing: &str, error: &io::Error) -> Self {
        use io::ErrorKind::{InvalidInput, NotFound, PermissionDenied, ReadOnlyFilesystem, StorageFull};
        let (reason, fix) = match error.kind() {
            PermissionDenied => (
                format!("permission denied{}", owner(path)),
                "its owner or root can allow it for all with 'chmod 666'; or name another file in NUMAKIT_REGISTRY",
            ),
            ReadOnlyFilesystem => (
                "its file system is read-only".to_owned(),
                "name a writable file in NUMAKIT_REGISTRY, the same for all users of the machine",
            ),
            StorageFull => (
                "its file system is full".to_owned(),
                "free space there, or name another file in NUMAKIT_REGISTRY, the same for all users of the machine",
            ),
            NotFound => (
                "its directory does not exist".to_owned(),
                "create the directory, or name another file in NUMAKIT_REGISTRY",
            ),
            InvalidInput => (error.to_string(), "remove it, or name a regular file in NUMAKIT_REGISTRY"),
            _ => (error.to_string(), "name another file in NUMAKIT_REGISTRY, or use --share"),
        };
        let problem = format!("the registry of cores {} cannot be {doing}: {reason}", path.display());
        Self { problem, fix: Fix::Step(fix.to_owned()) }
    }

    /// The file is something else; `start` are its first bytes.
    pub(crate) fn foreign(path: &Path, start: &[u8]) -> Self {
        let found = String::from_utf8_lossy(start);
        let problem = format!("{} is not a registry of cores: it begins with {found:?}", path.display());
        Self { problem, fix: Fix::Step("remove it, or name another file in NUMAKIT_REGISTRY".to_owned()) }
    }
}

/// The owner and mode of the file, if they can be read.
fn owner(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    match std::fs::symlink_metadata(path) {
        Ok(meta) => {
            format!(" (it belongs to {}, mode {:o})", crate::user_name(meta.uid()), meta.mode() & 0o777)
        }
        Err(_) => String::new(),
    }
}

/// Why no cores were taken.
#[derive(Debug, Error)]
pub enum TakeError<E> {
    /// The registry did not allow it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The caller could not select cores.
    #[error("{0}")]
    Selection(E),
}
