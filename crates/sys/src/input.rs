//! What the standard input is, for a program that is started several times.

use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::stdio::stdin;
use rustix::termios::isatty;
use std::io;

/// What the standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardInput {
    /// Nothing, a terminal, or a device such as /dev/null: there is always more.
    Endless,
    /// A file, at this offset now.
    File(u64),
    /// A pipe or a socket: bytes that were read are gone.
    Once,
}

/// The standard input of this process.
pub fn standard() -> StandardInput {
    if isatty(stdin()) {
        return StandardInput::Endless;
    }
    let kind = fstat(stdin()).map(|about| FileType::from_raw_mode(about.st_mode));
    match kind {
        Ok(FileType::RegularFile) => match seek(stdin(), SeekFrom::Current(0)) {
            Ok(offset) => StandardInput::File(offset),
            Err(_) => StandardInput::Once,
        },
        Ok(FileType::Fifo | FileType::Socket) => StandardInput::Once,
        _ => StandardInput::Endless,
    }
}

impl StandardInput {
    /// If the standard input is a file, goes back to the offset that it had.
    pub fn rewind(self) -> io::Result<()> {
        match self {
            Self::File(offset) => Ok(seek(stdin(), SeekFrom::Start(offset)).map(drop)?),
            _ => Ok(()),
        }
    }
}
