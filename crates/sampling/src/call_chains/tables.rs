//! The unwind tables of a program or library, read once for all processes that map it.

use crate::process::ProcessMapping;
use framehop::{ExplicitModuleSectionInfo, Module};
use numakit_sys::SysRoot;
use numakit_sys::file;
use numakit_sys::proc::TaskDir;
use object::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef, SegmentFlags, elf};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Segments are mapped in pages of this size, or of larger ones.
const PAGE: u64 = 4096;
/// Larger tables are not read: those of the largest programs have some 30 MiB.
const MAX_TABLE: u64 = 256 << 20;

/// The content of a section, and its addresses as the file states them.
type Section = (Range<u64>, Arc<[u8]>);

/// The tables.
#[derive(Debug)]
pub struct UnwindTables {
    segments: Vec<Segment>,
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
    frames: Option<Section>,
    index: Option<Section>,
    debug: Option<Section>,
}

/// A part of a file that has code, and where it is in the addresses of the file.
#[derive(Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl Segment {
    /// `None` if the segment has no code: pages at the border of two segments are mapped for both.
    fn of<'a>(segment: &impl ObjectSegment<'a>) -> Option<Self> {
        let has_code = match segment.flags() {
            SegmentFlags::Elf { p_flags, .. } => p_flags.contains(elf::PF_X),
            _ => false,
        };
        let (offset, size) = segment.file_range();
        has_code.then(|| Self { offset, size, address: segment.address() })
    }

    /// Where the segment's pages begin in the file: mappings begin there.
    fn pages(&self) -> u64 {
        self.offset & !(PAGE - 1)
    }
}

impl UnwindTables {
    /// The tables of a mapped file, as its process sees the file; `None` if it is no ELF file, has no tables, or was
    /// replaced since it was mapped.
    pub fn of_mapped(process: u32, mapping: &ProcessMapping) -> Option<Arc<Self>> {
        let root = SysRoot::host();
        let inside = TaskDir::of(&root, process).path("root");
        let path = Path::new(&inside).join(mapping.name.trim_start_matches('/'));
        let file = file::open_to_read(&path).ok()?;
        // A package manager may have replaced the file.
        let is_same = file.metadata().is_ok_and(|data| data.ino() == mapping.file.1);
        if is_same { Self::of_elf(&ReadCache::new(file)).map(Arc::new) } else { None }
    }

    /// The tables in the content of a file.
    pub fn of_elf<'a>(data: impl ReadRef<'a>) -> Option<Self> {
        let elf = object::File::parse(data).ok()?;
        let range = |name: &str| {
            let section = elf.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let section = |name: &str| -> Option<Section> {
            let section = elf.section_by_name(name).filter(|section| section.size() <= MAX_TABLE)?;
            Some((range(name)?, section.uncompressed_data().ok()?.as_ref().into()))
        };
        let (frames, debug) = (section(".eh_frame"), section(".debug_frame"));
        let has_tables = frames.is_some() || debug.is_some();
        has_tables.then(|| Self {
            segments: elf.segments().filter_map(|segment| Segment::of(&segment)).collect(),
            text: range(".text"),
            got: range(".got"),
            index: section(".eh_frame_hdr")
                .filter(|index| frames.as_ref().is_some_and(|of| is_sound(index, of))),
            frames,
            debug,
        })
    }

    /// The tables for code where it is mapped.
    pub fn module(&self, mapping: &ProcessMapping) -> Option<Module<Arc<[u8]>>> {
        let base = mapping.range.start.checked_sub(self.address(mapping)?)?;
        Some(self.module_at(&mapping.name, mapping.range.clone(), base))
    }

    /// The addresses of the function that has an address of mapped code, as the index of the tables tells them: it has where
    /// each function begins. `None` without an index.
    pub fn function(&self, mapping: &ProcessMapping, address: u64) -> Option<Range<u64>> {
        let base = mapping.range.start.checked_sub(self.address(mapping)?)?;
        let (at, index) = self.index.as_ref()?;
        let (entries, _) = index.get(HEAD_BYTES..)?.as_chunks::<8>();
        let count = usize::try_from(number(&index[COUNT_AT..HEAD_BYTES])).ok()?;
        let entries = entries.get(..count)?;
        let start = |entry: &[u8; 8]| at.start.wrapping_add_signed(number(&entry[..4]).into());
        let after = entries.partition_point(|entry| start(entry) <= address.wrapping_sub(base));
        let first = start(entries.get(after.checked_sub(1)?)?).checked_add(base)?;
        let next = entries.get(after).and_then(|entry| start(entry).checked_add(base));
        let end = next.unwrap_or(mapping.range.end).min(mapping.range.end);
        (first..end).contains(&address).then_some(first..end)
    }

    /// Where mapped code is by the addresses of the file.
    fn address(&self, mapping: &ProcessMapping) -> Option<u64> {
        let has = |s: &&Segment| (s.pages()..s.offset.saturating_add(s.size)).contains(&mapping.offset);
        let segment = self.segments.iter().find(has)?;
        Some(segment.address.wrapping_sub(segment.offset).wrapping_add(mapping.offset))
    }

    /// The tables for each segment, where the file says.
    pub fn modules(&self) -> Vec<Module<Arc<[u8]>>> {
        let range = |s: &Segment| s.address..s.address.saturating_add(s.size);
        self.segments.iter().map(|segment| self.module_at("", range(segment), 0)).collect()
    }

    fn module_at(&self, name: &str, range: Range<u64>, base: u64) -> Module<Arc<[u8]>> {
        let split = |section: &Option<Section>| section.clone().unzip();
        let ((eh_frame_svma, eh_frame), (eh_frame_hdr_svma, eh_frame_hdr)) =
            (split(&self.frames), split(&self.index));
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: self.text.clone(),
            got_svma: self.got.clone(),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            debug_frame: self.debug.clone().map(|(_, data)| data),
            ..ExplicitModuleSectionInfo::default()
        };
        Module::new(name.to_owned(), range, base, sections)
    }
}

/// The head of an index, and its last part: the number of its entries.
const HEAD_BYTES: usize = 12;
const COUNT_AT: usize = 8;

fn number(bytes: &[u8]) -> i32 {
    bytes.try_into().map(i32::from_le_bytes).unwrap_or(0)
}

/// Whether an index (.eh_frame_hdr) is as linkers write it, and leads into these tables only: the unwinder computes with its
/// numbers without checks. Without an index, the unwinder makes one.
fn is_sound((at, index): &Section, (frames, _): &Section) -> bool {
    /// Version 1; relative addresses of 4 bytes, to the place and to the index; a count of 4 bytes.
    const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    let address = |base: u64, bytes: &[u8]| base.checked_add_signed(number(bytes).into());
    let Some((head, entries)) = index.split_at_checked(HEAD_BYTES) else { return false };
    let count = usize::try_from(number(&head[COUNT_AT..])).unwrap_or(0);
    head[..4] == HEAD
        && address(at.start.wrapping_add(4), &head[4..8]) == Some(frames.start)
        && (1..=entries.len() / 8).contains(&count)
        && entries.chunks_exact(8).take(count).all(|entry| {
            address(at.start, &entry[..4]).is_some()
                && address(at.start, &entry[4..]).is_some_and(|frame| frames.contains(&frame))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_begins_where_the_index_says() {
        #[inline(never)]
        fn a_function(number: u64) -> String {
            // A function that may unwind has an entry.
            format!("{number}")
        }
        let start = a_function as *const () as u64;
        assert_eq!(a_function(std::hint::black_box(1)), "1");
        let process = crate::process::ObservedProcess::open(std::process::id()).unwrap();
        let mapping = process.mapping(start).unwrap();
        let tables = UnwindTables::of_mapped(process.id(), mapping).unwrap();
        for address in [start, start + 1] {
            let found = tables.function(mapping, address).unwrap();
            assert!(found.start == start && (1..4096).contains(&(found.end - start)), "{found:x?} {start:x}");
        }
        assert_eq!(tables.function(mapping, mapping.range.end), None);
    }

    #[test]
    fn the_index_of_a_program_is_sound_and_a_damaged_one_is_not_used() {
        let elf = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let tables = UnwindTables::of_elf(elf.as_slice()).unwrap();
        let (index, frames) = (tables.index.unwrap(), tables.frames.unwrap());
        assert!(is_sound(&index, &frames));
        let damaged = |at: usize, bytes: &[u8]| {
            let mut copy = index.1.to_vec();
            copy[at..at + bytes.len()].copy_from_slice(bytes);
            (index.0.clone(), Arc::from(copy))
        };
        // Another encoding, other tables, more entries than there are, an entry that leads before the tables.
        for (at, bytes) in
            [(3, &[0x1b][..]), (4, &[0; 4]), (8, &[0xff, 0xff, 0xff, 0x7f]), (16, &[0, 0, 0, 0x80])]
        {
            assert!(!is_sound(&damaged(at, bytes), &frames), "{at}");
        }
        assert!(!is_sound(&(index.0.clone(), Arc::from(&index.1[..8])), &frames));
    }
}
