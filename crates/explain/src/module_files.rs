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
    /// Its loops whose iterations gcc's OpenMP hands out.
    loops: LoopKinds,
}

impl ModuleFile {
    /// Reads what identifies a file; `None` if it is no ELF file that can be read.
    pub fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(open_to_read(path).ok()?);
        let elf = object::File::parse(&cache).ok()?;
        let first = elf.segments().map(|segment| segment.address()).min()? / PAGE * PAGE;
        let id = elf.build_id().ok().flatten().unwrap_or_default();
        let file = path.file_name()?.to_string_lossy().into_owned();
        let loops = LoopKinds::of(&elf);
        Some(Self { file: ProgramFile { file, build_id: hexadecimal(id) }, first, loops })
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

/// Loops whose iterations gcc's OpenMP hands out in any order, by the schedule in the source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopKinds {
    /// schedule(dynamic).
    pub dynamic: bool,
    /// schedule(guided).
    pub guided: bool,
    /// schedule(runtime).
    pub runtime: bool,
}

impl LoopKinds {
    /// Those that a file calls, compiled by GCC 9 or later, or 4.8 or before.
    fn of<'a>(elf: &impl Object<'a>) -> Self {
        let undefined = elf.dynamic_symbols().filter(ObjectSymbol::is_undefined);
        let names = undefined.filter_map(|symbol| symbol.name().ok());
        names.fold(Self::default(), |all, name| all.or(Self::of_name(name)))
    }

    /// That which a function begins.
    fn of_name(name: &str) -> Self {
        let old = name.strip_prefix("GOMP_parallel_loop_").and_then(|name| name.strip_suffix("_start"));
        let schedule = match name.split_once("nonmonotonic_") {
            Some((start, schedule)) if start.starts_with("GOMP_") => schedule,
            _ => old.unwrap_or_default(),
        };
        let is = |wanted| schedule.trim_end_matches("_start") == wanted;
        Self { dynamic: is("dynamic"), guided: is("guided"), runtime: is("runtime") }
    }

    fn or(self, other: Self) -> Self {
        Self {
            dynamic: self.dynamic || other.dynamic,
            guided: self.guided || other.guided,
            runtime: self.runtime || other.runtime,
        }
    }
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

    /// The loops of all files whose iterations gcc's OpenMP hands out.
    pub fn loops(&self) -> LoopKinds {
        self.read.values().flatten().fold(LoopKinds::default(), |all, file| all.or(file.loops))
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
    fn loops_are_known_by_the_functions_that_begin_them() {
        let (dynamic, guided, runtime) = (
            LoopKinds { dynamic: true, ..LoopKinds::default() },
            LoopKinds { guided: true, ..LoopKinds::default() },
            LoopKinds { runtime: true, ..LoopKinds::default() },
        );
        for (name, kinds) in [
            ("GOMP_parallel_loop_nonmonotonic_dynamic", dynamic),
            ("GOMP_loop_ull_nonmonotonic_guided_start", guided),
            ("GOMP_loop_maybe_nonmonotonic_runtime_start", runtime),
            ("GOMP_parallel_loop_maybe_nonmonotonic_runtime", runtime),
            ("GOMP_parallel_loop_guided_start", guided),
            // GCC 4.9 to 8, static loops, and others.
            ("GOMP_parallel_loop_dynamic", LoopKinds::default()),
            ("GOMP_loop_static_start", LoopKinds::default()),
            ("GOMP_loop_nonmonotonic_dynamic_next", LoopKinds::default()),
            ("my_nonmonotonic_guided", LoopKinds::default()),
        ] {
            assert_eq!(LoopKinds::of_name(name), kinds, "{name}");
        }
        assert_eq!(dynamic.or(guided), LoopKinds { dynamic: true, guided: true, runtime: false });
    }

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
