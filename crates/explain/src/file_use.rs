//! Which pages of files threads use, by the nodes of the threads: samples of mapped files, in bounded memory.

use crate::collector::ObservedProcesses;
use crate::observation::{LINE, PAGE};
use crate::traffic::LineAhead;
use numakit_sampling::process::ProcessMapping;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of pages whose samples are kept, of all files together.
const MAX_PAGES: usize = 4 << 20;

/// A file whose use is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedFile {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
    /// Its absolute path: some file systems report another device for mappings.
    pub path: String,
}

/// A place in a file as threads of a node use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileUse {
    /// The file: its place among the wanted ones.
    pub file: usize,
    /// The start of the page of the process, in bytes from the start of the file.
    pub offset: u64,
    /// The node of the CPU.
    pub node: u32,
    /// The node of the page, if that is known.
    pub home: Option<u32>,
}

/// Samples of the wanted files.
#[derive(Debug, Default)]
pub struct FileUses {
    wanted: Vec<WantedFile>,
    /// Numbers of samples.
    pub samples: BTreeMap<FileUse, u64>,
    /// Samples of memory that belongs to no wanted file, or of no memory.
    pub others: u64,
    /// Samples of the wanted files that were dropped, as `MAX_PAGES` pages had samples already.
    pub refused: u64,
}

impl FileUses {
    /// Counts samples of these files.
    pub fn of(wanted: Vec<WantedFile>) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Counts each page of a sample: of a thread on a node, with the nodes of pages as far as they are known.
    pub(crate) fn add(
        &mut self,
        process: u32,
        node: Option<u32>,
        lines: &[LineAhead],
        known: &HashMap<u64, u32>,
        processes: &mut dyn ObservedProcesses,
    ) {
        let mut pages: Vec<u64> = lines.iter().map(|ahead| ahead.line * LINE / PAGE).collect();
        pages.dedup();
        for page in pages {
            let mapping = processes.mapping(process, page * PAGE);
            self.add_page(page * PAGE, mapping, node, known.get(&page).copied());
        }
    }

    fn add_page(
        &mut self,
        page: u64,
        mapping: Option<&ProcessMapping>,
        node: Option<u32>,
        home: Option<u32>,
    ) {
        let file = mapping.and_then(|mapping| self.wanted.iter().position(|file| file.is_mapped(mapping)));
        let (Some(file), Some(mapping), Some(node)) = (file, mapping, node) else {
            self.others += 1;
            return;
        };
        let offset = page.saturating_sub(mapping.range.start) + mapping.offset;
        let used = FileUse { file, offset, node, home };
        if self.samples.len() < MAX_PAGES || self.samples.contains_key(&used) {
            *self.samples.entry(used).or_default() += 1;
        } else {
            self.refused += 1;
        }
    }
}

impl WantedFile {
    fn is_mapped(&self, mapping: &ProcessMapping) -> bool {
        let (device, inode) = mapping.file;
        inode == self.inode && (device == self.device || *mapping.name == *self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sampling::process::parse_mappings;

    const MAPS: &str = "7f0000000000-7f0000400000 r--s 00200000 fe:01 12 /models/a
7f0000600000-7f0000700000 r--s 00000000 00:31 13 /models/b
7f0000700000-7f0000800000 rw-p 00000000 00:00 0
";

    #[test]
    fn samples_count_by_page_of_the_file_and_node() {
        let wanted = |inode, path: &str| WantedFile { device: (0xfe, 1), inode, path: path.to_owned() };
        let mut uses = FileUses::of(vec![wanted(12, "/models/a"), wanted(13, "/models/b")]);
        let mappings = parse_mappings(MAPS);
        let mut add = |page: u64, node, home| {
            let mapping = mappings.iter().find(|mapping| mapping.range.contains(&page));
            uses.add_page(page, mapping, node, home);
        };
        add(0x7f00_0000_1000, Some(1), Some(0));
        add(0x7f00_0000_1000, Some(1), Some(0));
        add(0x7f00_0060_0000, Some(2), None);
        add(0x7f00_0070_0000, Some(2), None);
        add(0x7f00_0000_1000, None, None);
        let first = FileUse { file: 0, offset: 0x20_1000, node: 1, home: Some(0) };
        let second = FileUse { file: 1, offset: 0, node: 2, home: None };
        assert_eq!(uses.samples, BTreeMap::from([(first, 2), (second, 1)]));
        assert_eq!((uses.others, uses.refused), (2, 0));
    }
}
