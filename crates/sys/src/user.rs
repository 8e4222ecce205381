//! Who runs this, and what the kernel lets them do.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The effective user id.
pub fn id() -> u32 {
    // SAFETY: no precondition, cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether a directory belongs to this user and nobody else can write to it.
pub fn owns_privately(path: &Path) -> std::io::Result<bool> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok(meta.is_dir() && meta.uid() == id() && meta.mode() & 0o022 == 0)
}
