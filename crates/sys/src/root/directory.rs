//! Files below a directory. Links, absolute ones too, are resolved within it.

use crate::file::regular;
use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, openat2, readlinkat};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Opens the directory that has `sys` or `proc`: this directory, or the only subdirectory in it.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let holds = |p: &Path| p.join("sys").is_dir() || p.join("proc").is_dir();
    if holds(path) {
        return Ok(File::open(path)?.into());
    }
    let folders: Vec<_> =
        std::fs::read_dir(path)?.filter_map(|e| e.ok()).map(|e| e.path()).filter(|p| holds(p)).collect();
    match folders.as_slice() {
        [one] => Ok(File::open(one)?.into()),
        found => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{} holds neither a sys nor a proc folder, and {} folders in it do; name the one to read",
                path.display(),
                if found.is_empty() { "no".to_owned() } else { found.len().to_string() }
            ),
        )),
    }
}

fn open_at(root: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let relative = path.trim_start_matches('/');
    let name = if relative.is_empty() { "." } else { relative };
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(root, name, flags | OFlags::CLOEXEC, Mode::empty(), inside)?)
}

/// Opens a regular file: opening a FIFO or a device could wait.
pub(super) fn open_file(root: &OwnedFd, path: &str) -> io::Result<File> {
    let file = File::from(open_at(root, path, OFlags::NONBLOCK | OFlags::NOCTTY)?);
    regular(&file.metadata()?)?;
    Ok(file)
}

pub(super) fn exists(root: &OwnedFd, path: &str) -> bool {
    open_at(root, path, OFlags::PATH).is_ok()
}

pub(super) fn read_link(root: &OwnedFd, path: &str) -> io::Result<String> {
    let link = open_at(root, path, OFlags::PATH | OFlags::NOFOLLOW)?;
    // The empty name means the link itself.
    Ok(readlinkat(link, "", Vec::new())?.to_string_lossy().into_owned())
}

pub(super) fn list(root: &OwnedFd, path: &str) -> io::Result<Vec<String>> {
    let entries = Dir::new(open_at(root, path, OFlags::DIRECTORY)?)?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    Ok(names.filter(|name| name != "." && name != "..").collect())
}
