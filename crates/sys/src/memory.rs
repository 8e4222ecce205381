//! Memory that threads share word by word: anonymous, or a mapped file.

use crate::check;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Zeroed words shared between threads. Those of a file persist if the process is killed.
#[derive(Debug)]
pub struct SharedWords {
    pointer: *const AtomicU64,
    len: usize,
}

// SAFETY: the memory is only accessed as atomics, and unmapped when the last owner drops it.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps memory of this many words. Its pages are allocated when they are written.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        Self::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// The content of a file, which is first allocated in full, so that a full disk is an
    /// error here and not a signal later.
    pub fn of_file(file: &File, len: usize) -> io::Result<Self> {
        let bytes = (len * 8) as libc::off_t;
        file.set_len(bytes as u64)?;
        loop {
            // SAFETY: plain integers; the descriptor is open.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
                0 => break,
                libc::EINTR => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
        Self::map(len, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// The content of a file of which no memory is allocated: a program that writes to a part allocates its memory before.
    pub fn with_holes(file: &File, len: usize) -> io::Result<Self> {
        file.set_len((len * 8) as u64)?;
        Self::map(len, libc::MAP_SHARED | libc::MAP_NORESERVE, file.as_raw_fd())
    }

    fn map(len: usize, flags: i32, fd: i32) -> io::Result<Self> {
        let len = len.max(1);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let pointer = unsafe {
            libc::mmap(std::ptr::null_mut(), len * 8, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0)
        };
        if pointer == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { pointer: pointer.cast(), len })
    }

    /// The first half of a word in memory, for words that are only used as this half.
    pub(crate) fn half(&self, index: usize) -> &AtomicU32 {
        let word: *const AtomicU64 = &self[index];
        // SAFETY: the word is inside the mapping and aligned, and lives as long as `self`.
        unsafe { &*word.cast::<AtomicU32>() }
    }

    /// Locks the pages in memory (mlock), if the limits allow it.
    pub fn lock(&self) -> io::Result<()> {
        // SAFETY: the range is this mapping.
        check(unsafe { libc::mlock(self.pointer.cast(), self.len * 8) } as i64)?;
        Ok(())
    }
}

impl std::ops::Deref for SharedWords {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is `len` words, page-aligned, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, and there are no references into it.
        unsafe { libc::munmap(self.pointer.cast_mut().cast(), self.len * 8) };
    }
}

/// Makes malloc use one heap (M_ARENA_MAX): threads here allocate rarely, and each further heap keeps memory resident.
pub fn use_single_heap() {
    // SAFETY: plain integers.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 256 * 1024);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 * 1024);
    }
}

unsafe extern "C" {
    static __executable_start: u8;
    static etext: u8;
}

/// Unmaps the resident pages of this program's code (MADV_DONTNEED). Pages that are used are mapped again, so that
/// code which only ran at the start uses no memory afterwards.
pub fn release_code_pages() {
    let page = crate::sched::page_size() as usize;
    let start = (&raw const __executable_start).addr().next_multiple_of(page);
    let end = (&raw const etext).addr() & !(page - 1);
    if end > start {
        // SAFETY: the linker defines these two around the read-only part of the program's file; its pages have the same
        // content when they are mapped again.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::maps;
    use std::io::Read;
    use std::ops::Range;
    use std::sync::atomic::Ordering;

    /// The mapping that this test's code is in, and how many bytes of it are resident.
    fn resident_code() -> (Range<u64>, u64) {
        let own = resident_code as *const () as u64;
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = text.lines();
        let range =
            lines.find_map(|line| maps::addresses(line).filter(|range| range.contains(&own))).unwrap();
        let kib = lines.find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix(" kB")).unwrap();
        (range, kib.parse::<u64>().unwrap() << 10)
    }

    #[test]
    fn code_that_was_let_go_of_is_not_resident_and_still_runs() {
        let (code, _) = resident_code();
        // SAFETY: it is a part of the mapping, which can be read and stays as long as this runs.
        let read = |at: u64| unsafe { (at as *const u8).read_volatile() };
        let page = crate::sched::page_size() as usize;
        let sum = || code.clone().step_by(page).map(|at| u64::from(read(at))).sum::<u64>();
        let (content, (_, before)) = (sum(), resident_code());
        assert!(before * 10 >= (code.end - code.start) * 9, "{before} of {code:x?}");
        release_code_pages();
        // What runs meanwhile is resident again, in pieces.
        let (_, after) = resident_code();
        assert!(after < before, "{after} after {before}");
        assert_eq!(sum(), content);
    }

    #[test]
    fn words_of_a_file_are_its_content() {
        let path = std::env::temp_dir().join(format!("numakit-words-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let words = SharedWords::of_file(&file, 600).unwrap();
        words[599].store(0x0102_0304, Ordering::Relaxed);
        drop(words);
        let mut bytes = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes.len(), 4800);
        assert_eq!(u64::from_ne_bytes(bytes[4792..].try_into().unwrap()), 0x0102_0304);
    }

    #[test]
    fn fresh_words_are_zero() {
        let words = SharedWords::anonymous(1000).unwrap();
        assert!(words.iter().all(|w| w.load(Ordering::Relaxed) == 0));
    }
}
