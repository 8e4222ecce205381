//! Where things are: the repository, and what guests leave below `target/guest`.

use crate::failure::{Failure, on};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Who holds a lock may have to download what this process waits for.
const PATIENCE: Duration = Duration::from_secs(1500);
const PAUSE: Duration = Duration::from_millis(100);

/// The top folder of the repository.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A folder below `target/guest`; it is made if it is not there.
pub fn folder(name: &str) -> Result<PathBuf, Failure> {
    let path = target().join("guest").join(name);
    fs::create_dir_all(&path).map_err(on("create", &path))?;
    Ok(path)
}

/// A lock among all processes; held until it is dropped.
pub fn locked(name: &str) -> Result<File, Failure> {
    let path = folder("locks")?.join(name);
    let file = File::options().create(true).append(true).open(&path).map_err(on("open", &path))?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => thread::sleep(PAUSE),
            Err(error) => return Err(on("lock", &path)(error.into())),
        }
    }
}

/// A program of this machine, by its name or path.
pub fn on_this_machine(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let listed = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&listed).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}
