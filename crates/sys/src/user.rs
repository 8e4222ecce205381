//! Who runs this, and what the kernel lets them do.

use crate::check;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The effective user id.
pub fn id() -> u32 {
    // SAFETY: no precondition, cannot fail.
    unsafe { libc::geteuid() }
}

/// The real user id: who started this, also where a program has the rights of another.
pub fn real_id() -> u32 {
    // SAFETY: no precondition, cannot fail.
    unsafe { libc::getuid() }
}

/// All groups that this process is in.
pub fn groups() -> Vec<u32> {
    // SAFETY: without room the kernel only counts; then the buffer is as long as said.
    unsafe {
        let count = libc::getgroups(0, std::ptr::null_mut());
        let mut groups = vec![0; usize::try_from(count).unwrap_or(0)];
        let filled = libc::getgroups(groups.len() as i32, groups.as_mut_ptr());
        groups.truncate(usize::try_from(filled).unwrap_or(0));
        groups.push(libc::getegid());
        groups
    }
}

// Room for one entry of the databases of users and groups; a group may list many members.
const ENTRY: usize = 1 << 16;

/// The name of a user, from wherever this machine has its users.
pub fn name(id: u32) -> Option<String> {
    let mut room = vec![0; ENTRY];
    // SAFETY: all buffers outlive the calls and are as long as said; the name points into the room.
    unsafe {
        let mut entry: libc::passwd = std::mem::zeroed();
        let mut found = std::ptr::null_mut();
        libc::getpwuid_r(id, &mut entry, room.as_mut_ptr(), ENTRY, &mut found);
        (!found.is_null()).then(|| CStr::from_ptr(entry.pw_name).to_string_lossy().into_owned())
    }
}

/// The number of the group of this name.
pub fn group(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut room = vec![0; ENTRY];
    // SAFETY: all buffers outlive the call and are as long as said.
    unsafe {
        let mut entry: libc::group = std::mem::zeroed();
        let mut found = std::ptr::null_mut();
        libc::getgrnam_r(name.as_ptr(), &mut entry, room.as_mut_ptr(), ENTRY, &mut found);
        (!found.is_null()).then_some(entry.gr_gid)
    }
}

/// Whether a directory belongs to this user and nobody else can write to it.
pub fn owns_privately(path: &Path) -> std::io::Result<bool> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok(meta.is_dir() && meta.uid() == id() && meta.mode() & 0o022 == 0)
}

/// Whether this process may write to a file, or make files in a folder.
pub fn may_write(path: &Path) -> bool {
    access(path, libc::W_OK).is_ok()
}

/// An error where this process has no such right to a file, one of R_OK, W_OK and X_OK.
pub(crate) fn access(path: &Path, right: i32) -> std::io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the name is a C string that outlives the call.
    check(unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), right, libc::AT_EACCESS) } as i64).map(drop)
}
