//! Which pages of other processes are in memory, and on which nodes, queried in pieces: walking the page tables of a
//! process holds its mmap lock, for which its own mappings wait. The trait lets tests replace the kernel.

use crate::{check, sched};
use rustix::fs::{MemfdFlags, memfd_create};
use std::cell::Cell;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Maximum of pages in one query of nodes. The kernel takes the lock for 16 of them at a time.
pub const MAX_QUERY: usize = 512;

/// Maximum number of pages in a piece: the lock is held for about 15 us. A thread of the process that wants to change
/// mappings waits that long by looking at the lock again and again. If the lock were held longer, the kernel would put the
/// thread to sleep, and waking it takes longer than the piece.
const PIECE_PAGES: u64 = 1024;

/// Maximum of bytes that a piece spans, as page tables without pages are walked too.
const PIECE_BYTES: u64 = 256 << 20;

/// Pages in a piece if each entry has to be read. The kernel takes the lock for 2 MiB at a time.
const PIECE_ENTRIES: usize = 8192;

/// Consecutive pages that are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRun {
    /// Address of the first.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Whether they are mapped as huge pages, if the kernel says so.
    pub huge: Option<bool>,
}

/// A source of information about pages: the kernel, or a test double.
pub trait Pages: Debug + Send + Sync {
    /// Opens the list of pages of a process that are in memory.
    fn open(&self, process: u32) -> io::Result<Box<dyn Present>>;

    /// The nodes of at most [`MAX_QUERY`] pages; none for a page that is not present, the zero page, or one of a device.
    fn nodes(&self, process: u32, pages: &[u64]) -> io::Result<Vec<Option<u32>>>;

    /// The devices (major and minor number) of unnamed hugetlbfs files, which belong to no mount.
    fn pools(&self) -> Vec<(u32, u32)>;
}

/// The pages of one process that are in memory.
pub trait Present: Debug + Send {
    /// Adds the runs of pages between two addresses; returns the address that it reached. A call holds the lock of the
    /// process for less than a millisecond.
    fn runs(&self, start: u64, end: u64, runs: &mut Vec<PageRun>) -> io::Result<u64>;
}

/// The kernel.
#[derive(Debug)]
pub struct KernelPages;

impl Pages for KernelPages {
    fn open(&self, process: u32) -> io::Result<Box<dyn Present>> {
        let file = File::open(format!("/proc/{process}/pagemap"))?;
        Ok(Box::new(Pagemap { file, scans: Cell::new(true) }))
    }

    fn nodes(&self, process: u32, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        let status = crate::migrate::pages_call(process, pages, None)?;
        Ok(status.into_iter().map(|node| u32::try_from(node).ok()).collect())
    }

    fn pools(&self) -> Vec<(u32, u32)> {
        let sizes = std::fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
        let kib = sizes.filter_map(|size| {
            size.file_name().to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok()
        });
        kib.filter_map(|kib| pool(kib << 10).ok()).collect()
    }
}

/// The device of unnamed files with one size of huge pages, from such a file. It allocates no page.
fn pool(size: u64) -> io::Result<(u32, u32)> {
    let size = MemfdFlags::from_bits_retain(size.trailing_zeros() << libc::MFD_HUGE_SHIFT);
    let file = File::from(memfd_create("numa", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | size)?);
    let device = file.metadata()?.dev();
    Ok((libc::major(device), libc::minor(device)))
}

/// /proc/PID/pagemap.
#[derive(Debug)]
struct Pagemap {
    file: File,
    /// Whether the kernel has PAGEMAP_SCAN (6.7). If not, every entry is read.
    scans: Cell<bool>,
}

impl Present for Pagemap {
    fn runs(&self, start: u64, end: u64, runs: &mut Vec<PageRun>) -> io::Result<u64> {
        if self.scans.get() {
            match self.scan(start, end.min(start.saturating_add(PIECE_BYTES)), runs) {
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => {
                    self.scans.set(false);
                }
                other => return other,
            }
        }
        self.read(start, end, runs)
    }
}

/// `struct page_region` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` of the kernel.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const PRESENT: u64 = 1 << 3;
const ZERO: u64 = 1 << 5;
const HUGE: u64 = 1 << 6;

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = libc::_IOWR::<Scan>('f' as u32, 16);

impl Pagemap {
    fn scan(&self, start: u64, end: u64, runs: &mut Vec<PageRun>) -> io::Result<u64> {
        let mut regions = [Region::default(); 64];
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            start,
            end,
            vec: regions.as_mut_ptr() as u64,
            vec_len: regions.len() as u64,
            max_pages: PIECE_PAGES,
            category_inverted: ZERO,
            category_mask: PRESENT | ZERO,
            return_mask: HUGE,
            ..Scan::default()
        };
        // SAFETY: the structure is that of the kernel, and the array has the length in it.
        let found = check(unsafe { libc::ioctl(self.file.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) } as i64)?;
        let regions = regions.iter().take(usize::try_from(found).unwrap_or(0));
        runs.extend(regions.map(|r| PageRun {
            start: r.start,
            end: r.end,
            huge: Some(r.categories & HUGE != 0),
        }));
        // The kernel returns the address that it reached; if it made no progress, the rest counts as scanned.
        Ok(if scan.walk_end > start && scan.walk_end < end { scan.walk_end } else { end })
    }

    fn read(&self, start: u64, end: u64, runs: &mut Vec<PageRun>) -> io::Result<u64> {
        const ENTRY: u64 = 8;
        let page = sched::page_size();
        let wanted = usize::try_from((end - start) / page).unwrap_or(usize::MAX).min(PIECE_ENTRIES);
        let mut bytes = vec![0; wanted * ENTRY as usize];
        let got = self.file.read_at(&mut bytes, start / page * ENTRY)?;
        let entries = bytes[..got].as_chunks::<8>().0;
        if entries.is_empty() {
            return Ok(end);
        }
        let mut run: Option<PageRun> = None;
        for (entry, address) in entries.iter().zip((start..).step_by(page as usize)) {
            let present = u64::from_ne_bytes(*entry) >> 63 == 1;
            match &mut run {
                Some(run) if present => run.end = address + page,
                None if present => run = Some(PageRun { start: address, end: address + page, huge: None }),
                _ => runs.extend(run.take()),
            }
        }
        runs.extend(run);
        Ok(start + entries.len() as u64 * page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of this process, of which every second 64 KiB are written.
    struct Striped(*mut u8);

    const LENGTH: usize = 8 << 20;
    const STRIPE: usize = 64 << 10;

    impl Striped {
        fn new() -> Self {
            let (protection, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new mapping at an address of the kernel's choice.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), LENGTH, protection, kind, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            // SAFETY: the range is this mapping.
            unsafe { libc::madvise(start, LENGTH, libc::MADV_NOHUGEPAGE) };
            for at in (0..LENGTH).filter(|at| (at / STRIPE).is_multiple_of(2)).step_by(4096) {
                // SAFETY: within the mapping.
                unsafe { start.cast::<u8>().add(at).write_volatile(1) };
            }
            Self(start.cast())
        }

        fn present(&self, pagemap: &dyn Present) -> (u64, usize, Vec<PageRun>) {
            let (start, mut runs, mut pieces) = (self.0 as u64, Vec::new(), 0);
            let (end, mut at) = (start + LENGTH as u64, start);
            while at < end {
                at = pagemap.runs(at, end, &mut runs).unwrap();
                pieces += 1;
            }
            (runs.iter().map(|r| r.end - r.start).sum(), pieces, runs)
        }
    }

    impl Drop for Striped {
        fn drop(&mut self) {
            // SAFETY: the range is this mapping, to which there are no references.
            unsafe { libc::munmap(self.0.cast(), LENGTH) };
        }
    }

    fn open(scans: bool) -> Option<Pagemap> {
        let file = File::open("/proc/self/pagemap");
        if file.is_err() {
            numakit_skips::MACHINE.skip("this kernel has no /proc/PID/pagemap");
        }
        Some(Pagemap { file: file.ok()?, scans: Cell::new(scans) })
    }

    #[test]
    fn pages_that_were_written_are_present_by_both_methods() {
        let memory = Striped::new();
        for scans in [true, false] {
            let Some(pagemap) = open(scans) else { return };
            let (bytes, pieces, runs) = memory.present(&pagemap);
            assert_eq!(bytes, LENGTH as u64 / 2, "{scans} {runs:?}");
            assert!(pieces < 20 && runs.iter().all(|r| r.huge != Some(true)), "{pieces} {runs:?}");
        }
    }

    #[test]
    fn pages_have_nodes_and_those_that_are_not_there_have_none() {
        let memory = Striped::new();
        let here = memory.0 as u64;
        match KernelPages.nodes(std::process::id(), &[here, here + STRIPE as u64]) {
            Ok(nodes) => assert!(nodes[0].is_some() && nodes[1].is_none(), "{nodes:?}"),
            Err(error) => {
                numakit_skips::PRIVILEGES.skip_part(format_args!("move_pages is refused here: {error}"))
            }
        }
        assert!(KernelPages.nodes(u32::MAX >> 2, &[here]).is_err());
        assert!(KernelPages.open(u32::MAX >> 2).is_err());
    }
}
