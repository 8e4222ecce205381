//! Device registers: windows of physical memory, resources of PCI functions, and files with the content of such
//! windows.

use crate::{RootFile, SysRoot};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use thiserror::Error;

const MEMORY: &str = "/dev/mem";

/// Why a window cannot be mapped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WindowError {
    /// EACCES: the user may not open the file.
    #[error("{0}: permission denied")]
    Denied(String),
    /// EPERM: it needs more capabilities, or the kernel forbids it (lockdown).
    #[error("{0}: operation not permitted")]
    Locked(String),
    /// The file can be opened, but the kernel does not map this memory (CONFIG_STRICT_DEVMEM).
    #[error("{0}: the kernel does not map it to programs")]
    Refused(String),
    /// There is no such file.
    #[error("{0}: no such file")]
    Missing(String),
    /// It is smaller than the window.
    #[error("{path} has {bytes} bytes, and a window has {wanted}")]
    Short {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
        /// The size of the window.
        wanted: usize,
    },
    /// Only this machine has devices.
    #[error("{0}: not on this machine")]
    Elsewhere(String),
    /// Anything else.
    #[error("{0}: {1}")]
    Other(String, String),
}

impl WindowError {
    fn of(path: &str, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EACCES) => Self::Denied(path.to_owned()),
            Some(libc::EPERM) => Self::Locked(path.to_owned()),
            Some(libc::ENOENT) => Self::Missing(path.to_owned()),
            _ => Self::Other(path.to_owned(), error.to_string()),
        }
    }
}

/// Registers of 32 bits. Every access is one load or store of that width, in program order; the compiler leaves none out.
/// Reading and writing do not allocate.
#[derive(Debug)]
pub struct Window {
    place: Place,
    length: usize,
}

#[derive(Debug)]
enum Place {
    /// Start of a shared mapping of `length` bytes, to which there is no other reference.
    Device(*mut u32),
    /// Read only.
    File(RootFile),
}

// SAFETY: only the window owns the mapping, which any thread may access.
unsafe impl Send for Window {}

impl Window {
    /// Maps physical memory of this machine. The address is a multiple of the page size. The caller must know what is there:
    /// reading a device may have effects.
    pub fn physical(root: &SysRoot, address: u64, length: usize) -> Result<Self, WindowError> {
        let name = format!("{MEMORY} at {address:#x}");
        if !root.is_host() {
            return Err(WindowError::Elsewhere(name));
        }
        let file = open(MEMORY)?;
        let offset = libc::off_t::try_from(address)
            .map_err(|_| WindowError::Other(name.clone(), "no such address".to_owned()))?;
        Self::map(&file, &name, offset, length)
    }

    /// A resource of a PCI function of this machine; `function` is its directory in /sys.
    pub fn resource(root: &SysRoot, function: &str, number: u8, length: usize) -> Result<Self, WindowError> {
        let path = format!("{function}/resource{number}");
        if !root.is_host() {
            return Err(WindowError::Elsewhere(path));
        }
        let file = open(&path)?;
        // Mapping beyond the end of a file succeeds, and accessing it raises a signal.
        let bytes = file.metadata().map_err(|e| WindowError::of(&path, &e))?.len();
        if bytes < length as u64 {
            return Err(WindowError::Short { path, bytes, wanted: length });
        }
        Self::map(&file, &path, 0, length)
    }

    /// A read-only window with the content of a file of a root, little endian.
    pub fn file(root: &SysRoot, path: &str, length: usize) -> Result<Self, WindowError> {
        let failed = |e: crate::ReadError| match e.kind {
            io::ErrorKind::NotFound => WindowError::Missing(path.to_owned()),
            io::ErrorKind::PermissionDenied => WindowError::Denied(path.to_owned()),
            _ => WindowError::Other(path.to_owned(), e.reason),
        };
        let bytes = root.bytes(path).map_err(failed)?.len() as u64;
        if bytes < length as u64 {
            return Err(WindowError::Short { path: path.to_owned(), bytes, wanted: length });
        }
        Ok(Self { place: Place::File(root.source(path).map_err(failed)?), length })
    }

    fn map(file: &File, name: &str, offset: libc::off_t, length: usize) -> Result<Self, WindowError> {
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let pointer = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), offset)
        };
        if pointer == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => WindowError::Refused(name.to_owned()),
                _ => WindowError::of(name, &error),
            });
        }
        Ok(Self { place: Place::Device(pointer.cast()), length })
    }

    /// The register at this offset in bytes; `None` if there is none, or if the window's file cannot be read.
    pub fn read32(&self, offset: usize) -> Option<u32> {
        self.check(offset)?;
        match &self.place {
            // SAFETY: the offset is inside the mapping and aligned; a register may change at
            // any time, hence volatile.
            Place::Device(start) => Some(unsafe { start.add(offset / 4).read_volatile() }),
            Place::File(source) => {
                let mut bytes = [0; 4];
                let read = source.read_at(&mut bytes, offset as u64).ok()?;
                (read == bytes.len()).then_some(u32::from_le_bytes(bytes))
            }
        }
    }

    /// Writes the register at this offset in bytes. False if there is none or the window is read-only.
    pub fn write32(&self, offset: usize, value: u32) -> bool {
        match (self.check(offset), &self.place) {
            (Some(()), Place::Device(start)) => {
                // SAFETY: as for reading; no reference to the mapping exists.
                unsafe { start.add(offset / 4).write_volatile(value) };
                true
            }
            _ => false,
        }
    }

    /// Whether it can be written to.
    pub fn is_writable(&self) -> bool {
        matches!(self.place, Place::Device(_))
    }

    fn check(&self, offset: usize) -> Option<()> {
        (offset.is_multiple_of(4) && offset.checked_add(4)? <= self.length).then_some(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Place::Device(start) = self.place {
            // SAFETY: the range is this mapping, to which there are no references.
            unsafe { libc::munmap(start.cast(), self.length) };
        }
    }
}

fn open(path: &str) -> Result<File, WindowError> {
    // O_SYNC: device memory is mapped without a cache.
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_SYNC);
    options.open(path).map_err(|e| WindowError::of(path, &e))
}

/// Enables or disables memory accesses of a PCI function. The kernel counts: each call that enables needs one that
/// disables.
pub fn set_enabled(root: &SysRoot, function: &str, on: bool) -> Result<(), WindowError> {
    let path = format!("{function}/enable");
    if !root.is_host() {
        return Err(WindowError::Elsewhere(path));
    }
    let order: &[u8] = if on { b"1" } else { b"0" };
    let written = OpenOptions::new().write(true).open(&path).and_then(|mut file| file.write_all(order));
    written.map_err(|e| WindowError::of(&path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::FileTree;
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("numakit-window-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn name(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn stores_reach_the_device_and_loads_come_from_it() {
        let folder = Folder::new("device");
        std::fs::write(folder.0.join("resource2"), [0u8; 8192]).unwrap();
        let window = Window::resource(&SysRoot::host(), folder.name(), 2, 8192).unwrap();
        assert!(window.is_writable() && window.write32(8188, 0x0102_0304));
        assert_eq!((window.read32(8188), window.read32(0)), (Some(0x0102_0304), Some(0)));
        let bytes = std::fs::read(folder.0.join("resource2")).unwrap();
        assert_eq!(bytes[8188..], 0x0102_0304u32.to_ne_bytes());
    }

    #[test]
    fn nothing_outside_of_the_window_is_reached() {
        let folder = Folder::new("bounds");
        std::fs::write(folder.0.join("resource2"), [7u8; 8192]).unwrap();
        let window = Window::resource(&SysRoot::host(), folder.name(), 2, 4096).unwrap();
        for offset in [4096, 4094, 4093, 2, usize::MAX - 3, usize::MAX] {
            assert_eq!((window.read32(offset), window.write32(offset, 1)), (None, false), "{offset}");
        }
        assert!(std::fs::read(folder.0.join("resource2")).unwrap().iter().all(|b| *b == 7));
    }

    #[test]
    fn small_and_missing_files_are_errors() {
        let folder = Folder::new("faults");
        std::fs::write(folder.0.join("resource0"), [0u8; 100]).unwrap();
        let host = SysRoot::host();
        let error = Window::resource(&host, folder.name(), 0, 4096).unwrap_err().to_string();
        assert!(error.ends_with("resource0 has 100 bytes, and a window has 4096"), "{error}");
        let error = Window::resource(&host, folder.name(), 1, 4096).unwrap_err();
        assert!(matches!(error, WindowError::Missing(_)), "{error}");
        assert!(matches!(set_enabled(&host, folder.name(), true), Err(WindowError::Missing(_))));
        std::fs::write(folder.0.join("enable"), "0\n").unwrap();
        set_enabled(&host, folder.name(), true).unwrap();
        assert_eq!(std::fs::read(folder.0.join("enable")).unwrap()[0], b'1');
    }

    #[test]
    fn another_root_has_files_only() {
        let mut tree = FileTree::new();
        tree.file("/dev/mem/0x0.bin", [1, 2, 3, 4, 5, 6, 7, 8]).file("/dev/mem/0x1.bin", [1]);
        let root = SysRoot::of_tree(tree);
        let window = Window::file(&root, "/dev/mem/0x0.bin", 8).unwrap();
        assert_eq!((window.read32(4), window.read32(8)), (Some(0x0807_0605), None));
        assert!(!window.is_writable() && !window.write32(4, 1));
        root.change(|tree| _ = tree.file("/dev/mem/0x0.bin", [9, 0, 0, 0, 1]));
        assert_eq!((window.read32(0), window.read32(4)), (Some(9), None));
        assert!(matches!(Window::file(&root, "/dev/mem/0x1.bin", 8), Err(WindowError::Short { .. })));
        assert!(matches!(Window::file(&root, "/dev/mem/0x2.bin", 8), Err(WindowError::Missing(_))));
        for error in [
            Window::physical(&root, 0xf000_0000, 4096).err(),
            Window::resource(&root, "/sys/x", 2, 4096).err(),
            set_enabled(&root, "/sys/x", true).err(),
        ] {
            assert!(matches!(error, Some(WindowError::Elsewhere(_))), "{error:?}");
        }
    }
}
