//! Files below a directory. Links, absolute ones too, are followed inside it only.

use crate::check;
use crate::file::regular;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::path::Path;

/// Opens the directory, or the one folder in it, that holds `sys` or `proc`.
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

fn open_at(root: &OwnedFd, path: &str, flags: i32) -> io::Result<OwnedFd> {
    let relative = path.trim_start_matches('/');
    let name = CString::new(if relative.is_empty() { "." } else { relative })?;
    // SAFETY: all zero bytes are a valid value of this plain structure.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: name and structure outlive the call and the size is the structure's.
    let fd = check(unsafe {
        libc::syscall(libc::SYS_openat2, root.as_raw_fd(), name.as_ptr(), &how, size_of::<libc::open_how>())
    })?;
    // SAFETY: the new descriptor belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Opens a regular file: a FIFO or a device below such a root would keep us waiting.
pub(super) fn open_file(root: &OwnedFd, path: &str) -> io::Result<File> {
    let file = File::from(open_at(root, path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY)?);
    regular(&file.metadata()?)?;
    Ok(file)
}

pub(super) fn exists(root: &OwnedFd, path: &str) -> bool {
    open_at(root, path, libc::O_PATH).is_ok()
}

pub(super) fn read_link(root: &OwnedFd, path: &str) -> io::Result<String> {
    let link = open_at(root, path, libc::O_PATH | libc::O_NOFOLLOW)?;
    let mut buffer = vec![0u8; 4096];
    // SAFETY: the empty name asks for the link itself; the buffer is as long as said.
    let length = check(unsafe {
        libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
    } as i64)?;
    buffer.truncate(length as usize);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

pub(super) fn list(root: &OwnedFd, path: &str) -> io::Result<Vec<String>> {
    let directory = open_at(root, path, libc::O_RDONLY | libc::O_DIRECTORY)?;
    // SAFETY: the stream takes the descriptor over.
    let stream = unsafe { libc::fdopendir(directory.into_raw_fd()) };
    if stream.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut names = Vec::new();
    loop {
        // SAFETY: the stream is open; an entry is valid until the next call.
        let entry = unsafe { libc::readdir(stream) };
        if entry.is_null() {
            break;
        }
        // SAFETY: the name of an entry is a C string.
        let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) }.to_string_lossy();
        if name != "." && name != ".." {
            names.push(name.into_owned());
        }
    }
    // SAFETY: the stream is open and not used again.
    unsafe { libc::closedir(stream) };
    Ok(names)
}
