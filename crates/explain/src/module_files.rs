//! What identifies programs and libraries in other processes: their build IDs, and their addresses in the terms of the file.

use crate::identity::FileId;
use crate::observation::PAGE;
use numakit_cure::ProgramFile;
use numakit_model::numbers::hexadecimal;
use numakit_sys::SysRoot;
use numakit_sys::file::open_to_read;
use numakit_sys::proc::TaskDir;
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache};
use std::collections::HashMap;
use std::path::Path;

/// A program or library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFile {
    /// Its name and build ID.
    pub file: ProgramFile,
    /// The address in the terms of the file at which its first page is loaded.
    first: u64,
    /// Whether it has loops whose iterations gcc's OpenMP hands out.
    has_open_loops: bool,
}

impl ModuleFile {
    /// Reads what identifies a file; `None` if it is no ELF file that can be read.
    pub fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(open_to_read(path).ok()?);
        let elf = object::File::parse(&cache).ok()?;
        let first = elf.segments().map(|segment| segment.address()).min()? / PAGE * PAGE;
        let id = elf.build_id().ok().flatten().unwrap_or_default();
        let file = path.file_name()?.to_string_lossy().into_owned();
        let has_open_loops = has_open_loops(&elf);
        Some(Self { file: ProgramFile { file, build_id: hexadecimal(id) }, first, has_open_loops })
    }

    /// The name of a process's program, and its file if that can be read. The link to it leads to the file in whatever root the
    /// process has, but not to its name.
    pub fn of_process(root: &SysRoot, process: u32) -> (String, Option<Self>) {
        let exe = TaskDir::of(root, process).path("exe");
        let path = root.link(&exe).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default().trim_end_matches(" (deleted)").to_owned();
        let named = |read: Self| Self { file: ProgramFile { file: name.clone(), ..read.file }, ..read };
        let read = Self::read(Path::new(&exe)).map(named);
        (name, read)
    }

    /// The address in the terms of the file, of what is at a distance from where the file was loaded.
    pub fn address(&self, distance: u64) -> u64 {
        self.first.saturating_add(distance)
    }
}

/// Whether a file calls what hands out iterations in any order: loops with schedule(dynamic), schedule(guided) or schedule(runtime), compiled
/// by GCC 9 or later, or 4.8 or before.
fn has_open_loops<'a>(elf: &impl Object<'a>) -> bool {
    elf.dynamic_symbols().filter(ObjectSymbol::is_undefined).any(|symbol| {
        let name = symbol.name().unwrap_or_default();
        let is_old = name
            .strip_prefix("GOMP_parallel_loop_")
            .is_some_and(|loops| ["dynamic_start", "guided_start", "runtime_start"].contains(&loops));
        is_old || name.starts_with("GOMP_") && name.contains("nonmonotonic_")
    })
}

/// The files from which processes have mapped code. Each is read once, when it is mapped: what a container has is out of reach
/// after its end.
#[derive(Debug, Default)]
pub struct ModuleFiles {
    read: HashMap<FileId, Option<ModuleFile>>,
    is_closed: bool,
}

impl ModuleFiles {
    /// Reads no files, for callers that identify nothing.
    pub fn closed() -> Self {
        Self { is_closed: true, ..Self::default() }
    }

    /// Whether it reads no files.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Notes a file that is reached by this path.
    pub fn note(&mut self, id: FileId, path: &Path) {
        if !self.is_closed && !self.read.contains_key(&id) {
            self.read.insert(id, ModuleFile::read(path));
        }
    }

    /// Whether one of the files has loops whose iterations gcc's OpenMP hands out.
    pub fn have_open_loops(&self) -> bool {
        self.read.values().flatten().any(|file| file.has_open_loops)
    }

    /// A file that was noted.
    pub fn get(&self, id: FileId) -> Option<&ModuleFile> {
        self.read.get(&id)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_a_first_page_and_other_files_have_none() {
        let path = std::env::current_exe().unwrap();
        let program = ModuleFile::read(&path).unwrap();
        assert_eq!(Some(program.file.file.as_str()), path.file_name().and_then(|name| name.to_str()));
        assert!(program.file.build_id.chars().all(|digit| digit.is_ascii_hexdigit()), "{program:?}");
        assert_eq!(program.address(0x40) - program.address(0), 0x40);
        assert_eq!(ModuleFile::read(Path::new("/etc/passwd")), None);
        let (mut files, mut closed) = (ModuleFiles::default(), ModuleFiles::closed());
        files.note(((0, 1), 2), &path);
        closed.note(((0, 1), 2), &path);
        assert_eq!((files.get(((0, 1), 2)), closed.get(((0, 1), 2))), (Some(&program), None));
    }
}
