//! /proc/PID/numa_maps: the nodes of the pages of each mapping.
//!
//! The kernel walks the page tables to print it, and holds the mmap lock of the process meanwhile. It
//! releases the lock after each page of text, so that many mappings are read in small parts.

use super::nodes::TaskNodes;
use numakit_sys::proc::{TaskDir, digits};
use numakit_sys::{ReadError, RootFile, SysRoot};

/// The use of a mapping, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Stack of the main thread.
    Stack,
    /// Heap (brk).
    Heap,
    /// Without a file.
    Anonymous,
    /// A file or shared memory.
    File,
    /// Pages from the huge page pools.
    Huge,
}

/// Number of uses.
pub const USES: usize = 5;

/// Bytes on each node by use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryByUse(pub Vec<[u64; USES]>);

impl MemoryByUse {
    /// No memory on this number of nodes.
    pub fn none(nodes: usize) -> Self {
        Self(vec![[0; USES]; nodes])
    }

    /// Memory on a node, of all uses.
    pub fn on(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, total)
    }

    /// Memory on all nodes.
    pub fn total(&self) -> u64 {
        (0..self.0.len()).map(|place| self.on(place)).fold(0, u64::saturating_add)
    }

    /// Memory of one use on all nodes.
    pub fn used_for(&self, usage: Use) -> u64 {
        self.0.iter().fold(0, |sum, uses| sum.saturating_add(uses[usage as usize]))
    }

    /// The node with more than half of the memory that is not from files.
    pub fn home(&self) -> Option<usize> {
        let own = |uses: &[u64; USES]| total(uses) - uses[Use::File as usize];
        let all = self.0.iter().map(own).fold(0, u64::saturating_add);
        self.0.iter().position(|uses| own(uses) > all / 2)
    }

    /// Adds that of another process.
    pub fn add(&mut self, other: &Self) {
        for (uses, more) in self.0.iter_mut().zip(&other.0) {
            uses.iter_mut().zip(more).for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
        }
    }
}

fn total(uses: &[u64; USES]) -> u64 {
    uses.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// Parses a line: the use of the mapping, and for each node its number and bytes. Counts are in
/// the mapping's page size, which is at the end of the line; transparent huge pages are counted as
/// small pages.
pub fn line(text: &[u8], page_size: u64, mut on_node: impl FnMut(Use, u32, u64)) -> Option<Use> {
    let words = || text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let address = words().next()?;
    if !address.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut usage = Use::Anonymous;
    let mut page = page_size;
    for word in words().skip(1) {
        match word {
            b"heap" => usage = Use::Heap,
            b"stack" => usage = Use::Stack,
            b"huge" => usage = Use::Huge,
            // Kernels before 4.5 add the number of the thread.
            _ if word.starts_with(b"stack:") => usage = Use::Stack,
            _ if word.starts_with(b"file=") => usage = Use::File,
            _ => {
                if let Some((kib, [])) = word.strip_prefix(b"kernelpagesize_kB=").and_then(digits) {
                    page = kib.saturating_mul(1024);
                }
            }
        }
    }
    for word in words().skip(1) {
        let Some((node, rest)) = word.strip_prefix(b"N").and_then(digits) else { continue };
        if let (Ok(node), Some((pages, []))) = (u32::try_from(node), rest.strip_prefix(b"=").and_then(digits))
        {
            on_node(usage, node, pages.saturating_mul(page));
        }
    }
    Some(usage)
}

/// Bytes per read; the kernel returns at most a page.
pub const PART: usize = 4096;

/// Maximum length of a line.
const LONGEST_LINE: usize = 64 << 10;

/// A numa_maps file that is being read.
#[derive(Debug)]
pub struct NumaMapsReading {
    source: RootFile,
    offset: u64,
    rest: Vec<u8>,
    memory: MemoryByUse,
}

impl NumaMapsReading {
    /// Opens the file of a process.
    pub fn open(root: &SysRoot, pid: u32, nodes: &TaskNodes) -> Result<Self, ReadError> {
        let source = TaskDir::of(root, pid).source("numa_maps")?;
        Ok(Self { source, offset: 0, rest: Vec::new(), memory: MemoryByUse::none(nodes.count()) })
    }

    /// Reads the next part. False at the end of the file.
    pub fn advance(&mut self, nodes: &TaskNodes, page_size: u64) -> Result<bool, ReadError> {
        let mut part = [0; PART];
        let length = self.source.read_at(&mut part, self.offset)?;
        if length == 0 {
            return Ok(false);
        }
        self.offset += length as u64;
        for piece in part[..length].split_inclusive(|&b| b == b'\n') {
            if self.rest.len() < LONGEST_LINE {
                self.rest.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                let memory = &mut self.memory.0;
                line(&self.rest, page_size, |usage, node, bytes| {
                    if let Some(uses) = nodes.place(node).and_then(|at| memory.get_mut(at)) {
                        uses[usage as usize] = uses[usage as usize].saturating_add(bytes);
                    }
                });
                self.rest.clear();
            }
        }
        Ok(true)
    }

    /// The result.
    pub fn memory(self) -> MemoryByUse {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Option<(Use, Vec<(u32, u64)>)> {
        let mut nodes = Vec::new();
        line(text.as_bytes(), 4096, |_, node, bytes| nodes.push((node, bytes))).map(|usage| (usage, nodes))
    }

    #[test]
    fn lines_of_every_use_are_distinguished() {
        for (text, usage, nodes) in [
            (
                "7f0 default stack anon=3 dirty=3 N0=1 N3=2 kernelpagesize_kB=4",
                Use::Stack,
                vec![(0, 4096), (3, 8192)],
            ),
            ("7f0 default stack:77 anon=1 N1=1", Use::Stack, vec![(1, 4096)]),
            ("55d default heap anon=2 N0=2 kernelpagesize_kB=16", Use::Heap, vec![(0, 32768)]),
            ("7f0 prefer (many):0-1 anon=1 N1=1 kernelpagesize_kB=4", Use::Anonymous, vec![(1, 4096)]),
            (
                "7f0 bind=static:2 file=/a\\040N7=9 mapped=5 mapmax=2 active=0 N2=5 kernelpagesize_kB=4",
                Use::File,
                vec![(2, 20480)],
            ),
            (
                "2aa interleave:0-3 file=/anon_hugepage\\040(deleted) huge anon=4 N0=3 N1=1 kernelpagesize_kB=2048",
                Use::Huge,
                vec![(0, 3 << 21), (1, 1 << 21)],
            ),
            ("7f0 default file=/lib/x", Use::File, vec![]),
        ] {
            assert_eq!(parsed(text), Some((usage, nodes)), "{text}");
        }
        for text in ["", "address default N0=1", "\u{fffd} N0=1"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(parsed("7f0 default N0= N=1 N1=x N2=1x N99999999999=1").unwrap().1, []);
        assert_eq!(
            parsed("7f0 default N0=18446744073709551615 kernelpagesize_kB=4").unwrap().1,
            [(0, u64::MAX)]
        );
    }

    #[test]
    fn home_is_where_most_of_the_private_memory_is() {
        let mut memory = MemoryByUse::none(3);
        assert_eq!(memory.home(), None);
        memory.0[0][Use::File as usize] = 900;
        memory.0[1][Use::Heap as usize] = 50;
        memory.0[2][Use::Stack as usize] = 50;
        assert_eq!(memory.home(), None);
        memory.0[2][Use::Huge as usize] = 1;
        assert_eq!(memory.home(), Some(2));
        assert_eq!((memory.total(), memory.on(2), memory.used_for(Use::Heap)), (1001, 51, 50));
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(text in "[0-9a-fN=k_B heapst:\\-]{0,80}") {
            parsed(&text);
        }
    }
}
