//! The variables of programs and libraries, by the symbols of their ELF files.

use crate::debug_file;
use crate::observation::PAGE;
use crate::symbols::demangled;
use numakit_sys::file::open_to_read;
use object::elf::PT_TLS;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, ReadCache, SymbolIndex, SymbolKind};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A variable. Its name is read when it is asked for: a program has thousands, of which few are used much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfVariable {
    /// Its addresses in the file's own terms; of a thread-local one, its place in the file's block.
    pub addresses: Range<u64>,
    symbol: SymbolIndex,
    is_dynamic: bool,
}

/// The variables of one file.
#[derive(Debug, Default)]
pub struct ElfVariables {
    path: PathBuf,
    /// The file that has the table of symbols: the file itself, or that of its debug information.
    symbols: PathBuf,
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
        let cache = ReadCache::new(open_to_read(path).ok()?);
        let elf = object::File::parse(&cache).ok()?;
        let start = elf.segments().map(|segment| segment.address()).min()?;
        let end = elf.segments().map(|segment| segment.address().saturating_add(segment.size())).max()?;
        let loaded = start / PAGE * PAGE..end;
        let (path, symbols) = (path.to_owned(), path.to_owned());
        let mut all = Self { path, symbols, loaded, ..Self::default() };
        let has_table = elf.symbols().next().is_some();
        all.add(elf.symbols(), false);
        if !has_table && let Some(debug) = debug_file::of(&all.path) {
            let cache = ReadCache::new(open_to_read(&debug).ok()?);
            let elf = object::File::parse(&cache).ok()?;
            all.add(elf.symbols(), false);
            all.symbols = debug;
        }
        all.add(elf.dynamic_symbols(), true);
        for list in [&mut all.data, &mut all.thread_local] {
            list.sort_by_key(|variable| variable.addresses.start);
            list.dedup_by_key(|variable| variable.addresses.start);
        }
        if let object::File::Elf64(elf) = &elf {
            all.block = thread_local_block(elf);
        }
        Some(all)
    }

    fn add<'a>(&mut self, symbols: impl Iterator<Item = impl ObjectSymbol<'a>>, is_dynamic: bool) {
        for symbol in symbols.filter(|symbol| symbol.size() > 0 && !symbol.is_undefined()) {
            let list = match symbol.kind() {
                SymbolKind::Tls => &mut self.thread_local,
                SymbolKind::Data => &mut self.data,
                _ => continue,
            };
            let addresses = symbol.address()..symbol.address().saturating_add(symbol.size());
            list.push(ElfVariable { addresses, symbol: symbol.index(), is_dynamic });
        }
    }

    /// The name of one of the file's variables; `None` if the file was replaced since it was read.
    pub fn name(&self, variable: &ElfVariable) -> Option<String> {
        let path = if variable.is_dynamic { &self.path } else { &self.symbols };
        let cache = ReadCache::new(open_to_read(path).ok()?);
        let elf = object::File::parse(&cache).ok()?;
        let symbol = match variable.is_dynamic {
            true => elf.dynamic_symbol_table()?.symbol_by_index(variable.symbol),
            false => elf.symbol_by_index(variable.symbol),
        };
        let symbol = symbol.ok().filter(|symbol| symbol.address() == variable.addresses.start)?;
        Some(demangled(symbol.name().ok()?))
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
fn thread_local_block<'a, E, R>(elf: &object::read::elf::ElfFile<'a, E, R>) -> u64
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
        let variable =
            |addresses, symbol| ElfVariable { addresses, symbol: SymbolIndex(symbol), is_dynamic: false };
        let thread_local = vec![variable(0..8, 1), variable(8..64, 2)];
        let variables = ElfVariables { thread_local, block: 64, ..ElfVariables::default() };
        let symbol = |distance| variables.below_base(distance).map(|variable| variable.symbol.0);
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
