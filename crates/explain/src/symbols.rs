//! Names for addresses of code: functions and source lines of ELF files.

use crate::code::CodeName;
use crate::debug_file;
use addr2line::Loader;
use numakit_sys::file::open_to_read;
use object::{Object, ObjectSegment, ReadCache};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Folders with the sources of the libraries of C++ and Rust.
const LIBRARIES: [&str; 4] = ["/include/c++/", "/rustc/", "/rustlib/", "/rust/deps/"];

/// The symbols of all files that were asked about. Each file is read once.
#[derive(Default)]
pub struct Symbols {
    files: HashMap<PathBuf, Option<FileSymbols>>,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.files.keys()).finish()
    }
}

struct FileSymbols {
    segments: Vec<Segment>,
    loader: Loader,
    /// The reader of the debug information, if that is in a separate file. Its addresses are the same.
    debug: Option<Loader>,
}

/// A part of a file, and where it is in the addresses of the file's symbols.
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl Symbols {
    /// Names the code at an offset in a file. `path` is where the file is read, `module` what it is called. `function` is
    /// `None` without symbols.
    pub fn name(&mut self, path: &Path, module: &str, offset: u64) -> CodeName {
        let symbols = self.files.entry(path.to_owned()).or_insert_with(|| FileSymbols::load(path));
        let unknown = CodeName { function: None, module: module.to_owned(), file: None, line: None };
        let Some((symbols, address)) = symbols.as_ref().and_then(|s| Some((s, s.address(offset)?))) else {
            return unknown;
        };
        let function = symbols.function(address);
        let (file, line) = symbols.line(address).unzip();
        let line = line.filter(|line| *line > 0);
        CodeName { function, file, line, ..unknown }
    }
}

impl FileSymbols {
    fn load(path: &Path) -> Option<Self> {
        let file = ReadCache::new(open_to_read(path).ok()?);
        let elf = object::File::parse(&file).ok()?;
        let segment = |segment: object::Segment<'_, '_, _>| {
            let (offset, size) = segment.file_range();
            Segment { offset, size, address: segment.address() }
        };
        let segments = elf.segments().map(segment).collect();
        let debug = debug_file::of(path);
        let debug = debug.and_then(|debug| Loader::new_with_sup(&debug, debug_file::shared(&debug)).ok());
        Some(Self { segments, loader: Loader::new(path).ok()?, debug })
    }

    /// The address in terms of the file's symbols.
    fn address(&self, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|s| (s.offset..s.offset + s.size).contains(&offset))?;
        Some(segment.address + (offset - segment.offset))
    }

    /// The source line of the code; where a part of a language's library is inlined, that of its user.
    fn line(&self, address: u64) -> Option<(String, u32)> {
        let mut frames = self.debug.as_ref().unwrap_or(&self.loader).find_frames(address).ok()?;
        let mut innermost = None;
        while let Ok(Some(frame)) = frames.next() {
            let Some((file, line)) = frame.location.and_then(|at| Some((at.file?, at.line.unwrap_or(0))))
            else {
                continue;
            };
            if !LIBRARIES.iter().any(|folder| file.contains(folder)) {
                return Some((file.to_owned(), line));
            }
            innermost.get_or_insert((file.to_owned(), line));
        }
        innermost
    }

    /// The function that contains the code; what is inlined in it belongs to it.
    fn function(&self, address: u64) -> Option<String> {
        let of_debug = self.debug.as_ref().and_then(|debug| debug.find_symbol(address));
        let symbol = of_debug.or_else(|| self.loader.find_symbol(address))?;
        Some(demangled(symbol))
    }
}

/// How mangled names of C++ and Rust begin. The parser of C++ names also takes a type for a name: without this check a C
/// function `w` would be called `wchar_t`, and `i` would be `int`.
const MANGLED: [&str; 3] = ["_Z", "__Z", "_R"];

/// The name of a symbol as its programmer wrote it.
pub(crate) fn demangled(symbol: &str) -> String {
    match MANGLED.iter().any(|start| symbol.starts_with(start)) {
        true => addr2line::demangle_auto(symbol.into(), None).into_owned(),
        false => symbol.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_of_this_test(number: u64) -> u64 {
        number.rotate_left(3) ^ number
    }

    #[test]
    fn only_mangled_names_are_demangled() {
        for letter in ('a'..='z').chain('A'..='Z') {
            for name in [format!("{letter}"), format!("{letter}{letter}"), format!("P{letter}")] {
                assert_eq!(demangled(&name), name);
            }
        }
        assert_eq!(demangled("_ZN3app4tick17h05af221e174051e9E"), "app::tick");
        assert_eq!(demangled("_Z3sumPdl"), "sum(double*, long)");
        assert_eq!(demangled("_RNvC3app4tick"), "app::tick");
        assert_eq!(demangled("_Zed"), "_Zed", "a C function whose name begins so");
    }

    #[test]
    fn functions_and_lines_of_this_program_are_found() {
        assert_eq!(a_function_of_this_test(std::hint::black_box(1)), 9);
        let program = std::env::current_exe().unwrap();
        let address = a_function_of_this_test as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let offset = maps.lines().find_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (start, end) = words[0].split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            let range = number(start)..number(end);
            range.contains(&address).then(|| address - range.start + number(words[2]))
        });
        let name = Symbols::default().name(&program, "test", offset.unwrap());
        assert!(name.function.as_ref().is_some_and(|f| f.ends_with("a_function_of_this_test")), "{name:?}");
        assert!(name.file.as_ref().is_some_and(|file| file.ends_with("explain/src/symbols.rs")), "{name:?}");
        assert!(name.line.is_some());
    }

    #[test]
    fn code_without_symbols_has_a_module() {
        let name = Symbols::default().name(Path::new("/no/such/file"), "libx.so", 0x1234);
        assert_eq!((name.function, name.module.as_str(), name.line), (None, "libx.so", None));
    }
}
