//! Other processes that run already: where their pages are.

use crate::check;
use numakit_model::CpuSet;
use std::io;

/// Room for 1024 nodes.
const NODE_WORDS: usize = 16;
/// A page that was not moved because it is not there.
const ABSENT: i32 = -libc::ENOENT;
/// Pages in one call.
const CHUNK: usize = 512;

/// Moves all pages that a process has on some nodes to others, in that order: those of the
/// first go to the first. Returns how many could not be moved.
pub fn move_process(process: u32, from: &CpuSet, to: &CpuSet) -> io::Result<u64> {
    let words = |nodes: &CpuSet| {
        let mut words = [0u64; NODE_WORDS];
        for node in nodes.iter().filter(|&node| (node as usize) < NODE_WORDS * 64) {
            words[node as usize / 64] |= 1 << (node % 64);
        }
        words
    };
    let (from, to) = (words(from), words(to));
    // The kernel looks at one bit less than it is told.
    let bits = NODE_WORDS as libc::c_ulong * 64 + 1;
    // SAFETY: both masks are as long as said.
    let result =
        unsafe { libc::syscall(libc::SYS_migrate_pages, process as i32, bits, from.as_ptr(), to.as_ptr()) };
    check(result).map(|left| left as u64)
}

/// What became of single pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// They are on the node now and were not before.
    pub moved: u64,
    /// They are elsewhere still.
    pub left: u64,
}

/// Moves the pages of a process between these addresses to a node, those that are there and
/// elsewhere.
pub fn move_range(process: u32, start: u64, end: u64, node: u32) -> io::Result<Moved> {
    let page = crate::sched::page_size();
    let mut sum = Moved::default();
    let pages: Vec<u64> = (start / page * page..end).step_by(page as usize).collect();
    for chunk in pages.chunks(CHUNK) {
        let place = |nodes: Option<&[i32]>| pages_call(process, chunk, nodes);
        let elsewhere: Vec<u64> = place(None)?
            .into_iter()
            .zip(chunk)
            .filter_map(|(at, page)| (at != ABSENT && at != node as i32).then_some(*page))
            .collect();
        if elsewhere.is_empty() {
            continue;
        }
        let after = pages_call(process, &elsewhere, Some(&vec![node as i32; elsewhere.len()]))?;
        let moved = after.iter().filter(|&&at| at == node as i32).count() as u64;
        sum.moved += moved;
        sum.left += elsewhere.len() as u64 - moved;
    }
    Ok(sum)
}

/// Where pages are, or, with nodes, where they are after being moved there; errors of single
/// pages are negative.
pub(crate) fn pages_call(process: u32, pages: &[u64], nodes: Option<&[i32]>) -> io::Result<Vec<i32>> {
    // The kernel leaves the status of pages that it did not reach as it is.
    let mut status = vec![-libc::EAGAIN; pages.len()];
    // SAFETY: all three arrays are as long as said, and live during the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process as i32,
            pages.len(),
            pages.as_ptr(),
            nodes.map_or(std::ptr::null(), <[i32]>::as_ptr),
            status.as_mut_ptr(),
            // Pages that only this process maps.
            if nodes.is_some() { 1 << 1 } else { 0 },
        )
    };
    check(result).map(|_| status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_there_already_are_not_moved() {
        let memory = vec![1u8; 64 << 10];
        let start = memory.as_ptr() as u64;
        let moved = move_range(std::process::id(), start, start + memory.len() as u64, 0).unwrap();
        if !std::path::Path::new("/sys/devices/system/node/node1").exists() {
            assert_eq!(moved, Moved::default());
        }
        assert_eq!(memory[1000], 1);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let gone = u32::MAX >> 2;
        let node = CpuSet::range(0, 0);
        assert_eq!(move_process(gone, &node, &node).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert_eq!(crate::sched::set_affinity_of(gone, &node).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert!(move_range(gone, 4096, 8192, 0).is_err());
    }
}
