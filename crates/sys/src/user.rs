//! Users, groups and access rights.

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process;
use std::ffi::{CStr, CString};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The effective user id.
pub fn id() -> u32 {
    process::geteuid().as_raw()
}

/// The real user id: that of the user who started this, also in a setuid program.
pub fn real_id() -> u32 {
    process::getuid().as_raw()
}

/// Gives the calling thread, and no other, the effective user and group of somebody else, which takes root. The thread keeps
/// them: use one that ends afterwards.
pub(crate) fn become_in_this_thread(user: u32, group: u32) -> std::io::Result<()> {
    let same = libc::c_long::from(-1);
    if process::getegid().as_raw() != group {
        // SAFETY: plain integers. The C library's function would change all threads.
        crate::check(unsafe { libc::syscall(libc::SYS_setresgid, same, group, same) })?;
    }
    if id() != user {
        // SAFETY: as above.
        crate::check(unsafe { libc::syscall(libc::SYS_setresuid, same, user, same) })?;
    }
    Ok(())
}

/// All groups that this process is in.
pub fn groups() -> Vec<u32> {
    let mut groups = process::getgroups().unwrap_or_default();
    groups.push(process::getegid());
    groups.into_iter().map(process::Gid::as_raw).collect()
}

// Space for one entry of the databases of users and groups; a group may list many members.
const ENTRY: usize = 1 << 16;

/// The name of a user, from the machine's user database (NSS).
pub fn name(id: u32) -> Option<String> {
    let mut room = vec![0; ENTRY];
    // SAFETY: all buffers outlive the calls and have these lengths; the name points into the buffer.
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
    // SAFETY: all buffers outlive the call and have these lengths.
    unsafe {
        let mut entry: libc::group = std::mem::zeroed();
        let mut found = std::ptr::null_mut();
        libc::getgrnam_r(name.as_ptr(), &mut entry, room.as_mut_ptr(), ENTRY, &mut found);
        (!found.is_null()).then_some(entry.gr_gid)
    }
}

/// Whether a directory belongs to this user and only this user can write to it.
pub fn owns_privately(path: &Path) -> std::io::Result<bool> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok(meta.is_dir() && meta.uid() == id() && meta.mode() & 0o022 == 0)
}

/// Whether a directory belongs to this user or to root, and nobody else can write to it.
pub fn is_trusted(path: &Path) -> std::io::Result<bool> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok(meta.is_dir() && [id(), 0].contains(&meta.uid()) && meta.mode() & 0o022 == 0)
}

/// Whether this process may write to a file, or create files in a directory.
pub fn may_write(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

/// An error if this process has no such right to a file.
pub(crate) fn access(path: &Path, right: Access) -> std::io::Result<()> {
    Ok(accessat(CWD, path, right, AtFlags::EACCESS)?)
}
