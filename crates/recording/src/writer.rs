//! A recording that is being made: the file, its side file, and the thread that moves rows
//! from one to the other.

use crate::arrow::{self, Encoder};
use crate::header::Header;
use crate::ring::{self, Ring};
use numakit_sys::clock;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use thiserror::Error;

/// A recording that cannot be begun or kept.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The file is there already.
    #[error("{0} exists; give another name, or --force to replace it")]
    Exists(PathBuf),
    /// Another process records to it.
    #[error("{0} is being recorded by another process; give another name")]
    Busy(PathBuf),
    /// It or its side file cannot be made.
    #[error("cannot record to {path}: {error}; {fix}")]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// Writing stopped in the middle.
    #[error("recording to {path} stopped: {error}; {kept}")]
    Stopped {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
        /// Where the rows are.
        kept: String,
    },
}

/// The side file of a recording.
pub fn tail_of(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".tail");
    name.into()
}

/// A recording that is being made.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    ring: Arc<Ring>,
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), WriteError>>,
}

impl Recorder {
    /// Makes the file and its side file and starts the writer. An existing file is only
    /// replaced when forced; one that another process is recording to never is.
    pub fn create(path: &Path, header: &Header, force: bool) -> Result<Self, WriteError> {
        let files = Files::create(path, header, force)?;
        let ring = Arc::clone(&files.ring);
        let bytes = Arc::clone(&files.bytes);
        let thread = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || files.run())
            .map_err(|error| create_error(path, error))?;
        Ok(Self { path: path.to_owned(), ring, bytes, thread })
    }

    /// Where the sampler puts rows.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The same, for after [`Recorder::finish`].
    pub fn size(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes)
    }

    /// Whether the writer gave up; [`Recorder::finish`] then tells why.
    pub fn failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Closes the ring, waits for the last batch and the end of the file.
    pub fn finish(self) -> Result<(), WriteError> {
        self.ring.close();
        self.thread.join().unwrap_or_else(|_| {
            Err(WriteError::Stopped {
                path: self.path.clone(),
                error: io::Error::other("the writer failed"),
                kept: kept_in_tail(&self.path),
            })
        })
    }
}

fn kept_in_tail(path: &Path) -> String {
    format!(
        "what was sampled is kept in it and in {}; when the cause is gone, 'numa recover {}' joins them",
        tail_of(path).display(),
        path.display()
    )
}

fn create_error(path: &Path, error: io::Error) -> WriteError {
    let fix = match error.kind() {
        io::ErrorKind::NotFound => "make the directory first, or give another name with -o",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "give a name in a directory that you may write to with -o"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or give a name on another disk with -o"
        }
        _ => "give another name with -o",
    };
    WriteError::Create { path: path.to_owned(), error, fix }
}

struct Files {
    path: PathBuf,
    file: File,
    // Held for its lock, which says that the recording is being made.
    tail: File,
    ring: Arc<Ring>,
    bytes: Arc<AtomicU64>,
    encoder: Encoder,
    batch: usize,
}

impl Files {
    fn create(path: &Path, header: &Header, force: bool) -> Result<Self, WriteError> {
        let fail = |error| create_error(path, error);
        let tail_path = tail_of(path);
        if !force && path.exists() {
            return Err(WriteError::Exists(path.to_owned()));
        }
        let tail = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(numakit_sys::file::NO_FOLLOW)
            .open(&tail_path)
            .map_err(fail)?;
        if tail.try_lock().is_err() {
            return Err(WriteError::Busy(path.to_owned()));
        }
        if !force && tail.metadata().is_ok_and(|m| m.len() > 0) {
            return Err(WriteError::Exists(tail_path));
        }
        tail.set_len(0).map_err(fail)?;
        let file = Self::new_file(path, force);
        let ring = Ring::in_file(header, &tail);
        let undo = |error| {
            let _ = std::fs::remove_file(&tail_path);
            error
        };
        let mut file = file.map_err(undo)?;
        let schema = arrow::message_of(header);
        let begun = ring.and_then(|ring| file.write_all(&schema).map(|()| ring));
        let ring = begun.map_err(|error| {
            let _ = std::fs::remove_file(path);
            undo(fail(error))
        })?;
        let columns = header.series.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            tail,
            ring: Arc::new(ring),
            bytes: Arc::new(AtomicU64::new(schema.len() as u64)),
            encoder: Encoder::new(columns).map_err(fail)?,
            batch: ring::rows_per_batch(columns),
        })
    }

    fn new_file(path: &Path, force: bool) -> Result<File, WriteError> {
        let mut options = File::options();
        options.read(true).write(true);
        let opened = if force {
            options.create(true).truncate(true).open(path)
        } else {
            options.create_new(true).open(path)
        };
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => WriteError::Exists(path.to_owned()),
            _ => create_error(path, error),
        })
    }

    fn run(mut self) -> Result<(), WriteError> {
        let result = self.move_rows();
        if let Err(error) = result {
            return Err(WriteError::Stopped { kept: kept_in_tail(&self.path), path: self.path, error });
        }
        let _ = std::fs::remove_file(tail_of(&self.path));
        drop(self.tail);
        if self.file.metadata().is_ok_and(|m| m.nlink() > 0) {
            return Ok(());
        }
        let kept = rescue(&self.path, self.file);
        Err(WriteError::Stopped {
            path: self.path,
            error: io::Error::other("it was removed meanwhile"),
            kept,
        })
    }

    fn move_rows(&mut self) -> io::Result<()> {
        loop {
            let open = self.ring.wait(self.batch, clock::monotonic() + 3_600_000_000_000);
            let ready = self.ring.waiting_rows() >= self.batch || self.ring.labels_crowd();
            if open && !ready {
                continue;
            }
            let pending = self.ring.pending(self.batch);
            if pending.is_empty() {
                if open {
                    continue;
                }
                break;
            }
            let message = self.encoder.batch(&pending)?;
            append(&mut self.file, self.bytes.load(Ordering::Relaxed), &message)?;
            self.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
            pending.done();
        }
        append(&mut self.file, self.bytes.load(Ordering::Relaxed), &arrow::END_OF_STREAM)?;
        self.bytes.fetch_add(8, Ordering::Relaxed);
        Ok(())
    }
}

/// Appends all of it or, on an error, nothing.
pub(crate) fn append(file: &mut File, length: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes).inspect_err(|_| {
        let _ = file.set_len(length);
    })
}

/// A file whose name is gone still has its content: copies it to the temporary directory.
fn rescue(path: &Path, mut file: File) -> String {
    use std::io::Seek;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 0..100 {
        let target =
            std::env::temp_dir().join(if number == 0 { name.clone() } else { format!("{number}-{name}") });
        let Ok(mut copy) = File::options().write(true).create_new(true).open(&target) else { continue };
        let copied = file.rewind().and_then(|()| io::copy(&mut file, &mut copy));
        return match copied {
            Ok(_) => format!("all of it was saved as {}", target.display()),
            Err(error) => format!("saving it as {} failed too: {error}", target.display()),
        };
    }
    "no free name was found to save it in the temporary directory".into()
}
