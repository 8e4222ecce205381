//! Memory of other processes.

use crate::check;
use crate::proc::TaskDir;
use crate::root::SysRoot;
use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Reads memory of another process; returns the number of bytes, which is smaller if a mapping ends. The process is not
/// stopped, so its memory may change meanwhile.
pub fn read(process: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel writes only to the buffer, which has this length; the other address is not used here.
    let read = unsafe { libc::process_vm_readv(process as i32, &raw const here, 1, &raw const there, 1, 0) };
    check(read as i64).map(|read| read as usize)
}

/// How the memory of a process is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// By `process_vm_readv`.
    Call,
    /// From its file `mem`, as a filter refuses the call.
    File,
    /// Not at all: this user may not read it.
    Refused,
    /// The process has ended.
    Ended,
}

/// The memory of a process, which is never stopped: any address may be gone when it is read.
#[derive(Debug)]
pub struct RemoteMemory {
    process: u32,
    reading: Cell<Reading>,
    file: OnceCell<Option<File>>,
}

impl RemoteMemory {
    /// The memory of this process.
    pub fn of(process: u32) -> Self {
        Self { process, reading: Cell::new(Reading::Call), file: OnceCell::new() }
    }

    /// Whether the memory is gone with its process.
    pub fn has_ended(&self) -> bool {
        self.reading.get() == Reading::Ended
    }

    /// Whether this user may read the memory.
    pub fn is_readable(&self) -> bool {
        self.reading.get() != Reading::Refused
    }

    /// The caller has seen that the process has ended: nothing is read any more.
    pub fn note_end(&self) {
        self.reading.set(Reading::Ended);
    }

    /// Copies bytes from an address on; returns how many could be read, and `None` for none.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Option<usize> {
        loop {
            let error = match self.reading.get() {
                Reading::Call => match read(self.process, address, into) {
                    Ok(length) => return Some(length),
                    Err(error) => error,
                },
                Reading::File => {
                    return self.file()?.read_at(into, address).ok().filter(|length| *length > 0);
                }
                Reading::Refused | Reading::Ended => return None,
            };
            self.reading.set(match error.raw_os_error() {
                Some(libc::ESRCH) => Reading::Ended,
                // This user may not read the memory, or a filter refuses the call.
                Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => match self.file() {
                    Some(_) => Reading::File,
                    None => Reading::Refused,
                },
                // There is nothing at this address.
                _ => return None,
            });
        }
    }

    fn file(&self) -> Option<&File> {
        let open = || File::open(TaskDir::of(&SysRoot::host(), self.process).path("mem")).ok();
        self.file.get_or_init(open).as_ref()
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
        let gone = RemoteMemory::of(u32::MAX >> 2);
        assert_eq!(gone.read(start, &mut bytes), None);
        assert!(gone.has_ended() || !gone.is_readable());
        let memory = RemoteMemory { reading: Cell::new(Reading::File), ..RemoteMemory::of(own) };
        bytes = [0; 8];
        let length = memory.read(start + page as u64 - 3, &mut bytes[..3]);
        assert_eq!((length, &bytes[..3]), (Some(3), &b"abc"[..]));
        // SAFETY: nothing refers to the mapping.
        unsafe { libc::munmap(start as *mut libc::c_void, 2 * page) };
    }
}
