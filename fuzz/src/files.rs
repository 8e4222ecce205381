//! Files for parsers that want a path: in memory where the system has such a folder.

use std::path::{Path, PathBuf};

/// A file of this process with that content. Each name is one file, written again each time.
pub fn put(name: &str, content: &[u8]) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let thread = std::thread::current().id();
    let path = folder.join(format!("numakit-fuzz-{}-{thread:?}-{name}", std::process::id()));
    if let Err(error) = std::fs::write(&path, content) {
        panic!("{}: {error}", path.display());
    }
    path
}

/// Removes it.
pub fn remove(path: &Path) {
    // A file that is still there does no harm.
    let _ = std::fs::remove_file(path);
}
