//! Errors, with their fixes.

use crate::record::ANY_VERSION;
use crate::reservation::MIN_DESCRIPTOR;
use numakit_model::{CpuSet, Fix};
use numakit_sys::{file, sched};
use std::io;
use std::path::Path;
use thiserror::Error;

/// The usual limit of open files.
const ENOUGH_FILES: u64 = 1024;

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
}

impl RegistryError {
    /// Whether waiting for other programs to release cores may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Full(_))
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
            _ if file::is_at_open_files_limit(error) => return Self::of_open_files_limit(path, doing),
            // The locks belong to the file behind the link.
            InvalidInput if path.is_symlink() => {
                (error.to_string(), "remove the link, or name a regular file in NUMAKIT_REGISTRY")
            }
            InvalidInput => (error.to_string(), "name a regular file in NUMAKIT_REGISTRY"),
            _ => (error.to_string(), "name another file in NUMAKIT_REGISTRY, or use --share"),
        };
        Self::cannot_be(path, doing, &reason, fix.to_owned())
    }

    fn cannot_be(path: &Path, doing: &str, reason: &str, fix: String) -> Self {
        let problem = format!("the registry of cores {} cannot be {doing}: {reason}", path.display());
        Self { problem, fix: Fix::Step(fix) }
    }

    /// An error that is not about the file: this process may not open another file.
    fn of_open_files_limit(path: &Path, doing: &str) -> Self {
        let (limit, highest) = sched::open_files_limits();
        let reason = format!(
            "this process may have {limit} files open, and the descriptor of reserved cores has a number from {MIN_DESCRIPTOR} on"
        );
        let raise = format!("ulimit -n {ENOUGH_FILES}");
        let fix = match highest >= ENOUGH_FILES {
            true => format!("raise the limit with '{raise}', or use --share"),
            false => format!(
                "raise the limit: '{raise}' as root, or 'nofile' in /etc/security/limits.conf; or use --share"
            ),
        };
        Self::cannot_be(path, doing, &reason, fix)
    }

    /// An error about a file that is no registry of this version; `start` are its first bytes. The file may be precious to
    /// somebody: a letter, or the registry of a different numa whose programs hold cores.
    pub(crate) fn foreign(path: &Path, start: &[u8]) -> Self {
        let (found, file) = (String::from_utf8_lossy(start), path.display());
        let (problem, fix) = match start.starts_with(ANY_VERSION) {
            true => (
                format!(
                    "{file} is the registry of cores of another version of numa: it begins with {found:?}"
                ),
                "use the version whose programs hold cores, or name another file in NUMAKIT_REGISTRY",
            ),
            false => (
                format!("{file} is not a registry of cores: it begins with {found:?}{}", owner(path)),
                "name another file in NUMAKIT_REGISTRY, or let its owner move it away",
            ),
        };
        Self { problem, fix: Fix::Step(fix.to_owned()) }
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
    /// The registry did not allow the reservation.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The caller could not select cores.
    #[error("{0}")]
    Selection(E),
}
