//! Memory of other processes.

use crate::check;
use crate::proc::TaskDir;
use crate::root::SysRoot;
use std::cell::{Cell, RefCell};
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
    /// From its file `mem`. `process_vm_readv` would copy pages that the process shares with its parent or children until it writes
    /// to them: each read would cost it memory, on the node of the reader.
    File,
    /// By `process_vm_readv`, since the file may not be opened.
    Call,
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
    file: RefCell<Option<File>>,
}

impl RemoteMemory {
    /// The memory of this process.
    pub fn of(process: u32) -> Self {
        Self { process, reading: Cell::new(Reading::File), file: RefCell::new(None) }
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
        if self.reading.get() == Reading::File {
            let error = match self.read_file(address, into) {
                // Without memory there is no process, and a new one of this number has another file.
                Ok(0) => io::Error::from_raw_os_error(libc::ESRCH),
                Ok(length) => return Some(length),
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::ESRCH | libc::ENOENT) => self.reading.set(Reading::Ended),
                Some(libc::EPERM | libc::EACCES) => self.reading.set(Reading::Call),
                // Too many files are open.
                Some(libc::EMFILE | libc::ENFILE) => return read(self.process, address, into).ok(),
                // There is nothing at this address.
                _ => return None,
            }
        }
        if self.reading.get() != Reading::Call {
            return None;
        }
        let error = match read(self.process, address, into) {
            Ok(length) => return Some(length),
            Err(error) => error.raw_os_error(),
        };
        match error {
            Some(libc::ESRCH) => self.reading.set(Reading::Ended),
            // This user may not read the memory, or a filter refuses the call.
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => self.reading.set(Reading::Refused),
            _ => {}
        }
        None
    }

    /// Reads from the file. The file of a process that executed another program since has nothing, and is opened again.
    fn read_file(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.borrow_mut();
        if let Some(open) = file.as_ref() {
            let length = open.read_at(into, address)?;
            if length > 0 {
                return Ok(length);
            }
        }
        let path = TaskDir::of(&SysRoot::host(), self.process).path("mem");
        file.insert(File::open(path)?).read_at(into, address)
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
        for reading in [Reading::File, Reading::Call] {
            let memory = RemoteMemory { reading: Cell::new(reading), ..RemoteMemory::of(own) };
            bytes = [0; 8];
            let length = memory.read(start + page as u64 - 3, &mut bytes[..3]);
            assert_eq!((length, &bytes[..3]), (Some(3), &b"abc"[..]));
            assert_eq!(memory.read(0, &mut bytes), None);
        }
        // SAFETY: nothing refers to the mapping.
        unsafe { libc::munmap(start as *mut libc::c_void, 2 * page) };
    }

    /// Whether a page is of one process alone, by /proc/PID/pagemap.
    fn is_exclusive(process: u32, address: u64) -> bool {
        let pages = File::open(format!("/proc/{process}/pagemap")).unwrap();
        let mut entry = [0; 8];
        pages.read_exact_at(&mut entry, address / crate::sched::page_size() * 8).unwrap();
        u64::from_ne_bytes(entry) >> 56 & 1 == 1
    }

    #[test]
    fn what_is_read_stays_shared_with_the_parent() {
        let bytes = vec![7u8; 3 * crate::sched::page_size() as usize];
        let page = (bytes.as_ptr() as u64).next_multiple_of(crate::sched::page_size());
        // SAFETY: the child only waits for its end.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: as above.
                unsafe { libc::pause() };
            }
        }
        let child = u32::try_from(child).unwrap();
        let mut read = [0; 4];
        let before = is_exclusive(child, page);
        let length = RemoteMemory::of(child).read(page, &mut read);
        let after = is_exclusive(child, page);
        // SAFETY: it is this test's own child.
        unsafe {
            libc::kill(child as i32, libc::SIGKILL);
            libc::waitpid(child as i32, std::ptr::null_mut(), 0);
        }
        assert_eq!((length, read), (Some(4), [7; 4]));
        assert_eq!((before, after), (false, false));
    }
}
