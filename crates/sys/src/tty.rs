//! The terminals of the standard streams.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{isatty, tcgetwinsize};
use std::os::fd::BorrowedFd;

/// The width in columns of the terminal of standard output; `None` if that is no terminal or its size is unknown.
pub fn columns() -> Option<usize> {
    size().map(|(columns, _)| columns).filter(|&n| n > 0)
}

/// The width in columns of the terminal of standard error; `None` if that is no terminal or its size is unknown.
pub fn error_columns() -> Option<usize> {
    tcgetwinsize(stderr()).ok().map(|size| usize::from(size.ws_col)).filter(|&n| n > 0)
}

/// The height in rows of the terminal of standard output; `None` if that is no terminal or its size is unknown.
pub fn rows() -> Option<usize> {
    size().map(|(_, rows)| rows).filter(|&n| n > 0)
}

/// Whether standard output is a terminal.
pub fn is_output() -> bool {
    isatty(stdout())
}

/// Whether standard input is a terminal.
pub fn is_input() -> bool {
    isatty(stdin())
}

/// Whether an input has ended: its terminal was closed, or what can be read of it is its end.
pub fn has_ended(input: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
    let events = match poll(&mut polled, Some(&Timespec::default())) {
        Ok(_) => polled[0].revents(),
        Err(error) => return error != Errno::INTR,
    };
    let is_gone = events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    is_gone || events.contains(PollFlags::IN) && ioctl_fionread(input).is_ok_and(|bytes| bytes == 0)
}

/// Whether standard error is a terminal.
pub fn is_error() -> bool {
    isatty(stderr())
}

fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout()).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, pipe};
    use std::os::fd::AsFd;

    #[test]
    fn an_input_ends_when_nothing_more_can_come() {
        let (reader, mut writer) = pipe().unwrap();
        assert!(!has_ended(reader.as_fd()), "it may get something");
        writer.write_all(b"x").unwrap();
        assert!(!has_ended(reader.as_fd()), "it has something");
        drop((reader, writer));
        let (reader, writer) = pipe().unwrap();
        drop(writer);
        assert!(has_ended(reader.as_fd()));
    }
}
