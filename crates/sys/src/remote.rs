//! Memory of other processes.

use crate::check;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Reads memory of another process; returns the number of bytes, fewer where a mapping ends. The process is not
/// stopped, so that what is read may change meanwhile.
pub fn read(process: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel writes only to the buffer, which has this length; the other address is not used here.
    let read = unsafe { libc::process_vm_readv(process as i32, &raw const here, 1, &raw const there, 1, 0) };
    check(read as i64).map(|read| read as usize)
}

/// Why memory could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// There is nothing at this address.
    Address,
    /// The process has ended.
    Ended,
    /// This user may not read its memory, or a filter refuses the call.
    Refused,
}

impl Unreadable {
    /// The reason for an error of [`read`].
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ESRCH) => Self::Ended,
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => Self::Refused,
            _ => Self::Address,
        }
    }
}

/// The memory of a process as a file, for where [`read`] is refused by a filter.
#[derive(Debug)]
pub struct MemoryFile(File);

impl MemoryFile {
    /// Opens it.
    pub fn open(process: u32) -> io::Result<Self> {
        File::open(crate::proc::TaskDir::of(&crate::SysRoot::host(), process).path("mem")).map(Self)
    }

    /// Reads memory, like [`read`].
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(into, address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_up_to_the_end_of_its_mapping() {
        let page = crate::sched::page_size() as usize;
        // SAFETY: a new mapping of two pages, the second of which is removed again.
        let start = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            libc::mprotect(start.cast::<u8>().add(page).cast(), page, libc::PROT_NONE);
            start.cast::<u8>().add(page - 3).copy_from_nonoverlapping(b"abc".as_ptr(), 3);
            start as u64
        };
        let own = std::process::id();
        let mut bytes = [0; 8];
        match read(own, start + page as u64 - 3, &mut bytes) {
            Ok(length) => assert_eq!((length, &bytes[..3]), (3, &b"abc"[..])),
            Err(error) => numakit_skips::PRIVILEGES.skip_part(format_args!("process_vm_readv: {error}")),
        }
        assert!(read(own, start + page as u64, &mut bytes).is_err());
        assert!(read(own, 0, &mut bytes).is_err());
        let error = read(u32::MAX >> 2, start, &mut bytes).unwrap_err();
        assert!(Unreadable::of(&error) != Unreadable::Address, "{error}");
        let file = MemoryFile::open(own).unwrap();
        bytes = [0; 8];
        assert_eq!(
            (file.read(start + page as u64 - 3, &mut bytes[..3]).unwrap(), &bytes[..3]),
            (3, &b"abc"[..])
        );
        // SAFETY: nothing refers to the mapping.
        unsafe { libc::munmap(start as *mut libc::c_void, 2 * page) };
    }
}
