//! The variables of programs and libraries, by the symbols of their ELF files.

use crate::debug_file;
use crate::observation::PAGE;
use crate::symbols::demangled;
use numakit_sys::file::open_to_read;
use object::elf::{PT_TLS, SHN_UNDEF, STT_COMMON, STT_OBJECT, STT_TLS};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Object, ObjectSegment, ReadCache};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A longer name is cut.
const MAX_NAME: usize = 4096;

/// A variable. Its name is read when it is asked for: a program has thousands, of which few are used much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfVariable {
    /// Its addresses in the file's own terms; of a thread-local one, its place in the file's block.
    pub addresses: Range<u64>,
    /// Where in the file its name begins.
    name: u64,
    is_dynamic: bool,
}

/// A file with names, as it was when its symbols were read.
#[derive(Debug, Default, PartialEq, Eq)]
struct NameFile {
    path: PathBuf,
    /// Device, inode, length and time of the last change.
    state: [u64; 4],
}

impl NameFile {
    fn open(path: &Path) -> io::Result<(Self, File)> {
        let file = open_to_read(path)?;
        let data = file.metadata()?;
        let state = [data.dev(), data.ino(), data.len(), data.mtime_nsec().cast_unsigned()];
        Ok((Self { path: path.to_owned(), state }, file))
    }

    /// The text at an offset, up to its zero; `None` if the file was replaced.
    fn text(&self, offset: u64) -> Option<String> {
        let (now, file) = Self::open(&self.path).ok()?;
        let mut bytes = vec![0; MAX_NAME];
        let count = file.read_at(&mut bytes, offset).ok().filter(|_| now == *self)?;
        let name = bytes[..count].split(|byte| *byte == 0).next()?;
        String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty())
    }
}

/// The variables of one file.
#[derive(Debug, Default)]
pub struct ElfVariables {
    file: NameFile,
    /// The file that has the table of symbols: the file itself, or that of its debug information.
    symbols: Option<NameFile>,
    /// The addresses of all that is loaded, from the start of the first page on.
    loaded: Range<u64>,
    /// Variables by address.
    data: Vec<ElfVariable>,
    /// Thread-local variables by their place in the file's block.
    thread_local: Vec<ElfVariable>,
    /// Bytes of the block of thread-local storage, as far as it is from the thread's base.
    block: u64,
}

impl ElfVariables {
    fn load(path: &Path) -> Option<Self> {
        let (file, opened) = NameFile::open(path).ok()?;
        let cache = ReadCache::new(opened);
        let elf = object::File::parse(&cache).ok()?;
        let start = elf.segments().map(|segment| segment.address()).min()?;
        let end = elf.segments().map(|segment| segment.address().saturating_add(segment.size())).max()?;
        let mut all = Self { file, loaded: start / PAGE * PAGE..end, ..Self::default() };
        all.add(&elf, false);
        if elf.symbols().next().is_none()
            && let Some(debug) = debug_file::of(path)
        {
            let (file, opened) = NameFile::open(&debug).ok()?;
            let cache = ReadCache::new(opened);
            all.add(&object::File::parse(&cache).ok()?, false);
            all.symbols = Some(file);
        }
        all.add(&elf, true);
        for list in [&mut all.data, &mut all.thread_local] {
            list.sort_by_key(|variable| variable.addresses.start);
            list.dedup_by_key(|variable| variable.addresses.start);
        }
        if let object::File::Elf64(elf) = &elf {
            all.block = thread_local_block(elf);
        }
        Some(all)
    }

    fn add<'a, R: object::ReadRef<'a>>(&mut self, elf: &object::File<'a, R>, is_dynamic: bool) {
        match elf {
            object::File::Elf64(elf) => self.add_symbols(elf, is_dynamic),
            object::File::Elf32(elf) => self.add_symbols(elf, is_dynamic),
            _ => {}
        }
    }

    fn add_symbols<'a, E, R>(&mut self, elf: &ElfFile<'a, E, R>, is_dynamic: bool)
    where
        E: FileHeader,
        R: object::ReadRef<'a>,
    {
        let endian = elf.endian();
        let table = if is_dynamic { elf.elf_dynamic_symbol_table() } else { elf.elf_symbol_table() };
        let Ok(strings) = elf.elf_section_table().section(table.string_section()) else { return };
        let strings: u64 = strings.sh_offset(endian).into();
        for symbol in table.symbols() {
            let (start, size): (u64, u64) = (symbol.st_value(endian).into(), symbol.st_size(endian).into());
            let list = match symbol.st_type() {
                STT_TLS => &mut self.thread_local,
                STT_OBJECT | STT_COMMON => &mut self.data,
                _ => continue,
            };
            if size > 0 && symbol.st_shndx(endian) != SHN_UNDEF {
                let name = strings.saturating_add(symbol.st_name(endian).into());
                list.push(ElfVariable { addresses: start..start.saturating_add(size), name, is_dynamic });
            }
        }
    }

    /// The name of one of the file's variables; `None` if the file was replaced since it was read.
    pub fn name(&self, variable: &ElfVariable) -> Option<String> {
        let file = self.symbols.as_ref().filter(|_| !variable.is_dynamic).unwrap_or(&self.file);
        Some(demangled(&file.text(variable.name)?))
    }

    /// The address in the file's own terms, of the byte at a distance from where the file was loaded; `None` beyond its end.
    pub fn address(&self, distance: u64) -> Option<u64> {
        Some(self.loaded.start.saturating_add(distance)).filter(|address| *address < self.loaded.end)
    }

    /// The variable at an address.
    pub fn find(&self, address: u64) -> Option<&ElfVariable> {
        find(&self.data, address)
    }

    /// The thread-local variable of the program at this distance below a thread's base, where its block ends (x86-64).
    pub fn below_base(&self, distance: u64) -> Option<&ElfVariable> {
        find(&self.thread_local, self.block.checked_sub(distance)?)
    }

    /// How far below a thread's base such a variable begins.
    pub fn distance(&self, variable: &ElfVariable) -> u64 {
        self.block.saturating_sub(variable.addresses.start)
    }
}

fn find(variables: &[ElfVariable], address: u64) -> Option<&ElfVariable> {
    let after = variables.partition_point(|variable| variable.addresses.start <= address);
    variables.get(after.checked_sub(1)?).filter(|variable| variable.addresses.contains(&address))
}

/// The size of the file's block of thread-local storage, rounded up to its alignment, as it lies before the thread's base.
fn thread_local_block<'a, E, R>(elf: &ElfFile<'a, E, R>) -> u64
where
    E: FileHeader,
    R: object::ReadRef<'a>,
{
    let endian = elf.endian();
    let block = elf.elf_program_headers().iter().find(|header| header.p_type(endian) == PT_TLS);
    block.map_or(0, |header| {
        let (size, align): (u64, u64) = (header.p_memsz(endian).into(), header.p_align(endian).into());
        size.checked_next_multiple_of(align.max(1)).unwrap_or(0)
    })
}

/// The variables of all files that were asked about. Each file is read once.
#[derive(Debug, Default)]
pub struct VariableFiles {
    read: HashMap<PathBuf, Option<Arc<ElfVariables>>>,
    is_closed: bool,
}

impl VariableFiles {
    /// Reads no files, for callers that show no names of variables.
    pub fn closed() -> Self {
        Self { is_closed: true, ..Self::default() }
    }

    /// The variables of a file; `None` if it is no ELF file that can be read.
    pub fn of(&mut self, path: &Path) -> Option<Arc<ElfVariables>> {
        if self.is_closed {
            return None;
        }
        let read = || ElfVariables::load(path).map(Arc::new);
        self.read.entry(path.to_owned()).or_insert_with(read).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[used]
    static A_VARIABLE_OF_THIS_TEST: [u64; 5] = [1, 2, 3, 4, 5];

    #[test]
    fn variables_of_this_program_are_found_from_start_to_end() {
        let program = std::env::current_exe().unwrap();
        let variables = VariableFiles::default().of(&program).unwrap();
        let name = "A_VARIABLE_OF_THIS_TEST";
        let is_it = |variable: &&ElfVariable| {
            variable.addresses.end - variable.addresses.start == 40
                && variables.name(variable).is_some_and(|found| found.contains(name))
        };
        let variable = variables.data.iter().find(is_it).unwrap();
        let Range { start, end } = variable.addresses;
        assert_eq!(variables.find(start + 39), Some(variable));
        assert_ne!(variables.find(end), Some(variable));
        let Range { start: first, end: last } = variables.loaded;
        assert!(first <= start && end <= last);
        assert_eq!((variables.address(start - first), variables.address(last - first)), (Some(start), None));
    }

    #[test]
    fn the_last_byte_of_the_block_is_next_to_the_base() {
        let variable = |addresses, name| ElfVariable { addresses, name, is_dynamic: false };
        let thread_local = vec![variable(0..8, 1), variable(8..64, 2)];
        let variables = ElfVariables { thread_local, block: 64, ..ElfVariables::default() };
        let symbol = |distance| variables.below_base(distance).map(|variable| variable.name);
        assert_eq!([1, 56, 57, 64].map(symbol), [Some(2), Some(2), Some(1), Some(1)]);
        assert_eq!([0, 65].map(symbol), [None, None]);
        assert_eq!(variables.distance(variables.below_base(3).unwrap()), 56);
    }

    #[test]
    fn other_files_have_no_variables() {
        let mut files = VariableFiles::default();
        assert!(
            files.of(Path::new("/no/such/file")).is_none() && files.of(Path::new("/etc/passwd")).is_none()
        );
        assert!(VariableFiles::closed().of(&std::env::current_exe().unwrap()).is_none());
    }
}
