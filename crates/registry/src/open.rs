//! Where the registry is, and how it is opened without making the file of somebody else.

use crate::error::RegistryError;
use crate::holding::{Holding, Seen};
use crate::record::{HEADER, MAGIC, header};
use crate::{audit, scan};
use numakit_sys::{SysRoot, file};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Made by whoever looks after the machine, so that only root can remove it.
const OF_THE_MACHINE: &str = "/run/numakit-cores";
/// Made by whoever comes first.
const OF_ALL: &str = "/dev/shm/numakit-cores";
/// All may read and write it: locks for writing need that.
const MODE: u32 = 0o666;
/// With room for the first records, so that they do not depend on room later.
const FIRST_SIZE: usize = 64 << 10;

/// The file through which cores are taken.
#[derive(Debug)]
pub struct Registry {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

/// `$NUMAKIT_REGISTRY`, else the one of the machine if it is there, else the one that all make.
pub(crate) fn place() -> PathBuf {
    choose_place(std::env::var_os("NUMAKIT_REGISTRY"))
}

/// The same for somebody who has this in the environment.
pub(crate) fn choose_place(named: Option<OsString>) -> PathBuf {
    choose(named, Path::new(OF_THE_MACHINE).exists())
}

fn choose(named: Option<OsString>, of_the_machine: bool) -> PathBuf {
    match named {
        Some(path) if !path.is_empty() => PathBuf::from(path),
        _ if of_the_machine => PathBuf::from(OF_THE_MACHINE),
        _ => PathBuf::from(OF_ALL),
    }
}

impl Registry {
    /// Opens the registry of this machine, and makes it if there is none.
    pub fn open() -> Result<Self, RegistryError> {
        Self::open_at(&place())
    }

    /// Opens the one in this file likewise.
    pub fn open_at(path: &Path) -> Result<Self, RegistryError> {
        // Somebody may make or remove it in between.
        for _ in 0..100 {
            match file::open_existing(path, true) {
                Ok(file) => return Self::checked(file, path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(RegistryError::file(path, "opened", &error)),
            }
            let mut content = header(0, "");
            content.resize(FIRST_SIZE, 0);
            match file::create_whole(path, &content, MODE) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(RegistryError::file(path, "made", &error)),
            }
        }
        let gone = io::Error::other("it is removed again and again");
        Err(RegistryError::file(path, "opened", &gone))
    }

    fn checked(file: File, path: &Path) -> Result<Self, RegistryError> {
        check(&file, path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who holds what at this moment.
    pub fn holdings(&self) -> Result<Vec<Holding>, RegistryError> {
        holdings(Some(&self.file), &self.path).map(|seen| seen.holdings)
    }

    pub(crate) fn failed(&self, doing: &'static str, error: &io::Error) -> RegistryError {
        RegistryError::file(&self.path, doing, error)
    }
}

/// Whether the file is a registry, or empty: then the next who takes cores makes it one.
fn check(file: &File, path: &Path) -> Result<(), RegistryError> {
    let mut start = [0; MAGIC.len()];
    let length = read(file, &mut start, 0).map_err(|error| RegistryError::file(path, "read", &error))?;
    let empty = start[..length].iter().all(|&byte| byte == 0);
    if empty || start == *MAGIC {
        return Ok(());
    }
    let found = String::from_utf8_lossy(&start[..length]).into_owned();
    Err(RegistryError::Foreign { path: path.to_owned(), found: format!("{found:?}") })
}

/// Reads on until the buffer is full or the file ends.
pub(crate) fn read(file: &File, buffer: &mut [u8], from: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The first bytes of a registry.
pub(crate) fn read_header(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER];
    let length = read(file, &mut bytes, 0)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// Who holds what on this machine, without making or changing anything. Without a registry nobody
/// holds cores, but for programs that say so themselves.
pub fn look() -> Result<Seen, RegistryError> {
    look_at(&place())
}

/// The same of the registry in this file.
pub fn look_at(path: &Path) -> Result<Seen, RegistryError> {
    match file::open_existing(path, false) {
        Ok(file) => {
            check(&file, path)?;
            holdings(Some(&file), path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => holdings(None, path),
        Err(error) => Err(RegistryError::file(path, "opened", &error)),
    }
}

fn holdings(file: Option<&File>, path: &Path) -> Result<Seen, RegistryError> {
    let scanned = || match file {
        Some(file) => scan::scan(file).map_err(|error| RegistryError::file(path, "read", &error)),
        None => Ok(scan::Scan::default()),
    };
    let root = SysRoot::host();
    let mut scan = scanned()?;
    let mut seen = audit::look(&root, std::process::id(), &scan, path);
    if !seen.lost.is_empty() {
        // Some may have been started or have ended between the two looks.
        scan = scanned()?;
        let held = scan.held();
        seen.lost.retain(|lost| !lost.is_within(&held) && root.exists(&lost.path()));
    }
    Ok(scan.with(seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_named_or_the_first_that_is_there() {
        assert_eq!(choose(Some("/x/y".into()), true), Path::new("/x/y"));
        assert_eq!(choose(Some("".into()), true), Path::new(OF_THE_MACHINE));
        assert_eq!(choose(None, true), Path::new(OF_THE_MACHINE));
        assert_eq!(choose(None, false), Path::new(OF_ALL));
    }
}
