//! The recorder: the file, its tail file, and the thread that moves rows
//! from the ring to the file.

mod sink;

use crate::arrow::{self, Encoder, Head};
use crate::header::Header;
use crate::names::{self, tail_of};
use crate::ring::{self, Ring};
use numakit_sys::clock;
use numakit_sys::file::{NO_FOLLOW, is_at};
use numakit_sys::output::{Existing, OutputFile};
use sink::Sink;
pub(crate) use sink::append;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;

/// After this time the pending rows become a batch, however few they are, so that programs that
/// do not read the tail file see them.
pub const BATCH_TIME: Duration = Duration::from_secs(300);
/// The same without a tail file.
const STREAM_TIME: Duration = Duration::from_secs(10);

/// Why a recording cannot be started or continued.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The file exists.
    #[error("{0} exists; choose another name, or use --force to replace it")]
    Exists(PathBuf),
    /// The recording was moved away, and its tail file was not.
    #[error(
        "{0} has the last samples of a recorder that was killed; choose another name, or move the recording back to it, or use \
         --force to discard them"
    )]
    LeftBehind(PathBuf),
    /// Another process records to it.
    #[error("another process records to {0}; choose another name")]
    Busy(PathBuf),
    /// The name has the extension of another format.
    #[error(
        "{path} has the extension of {format}, but a recording is an Arrow stream; record to {instead}, and \
         'numa export {instead}' converts it"
    )]
    Name {
        /// The file.
        path: PathBuf,
        /// The format of that extension.
        format: &'static str,
        /// A correct name.
        instead: PathBuf,
    },
    /// It or its tail file cannot be created.
    #[error("cannot record to {path}: {error}; {fix}")]
    Create {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
        /// The fix.
        fix: &'static str,
    },
    /// Writing stopped in the middle.
    #[error("recording to {path} stopped: {error}; {kept}")]
    Stopped {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
        /// Where the rows are saved.
        kept: String,
    },
}

/// A recording in progress.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    streams: bool,
    ring: Arc<Ring>,
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), WriteError>>,
}

impl Recorder {
    /// Creates the file and its tail file and starts the writer. An existing file is only
    /// replaced if forced, and only after the new one was created; a file to which another process
    /// records is never replaced.
    pub fn create(path: &Path, header: &Header, force: bool) -> Result<Self, WriteError> {
        Self::create_with(path, header, force, BATCH_TIME)
    }

    /// The same with another time after which a batch is written.
    pub fn create_with(
        path: &Path,
        header: &Header,
        force: bool,
        batch_time: Duration,
    ) -> Result<Self, WriteError> {
        Self::start(Files::create(path, header, force, batch_time)?)
    }

    /// Records to an open pipe or file with this name in messages. There is no tail file: if the
    /// process is killed, rows that are not in a batch are lost.
    pub fn stream(to: File, name: &str, header: &Header) -> Result<Self, WriteError> {
        Self::start(Files::stream(to, Path::new(name), header)?)
    }

    fn start(files: Files) -> Result<Self, WriteError> {
        let path = files.path.clone();
        let streams = files.tail.is_none();
        let ring = Arc::clone(&files.ring);
        let bytes = Arc::clone(&files.bytes);
        let thread = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || files.run())
            .map_err(|error| create_error(&path, error))?;
        Ok(Self { path, streams, ring, bytes, thread })
    }

    /// The ring for the sampler's rows.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// The file, or its name in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file; `None` for a pipe or a file that the caller opened.
    pub fn file(&self) -> Option<&Path> {
        (!self.streams).then_some(self.path.as_path())
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The same, also usable after [`Recorder::finish`].
    pub fn size(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes)
    }

    /// Whether the writer failed; [`Recorder::finish`] then returns the error.
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
        "all samples are in it and in {}, which 'numa show {}' reads together; keep both",
        tail_of(path).display(),
        path.display()
    )
}

fn create_error(path: &Path, error: io::Error) -> WriteError {
    let fix = match error.kind() {
        ErrorKind::AlreadyExists => return WriteError::Exists(path.to_owned()),
        ErrorKind::InvalidInput => "choose another name with -o; '-o -' writes to standard output",
        ErrorKind::NotFound => "create the directory first, or choose another name with -o",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "choose a directory that you may write to with -o"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or choose a file on another disk with -o"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit on file sizes ('ulimit -f unlimited'), or sample fewer series with -e"
        }
        _ => "choose another name with -o",
    };
    WriteError::Create { path: path.to_owned(), error, fix }
}

struct Files {
    path: PathBuf,
    sink: Sink,
    // Open for its lock, which marks a recording in progress.
    tail: Option<File>,
    ring: Arc<Ring>,
    bytes: Arc<AtomicU64>,
    encoder: Encoder,
    /// Bytes before the first batch, written by the writer thread, since a pipe may block.
    head: Vec<u8>,
    batch: usize,
    batch_time: Duration,
}

impl Files {
    fn create(path: &Path, header: &Header, force: bool, batch_time: Duration) -> Result<Self, WriteError> {
        if let Some(format) = names::other_format(path) {
            let instead = path.with_extension(names::EXTENSION);
            return Err(WriteError::Name { path: path.to_owned(), format, instead });
        }
        let fail = |error| create_error(path, error);
        let mut file = OutputFile::create(path, Existing::forced(force)).map_err(fail)?;
        let tail_path = tail_of(file.place());
        let (old, created) = lock_tail(path, &tail_path)?;
        let create = || {
            if !force && old.metadata().is_ok_and(|m| m.len() > 0) {
                return Err(WriteError::LeftBehind(tail_path.clone()));
            }
            // Everything is created before anything is replaced.
            let tail = OutputFile::create(&tail_path, Existing::Replace).map_err(fail)?;
            let ring = Ring::in_file(header, tail.file()).map_err(fail)?;
            let head = head_of(header).map_err(fail)?;
            file.write_all(&head.message).map_err(fail)?;
            let encoder = Encoder::new(&head).map_err(fail)?;
            tail.file().try_lock().map_err(|error| fail(error.into()))?;
            let tail = tail.persist().map_err(fail)?;
            Ok((file.persist().map_err(fail)?, tail, ring, encoder, head))
        };
        let (file, tail, ring, encoder, head) = create().inspect_err(|_| {
            if created {
                let _ = std::fs::remove_file(&tail_path);
            }
        })?;
        Ok(Self {
            path: path.to_owned(),
            sink: Sink::File(file),
            tail: Some(tail),
            ring: Arc::new(ring),
            bytes: Arc::new(AtomicU64::new(head.message.len() as u64)),
            encoder,
            head: Vec::new(),
            batch: ring::rows_per_batch(header.series.len()),
            batch_time,
        })
    }

    fn stream(to: File, name: &Path, header: &Header) -> Result<Self, WriteError> {
        let fail = |error| create_error(name, error);
        let columns = header.series.len();
        let batch = ring::rows_per_batch(columns);
        let ring = Arc::new(Ring::in_memory(columns, batch * 2).map_err(fail)?);
        let head = head_of(header).map_err(fail)?;
        Ok(Self {
            path: name.to_owned(),
            sink: Sink::Pipe(to, Arc::clone(&ring)),
            tail: None,
            ring,
            bytes: Arc::new(AtomicU64::new(0)),
            encoder: Encoder::new(&head).map_err(fail)?,
            head: head.message,
            batch,
            batch_time: STREAM_TIME,
        })
    }

    fn run(mut self) -> Result<(), WriteError> {
        let result = self.move_rows();
        let stopped = |path, error, kept| Err(WriteError::Stopped { path, error, kept });
        let (Sink::File(file), Some(tail)) = (self.sink, self.tail) else {
            let kept = "the batches before are readable, as a recording that was not closed".to_owned();
            return result.or_else(|error| stopped(self.path, error, kept));
        };
        if let Err(error) = result {
            let kept = kept_in_tail(&self.path);
            return stopped(self.path, error, kept);
        }
        if is_at(&tail, &tail_of(&self.path)).unwrap_or(false) {
            let _ = std::fs::remove_file(tail_of(&self.path));
        }
        drop(tail);
        if sink::is_linked(&file) {
            return Ok(());
        }
        let kept = sink::rescue(&self.path, file);
        stopped(self.path, io::Error::other("it was removed during the recording"), kept)
    }

    fn move_rows(&mut self) -> io::Result<()> {
        let time = u64::try_from(self.batch_time.as_nanos()).unwrap_or(u64::MAX >> 1);
        let mut due = clock::monotonic() + time;
        let head = std::mem::take(&mut self.head);
        self.append(&head)?;
        loop {
            let open = self.ring.wait(self.batch, due);
            let late = clock::monotonic() >= due;
            let ready = self.ring.pending_rows() >= self.batch || self.ring.labels_half_full() || late;
            if open && !ready {
                continue;
            }
            due = clock::monotonic() + time;
            let pending = self.ring.pending(self.batch);
            if pending.is_empty() {
                if open {
                    continue;
                }
                break;
            }
            let message = self.encoder.batch(&pending)?;
            let length = self.bytes.load(Ordering::Relaxed);
            self.sink.append(length, &message)?;
            self.bytes.store(length + message.len() as u64, Ordering::Relaxed);
            pending.release();
        }
        self.append(&arrow::END_OF_STREAM)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.append(self.bytes.load(Ordering::Relaxed), bytes)?;
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

fn head_of(header: &Header) -> io::Result<Head> {
    Head::new(header).map_err(io::Error::other)
}

/// The tail file, locked, and whether it was created for that.
fn lock_tail(path: &Path, tail: &Path) -> Result<(File, bool), WriteError> {
    let fail = |error| create_error(tail, error);
    loop {
        // Only a regular file is opened.
        let created = match OutputFile::create(tail, Existing::Keep).and_then(OutputFile::persist) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(fail(error)),
        };
        let opened = File::options().read(true).write(true).custom_flags(NO_FOLLOW).open(tail);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened.map_err(fail)?,
        };
        file.try_lock().map_err(|refused| match refused {
            TryLockError::WouldBlock => WriteError::Busy(path.to_owned()),
            TryLockError::Error(error) => fail(error),
        })?;
        // The process that held the lock may have replaced or removed the file.
        if is_at(&file, tail).map_err(fail)? {
            return Ok((file, created));
        }
    }
}
