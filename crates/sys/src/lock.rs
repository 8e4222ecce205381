//! Locks on parts of a file that belong to the open file description (OFD locks), not to the process: they are
//! inherited with the descriptor, and released when its last copy is closed.

use crate::check;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Locks a part exclusively. False if another description has a lock in the part; then nothing has changed. The file must be
/// open for writing.
pub fn try_lock(file: BorrowedFd<'_>, part: Range<u64>) -> io::Result<bool> {
    taken(set(file, libc::F_WRLCK, part))
}

/// Takes a shared lock on a part. False if another description has an exclusive lock in it.
pub fn try_share(file: BorrowedFd<'_>, part: Range<u64>) -> io::Result<bool> {
    taken(set(file, libc::F_RDLCK, part))
}

fn taken(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Releases this description's locks in a part.
pub fn unlock(file: BorrowedFd<'_>, part: Range<u64>) -> io::Result<()> {
    set(file, libc::F_UNLCK, part)
}

/// The locks that other descriptions have in a part, cut to it, in ascending order.
pub fn foreign(file: BorrowedFd<'_>, part: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    // The kernel returns one lock of several, not always the first: the parts before and after it are queried too.
    let mut open = vec![part];
    while let Some(part) = open.pop() {
        if part.is_empty() {
            continue;
        }
        let Some(lock) = one_foreign(file, &part)? else { continue };
        open.push(part.start..lock.start);
        open.push(lock.end..part.end);
        found.push(lock);
    }
    found.sort_unstable_by_key(|lock| lock.start);
    Ok(found)
}

/// Whether another description has a lock in this part.
pub fn is_foreign(file: BorrowedFd<'_>, part: Range<u64>) -> io::Result<bool> {
    one_foreign(file, &part).map(|lock| lock.is_some())
}

/// The process that has a POSIX lock in this part. The kernel does not name the owners of OFD locks.
pub fn process_of(file: BorrowedFd<'_>, part: Range<u64>) -> io::Result<Option<u32>> {
    let lock = query(file, &part)?;
    Ok(lock.and_then(|lock| u32::try_from(lock.l_pid).ok()).filter(|&pid| pid > 0))
}

fn query(file: BorrowedFd<'_>, part: &Range<u64>) -> io::Result<Option<libc::flock>> {
    let mut lock = description(libc::F_WRLCK, part)?;
    // SAFETY: the structure is what this request reads and fills in, and outlives the call.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) } as i64)?;
    Ok((i32::from(lock.l_type) != libc::F_UNLCK).then_some(lock))
}

fn one_foreign(file: BorrowedFd<'_>, part: &Range<u64>) -> io::Result<Option<Range<u64>>> {
    let Some(lock) = query(file, part)? else { return Ok(None) };
    let start = (lock.l_start as u64).max(part.start);
    // Length 0 means unlimited.
    let end =
        if lock.l_len == 0 { part.end } else { (lock.l_start as u64).saturating_add(lock.l_len as u64) };
    Ok(Some(start..end.min(part.end).max(start + 1)))
}

fn set(file: BorrowedFd<'_>, kind: i32, part: Range<u64>) -> io::Result<()> {
    let lock = description(kind, &part)?;
    // SAFETY: the structure is what this request reads, and outlives the call.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } as i64)?;
    Ok(())
}

/// Refuses an empty part: for the kernel, it would be the rest of the file.
fn description(kind: i32, part: &Range<u64>) -> io::Result<libc::flock> {
    if part.is_empty() || part.end > i64::MAX as u64 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: part.start as i64,
        l_len: (part.end - part.start) as i64,
        // Must be 0 for OFD locks.
        l_pid: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    fn scratch(name: &str) -> (std::path::PathBuf, File, File) {
        let path = std::env::temp_dir().join(format!("numakit-lock-{name}-{}", std::process::id()));
        let open =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let (one, other) = (open(), open());
        (path, one, other)
    }

    #[test]
    fn one_description_has_a_byte() {
        let (path, one, other) = scratch("byte");
        assert!(try_lock(one.as_fd(), 3..5).unwrap());
        assert!(try_lock(one.as_fd(), 3..4).unwrap(), "its own lock is not foreign");
        assert!(!try_lock(other.as_fd(), 4..9).unwrap());
        assert!(foreign(other.as_fd(), 5..9).unwrap().is_empty());
        let copy = one.try_clone().unwrap();
        drop(one);
        assert!(is_foreign(other.as_fd(), 0..9).unwrap(), "a copy keeps it");
        drop(copy);
        assert!(try_lock(other.as_fd(), 0..9).unwrap());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn all_foreign_locks_are_found_in_whatever_order_they_were_made() {
        let (path, one, other) = scratch("order");
        let third = File::options().read(true).write(true).open(&path).unwrap();
        for part in [90..91, 10..20, 50..52] {
            assert!(try_lock(one.as_fd(), part).unwrap());
        }
        assert!(try_lock(third.as_fd(), 30..40).unwrap());
        assert!(try_lock(other.as_fd(), 0..1).unwrap());
        assert_eq!(foreign(other.as_fd(), 0..100).unwrap(), [10..20, 30..40, 50..52, 90..91]);
        assert_eq!(foreign(other.as_fd(), 15..35).unwrap(), [15..20, 30..35]);
        unlock(one.as_fd(), 0..60).unwrap();
        assert_eq!(foreign(other.as_fd(), 0..100).unwrap(), [30..40, 90..91]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_shared_lock_excludes_exclusive_ones() {
        let (path, one, other) = scratch("shared");
        assert!(try_share(one.as_fd(), 7..8).unwrap() && try_share(other.as_fd(), 7..8).unwrap());
        assert!(!try_lock(one.as_fd(), 7..8).unwrap());
        assert_eq!(process_of(one.as_fd(), 7..8).unwrap(), None, "of a description");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_empty_part_is_refused_rather_than_the_whole_file_locked() {
        let (path, one, _) = scratch("empty");
        assert!(try_lock(one.as_fd(), 7..7).is_err());
        std::fs::remove_file(path).unwrap();
    }
}
