//! The folder of one boot. Boots at the same time have different ones.

use crate::failure::{Failure, finished, on};
use crate::place;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What boots of processes left behind that are gone is of no use after this time.
const OLD: Duration = Duration::from_secs(3600);

/// A folder that is removed with it, unless it was kept.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    /// A fresh one.
    pub fn new() -> Result<Self, Failure> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let runs = place::folder("runs")?;
        sweep(&runs);
        let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = runs.join(name);
        // A process that is gone may have had the same number.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(on("create", &path))?;
        Ok(Self { path, kept: true })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes what is large and can be made again; the console stays.
    pub fn make_small(&self) {
        let _ = fs::remove_dir_all(self.file("contents"));
        for name in ["image", "initramfs"] {
            let _ = fs::remove_file(self.file(name));
        }
    }

    /// All went well: nobody will look at it once it is dropped.
    pub fn remove_when_dropped(&mut self) {
        self.kept = false;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn sweep(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.split('-').next().unwrap_or_default();
        let runs = Path::new("/proc").join(process).exists();
        let age = entry.metadata().and_then(|data| data.modified()).ok().and_then(|time| time.elapsed().ok());
        if !runs && age.is_some_and(|age| age > OLD) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Puts what is in one folder into another one.
pub fn fill(folder: &Path, from: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(on("create", folder))?;
    finished(Command::new("cp").arg("-a").arg(from.join(".")).arg(folder)).map(drop)
}
