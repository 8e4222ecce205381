//! The output of a recorder: a file or a pipe.

use crate::ring::Ring;
use numakit_sys::poll;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that a pipe accepts at once when it is writable.
const PIECE: usize = 4096;
/// How often the end of the recording is checked while a pipe is full.
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// How long a pipe may stay full after the recording has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file, or the standard output.
#[derive(Debug)]
pub(super) enum Sink {
    File(File),
    Pipe(File, Arc<Ring>),
}

impl Sink {
    /// Appends to the `length` bytes before. A file gets all or nothing. A full pipe is waited for, but
    /// only for [`PATIENCE`] after the recording has ended.
    pub fn append(&mut self, length: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => append(file, length, bytes),
            Self::Pipe(file, ring) => bytes.chunks(PIECE).try_for_each(|piece| {
                wait(file, ring)?;
                file.write_all(piece)
            }),
        }
    }
}

/// Appends all of it or, on an error, nothing.
pub(crate) fn append(file: &mut File, length: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes).inspect_err(|_| {
        let _ = file.set_len(length);
    })
}

fn wait(file: &File, ring: &Ring) -> io::Result<()> {
    let mut since = None;
    while !poll::writable(file.as_fd(), CHECK_PERIOD)? {
        if ring.closed() && since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return Err(io::Error::new(ErrorKind::TimedOut, "its reader reads nothing"));
        }
    }
    Ok(())
}

/// Whether the file is still in a directory.
pub(super) fn is_linked(file: &File) -> bool {
    file.metadata().is_ok_and(|m| m.nlink() > 0)
}

/// Copies a file that was removed from its directory to the temporary directory.
pub(super) fn rescue(path: &Path, mut file: File) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 0..100 {
        let target =
            std::env::temp_dir().join(if number == 0 { name.clone() } else { format!("{number}-{name}") });
        let Ok(mut copy) = File::options().write(true).create_new(true).open(&target) else { continue };
        let copied = file.rewind().and_then(|()| io::copy(&mut file, &mut copy));
        return match copied {
            Ok(_) => format!("it was saved as {}", target.display()),
            Err(error) => format!("saving it as {} failed too: {error}", target.display()),
        };
    }
    "it could not be saved: no free name in the temporary directory".into()
}
