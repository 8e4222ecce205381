//! Waiting for any of several descriptors.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Waits until one of the descriptors is readable (or closed), or the timeout. One result per descriptor; all false
/// after the timeout or a signal.
pub fn readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    wait(fds, PollFlags::IN, timeout)
}

/// Waits until the descriptor accepts at least 4,096 bytes (or its reader has closed it); false after the timeout or a
/// signal.
pub fn writable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    Ok(wait(&[fd], PollFlags::OUT, Some(timeout))?.contains(&true))
}

fn wait(fds: &[BorrowedFd<'_>], events: PollFlags, timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, events)).collect();
    // A timeout that is too large for the kernel is infinite.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.iter().map(|p| !p.revents().is_empty()).collect()),
        Err(Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
    }
}
