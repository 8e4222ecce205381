//! The unwind tables of a program or library, read once for all processes that map it.

use crate::process::ProcessMapping;
use framehop::{ExplicitModuleSectionInfo, Module};
use numakit_sys::SysRoot;
use numakit_sys::file;
use numakit_sys::proc::TaskDir;
use object::{Object, ObjectSection, ObjectSegment, ReadCache};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Larger tables are not read: those of the largest programs have some 30 MiB.
const MAX_TABLE: u64 = 256 << 20;

/// A section, and where it is in the addresses of its file.
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

/// A part of a file, and where it is in the addresses of the file.
#[derive(Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl UnwindTables {
    /// Of the file of a mapping, as its process sees it; `None` if it is no ELF file, has no tables, or is another one by now.
    pub fn of_mapped(process: u32, mapping: &ProcessMapping) -> Option<Arc<Self>> {
        let root = SysRoot::host();
        let inside = TaskDir::of(&root, process).path("root");
        let path = Path::new(&inside).join(mapping.name.trim_start_matches('/'));
        let file = file::open_to_read(&path).ok()?;
        // A package manager may have replaced it.
        let is_same = file.metadata().is_ok_and(|data| data.ino() == mapping.file.1);
        if is_same { Self::read(file).map(Arc::new) } else { None }
    }

    fn read(file: File) -> Option<Self> {
        let file = ReadCache::new(file);
        let elf = object::File::parse(&file).ok()?;
        let range = |name: &str| {
            let section = elf.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let section = |name: &str| -> Option<Section> {
            let section = elf.section_by_name(name).filter(|section| section.size() <= MAX_TABLE)?;
            Some((range(name)?, section.uncompressed_data().ok()?.as_ref().into()))
        };
        let segment = |segment: object::Segment<'_, '_, _>| {
            let (offset, size) = segment.file_range();
            Segment { offset, size, address: segment.address() }
        };
        let (frames, debug) = (section(".eh_frame"), section(".debug_frame"));
        let has_tables = frames.is_some() || debug.is_some();
        has_tables.then(|| Self {
            segments: elf.segments().map(segment).collect(),
            text: range(".text"),
            got: range(".got"),
            index: section(".eh_frame_hdr"),
            frames,
            debug,
        })
    }

    /// The tables for code where it is mapped.
    pub fn module(&self, mapping: &ProcessMapping) -> Option<Module<Arc<[u8]>>> {
        let segment =
            self.segments.iter().find(|s| (s.offset..s.offset + s.size).contains(&mapping.offset))?;
        let address = segment.address.checked_add(mapping.offset - segment.offset)?;
        let base = mapping.range.start.checked_sub(address)?;
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
        Some(Module::new(mapping.name.to_string(), mapping.range.clone(), base, sections))
    }
}
