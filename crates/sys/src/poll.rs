//! Waiting for any of several descriptors.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Waits until one of the descriptors can be read (or was closed), or the time is over.
/// One answer per descriptor; all false after the time. Interruptions by signals count as
/// the end of the time.
pub fn readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    wait(fds, libc::POLLIN, timeout)
}

/// Waits until the descriptor takes 4,096 bytes at least (or nobody reads any more), or the time
/// is over: false. Interruptions by signals count as the end of the time.
pub fn writable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    Ok(wait(&[fd], libc::POLLOUT, Some(timeout))?.contains(&true))
}

fn wait(fds: &[BorrowedFd<'_>], events: i16, timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }).collect();
    let timeout = timeout.map_or(-1, |t| i32::try_from(t.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    // SAFETY: the array is as long as said.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
    if result < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        return Ok(vec![false; fds.len()]);
    }
    Ok(polled.iter().map(|p| p.revents != 0).collect())
}
