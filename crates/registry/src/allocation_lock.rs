//! The allocation lock: the process that selects cores holds it, so that it sees what all others reserved. Cores
//! are safe without it, since each is a lock of its own; so a process that does not release it delays others and
//! cannot block them.

use crate::error::RegistryError;
use crate::open::{Registry, read_header};
use crate::record::{HEADER, LOCK_OWNER, LockOwner, MAGIC, header, lock_owner};
use crate::reservation::process_id;
use crate::scan::{ALLOCATION_LOCK, pid_namespace};
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, clock, lock};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Selecting takes milliseconds: a process that holds the lock longer is stopped or hangs.
const MAX_HOLD: Duration = Duration::from_secs(2);
/// The longest wait, if one process after another holds the lock.
const MAX_WAIT: Duration = Duration::from_secs(10);
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// Whether this process has the lock while it selects cores.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AllocationLock {
    /// It has the lock.
    Acquired,
    /// Another process does not release the lock. The text is the warning for the user.
    Unavailable(String),
}

impl AllocationLock {
    pub fn is_acquired(&self) -> bool {
        *self == Self::Acquired
    }

    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Acquired => None,
            Self::Unavailable(warning) => Some(warning.clone()),
        }
    }
}

impl Registry {
    /// Waits for the allocation lock. The lock is in the file that has the registry's name and a complete header, so that
    /// all other processes see what this one does.
    pub(crate) fn acquire_lock(&mut self) -> Result<AllocationLock, RegistryError> {
        let begun = clock::monotonic();
        let mut last = (None, begun);
        loop {
            let locked = lock::try_lock(self.file.as_fd(), ALLOCATION_LOCK);
            let locked = locked.map_err(|error| self.failed("locked", &error))?;
            // The file may have been removed after this process opened it.
            if !self.is_in_place(&self.file).map_err(|error| self.failed("found", &error))? {
                *self = Self::open_in(self.location.clone())?;
            } else if locked {
                let acquired = AllocationLock::Acquired;
                return self
                    .sign()
                    .map(|()| acquired)
                    .inspect_err(|_| self.release_lock(AllocationLock::Acquired));
            } else {
                let owner = read_header(&self.file).ok().and_then(|header| lock_owner(&header));
                let now = clock::monotonic();
                if owner != last.0 {
                    last = (owner, now);
                }
                for (since, limit) in [(last.1, MAX_HOLD), (begun, MAX_WAIT)] {
                    if Duration::from_nanos(now - since) >= limit {
                        let same_owner = since == last.1;
                        return Ok(AllocationLock::Unavailable(
                            self.warning(last.0, same_owner.then_some(limit)),
                        ));
                    }
                }
                std::thread::sleep(RETRY_DELAY);
            }
        }
    }

    /// Lets the next process select.
    pub(crate) fn release_lock(&self, lock: AllocationLock) {
        if lock == AllocationLock::Acquired {
            let _ = self.file.write_all_at(&LockOwner::bytes(None), LOCK_OWNER as u64);
            let _ = lock::unlock(self.file.as_fd(), ALLOCATION_LOCK);
        }
    }

    /// Writes who holds the lock, for the warnings of other processes; repairs a missing header.
    fn sign(&self) -> Result<(), RegistryError> {
        let found = read_header(&self.file).map_err(|error| self.failed("read", &error))?;
        let own = self.signature();
        let written = if found.len() == HEADER && found.starts_with(MAGIC) {
            self.file.write_all_at(&LockOwner::bytes(own.as_ref()), LOCK_OWNER as u64)
        } else {
            self.file.write_all_at(&header(own.as_ref()), 0)
        };
        written.map_err(|error: io::Error| self.failed("written", &error))
    }

    fn signature(&self) -> Option<LockOwner> {
        let name = std::env::args_os().next().unwrap_or_default();
        let name = std::path::Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let process = process_id(std::process::id())?;
        Some(LockOwner { process, pid_namespace: pid_namespace(), since: clock::monotonic(), name })
    }

    /// Which process does not release the lock, as far as that is known, and what to do. The kernel names the owner
    /// of a process's lock; otherwise only the signature does, if its process still lives.
    /// Only a process that is not ours, and has been seen to keep the lock, is to be ended.
    fn warning(&self, signed: Option<LockOwner>, held_for: Option<Duration>) -> String {
        let path = self.path.display();
        let kernel_owner = lock::process_of(self.file.as_fd(), ALLOCATION_LOCK).ok().flatten();
        let lives = |owner: &LockOwner| process_id(owner.process.pid) == Some(owner.process);
        let look = |pid: u32| format!("'ps -fp {pid}' shows what it does");
        let (owner, fix) = match (kernel_owner, signed) {
            (Some(pid), _) => {
                let end = || format!("end process {pid} with 'kill {pid}'");
                let fix = held_for.map_or_else(|| look(pid), |_| end());
                (format!("process {pid}, which is not a 'numa run',"), fix)
            }
            (None, Some(owner)) if owner.pid_namespace != pid_namespace() => {
                let LockOwner { process, name, .. } = owner;
                let text = format!("process {} ({name}) of another PID namespace", process.pid);
                (text, "if it is stopped, continue it there with 'kill -CONT'".to_owned())
            }
            (None, Some(owner)) if lives(&owner) => {
                let pid = owner.process.pid;
                let stat = TaskDir::of(&SysRoot::host(), pid).stat();
                let fix = match stat.is_ok_and(|stat| stat.stopped) {
                    true => format!("it is stopped: continue it with 'kill -CONT {pid}'"),
                    false => format!("it is not stopped: {}", look(pid)),
                };
                (format!("process {pid} ({})", owner.name), fix)
            }
            _ => (
                "an unknown process".to_owned(),
                format!("as root, 'fuser -v {path}' shows which processes have the file open"),
            ),
        };
        let holds = match held_for {
            Some(time) => {
                format!("has held the allocation lock of {path} for more than {} s", time.as_secs())
            }
            None => {
                format!("holds the allocation lock of {path}, as others did for {} s", MAX_WAIT.as_secs())
            }
        };
        format!("{owner} {holds}, so cores were selected without it; {fix}")
    }
}
