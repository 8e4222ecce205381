//! Opening and reading the registry.

use crate::error::{FileError, RegistryError};
use crate::holding::{HolderState, Holding, RegistryView};
use crate::location::RegistryLocation;
use crate::record::{COMPLETE, HEADER, IS_COMPLETE, MAGIC, header, is_complete};
use crate::{audit, removed, scan};
use numakit_model::CpuSet;
use numakit_sys::{SysRoot, file};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// All users may write: exclusive locks need that.
const MODE: u32 = 0o666;
/// The file begins with space for the first records, in case the file system fills up later.
const FIRST_SIZE: usize = 64 << 10;
/// Maximum number of scans: they are repeated while programs change. The last one counts.
const MAX_SCANS: usize = 5;

/// The file through which cores are taken.
#[derive(Debug)]
pub struct Registry {
    pub(crate) file: File,
    pub(crate) location: RegistryLocation,
    pub(crate) path: PathBuf,
}

impl Registry {
    /// Opens the registry of this machine; creates it if there is none.
    pub fn open() -> Result<Self, RegistryError> {
        Self::open_in(RegistryLocation::of_this_process())
    }

    /// Opens the registry in this file; creates it if there is none.
    pub fn open_at(path: &Path) -> Result<Self, RegistryError> {
        Self::open_in(RegistryLocation::named(path))
    }

    pub(crate) fn open_in(location: RegistryLocation) -> Result<Self, RegistryError> {
        let path = location.path();
        // Other processes may create or remove it meanwhile.
        for _ in 0..100 {
            match file::open_existing(&path, true) {
                Ok(file) => {
                    check(&file, &path)?;
                    return Ok(Self { file, location, path });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(FileError::of(&path, "opened", &error).into()),
            }
            let mut content = header(None);
            content.resize(FIRST_SIZE, 0);
            match file::create_atomically(&path, &content, MODE) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(FileError::of(&path, "created", &error).into()),
            }
        }
        let removed = io::Error::other("it is removed again and again");
        Err(FileError::of(&path, "opened", &removed).into())
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The present holdings.
    pub fn holdings(&self) -> Result<Vec<Holding>, RegistryError> {
        self.scan_holders().map(|scan| scan.into_view().holdings)
    }

    pub(crate) fn scan_holders(&self) -> Result<HolderScan, RegistryError> {
        HolderScan::of(Some(&self.file), &self.location).map_err(|error| self.failed("read", &error))
    }

    /// Whether this file has the registry's name, so that all other processes see changes in it.
    pub(crate) fn is_in_place(&self, file: &File) -> io::Result<bool> {
        Ok(self.location.path() == self.path && file::is_at(file, &self.path)?)
    }

    /// Writes whether all holders are in this file, so that other processes need not search removed files. The caller has
    /// the allocation lock.
    pub(crate) fn write_mark(&self, scan: &HolderScan) {
        let mark = if scan.is_complete { *IS_COMPLETE } else { [0; IS_COMPLETE.len()] };
        if scan.is_complete != scan.is_marked {
            // If the mark cannot be written, other processes search all the same.
            let _ = self.file.write_all_at(&mark, COMPLETE as u64);
        }
    }

    pub(crate) fn failed(&self, doing: &'static str, error: &io::Error) -> RegistryError {
        FileError::of(&self.path, doing, error).into()
    }
}

/// Checks whether the file is a registry. An empty file is one too: the next holder writes its header.
fn check(file: &File, path: &Path) -> Result<(), FileError> {
    let mut start = [0; MAGIC.len()];
    let length = read(file, &mut start, 0).map_err(|error| FileError::of(path, "read", &error))?;
    let empty = start[..length].iter().all(|&byte| byte == 0);
    if empty || start == *MAGIC {
        return Ok(());
    }
    Err(FileError::foreign(path, &start[..length]))
}

/// Reads until the buffer is full or the file ends.
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

/// The header of a registry.
pub(crate) fn read_header(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER];
    let length = read(file, &mut bytes, 0)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// All holders, as found in this file, in removed files and by the audit.
#[derive(Debug)]
pub(crate) struct HolderScan {
    pub scan: scan::Scan,
    pub audit: audit::Audit,
    /// Whether the file has the mark that says that all holders are in it.
    is_marked: bool,
    /// Whether all holders are in the file.
    is_complete: bool,
}

impl HolderScan {
    /// Scans removed files first: holders move from there to this file, never back.
    pub fn of(file: Option<&File>, location: &RegistryLocation) -> io::Result<Self> {
        let root = SysRoot::host();
        let has_mark = || -> io::Result<bool> {
            Ok(is_complete(&file.map(read_header).transpose()?.unwrap_or_default()))
        };
        let (is_marked, identities) = (has_mark()?, location.identities(file));
        let in_removed_files = if is_marked {
            Some(CpuSet::new())
        } else {
            let own = file.and_then(|file| file::kernel_name(file).ok());
            removed::locked_cpus(&root, &identities, own.as_deref())
        };
        let scan_and_audit = || -> io::Result<(scan::Scan, audit::Audit)> {
            let scan = file.map(scan::scan).transpose()?.unwrap_or_default();
            let scan = scan::Scan { in_removed_files: in_removed_files.clone().unwrap_or_default(), ..scan };
            // If records are missing, tags show which programs hold cores. Emptying the file removes the mark too, so
            // the mark counts only if it is there both before and after the scan.
            let has_all_records = is_marked && !scan.is_damaged && has_mark()?;
            let identities = if has_all_records { &[] } else { &identities[..] };
            let audit = audit::audit_tasks(&root, std::process::id(), &scan, identities);
            Ok((scan, audit))
        };
        // A program that loses its locks after the scan is still held in it.
        let (mut scan, mut audit) = scan_and_audit()?;
        for _ in 0..if audit.lost.is_empty() { 0 } else { MAX_SCANS } {
            // Programs may have been started between the two, or have ended and left a child.
            let held = file.map(scan::scan).transpose()?.unwrap_or_default().held();
            let is_settled = |lost: &audit::LostProgram| !lost.is_within(&held) && lost.lives(&root);
            if audit.lost.iter().all(is_settled) {
                break;
            }
            (scan, audit) = scan_and_audit()?;
        }
        let is_complete = in_removed_files.is_some_and(|cpus| cpus.is_empty())
            && !scan.is_damaged
            && scan.holdings.iter().all(|holding| holding.state != HolderState::Unknown)
            && audit.lost.iter().all(|lost| lost.slot.is_some());
        Ok(Self { scan, audit, is_marked, is_complete })
    }

    pub fn into_view(self) -> RegistryView {
        self.scan.into_view(self.audit)
    }
}

/// The holders of cores on this machine; creates and changes nothing. Without a registry, only programs of one
/// that was removed hold cores.
pub fn inspect() -> Result<RegistryView, FileError> {
    inspect_in(&RegistryLocation::of_this_process())
}

/// Who holds what in the registry in this file, without creating or changing anything.
pub fn inspect_at(path: &Path) -> Result<RegistryView, FileError> {
    inspect_in(&RegistryLocation::named(path))
}

fn inspect_in(location: &RegistryLocation) -> Result<RegistryView, FileError> {
    let path = location.path();
    let file = match file::open_existing(&path, false) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(FileError::of(&path, "opened", &error)),
    };
    if let Some(file) = &file {
        check(file, &path)?;
    }
    let scan = HolderScan::of(file.as_ref(), location);
    scan.map(HolderScan::into_view).map_err(|error| FileError::of(&path, "read", &error))
}
