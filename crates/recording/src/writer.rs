//! A recording that is being made: the file, its side file, and the thread that moves rows
//! from one to the other.

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
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;

/// After this time the rows that wait become a batch, however few they are, so that programs that
/// know nothing of the side file see them.
pub const BATCH_TIME: Duration = Duration::from_secs(300);
/// The same where there is no side file.
const STREAM_TIME: Duration = Duration::from_secs(10);

/// A recording that cannot be begun or kept.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The file is there already.
    #[error("{0} exists; give another name, or --force to replace it")]
    Exists(PathBuf),
    /// Another process records to it.
    #[error("{0} is being recorded by another process; give another name")]
    Busy(PathBuf),
    /// The name promises another format.
    #[error(
        "{path} would be taken for {format}, but a recording is an Arrow stream; record to {instead}, and \
         'numa export {instead}' makes other formats of it"
    )]
    Name {
        /// The file.
        path: PathBuf,
        /// What the name promises.
        format: &'static str,
        /// A right name.
        instead: PathBuf,
    },
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

/// A recording that is being made.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    streams: bool,
    ring: Arc<Ring>,
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), WriteError>>,
}

impl Recorder {
    /// Makes the file and its side file and starts the writer. An existing file is only
    /// replaced when forced, and not before the new one is begun; one that another process is
    /// recording to never is.
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

    /// Records to an open pipe or file, called so in messages. There is no side file: when the
    /// process is killed, what is not in a batch is lost.
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

    /// Where the sampler puts rows.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// The file, or what it is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same, unless it is a pipe or a file that somebody else opened.
    pub fn file(&self) -> Option<&Path> {
        (!self.streams).then_some(self.path.as_path())
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
        ErrorKind::AlreadyExists => return WriteError::Exists(path.to_owned()),
        ErrorKind::InvalidInput => "give another name with -o; '-o -' writes to standard output",
        ErrorKind::NotFound => "make the directory first, or give another name with -o",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "give a name in a directory that you may write to with -o"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or give a name on another disk with -o"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit of file sizes ('ulimit -f unlimited'), or sample fewer series with -e"
        }
        _ => "give another name with -o",
    };
    WriteError::Create { path: path.to_owned(), error, fix }
}

struct Files {
    path: PathBuf,
    sink: Sink,
    // Held for its lock, which says that the recording is being made.
    tail: Option<File>,
    ring: Arc<Ring>,
    bytes: Arc<AtomicU64>,
    encoder: Encoder,
    /// What is still to be written before the first batch: nobody but the writer waits for a pipe.
    head: Vec<u8>,
    batch: usize,
    batch_time: Duration,
}

impl Files {
    fn create(path: &Path, header: &Header, force: bool, batch_time: Duration) -> Result<Self, WriteError> {
        if let Some(format) = names::promises(path) {
            let instead = path.with_extension(names::EXTENSION);
            return Err(WriteError::Name { path: path.to_owned(), format, instead });
        }
        let fail = |error| create_error(path, error);
        let mut file = OutputFile::create(path, Existing::forced(force)).map_err(fail)?;
        let tail_path = tail_of(file.place());
        let (old, made) = lock_tail(path, &tail_path)?;
        let begun = || {
            if !force && old.metadata().is_ok_and(|m| m.len() > 0) {
                return Err(WriteError::Exists(tail_path.clone()));
            }
            // All of it is there before anything that was there before goes.
            let tail = OutputFile::create(&tail_path, Existing::Replaced).map_err(fail)?;
            let ring = Ring::in_file(header, tail.file()).map_err(fail)?;
            let head = head_of(header).map_err(fail)?;
            file.write_all(&head.message).map_err(fail)?;
            let encoder = Encoder::new(&head).map_err(fail)?;
            tail.file().try_lock().map_err(|error| fail(error.into()))?;
            let tail = tail.keep().map_err(fail)?;
            Ok((file.keep().map_err(fail)?, tail, ring, encoder, head))
        };
        let (file, tail, ring, encoder, head) = begun().inspect_err(|_| {
            if made {
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
            let kept = "what was written before is a recording that was not closed".to_owned();
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
        if sink::has_a_name(&file) {
            return Ok(());
        }
        let kept = sink::rescue(&self.path, file);
        stopped(self.path, io::Error::other("it was removed meanwhile"), kept)
    }

    fn move_rows(&mut self) -> io::Result<()> {
        let time = u64::try_from(self.batch_time.as_nanos()).unwrap_or(u64::MAX >> 1);
        let mut due = clock::monotonic() + time;
        let head = std::mem::take(&mut self.head);
        self.append(&head)?;
        loop {
            let open = self.ring.wait(self.batch, due);
            let late = clock::monotonic() >= due;
            let ready = self.ring.waiting_rows() >= self.batch || self.ring.labels_crowd() || late;
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
            pending.done();
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

/// The side file as it is, locked, and whether it was made for that.
fn lock_tail(path: &Path, tail: &Path) -> Result<(File, bool), WriteError> {
    let fail = |error| create_error(tail, error);
    loop {
        // Whatever is there and is no regular file is not opened.
        let made = match OutputFile::create(tail, Existing::Kept).and_then(OutputFile::keep) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(fail(error)),
        };
        let opened = File::options().read(true).write(true).custom_flags(NO_FOLLOW).open(tail);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened.map_err(fail)?,
        };
        if file.try_lock().is_err() {
            return Err(WriteError::Busy(path.to_owned()));
        }
        // Who held the lock may have replaced or removed the file.
        if is_at(&file, tail).map_err(fail)? {
            return Ok((file, made));
        }
    }
}
