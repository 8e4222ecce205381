//! Files for parsers that need a path, in memory if the system has /dev/shm.

use std::path::{Path, PathBuf};

/// Writes a file of this process. A file of the same name is overwritten.
pub fn put(name: &str, content: &[u8]) -> PathBuf {
    let shm = Path::new("/dev/shm");
    let folder = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    let thread = std::thread::current().id();
    let path = folder.join(format!("numakit-fuzz-{}-{thread:?}-{name}", std::process::id()));
    if let Err(error) = std::fs::write(&path, content) {
        panic!("{}: {error}", path.display());
    }
    path
}

/// Removes a file.
pub fn remove(path: &Path) {
    // A remaining file is harmless.
    let _ = std::fs::remove_file(path);
}
