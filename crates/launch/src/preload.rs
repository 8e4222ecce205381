//! The C libraries that programs preload, embedded in the binary. They are extracted to the user's cache, each under
//! a name with its hash.
//!
//! The path contains `$LIB`, which the loader of glibc replaces. That of musl does not: it finds no such file and
//! continues, where it would end the program if it found the library, which needs glibc. So a placed shell may
//! start programs of both kinds.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A library in this binary.
struct Embedded {
    /// The file name of the library, which is its soname too.
    name: &'static str,
    /// A name for its content.
    hash: &'static str,
    content: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/libraries.rs"));

/// A library to preload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Places threads and their memory.
    Place,
    /// Samples threads.
    Explain,
    /// Allocates memory.
    Alloc,
    /// Counts allocations.
    Count,
    /// Gives objects their policies.
    Apply,
    /// Runs OpenMP loops with shares.
    Sched,
    /// Writes down what calls of MPI cost.
    Mpi,
}

impl Library {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Place, Self::Explain, Self::Alloc, Self::Count, Self::Apply, Self::Sched, Self::Mpi];

    fn embedded(self) -> &'static Embedded {
        match self {
            Self::Place => &PLACE,
            Self::Explain => &EXPLAIN,
            Self::Alloc => &ALLOC,
            Self::Count => &COUNT,
            Self::Apply => &APPLY,
            Self::Sched => &SCHED,
            Self::Mpi => &MPI,
        }
    }

    /// The file name of the library, which is its soname too.
    pub fn name(self) -> &'static str {
        self.embedded().name
    }

    /// The variable that names a different file to preload instead of the embedded library.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Place => "NUMAKIT_PRELOAD",
            Self::Explain => "NUMAKIT_PRELOAD_EXPLAIN",
            Self::Alloc => "NUMAKIT_PRELOAD_ALLOC",
            Self::Count => "NUMAKIT_PRELOAD_COUNT",
            Self::Apply => "NUMAKIT_PRELOAD_APPLY",
            Self::Sched => "NUMAKIT_PRELOAD_SCHED",
            Self::Mpi => "NUMAKIT_PRELOAD_MPI",
        }
    }

    /// The path of the library for `LD_PRELOAD`: the file that its variable names, else the embedded library with `$LIB` in
    /// its path. The latter is extracted unless it is there already.
    pub fn extract(self) -> Result<PathBuf, PreloadError> {
        match std::env::var_os(self.variable()).filter(|given| !given.is_empty()) {
            Some(given) => self.named(PathBuf::from(given)),
            None => CacheDirectories::of_this_process().extract(self),
        }
    }

    fn named(self, path: PathBuf) -> Result<PathBuf, PreloadError> {
        if !path.is_file() {
            return Err(PreloadError::Missing(self, path));
        }
        // The program may change its working directory before it starts children.
        let path = path.canonicalize().map_err(|_| PreloadError::Missing(self, path))?;
        if has_separator(path.as_os_str()) { Err(PreloadError::Separator(self, path)) } else { Ok(path) }
    }
}

/// The part of a path that the loader of glibc replaces.
const LIB: &str = "$LIB";
/// The values that the loader has for `$LIB`, which depend on the distribution.
const FOLDERS: [&str; 4] = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];

/// Why there is no library to preload.
#[derive(Debug, thiserror::Error)]
#[error("{}; {}", self.problem(), self.fix())]
pub enum PreloadError {
    /// The variable names no file.
    Missing(Library, PathBuf),
    /// The path contains a separator of `LD_PRELOAD`.
    Separator(Library, PathBuf),
    /// The library can be extracted to none of the directories.
    NoFolder(Library, String),
}

impl PreloadError {
    /// What is wrong.
    pub fn problem(&self) -> String {
        match self {
            Self::Missing(library, path) => {
                format!("{} is '{}', where there is no file", library.variable(), path.display())
            }
            Self::Separator(library, path) => {
                let (variable, path) = (library.variable(), path.display());
                format!("{variable} is '{path}', but colons and blanks separate names in LD_PRELOAD")
            }
            Self::NoFolder(library, reasons) => format!("{} cannot be extracted: {reasons}", library.name()),
        }
    }

    /// The fix.
    pub fn fix(&self) -> String {
        match self {
            Self::Missing(library, _) => format!("unset {} or name a {}", library.variable(), library.name()),
            Self::Separator(..) => "move the library to a path without colons and blanks".into(),
            Self::NoFolder(..) => "set NUMAKIT_CACHE to a directory that only you can write to".into(),
        }
    }
}

/// The directories to which a user's library may be extracted.
struct CacheDirectories {
    user: u32,
    folders: Vec<PathBuf>,
}

impl CacheDirectories {
    /// The directories for this process, in order of preference.
    fn of_this_process() -> Self {
        Self { user: numakit_sys::user::id(), folders: numakit_sys::cache::folders("preload") }
    }

    fn extract(&self, library: Library) -> Result<PathBuf, PreloadError> {
        let mut reasons = Vec::new();
        for folder in &self.folders {
            match self.extract_into(library.embedded(), folder) {
                Ok(path) => return Ok(path),
                Err(error) => reasons.push(format!("{}: {error}", folder.display())),
            }
        }
        Err(PreloadError::NoFolder(library, reasons.join("; ")))
    }

    fn extract_into(&self, library: &Embedded, top: &Path) -> io::Result<PathBuf> {
        if has_separator(top.as_os_str()) {
            return Err(io::Error::other("its path has a colon or a blank"));
        }
        let folder = top.join(library.hash);
        // Root may start programs as other users, which must be able to read it.
        let mode = if self.user == 0 { 0o755 } else { 0o700 };
        fs::DirBuilder::new().recursive(true).mode(mode).create(&folder)?;
        Self::check_private(top)?;
        Self::check_private(&folder)?;
        // From such a file system, the loader would print an error in every program and continue without the library.
        if !numakit_sys::file::allows_execution(&folder)? {
            return Err(io::Error::other("it is on a file system that is mounted noexec"));
        }
        let path = folder.join(library.name);
        if !has_content(&path, library.content) {
            write_atomically(&path, library.content)?;
        }
        for lib in FOLDERS.map(str::to_owned).into_iter().chain(own_lib_folder()) {
            self.link(library, &folder, &lib)?;
        }
        Ok(folder.join(LIB).join(library.name))
    }

    /// Links the library into the directory that replaces `$LIB`.
    fn link(&self, library: &Embedded, folder: &Path, lib: &str) -> io::Result<()> {
        let link = folder.join(lib).join(library.name);
        let target = "../".repeat(lib.split('/').count()) + library.name;
        if fs::read_link(&link).is_ok_and(|present| present == Path::new(&target)) {
            return Ok(());
        }
        let mode = if self.user == 0 { 0o755 } else { 0o700 };
        fs::DirBuilder::new().recursive(true).mode(mode).create(folder.join(lib))?;
        match symlink(&target, &link) {
            // Another process of this user was faster, and made the same link.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    /// An error if other users can write to the folder: they could make this user's programs run their code.
    fn check_private(folder: &Path) -> io::Result<()> {
        if numakit_sys::user::owns_privately(folder)? {
            return Ok(());
        }
        let data = fs::symlink_metadata(folder)?;
        let (owner, mode) = (data.uid(), data.mode() & 0o7777);
        let found = if data.is_dir() {
            format!("of user {owner} with mode {mode:o}")
        } else {
            "not a directory".into()
        };
        Err(io::Error::other(format!(
            "{} is {found}; only this user may be able to write to it",
            folder.display()
        )))
    }
}

/// The replacement of `$LIB` in this process, if its C library is glibc.
fn own_lib_folder() -> Option<String> {
    let library = numakit_sys::executable::c_library()?;
    let path = library.parent().filter(|_| library.ends_with("libc.so.6"))?;
    let lib = path.strip_prefix("/usr").or_else(|_| path.strip_prefix("/")).ok()?.to_str()?;
    lib.starts_with("lib").then(|| lib.to_owned())
}

/// Whether a regular file has this content. After a power failure or on a full disk, a file of the right length may have other
/// bytes, and every program that loads it would crash. Reading and comparing the largest library takes 14 us.
fn has_content(path: &Path, content: &[u8]) -> bool {
    let mut bytes = Vec::with_capacity(content.len() + 1);
    let file = numakit_sys::file::open_to_read(path);
    let read = file.and_then(|file| file.take(content.len() as u64 + 1).read_to_end(&mut bytes));
    read.is_ok() && bytes == content
}

/// Writes the file under a different name and renames it, so that a loader never sees a part of it.
fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("new-{}-{number}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(&temporary)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn has_separator(path: &OsStr) -> bool {
    path.as_bytes().iter().any(|byte| byte.is_ascii_whitespace() || *byte == b':')
}

#[cfg(test)]
mod tests;
