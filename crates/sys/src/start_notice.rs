//! How a program that measures others learns when `numa run` has prepared a program: the time until then belongs to `numa run`, and is the
//! same for a program that runs for a second and for one that runs for days.

use crate::file::inherited;
use crate::{clock, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_setfd};
use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// The variable with the number of the pipe.
pub const VARIABLE: &str = "NUMAKIT_STARTED";

/// When a program was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramStart {
    /// On the monotonic clock, in ns.
    pub at: u64,
    /// CPU time that `numa run` had used until then, in ns.
    pub cpu: u64,
}

impl ProgramStart {
    /// Reads what [`tell`] has written; `None` if the pipe ends before.
    pub fn read(pipe: &mut impl Read) -> Option<Self> {
        let (mut at, mut cpu) = ([0; 8], [0; 8]);
        pipe.read_exact(&mut at).and_then(|()| pipe.read_exact(&mut cpu)).ok()?;
        Some(Self { at: u64::from_le_bytes(at), cpu: u64::from_le_bytes(cpu) })
    }
}

/// The pipe of the program that measures.
#[derive(Debug)]
pub struct StartPipe {
    reader: PipeReader,
    writer: PipeWriter,
}

impl StartPipe {
    /// Creates it.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer })
    }

    /// The number of the end that the started program inherits.
    pub fn number(&self) -> i32 {
        self.writer.as_raw_fd()
    }

    /// What was written there; `None` if nothing was, since the program was not started by `numa run`.
    pub fn read(self) -> Option<ProgramStart> {
        let Self { mut reader, writer } = self;
        // A process that the program left may keep its end open.
        let is_there = poll::readable(&[reader.as_fd()], Some(Duration::ZERO));
        drop(writer);
        is_there.ok()?.first().filter(|is_there| **is_there)?;
        ProgramStart::read(&mut reader)
    }
}

/// Says that the program starts now, if somebody wants to know: `number` is the value of the [variable](VARIABLE). The program
/// inherits nothing of it. Anything but a pipe is left as it is.
pub fn tell(number: &OsStr) {
    let Some(number) = number.to_str().and_then(|number| number.parse().ok()) else { return };
    let Some(mut pipe) = inherited(number) else { return };
    let is_pipe = fstat(&pipe).is_ok_and(|data| FileType::from_raw_mode(data.st_mode) == FileType::Fifo);
    if is_pipe {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&clock::monotonic().to_le_bytes());
        bytes[8..].copy_from_slice(&clock::process_cpu().to_le_bytes());
        // SAFETY: it is open, as its duplicate shows, and borrowed for this call only.
        let end = unsafe { BorrowedFd::borrow_raw(number) };
        // Whatever fails here, the program runs.
        let _ = fcntl_setfd(end, FdFlags::CLOEXEC);
        let _ = pipe.write_all(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read() {
        let pipe = StartPipe::new().unwrap();
        let before = clock::monotonic();
        tell(OsStr::new(&pipe.number().to_string()));
        let start = pipe.read().unwrap();
        assert!(before <= start.at && start.at <= clock::monotonic() && start.cpu > 0, "{start:?}");
        assert_eq!(StartPipe::new().unwrap().read(), None);
        // What is no pipe gets nothing.
        let file = crate::file::create_in_memory().unwrap();
        for number in [file.as_raw_fd().to_string(), "9999".into(), "x".into(), String::new()] {
            tell(OsStr::new(&number));
        }
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
