//! Moving pages of running processes between nodes.

use crate::check;
use crate::file_pages::PageState;
use numakit_model::CpuSet;
use std::io;

/// Room for 1024 nodes.
const NODE_WORDS: usize = 16;
/// The status of a page that is not present.
const ABSENT: i32 = -libc::ENOENT;
/// Maximum number of pages in one call.
const CHUNK: usize = 512;

/// Moves all pages of a process from some nodes to others, node by node in order. Returns how many could not be moved.
pub fn move_process(process: u32, from: &CpuSet, to: &CpuSet) -> io::Result<u64> {
    let words = |nodes: &CpuSet| {
        let mut words = [0u64; NODE_WORDS];
        for node in nodes.iter().filter(|&node| (node as usize) < NODE_WORDS * 64) {
            words[node as usize / 64] |= 1 << (node % 64);
        }
        words
    };
    let (from, to) = (words(from), words(to));
    // The kernel uses one bit less than this number.
    let bits = NODE_WORDS as libc::c_ulong * 64 + 1;
    // SAFETY: both masks have this length.
    let result =
        unsafe { libc::syscall(libc::SYS_migrate_pages, process as i32, bits, from.as_ptr(), to.as_ptr()) };
    check(result).map(|left| left as u64)
}

/// Counts of pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Moved to the node.
    pub moved: u64,
    /// Pages that are still on other nodes.
    pub left: u64,
}

/// Moves the present pages of a process between these addresses to a node.
pub fn move_range(process: u32, start: u64, end: u64, node: u32) -> io::Result<Moved> {
    let page = crate::sched::page_size();
    let mut sum = Moved::default();
    let pages: Vec<u64> = (start / page * page..end).step_by(page as usize).collect();
    for chunk in pages.chunks(CHUNK) {
        let elsewhere: Vec<u64> = pages_call(process, chunk, None)?
            .into_iter()
            .zip(chunk)
            .filter_map(|(at, page)| (at != ABSENT && at != node as i32).then_some(*page))
            .collect();
        if elsewhere.is_empty() {
            continue;
        }
        let after =
            pages_call(process, &elsewhere, Some((&vec![node as i32; elsewhere.len()], Movable::Own)))?;
        let moved = after.iter().filter(|&&at| at == node as i32).count() as u64;
        sum.moved += moved;
        sum.left += elsewhere.len() as u64 - moved;
    }
    Ok(sum)
}

/// Moves present pages of a process, each to its node; returns how many are there.
pub fn move_pages(process: u32, pages: &[(u64, u32)]) -> io::Result<u64> {
    let mut arrived = 0;
    for chunk in pages.chunks(CHUNK) {
        let (addresses, nodes): (Vec<u64>, Vec<i32>) =
            chunk.iter().map(|(page, node)| (*page, *node as i32)).unzip();
        let after = pages_call(process, &addresses, Some((&nodes, Movable::Own)))?;
        arrived += after.iter().zip(&nodes).filter(|(at, node)| at == node).count() as u64;
    }
    Ok(arrived)
}

/// Where present pages of a process are.
pub fn states(process: u32, pages: &[u64]) -> io::Result<Vec<PageState>> {
    Ok(pages_call(process, pages, None)?.into_iter().map(PageState::of).collect())
}

/// Moves pages of a process in one call, each to the node beside it in `nodes`. Threads that use a page wait while it is
/// copied. With `all`, pages that other processes map are moved too, which needs CAP_SYS_NICE. Pages that the kernel gave up
/// are `Unreached`: some of these may have moved nevertheless, which [`states`] tells.
pub fn relocate(process: u32, pages: &[u64], nodes: &[u32], all: bool) -> io::Result<Vec<PageState>> {
    let movable = if all { Movable::All } else { Movable::Own };
    let nodes: Vec<i32> = pages.iter().zip(nodes).map(|(_, node)| *node as i32).collect();
    let pages = &pages[..nodes.len()];
    Ok(pages_call(process, pages, Some((&nodes, movable)))?.into_iter().map(PageState::of).collect())
}

/// Which pages may be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Movable {
    /// Pages that no other process maps.
    Own = 1 << 1,
    /// All pages; this needs CAP_SYS_NICE.
    All = 1 << 2,
}

/// The nodes of pages of this process; none for a page that is not present.
pub(crate) fn own_nodes(pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
    Ok(pages_call(0, pages, None)?.into_iter().map(|node| u32::try_from(node).ok()).collect())
}

/// The nodes of pages. If `nodes` is given, the pages are moved before. Negative numbers are errors of single pages. Process
/// 0 is this process.
pub(crate) fn pages_call(
    process: u32,
    pages: &[u64],
    nodes: Option<(&[i32], Movable)>,
) -> io::Result<Vec<i32>> {
    // The kernel does not write the status of pages that it did not reach.
    let mut status = vec![-libc::EAGAIN; pages.len()];
    // SAFETY: all three arrays have this length and outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process as i32,
            pages.len(),
            pages.as_ptr(),
            nodes.map_or(std::ptr::null(), |(nodes, _)| nodes.as_ptr()),
            status.as_mut_ptr(),
            nodes.map_or(0, |(_, movable)| movable as i32),
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
        // Those that other nodes have move; the kernel may leave one that somebody else holds.
        let has_others = std::path::Path::new("/sys/devices/system/node/node1").exists();
        assert!(moved == Moved::default() || has_others && moved.moved + moved.left <= 17, "{moved:?}");
        let again = move_range(std::process::id(), start, start + memory.len() as u64, 0).unwrap();
        assert!(again.moved <= moved.left && again.left <= moved.left, "{again:?} after {moved:?}");
        let page = start.next_multiple_of(crate::sched::page_size());
        assert_eq!(move_pages(std::process::id(), &[(page, 0)]).unwrap(), 1);
        let own = std::process::id();
        assert_eq!(relocate(own, &[page, 0], &[0, 0], false).unwrap()[1], PageState::Absent);
        assert_eq!(states(own, &[page, 0]).unwrap(), [PageState::Node(0), PageState::Absent]);
        assert_eq!(memory[1000], 1);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let missing = u32::MAX >> 2;
        let node = CpuSet::range(0, 0);
        assert_eq!(move_process(missing, &node, &node).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert_eq!(
            crate::sched::set_affinity_of(missing, &node).unwrap_err().raw_os_error(),
            Some(libc::ESRCH)
        );
        assert!(move_range(missing, 4096, 8192, 0).is_err());
    }
}
