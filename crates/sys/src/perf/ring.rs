//! The ring that the kernel writes records of events to.

use crate::check;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// A mapped ring. Its size is a power of two of pages.
#[derive(Debug)]
pub struct EventRing {
    /// Start of a shared mapping: a page of control fields, then the data.
    start: *mut u8,
    length: usize,
    page: usize,
}

// SAFETY: only the ring owns the mapping, which any thread may access.
unsafe impl Send for EventRing {}

impl EventRing {
    /// Maps the ring of an event with this number of pages, a power of two. If the user may not lock that much memory, maps
    /// half of it, and so on.
    pub fn map(event: &File, pages: usize) -> io::Result<Self> {
        let page = crate::sched::page_size() as usize;
        let mut data = pages.next_power_of_two();
        loop {
            match Self::map_exactly(event, page, data) {
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && data > 1 => data /= 2,
                mapped => return mapped,
            }
        }
    }

    fn map_exactly(event: &File, page: usize, data: usize) -> io::Result<Self> {
        let length = (data + 1) * page;
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, event.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), length, page })
    }

    /// Bytes of data.
    pub fn size(&self) -> usize {
        self.length - self.page
    }

    fn control(&self) -> *mut perf_event_mmap_page {
        self.start.cast()
    }

    /// How far the kernel has written, as a count of bytes.
    fn head(&self) -> &AtomicU64 {
        // SAFETY: the first page has this layout, the field is aligned, and the kernel writes it atomically.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control()).data_head) }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as above; the kernel only reads it.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control()).data_tail) }
    }

    /// Appends the records since the last call to a buffer, and frees their room in the ring. Returns the number of
    /// bytes.
    pub fn drain(&mut self, into: &mut Vec<u8>) -> usize {
        let (head, tail) = (self.head().load(Ordering::Acquire), self.tail().load(Ordering::Relaxed));
        let (first, second) = pieces(tail, head, self.size());
        let count = first.len() + second.len();
        into.reserve(count);
        for piece in [first, second] {
            // SAFETY: the pieces are within the data, the kernel does not write there before the tail moves, and the
            // buffer has room for both.
            unsafe {
                let from = self.start.add(self.page + piece.start);
                std::ptr::copy_nonoverlapping(from, into.as_mut_ptr().add(into.len()), piece.len());
                into.set_len(into.len() + piece.len());
            }
        }
        self.tail().store(head, Ordering::Release);
        count
    }
}

impl Drop for EventRing {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, to which there are no references.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// Where the bytes between two positions are in a ring of this size. The second range is what continues at the start of the
/// ring.
pub fn pieces(tail: u64, head: u64, size: usize) -> (Range<usize>, Range<usize>) {
    let count = usize::try_from(head.wrapping_sub(tail)).unwrap_or(size).min(size);
    // The size is a power of two, so the position modulo it is exact even after the counter wraps around.
    let start = (tail % size.max(1) as u64) as usize;
    let end = start + count;
    (start..end.min(size), 0..end.saturating_sub(size))
}

/// Sends the records of this event to the ring of another one on the same CPU.
pub fn redirect(event: &File, to: &File) -> io::Result<()> {
    /// `PERF_EVENT_IOC_SET_OUTPUT`.
    const SET_OUTPUT: libc::Ioctl = libc::_IO(b'$' as u32, 5);
    // SAFETY: both descriptors are open; the call takes no pointer.
    check(unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, to.as_raw_fd()) } as i64).map(drop)
}

/// The kernel's number of an event, which is in its samples.
pub fn number(event: &File) -> io::Result<u64> {
    /// `PERF_EVENT_IOC_ID`.
    const ID: libc::Ioctl = libc::_IOR::<*mut u64>(b'$' as u32, 7);
    let mut number = 0u64;
    // SAFETY: the descriptor is open, and the number outlives the call.
    check(unsafe { libc::ioctl(event.as_raw_fd(), ID, &raw mut number) } as i64)?;
    Ok(number)
}

/// Stops the samples of an event, and those of the events that inherited it.
pub fn disable(event: &File) -> io::Result<()> {
    /// `PERF_EVENT_IOC_DISABLE`.
    const DISABLE: libc::Ioctl = libc::_IO(b'$' as u32, 1);
    // SAFETY: the descriptor is open; the call takes no pointer.
    check(unsafe { libc::ioctl(event.as_raw_fd(), DISABLE, 0) } as i64).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_wrap_around_are_in_two_pieces() {
        assert_eq!(pieces(0, 0, 64), (0..0, 0..0));
        assert_eq!(pieces(10, 20, 64), (10..20, 0..0));
        assert_eq!(pieces(60, 70, 64), (60..64, 0..6));
        assert_eq!(pieces(64, 128, 64), (0..64, 0..0));
        assert_eq!(pieces(130, 194, 64), (2..64, 0..2));
        // The counters wrap around too.
        assert_eq!(pieces(u64::MAX - 3, 4, 64), (60..64, 0..4));
        // A damaged head stays within the ring.
        assert_eq!(pieces(5, u64::MAX, 64), (5..64, 0..5));
    }
}
