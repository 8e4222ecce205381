//! Blocks of the allocator of this process: that of the C library, or of a library that is preloaded in its place.

use crate::{migrate, sched};
use std::io;
use std::ptr::NonNull;

/// A block that `malloc` gave, and that `free` gets when this is dropped, in any thread.
#[derive(Debug)]
pub struct HeapBlock {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the block has one owner, and allocators accept a block in any thread.
unsafe impl Send for HeapBlock {}

impl HeapBlock {
    /// Allocates a block of this many bytes, at least one.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1);
        // SAFETY: a plain integer.
        let start = unsafe { libc::malloc(bytes) };
        // The compiler may leave out a block that nobody looks at.
        match NonNull::new(std::hint::black_box(start).cast()) {
            Some(start) => Ok(Self { start, bytes }),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// How many bytes were asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes to a byte every `step` bytes, and to the last one.
    pub fn touch(&mut self, step: usize) {
        for at in (0..self.bytes).step_by(step.max(1)).chain([self.bytes - 1]) {
            // SAFETY: inside of the block, which nobody else uses.
            unsafe { self.start.add(at).write_volatile(1) };
        }
    }
}

impl Drop for HeapBlock {
    fn drop(&mut self) {
        // SAFETY: malloc gave it, and nobody else has it.
        unsafe { libc::free(self.start.as_ptr().cast()) };
    }
}

/// The nodes of the pages in which these blocks begin; `None` for a page that was never written.
pub fn nodes_of_blocks(blocks: &[&HeapBlock]) -> io::Result<Vec<Option<u32>>> {
    let page = sched::page_size();
    let pages: Vec<u64> =
        blocks.iter().map(|block| block.start.as_ptr().addr() as u64 / page * page).collect();
    migrate::own_nodes(&pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_pass_between_threads_and_have_nodes() {
        let mut blocks: Vec<HeapBlock> =
            [0, 1, 100, 1 << 20].map(|bytes| HeapBlock::new(bytes).unwrap()).into();
        assert_eq!(blocks.iter().map(HeapBlock::bytes).collect::<Vec<_>>(), [1, 1, 100, 1 << 20]);
        blocks.iter_mut().for_each(|block| block.touch(4096));
        if let Ok(nodes) = nodes_of_blocks(&blocks.iter().collect::<Vec<_>>()) {
            assert!(nodes.len() == 4 && nodes.iter().all(Option::is_some), "{nodes:?}");
        }
        std::thread::spawn(move || drop(blocks)).join().unwrap();
        assert!(HeapBlock::new(usize::MAX >> 1).is_err());
    }
}
