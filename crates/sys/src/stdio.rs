//! Standard output and standard error: the only way in which the program prints. Characters that a terminal would obey are
//! left out of every text. A failed write to standard output is an error of its own type; a failed write to standard error
//! is ignored.

use crate::harmless::harmless;
use crate::{inherited, poll, tty};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// How long one poll of a non-blocking output waits.
const WAIT: Duration = Duration::from_secs(3600);

/// A write to standard output failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot write to standard output: {reason}; {fix}")]
pub struct OutputError {
    reason: String,
    fix: &'static str,
    kind: ErrorKind,
}

impl OutputError {
    /// The reader has closed the output, which needs no message.
    pub fn is_closed_by_reader(&self) -> bool {
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

/// Whether colors and weights in texts of standard output are this program's own, and are kept.
static HAS_STYLES: AtomicBool = AtomicBool::new(false);

/// Lets colors and weights in texts of standard output pass, or not.
pub fn let_styles_pass(pass: bool) {
    HAS_STYLES.store(pass, Ordering::Relaxed);
}

/// Prints a text.
pub fn print(text: impl Display) -> Result<(), OutputError> {
    put(&harmless(&text.to_string(), HAS_STYLES.load(Ordering::Relaxed)))
}

/// Prints a text that replaces all that the terminal shows.
pub fn print_over(text: impl Display) -> Result<(), OutputError> {
    put(&format!("{CLEAR_ALL}{}", harmless(&text.to_string(), HAS_STYLES.load(Ordering::Relaxed))))
}

fn put(text: &str) -> Result<(), OutputError> {
    let mut output = Stdout::default();
    match output.write_all(text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) => Err(output.failure().unwrap_or_else(|| error.into())),
    }
}

/// Whether the last text on standard error is a line that is replaced in place.
static IN_PLACE: AtomicBool = AtomicBool::new(false);
/// Clears the line of the cursor.
const CLEAR: &str = "\r\x1b[K";
/// Clears the terminal.
const CLEAR_ALL: &str = "\x1b[H\x1b[2J";

/// Prints a line with the name of this program to standard error.
pub fn note(what: impl Display) {
    say(format_args!("numa: {what}\n"));
}

/// Prints a text to standard error, unbuffered, in place of a line of [`replace_line`].
pub fn say(text: impl Display) {
    write_error(Some(text), false);
}

/// Replaces the line that the last call printed on standard error, which is a terminal; `None` removes the line. Other
/// texts, including those of standard output, replace the line too. The part of a line that does not fit into the terminal
/// is left out: only one row can be removed.
pub fn replace_line(text: Option<&str>) {
    let columns = tty::error_columns().unwrap_or(usize::MAX);
    write_error(text.map(|text| fitting(text, columns)), text.is_some());
}

/// As much of a line as fits before the last column, where a terminal may wrap.
fn fitting(text: &str, columns: usize) -> &str {
    text.char_indices().nth(columns.saturating_sub(1)).map_or(text, |(end, _)| &text[..end])
}

/// Removes a line of [`replace_line`] before standard output is written: both may be the same terminal.
fn remove_line() {
    if IN_PLACE.load(Ordering::Relaxed) {
        replace_line(None);
    }
}

fn write_error(text: Option<impl Display>, stays: bool) {
    let text = placed(&IN_PLACE, text, stays);
    // One system call per text, so that lines of several processes do not mix.
    let _ = File::write_all(&mut standard(libc::STDERR_FILENO), text.as_bytes());
}

/// The text with what it needs to replace the last one, if either of them is a line in place.
fn placed(in_place: &AtomicBool, text: Option<impl Display>, stays: bool) -> String {
    let clear = if in_place.swap(stays, Ordering::Relaxed) || stays { CLEAR } else { "" };
    let text = text.map(|text| text.to_string()).unwrap_or_default();
    format!("{clear}{}", harmless(&text, tty::is_error()))
}

/// An error if standard output is known to be closed or unwritable.
pub fn check() -> Result<(), OutputError> {
    if inherited::without_output() { Err(OutputError::closed()) } else { Ok(()) }
}

/// A duplicate of standard output.
pub(crate) fn duplicate_output() -> io::Result<File> {
    check().map_err(io::Error::other)?;
    standard(libc::STDOUT_FILENO).try_clone()
}

/// Standard output, unbuffered.
#[derive(Debug, Default)]
pub struct Stdout {
    failure: Option<OutputError>,
    is_cleaned: bool,
    /// The beginning of a character whose end was not written yet.
    begun: Vec<u8>,
}

impl Stdout {
    /// A filter for a file of text: characters that a terminal would obey are left out if standard output is a terminal.
    pub fn for_text() -> Self {
        Self { is_cleaned: tty::is_output(), ..Self::default() }
    }

    /// The error of the last write: writers of formats do not pass it on.
    pub fn failure(&self) -> Option<OutputError> {
        self.failure.clone()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check().map_err(io::Error::other)?;
        remove_line();
        let mut file = standard(libc::STDOUT_FILENO);
        loop {
            match file.write(bytes) {
                // Another process may have made a shared pipe or terminal non-blocking.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll::writable(file.as_fd(), WAIT)?;
                }
                result => return result,
            }
        }
    }
}

impl Stdout {
    fn put_clean(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let text = whole_characters(&mut self.begun);
        let text = harmless(&text, false);
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match self.put(left) {
                Ok(put) => left = &left[put..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes.len())
    }
}

/// Takes the text from these bytes, except a character at the end that is not complete.
fn whole_characters(bytes: &mut Vec<u8>) -> String {
    let end = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let rest = bytes.split_off(end);
    String::from_utf8_lossy(&std::mem::replace(bytes, rest)).into_owned()
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = match self.is_cleaned {
            true => self.put_clean(bytes),
            false => self.put(bytes),
        };
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
    fn a_text_stands_in_place_of_the_line_that_is_replaced_and_not_beside_it() {
        let in_place = AtomicBool::new(false);
        let next = |text: Option<&str>, stays| placed(&in_place, text, stays);
        assert_eq!(next(None, false), "", "there is nothing to remove");
        assert_eq!(next(Some("numa: a\n"), false), "numa: a\n");
        assert_eq!(next(Some("1 %"), true), "\r\x1b[K1 %");
        assert_eq!(next(Some("2 %"), true), "\r\x1b[K2 %");
        assert_eq!(next(Some("numa: b\n"), false), "\r\x1b[Knuma: b\n");
        assert_eq!(next(None, false), "", "it is gone already");
        assert_eq!((next(Some("3 %"), true), next(None, false)), ("\r\x1b[K3 %".into(), "\r\x1b[K".into()));
    }

    #[test]
    fn a_line_in_place_has_one_row() {
        assert_eq!(fitting("reading a", 80), "reading a");
        assert_eq!((fitting("12345", 6), fitting("12345", 5)), ("12345", "1234"));
        assert_eq!((fitting("\u{e4}\u{f6}\u{fc}", 3), fitting("x", 0)), ("\u{e4}\u{f6}", ""));
    }

    #[test]
    fn characters_that_come_in_parts_stay_whole() {
        let mut bytes = b"a\xe4\xb8".to_vec();
        assert_eq!((whole_characters(&mut bytes).as_str(), bytes.len()), ("a", 2));
        bytes.extend(b"\xad\xffz");
        assert_eq!((whole_characters(&mut bytes).as_str(), bytes.len()), ("\u{4e2d}\u{fffd}z", 0));
    }

    #[test]
    fn an_error_has_a_fix() {
        let full = OutputError::from(io::Error::from_raw_os_error(libc::ENOSPC));
        let text = "cannot write to standard output: No space left on device (os error 28); free some space, or write to another place";
        assert!(full.to_string() == text && !full.is_closed_by_reader());
        assert!(OutputError::from(io::Error::from_raw_os_error(libc::EPIPE)).is_closed_by_reader());
        assert!(OutputError::closed().to_string().contains("it is closed; open it, as in"));
        assert_eq!(check(), Ok(()));
    }
}
