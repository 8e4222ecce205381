//! How the registry is opened without making the file of somebody else, and looked at.

use crate::error::{FileError, RegistryError};
use crate::holding::{HolderState, Holding, RegistryView};
use crate::place::RegistryLocation;
use crate::record::{COMPLETE, HEADER, IS_COMPLETE, MAGIC, header, is_complete};
use crate::{audit, elsewhere, scan};
use numakit_model::CpuSet;
use numakit_sys::{SysRoot, file};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// All may read and write it: locks for writing need that.
const MODE: u32 = 0o666;
/// With room for the first records, so that they do not depend on room later.
const FIRST_SIZE: usize = 64 << 10;
/// Programs that change while one looks are looked at so often. What was seen last counts.
const LOOKS: usize = 5;

/// The file through which cores are taken.
#[derive(Debug)]
pub struct Registry {
    pub(crate) file: File,
    pub(crate) place: RegistryLocation,
    pub(crate) path: PathBuf,
}

impl Registry {
    /// Opens the registry of this machine, and makes it if there is none.
    pub fn open() -> Result<Self, RegistryError> {
        Self::open_in(RegistryLocation::of_this_process())
    }

    /// Opens the one in this file likewise.
    pub fn open_at(path: &Path) -> Result<Self, RegistryError> {
        Self::open_in(RegistryLocation::named(path))
    }

    pub(crate) fn open_in(place: RegistryLocation) -> Result<Self, RegistryError> {
        let path = place.path();
        // Somebody may make or remove it in between.
        for _ in 0..100 {
            match file::open_existing(&path, true) {
                Ok(file) => {
                    check(&file, &path)?;
                    return Ok(Self { file, place, path });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(FileError::of(&path, "opened", &error).into()),
            }
            let mut content = header(None);
            content.resize(FIRST_SIZE, 0);
            match file::create_whole(&path, &content, MODE) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(FileError::of(&path, "made", &error).into()),
            }
        }
        let gone = io::Error::other("it is removed again and again");
        Err(FileError::of(&path, "opened", &gone).into())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who holds what at this moment.
    pub fn holdings(&self) -> Result<Vec<Holding>, RegistryError> {
        self.known().map(|known| known.seen().holdings)
    }

    pub(crate) fn known(&self) -> Result<KnownHolders, RegistryError> {
        KnownHolders::of(Some(&self.file), &self.place).map_err(|error| self.failed("read", &error))
    }

    /// Whether this file has the registry's name, so that all others see what is done in it.
    pub(crate) fn is_in_place(&self, file: &File) -> io::Result<bool> {
        Ok(self.place.path() == self.path && file::is_at(file, &self.path)?)
    }

    /// Writes down whether all who hold cores are in this file, so that nobody need look elsewhere.
    /// To be called in turn.
    pub(crate) fn mark(&self, known: &KnownHolders) {
        let mark = if known.is_complete { *IS_COMPLETE } else { [0; IS_COMPLETE.len()] };
        if known.is_complete != known.is_marked {
            // Without it, others look as well.
            let _ = self.file.write_all_at(&mark, COMPLETE as u64);
        }
    }

    pub(crate) fn failed(&self, doing: &'static str, error: &io::Error) -> RegistryError {
        FileError::of(&self.path, doing, error).into()
    }
}

/// Whether the file is a registry, or empty: then the next who takes cores makes it one.
fn check(file: &File, path: &Path) -> Result<(), FileError> {
    let mut start = [0; MAGIC.len()];
    let length = read(file, &mut start, 0).map_err(|error| FileError::of(path, "read", &error))?;
    let empty = start[..length].iter().all(|&byte| byte == 0);
    if empty || start == *MAGIC {
        return Ok(());
    }
    Err(FileError::foreign(path, &start[..length]))
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

/// Everything there is to know of who holds what.
#[derive(Debug)]
pub(crate) struct KnownHolders {
    pub scan: scan::Scan,
    pub audit: audit::Audit,
    /// The file says that all who hold cores are in it.
    is_marked: bool,
    /// They are.
    is_complete: bool,
}

impl KnownHolders {
    /// Looks: first elsewhere, as holders come from there into this file, and do not go.
    pub fn of(file: Option<&File>, place: &RegistryLocation) -> io::Result<Self> {
        let root = SysRoot::host();
        let head = file.map(read_header).transpose()?.unwrap_or_default();
        let (is_marked, identities) = (is_complete(&head), place.identities(file));
        let elsewhere = if is_marked {
            Some(CpuSet::new())
        } else {
            let own = file.and_then(|file| file::kernel_name(file).ok());
            elsewhere::look(&root, &identities, own.as_deref())
        };
        let is_still_marked = || -> io::Result<bool> {
            Ok(is_complete(&file.map(read_header).transpose()?.unwrap_or_default()))
        };
        let look = || -> io::Result<(scan::Scan, audit::Audit)> {
            let scan = file.map(scan::scan).transpose()?.unwrap_or_default();
            let scan = scan::Scan { elsewhere: elsewhere.clone().unwrap_or_default(), ..scan };
            // Where records are missing, tags tell of their programs. Whoever empties the file takes the mark
            // away: a mark that was there before the scan and not after it says nothing of what was scanned.
            let is_whole = is_marked && !scan.is_damaged && is_still_marked()?;
            let identities = if is_whole { &[] } else { &identities[..] };
            let audit = audit::look(&root, std::process::id(), &scan, identities);
            Ok((scan, audit))
        };
        // The audit is of this very scan: whoever loses locks after it is held in it.
        let (mut scan, mut audit) = look()?;
        for _ in 0..if audit.lost.is_empty() { 0 } else { LOOKS } {
            // Some may have been started between the two, or have ended and left a child.
            let held = file.map(scan::scan).transpose()?.unwrap_or_default().held();
            let is_settled = |lost: &audit::Lost| !lost.is_within(&held) && lost.lives(&root);
            if audit.lost.iter().all(is_settled) {
                break;
            }
            (scan, audit) = look()?;
        }
        let is_complete = elsewhere.is_some_and(|cpus| cpus.is_empty())
            && !scan.is_damaged
            && scan.holdings.iter().all(|holding| holding.state != HolderState::Unknown)
            && audit.lost.iter().all(|lost| lost.slot.is_some());
        Ok(Self { scan, audit, is_marked, is_complete })
    }

    pub fn seen(self) -> RegistryView {
        self.scan.with(self.audit)
    }
}

/// Who holds what on this machine, without making or changing anything. Without a registry nobody
/// holds cores, but for programs that were started by one that was removed.
pub fn look() -> Result<RegistryView, FileError> {
    look_in(&RegistryLocation::of_this_process())
}

/// The same of the registry in this file.
pub fn look_at(path: &Path) -> Result<RegistryView, FileError> {
    look_in(&RegistryLocation::named(path))
}

fn look_in(place: &RegistryLocation) -> Result<RegistryView, FileError> {
    let path = place.path();
    let file = match file::open_existing(&path, false) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(FileError::of(&path, "opened", &error)),
    };
    if let Some(file) = &file {
        check(file, &path)?;
    }
    let known = KnownHolders::of(file.as_ref(), place);
    known.map(KnownHolders::seen).map_err(|error| FileError::of(&path, "read", &error))
}
