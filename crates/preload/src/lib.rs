//! The C libraries that programs preload, carried in the binary. Programs load them from a file, so
//! the library is laid down where this user may write, under a name that tells its content.
//!
//! Its path is given with `$LIB` in it, which the loader of glibc replaces. That of musl does not:
//! it finds no such file and goes on, where with the file in hand it would end the program for want
//! of what only glibc has. So the programs that a placed shell starts may be linked with either.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// The library's file name; its soname too.
pub const NAME: &str = "libnumaplace.so";
/// Variable that names another library to be preloaded.
pub const VARIABLE: &str = "NUMAKIT_PRELOAD";

/// A part of a path that the loader of glibc replaces.
const LIB: &str = "$LIB";
/// What it becomes, which is a matter of distributions.
const FOLDERS: [&str; 4] = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];

/// Why there is no library to preload.
#[derive(Debug, thiserror::Error)]
#[error("{}; {}", self.problem(), self.fix())]
pub enum PreloadError {
    /// What the variable names is not there.
    Missing(PathBuf),
    /// The loader would take the path for several.
    Divided(PathBuf),
    /// No folder takes it.
    Nowhere(String),
}

impl PreloadError {
    /// What is wrong.
    pub fn problem(&self) -> String {
        match self {
            Self::Missing(path) => format!("{VARIABLE} is '{}', where there is no file", path.display()),
            Self::Divided(path) => {
                let path = path.display();
                format!(
                    "{VARIABLE} is '{path}', and the loader takes a colon or a blank for the end of a name"
                )
            }
            Self::Nowhere(reasons) => format!("no folder for {NAME}: {reasons}"),
        }
    }

    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Missing(_) => "unset NUMAKIT_PRELOAD or name a libnumaplace.so",
            Self::Divided(_) => "move the library to a path without",
            Self::Nowhere(_) => "set XDG_CACHE_HOME to a folder that only you may write to",
        }
    }
}

/// Whose files are looked at and where they may go.
struct Place {
    user: u32,
    folders: Vec<PathBuf>,
}

impl Place {
    /// In order of preference.
    fn of_this_process() -> Self {
        let user = numakit_sys::user::id();
        let variable =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        let mut folders = Vec::new();
        if user == 0 {
            folders.push(PathBuf::from("/var/cache/numakit"));
        } else {
            folders.extend(cache.map(|folder| folder.join("numakit")));
        }
        folders.push(std::env::temp_dir().join(format!("numakit-{user}-preload")));
        Self { user, folders }
    }

    fn lay_down(&self) -> Result<PathBuf, PreloadError> {
        let mut reasons = Vec::new();
        for folder in &self.folders {
            match self.lay_into(folder) {
                Ok(path) => return Ok(path),
                Err(error) => reasons.push(format!("{}: {error}", folder.display())),
            }
        }
        Err(PreloadError::Nowhere(reasons.join("; ")))
    }

    fn lay_into(&self, top: &Path) -> io::Result<PathBuf> {
        if is_divided(top.as_os_str()) {
            return Err(io::Error::other("its path has a colon or a blank"));
        }
        let folder = top.join(HASH);
        // Programs of other users are started with root's, so they must be able to read it.
        let mode = if self.user == 0 { 0o755 } else { 0o700 };
        fs::DirBuilder::new().recursive(true).mode(mode).create(&folder)?;
        Self::check_private(top)?;
        Self::check_private(&folder)?;
        let path = folder.join(NAME);
        // What has this name was written whole by this user, or is cut off.
        if !fs::metadata(&path).is_ok_and(|data| data.is_file() && data.len() == LIBRARY.len() as u64) {
            write_whole(&path)?;
        }
        for inside in FOLDERS.map(str::to_owned).into_iter().chain(own_folder()) {
            self.link(&folder, &inside)?;
        }
        Ok(folder.join(LIB).join(NAME))
    }

    /// The library under the name that it has where `$LIB` stands for a folder.
    fn link(&self, folder: &Path, inside: &str) -> io::Result<()> {
        let link = folder.join(inside).join(NAME);
        let target = "../".repeat(inside.split('/').count()) + NAME;
        if fs::read_link(&link).is_ok_and(|present| present == Path::new(&target)) {
            return Ok(());
        }
        let mode = if self.user == 0 { 0o755 } else { 0o700 };
        fs::DirBuilder::new().recursive(true).mode(mode).create(folder.join(inside))?;
        match symlink(&target, &link) {
            // Another process of this user was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Whoever else may write there could have others run what he likes.
    fn check_private(folder: &Path) -> io::Result<()> {
        if numakit_sys::user::owns_privately(folder)? {
            return Ok(());
        }
        let data = fs::symlink_metadata(folder)?;
        let (owner, mode) = (data.uid(), data.mode() & 0o7777);
        let found =
            if data.is_dir() { format!("of user {owner} with mode {mode:o}") } else { "no folder".into() };
        Err(io::Error::other(format!(
            "{} is {found}, not a folder that only this user writes to",
            folder.display()
        )))
    }
}

/// What `$LIB` stands for in this very process, where its C library is glibc.
fn own_folder() -> Option<String> {
    let library = numakit_sys::executable::c_library()?;
    let path = library.parent().filter(|_| library.ends_with("libc.so.6"))?;
    let inside = path.strip_prefix("/usr").or_else(|_| path.strip_prefix("/")).ok()?.to_str()?;
    inside.starts_with("lib").then(|| inside.to_owned())
}

/// Under another name first: whoever loads it gets all of it or the one before.
fn write_whole(path: &Path) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let fresh = path.with_extension(format!("new-{}-{number}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(&fresh)
        .and_then(|mut file| file.write_all(LIBRARY).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn is_divided(path: &OsStr) -> bool {
    path.as_bytes().iter().any(|byte| byte.is_ascii_whitespace() || *byte == b':')
}

/// The path of a `libnumaplace.so` as loaders take it: the one that `NUMAKIT_PRELOAD` names, else
/// this binary's own, which is laid down if it is not there yet, with `$LIB` in its path.
pub fn lay_down() -> Result<PathBuf, PreloadError> {
    match std::env::var_os(VARIABLE).filter(|given| !given.is_empty()) {
        Some(given) => named(PathBuf::from(given)),
        None => Place::of_this_process().lay_down(),
    }
}

fn named(path: PathBuf) -> Result<PathBuf, PreloadError> {
    if !path.is_file() {
        return Err(PreloadError::Missing(path));
    }
    // The program may change to another folder before it starts children.
    let path = path.canonicalize().map_err(|_| PreloadError::Missing(path))?;
    if is_divided(path.as_os_str()) { Err(PreloadError::Divided(path)) } else { Ok(path) }
}

#[cfg(test)]
mod tests;
