//! Standard output and standard error: the only way in which the program prints. What cannot be
//! written to standard output is an error of its own kind; what cannot be said on standard error
//! has nobody left to say it to.

use crate::{inherited, poll};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd};
use std::time::Duration;
use thiserror::Error;

/// How long a look at an output takes that does not wait by itself; then comes the next one.
const WAIT: Duration = Duration::from_secs(3600);

/// Standard output took no more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot write to standard output: {reason}; {fix}")]
pub struct OutputError {
    reason: String,
    fix: &'static str,
    kind: ErrorKind,
}

impl OutputError {
    /// Whoever read the output went away. That is no news to anybody.
    pub fn reader_left(&self) -> bool {
        self.kind == ErrorKind::BrokenPipe
    }

    fn closed() -> Self {
        let fix = "open it, as in 'numa ... > FILE'";
        Self { reason: "it is closed".to_owned(), fix, kind: ErrorKind::NotConnected }
    }
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        let fix = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                "free some space, or write to another place"
            }
            _ => "write to another place",
        };
        Self { reason: error.to_string(), fix, kind: error.kind() }
    }
}

/// Prints a text whole.
pub fn print(text: impl Display) -> Result<(), OutputError> {
    let mut output = Stdout::default();
    match output.write_all(text.to_string().as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) => Err(output.failure().unwrap_or_else(|| error.into())),
    }
}

/// Says on standard error what went wrong, as a line that names this program.
pub fn note(what: impl Display) {
    say(format_args!("numa: {what}\n"));
}

/// Writes to standard error as it is, at once.
pub fn say(text: impl Display) {
    // One call of the system a text, so that lines of several processes do not mix.
    let _ = File::write_all(&mut standard(libc::STDERR_FILENO), text.to_string().as_bytes());
}

/// That standard output can be written to, as far as that is known without writing.
pub fn check() -> Result<(), OutputError> {
    if inherited::without_output() { Err(OutputError::closed()) } else { Ok(()) }
}

/// Standard output under a descriptor of its own.
pub(crate) fn duplicate_output() -> io::Result<File> {
    check().map_err(io::Error::other)?;
    standard(libc::STDOUT_FILENO).try_clone()
}

/// Standard output to write to, not buffered.
#[derive(Debug, Default)]
pub struct Stdout {
    failure: Option<OutputError>,
}

impl Stdout {
    /// Why the last write failed: writers of formats pass on no more than that one did.
    pub fn failure(&self) -> Option<OutputError> {
        self.failure.clone()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check().map_err(io::Error::other)?;
        let mut file = standard(libc::STDOUT_FILENO);
        loop {
            match file.write(bytes) {
                // Another process may have told a pipe or terminal that we share not to wait.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll::writable(file.as_fd(), WAIT)?;
                }
                result => return result,
            }
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.put(bytes);
        if let Err(error) = &result
            && error.kind() != ErrorKind::Interrupted
        {
            let again = error.raw_os_error().map(io::Error::from_raw_os_error);
            self.failure = Some(again.map_or_else(OutputError::closed, OutputError::from));
        }
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream of this process, which stays open.
fn standard(fd: i32) -> ManuallyDrop<File> {
    // SAFETY: these descriptors belong to the whole process, and nothing closes them.
    ManuallyDrop::new(unsafe { File::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let full = OutputError::from(io::Error::from_raw_os_error(libc::ENOSPC));
        let text = "cannot write to standard output: No space left on device (os error 28); free some space, or write to another place";
        assert!(full.to_string() == text && !full.reader_left());
        assert!(OutputError::from(io::Error::from_raw_os_error(libc::EPIPE)).reader_left());
        assert!(OutputError::closed().to_string().contains("it is closed; open it, as in"));
        assert_eq!(check(), Ok(()));
    }
}
