//! The library in a process: its mapping, its file, and where the file has a symbol.

use numakit_sys::ReadError;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::maps::MapsEntry;
use object::{Object, ObjectSegment, ObjectSymbol};

/// The name of the file.
pub const LIBRARY: &str = "libnumalloc.so";

/// What the kernel adds to the name of a mapped file that was removed.
const REMOVED: &str = " (deleted)";

/// Segments begin at an address that is a multiple of this.
const PAGE: u64 = 4096;

/// The mapping of a line of `maps`, if it begins with the start of the library.
pub fn mapping(line: &str) -> Option<MapsEntry<'_>> {
    let mapping = MapsEntry::parse(line).filter(|mapping| mapping.offset == 0)?;
    let name = mapping.name.strip_suffix(REMOVED).unwrap_or(mapping.name);
    name.strip_suffix(LIBRARY)?.ends_with('/').then_some(mapping)
}

/// The file of a mapping: as the process finds it, else, for root, the one that is mapped though it was removed.
pub fn file(process: &TaskDir<'_>, mapping: &MapsEntry<'_>) -> Result<Vec<u8>, ReadError> {
    process.bytes(&format!("root{}", mapping.name)).or_else(|error| {
        let mapped = format!("map_files/{:x}-{:x}", mapping.range.start, mapping.range.end);
        process.bytes(&mapped).map_err(|_| error)
    })
}

/// How far an exported symbol is from where the first page of its file is loaded; `None` if this is no ELF file, or exports
/// none of this name.
pub fn exported(elf: &[u8], name: &str) -> Option<u64> {
    let elf = object::File::parse(elf).ok()?;
    let first = elf.segments().map(|segment| segment.address()).min()? / PAGE * PAGE;
    let mut symbols = elf.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
    symbols.find(|symbol| symbol.name() == Ok(name))?.address().checked_sub(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_exports_what_programs_use() {
        let Some(library) = numakit_sys::executable::c_library().filter(|path| path.ends_with("libc.so.6"))
        else {
            return numakit_skips::MACHINE.skip("this program has no glibc");
        };
        let file = std::fs::read(library).unwrap();
        let distance = exported(&file, "environ").unwrap();
        assert!(distance > 0 && distance < file.len() as u64 * 2);
        assert_eq!(exported(&file, "of no library"), None);
    }

    #[test]
    fn other_files_and_names_are_not_exported() {
        assert_eq!(exported(b"\x7fELF", "malloc"), None);
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        // It uses this symbol, and another file has it.
        assert_eq!(exported(&program, "malloc"), None);
    }
}
