//! The source of /sys and /proc: this machine, a directory, or an archive. With any other root than the host, nothing
//! of the host is read.

pub mod archive;
mod directory;
mod tree;
mod watched;

use crate::pages::{self, Pages};
use crate::perf::{self, Counters};
use numakit_model::Fix;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex};
use thiserror::Error;
pub use tree::FileTree;
pub use watched::{PATIENCE, Watched};

/// A file of the root cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}: {reason}")]
pub struct ReadError {
    /// Path below the root.
    pub path: String,
    /// The system's error.
    pub reason: String,
    /// The kind of error.
    pub kind: io::ErrorKind,
}

impl ReadError {
    fn new(path: &str, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        Self { path: path.to_owned(), reason, kind: error.kind() }
    }

    /// The content is malformed.
    pub(crate) fn invalid(path: &str, reason: &str) -> Self {
        Self { path: path.to_owned(), reason: reason.to_owned(), kind: io::ErrorKind::InvalidData }
    }

    /// The file does not exist, as opposed to unreadable.
    pub fn is_missing(&self) -> bool {
        self.kind == io::ErrorKind::NotFound
    }
}

impl std::convert::From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        Self::new(error.kind, error)
    }
}

/// The root of all paths. Cheap to clone; clones share the same root.
#[derive(Debug, Clone)]
pub struct SysRoot {
    place: Arc<Place>,
    name: String,
    touched: Option<Arc<Mutex<BTreeSet<String>>>>,
    counters: Option<Arc<dyn Counters>>,
    pages: Option<Arc<dyn Pages>>,
}

#[derive(Debug)]
enum Place {
    Host,
    Directory(OwnedFd),
    Tree(Mutex<FileTree>),
}

/// The largest file that is read completely, in bytes.
const MAX_FILE: usize = 64 << 20;

impl SysRoot {
    /// This machine.
    pub fn host() -> Self {
        Self {
            counters: Some(Arc::new(perf::KernelCounters)),
            pages: Some(Arc::new(pages::KernelPages)),
            ..Self::of(Place::Host, "this machine".to_owned())
        }
    }

    /// A directory with `sys` and `proc` (or with one subdirectory that has them), or an archive of such a directory: tar,
    /// plain or compressed with gzip, bzip2 or zstd.
    pub fn open(path: &Path) -> io::Result<Self> {
        let name = path.display().to_string();
        let place = if path.is_dir() {
            Place::Directory(directory::open(path)?)
        } else {
            Place::Tree(Mutex::new(archive::read(path)?))
        };
        Ok(Self::of(place, name))
    }

    /// Files in memory, which tests may change while they are read.
    pub fn of_tree(tree: FileTree) -> Self {
        Self::of(Place::Tree(Mutex::new(tree)), "memory".to_owned())
    }

    fn of(place: Place, name: String) -> Self {
        Self { place: Arc::new(place), name, touched: None, counters: None, pages: None }
    }

    /// This root with these performance counters.
    pub fn with_counters(self, counters: Arc<dyn Counters>) -> Self {
        Self { counters: Some(counters), ..self }
    }

    /// The performance counters of the machine; a capture has none.
    pub fn counters(&self) -> Option<&Arc<dyn Counters>> {
        self.counters.as_ref()
    }

    /// This root with this source of pages.
    pub fn with_pages(self, pages: Arc<dyn Pages>) -> Self {
        Self { pages: Some(pages), ..self }
    }

    /// The source of pages of processes; a capture has none.
    pub fn pages(&self) -> Option<&Arc<dyn Pages>> {
        self.pages.as_ref()
    }

    /// This root, which records every path that is accessed.
    pub fn traced(&self) -> Self {
        Self { touched: Some(Arc::default()), ..self.clone() }
    }

    /// Paths that were accessed since [`SysRoot::traced`].
    pub fn touched(&self) -> Vec<String> {
        let Some(touched) = &self.touched else { return Vec::new() };
        lock(touched).iter().cloned().collect()
    }

    /// Whether this is the root of this machine.
    pub fn is_host(&self) -> bool {
        matches!(*self.place, Place::Host)
    }

    /// `this machine`, or the path that was opened.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes the files of a root in memory; does nothing to other roots.
    pub fn change(&self, change: impl FnOnce(&mut FileTree)) {
        if let Place::Tree(tree) = &*self.place {
            change(&mut lock(tree));
        }
    }

    /// Opens a file that is read repeatedly.
    pub fn source(&self, path: &str) -> Result<RootFile, ReadError> {
        self.touch(path);
        let from = match &*self.place {
            Place::Host => From::File(File::open(path).map_err(|e| ReadError::new(path, &e))?),
            Place::Directory(root) => {
                From::File(directory::open_file(root, path).map_err(|e| ReadError::new(path, &e))?)
            }
            Place::Tree(tree) => {
                lock(tree).read(path).map_err(|e| ReadError::new(path, &e))?;
                From::Tree(Arc::clone(&self.place))
            }
        };
        Ok(RootFile { path: path.to_owned(), from })
    }

    /// The whole content of a file.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let mut content = Vec::new();
        self.source(path)?.read(&mut content)?;
        Ok(content)
    }

    /// Reads a file of /sys into the buffer, with one call and without allocating: the kernel returns such a file
    /// completely. Returns the length; if the buffer is full, there may be more.
    pub fn front(&self, path: &str, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.touch(path);
        let read = match &*self.place {
            Place::Host => File::open(path).and_then(|file| file.read_at(buffer, 0)),
            Place::Directory(root) => {
                directory::open_file(root, path).and_then(|file| file.read_at(buffer, 0))
            }
            Place::Tree(tree) => lock(tree).read(path).map(|content| {
                let length = content.len().min(buffer.len());
                buffer[..length].copy_from_slice(&content[..length]);
                length
            }),
        };
        read.map_err(|e| ReadError::new(path, &e))
    }

    /// The whole content of a file as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self, path: &str) -> Result<String, ReadError> {
        self.bytes(path).map(|b| match String::from_utf8(b) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// The names in a directory, sorted.
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        self.touch(path);
        let names = match &*self.place {
            Place::Host => std::fs::read_dir(path).map(|entries| {
                entries.filter_map(|e| e.ok()).map(|e| e.file_name().to_string_lossy().into_owned()).collect()
            }),
            Place::Directory(root) => directory::list(root, path),
            Place::Tree(tree) => lock(tree).list(path),
        };
        let mut names: Vec<String> = names.map_err(|e| ReadError::new(path, &e))?;
        names.sort();
        Ok(names)
    }

    /// What the user does about a file of /proc or /sys that cannot be read.
    pub fn fix_for(&self, path: &str) -> Fix {
        match path.split('/').nth(1) {
            _ if !self.is_host() => Fix::Capture(path.to_owned()),
            Some("proc") => Fix::command("mount -t proc proc /proc"),
            _ => Fix::command("mount -t sysfs sysfs /sys"),
        }
    }

    /// The target of a symbolic link, as written in it.
    pub fn link(&self, path: &str) -> Result<String, ReadError> {
        self.touch(path);
        let target = match &*self.place {
            Place::Host => std::fs::read_link(path).map(|p| p.to_string_lossy().into_owned()),
            Place::Directory(root) => directory::read_link(root, path),
            Place::Tree(tree) => lock(tree).link(path),
        };
        target.map_err(|e| ReadError::new(path, &e))
    }

    /// Whether a file or directory exists (a dangling link does not).
    pub fn exists(&self, path: &str) -> bool {
        self.touch(path);
        match &*self.place {
            Place::Host => Path::new(path).exists(),
            Place::Directory(root) => directory::exists(root, path),
            Place::Tree(tree) => lock(tree).exists(path),
        }
    }

    /// The link count of a directory, which kernels use for counts; only on this machine.
    pub fn links(&self, path: &str) -> Option<u64> {
        self.touch(path);
        match &*self.place {
            Place::Host => std::fs::metadata(path).ok().map(|folder| folder.nlink()),
            Place::Directory(_) | Place::Tree(_) => None,
        }
    }

    /// The device and the number of a file or directory; only on this machine.
    pub fn identity(&self, path: &str) -> Option<(u64, u64)> {
        self.touch(path);
        match &*self.place {
            Place::Host => std::fs::metadata(path).ok().map(|data| (data.dev(), data.ino())),
            Place::Directory(_) | Place::Tree(_) => None,
        }
    }

    fn touch(&self, path: &str) {
        if let Some(touched) = &self.touched {
            lock(touched).insert(path.to_owned());
        }
    }
}

/// A file of the root that is read repeatedly.
#[derive(Debug)]
pub struct RootFile {
    path: String,
    from: From,
}

#[derive(Debug)]
enum From {
    File(File),
    Tree(Arc<Place>),
}

impl RootFile {
    /// The path below the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Replaces the buffer's content by the file's present content. Allocates only if the file is larger than the buffer.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        let result = match &self.from {
            From::File(file) => read_to_end(file, buffer),
            From::Tree(place) => {
                buffer.clear();
                match &**place {
                    Place::Tree(tree) => lock(tree).read(&self.path).map(|b| buffer.extend_from_slice(b)),
                    _ => Ok(()),
                }
            }
        };
        result.map_err(|e| ReadError::new(&self.path, &e))
    }

    /// Reads from an offset with one call; 0 means the end of the file. Long or slow files are read in parts by it.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, ReadError> {
        let result = match &self.from {
            From::File(file) => file.read_at(buffer, offset),
            From::Tree(place) => match &**place {
                Place::Tree(tree) => lock(tree).read(&self.path).map(|content| {
                    let rest =
                        usize::try_from(offset).ok().and_then(|from| content.get(from..)).unwrap_or(&[]);
                    let length = rest.len().min(buffer.len());
                    buffer[..length].copy_from_slice(&rest[..length]);
                    length
                }),
                _ => Ok(0),
            },
        };
        result.map_err(|e| ReadError::new(&self.path, &e))
    }
}

/// Reads from the start until a read returns nothing: files of /proc return at most a page per call.
fn read_to_end(file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut filled = 0;
    // All of the buffer's capacity stays initialised, so that a read does not have to clear it.
    buffer.resize(buffer.capacity().max(4096 + 1024), 0);
    loop {
        if filled == buffer.len() {
            if filled >= MAX_FILE {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 64 MiB"));
            }
            buffer.resize(filled * 2, 0);
        }
        match file.read_at(&mut buffer[filled..], filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                buffer.clear();
                return Err(e);
            }
        }
    }
    buffer.truncate(filled);
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
