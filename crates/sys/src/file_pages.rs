//! The page cache of a file: which pages are in it, on which nodes they are, and moving them.
//!
//! The pages are those of a read-only mapping whose memory is never accessed from here: the kernel copies what it has to
//! touch. So a file that is truncated meanwhile is no SIGBUS.

use crate::migrate::{self, Movable};
use crate::{check, sched};
use rustix::fs::{Advice, fadvise, fstatfs};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Mappings are aligned to this, so that huge pages of the cache are mapped as such.
const HUGE: usize = 2 << 20;

/// Maximum number of pages in one call of process_vm_readv (IOV_MAX).
const TOUCHED: usize = 1024;

/// Maximum number of pages in one call of move_pages that moves them. It is large, since each call first empties the lists
/// of all CPUs.
const MOVED: usize = 4096;

/// `HUGETLBFS_MAGIC` of the kernel.
const HUGETLBFS: i64 = 0x9584_58f6;

/// Where a page is, or why it was not moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// On this node.
    Node(u32),
    /// Not in memory, or not mapped here.
    Absent,
    /// Not moved: other processes map it, and this one has no CAP_SYS_NICE.
    Mapped,
    /// Not moved: in use, as while it is written to the disk.
    Busy,
    /// Not moved: the node has no free memory.
    NoMemory,
    /// The kernel gave up before it.
    Unreached,
}

impl PageState {
    pub(crate) fn of(status: i32) -> Self {
        match (u32::try_from(status), -status) {
            (Ok(node), _) => Self::Node(node),
            (_, libc::ENOENT | libc::EFAULT) => Self::Absent,
            (_, libc::EACCES) => Self::Mapped,
            (_, libc::ENOMEM) => Self::NoMemory,
            (_, libc::EAGAIN) => Self::Unreached,
            _ => Self::Busy,
        }
    }
}

/// A part of a file in the address space of this process. There are inaccessible pages around it, so that it is a separate
/// mapping in `numa_maps` and `smaps`. Pages are numbered from its start.
#[derive(Debug)]
pub struct FileWindow {
    reserved: *mut u8,
    reserved_length: usize,
    start: usize,
    pages: usize,
    page: usize,
}

impl FileWindow {
    /// Maps this many bytes from an offset that is a multiple of the page size. Nothing is read.
    pub fn map(file: &File, offset: u64, length: usize) -> io::Result<Self> {
        let page = sched::page_size() as usize;
        let length = length.max(1).next_multiple_of(page);
        let reserved_length = length + 2 * HUGE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let reserved =
            unsafe { libc::mmap(std::ptr::null_mut(), reserved_length, libc::PROT_NONE, kind, -1, 0) };
        if reserved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // One page stays inaccessible in front of the file.
        let start = (reserved as usize + page).next_multiple_of(HUGE) + offset as usize % HUGE;
        let start = if start + length < reserved as usize + reserved_length { start } else { start - HUGE };
        let window = Self { reserved: reserved.cast(), reserved_length, start, pages: length / page, page };
        let (protection, kind) = (libc::PROT_READ, libc::MAP_SHARED | libc::MAP_FIXED);
        let (fd, offset) = (file.as_raw_fd(), offset as libc::off_t);
        // SAFETY: the range is within the reservation above, which nothing else uses.
        let there = unsafe { libc::mmap(window.address(0), length, protection, kind, fd, offset) };
        if there == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // No read-ahead when a page is touched.
        // SAFETY: the range is the mapping.
        check(i64::from(unsafe { libc::madvise(there, length, libc::MADV_RANDOM) }))?;
        Ok(window)
    }

    fn address(&self, page: u32) -> *mut libc::c_void {
        (self.start + page as usize * self.page) as *mut libc::c_void
    }

    /// The address of the first page.
    pub fn start(&self) -> u64 {
        self.start as u64
    }

    /// Number of pages, of which the last may be beyond the end of the file.
    pub fn pages(&self) -> u32 {
        self.pages as u32
    }

    /// Which pages are in the cache (mincore). Since Linux 5.2 the kernel calls all pages cached, unless this process may
    /// write to the file or owns it: see [`tells_cached`].
    pub fn cached(&self) -> io::Result<Vec<bool>> {
        let mut cached = vec![0u8; self.pages];
        // SAFETY: the kernel writes one byte for each page of the mapping.
        check(i64::from(unsafe {
            libc::mincore(self.address(0), self.pages * self.page, cached.as_mut_ptr())
        }))?;
        Ok(cached.into_iter().map(|byte| byte & 1 == 1).collect())
    }

    /// Enters pages into the page table, which reads those that are not in the cache. Returns how many could not be:
    /// beyond the end of the file, or the disk failed.
    pub fn touch(&self, pages: &[u32]) -> io::Result<u64> {
        let mut bytes = [0u8; TOUCHED];
        let (mut at, mut failed) = (0, 0);
        while at < pages.len() {
            let wanted = &pages[at..pages.len().min(at + TOUCHED)];
            let there: Vec<libc::iovec> =
                wanted.iter().map(|page| libc::iovec { iov_base: self.address(*page), iov_len: 1 }).collect();
            let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: wanted.len() };
            let (own, count) = (std::process::id() as i32, there.len() as libc::c_ulong);
            // SAFETY: the kernel writes a byte for each page to the buffer, which has room for them; addresses that
            // cannot be read are an error of the call.
            let read = unsafe { libc::process_vm_readv(own, &raw const here, 1, there.as_ptr(), count, 0) };
            match check(read as i64) {
                Ok(read) if read > 0 => at += read as usize,
                Ok(_) => (at, failed) = (at + 1, failed + 1),
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                    (at, failed) = (at + 1, failed + 1);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(failed)
    }

    /// The nodes of pages that were touched.
    pub fn nodes(&self, pages: &[u32]) -> io::Result<Vec<PageState>> {
        let addresses = self.addresses(pages);
        Ok(migrate::pages_call(0, &addresses, None)?.into_iter().map(PageState::of).collect())
    }

    /// Moves pages that were touched, each to the node beside it in `nodes`. With `all`, pages that other processes map are
    /// moved too, which needs CAP_SYS_NICE.
    pub fn relocate(&self, pages: &[u32], nodes: &[u32], all: bool) -> io::Result<Vec<PageState>> {
        let movable = if all { Movable::All } else { Movable::Own };
        let mut states = Vec::with_capacity(pages.len());
        for (pages, nodes) in pages.chunks(MOVED).zip(nodes.chunks(MOVED)) {
            let nodes: Vec<i32> = nodes.iter().map(|node| *node as i32).collect();
            let status = migrate::pages_call(0, &self.addresses(pages), Some((&nodes, movable)))?;
            states.extend(status.into_iter().map(PageState::of));
        }
        Ok(states)
    }

    fn addresses(&self, pages: &[u32]) -> Vec<u64> {
        pages.iter().map(|page| self.address(*page) as u64).collect()
    }
}

impl Drop for FileWindow {
    fn drop(&mut self) {
        // SAFETY: the range is the reservation with the file in it, to which there are no references.
        unsafe { libc::munmap(self.reserved.cast(), self.reserved_length) };
    }
}

/// How far beyond the end of a file pages are asked for. Another process may let the file grow meanwhile, but not by all of
/// these distances.
const BEYOND: [u64; 3] = [HUGE as u64, 1 << 30, 1 << 40];

/// Whether the kernel tells this process which pages of a file are cached. This asks about pages far beyond the end, which
/// are not cached: a kernel that does not tell calls them cached.
pub fn tells_cached(file: &File) -> io::Result<bool> {
    let end = file.metadata()?.len().next_multiple_of(HUGE as u64);
    for beyond in BEYOND {
        let cached = match FileWindow::map(file, end + beyond, 1) {
            // A file system may have no files of that size.
            Err(_) if beyond > BEYOND[0] => continue,
            window => window?.cached()?,
        };
        if !cached.iter().any(|page| *page) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the file is on hugetlbfs, whose pages are not in the page cache.
pub fn is_of_pool(file: &File) -> io::Result<bool> {
    Ok(fstatfs(file)?.f_type == HUGETLBFS)
}

/// The major and minor number of a device, as `maps` prints it.
pub fn device(number: u64) -> (u32, u32) {
    (libc::major(number), libc::minor(number))
}

/// Removes the cached pages of a file that are clean, not mapped and not locked. The kernel does not say which those were.
pub fn evict(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

#[cfg(test)]
mod tests;
