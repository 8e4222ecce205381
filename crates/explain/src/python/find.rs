//! Which interpreter a process runs, and where its runtime is.

use super::UnreadPython;
use super::layout::{FREE_THREADED, PythonLayout, PythonVersion};
use numakit_sampling::process::{ObservedProcess, ProcessMapping};
use numakit_sys::file::open_to_read;
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The variables that a file of the interpreter has, in bytes from where the file is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InterpreterFile {
    runtime: u64,
    version: Option<u64>,
}

/// An interpreter in the memory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundInterpreter {
    /// The address of its runtime.
    pub runtime: u64,
    /// Where it keeps what.
    pub layout: &'static PythonLayout,
    /// The path of its program or library, as the process has mapped it.
    pub path: String,
}

/// The files of interpreters that were read.
#[derive(Debug, Default)]
pub struct InterpreterFiles {
    read: HashMap<PathBuf, Option<InterpreterFile>>,
}

impl InterpreterFiles {
    /// The interpreter of a process whose files are below `root`; `None` if it runs no Python.
    pub fn find(
        &mut self,
        process: &ObservedProcess,
        root: &Path,
    ) -> Option<Result<FoundInterpreter, UnreadPython>> {
        let mapping = process.mappings().iter().filter(|mapping| is_python(name(mapping)));
        // Of several, the first of the highest rank.
        let mapping = mapping.rev().max_by_key(|mapping| rank(name(mapping)))?;
        let path = root.join(mapping.name.trim_start_matches('/'));
        let file = *self.read.entry(path.clone()).or_insert_with(|| InterpreterFile::load(&path));
        Some(found(process, mapping, file))
    }
}

/// The name of the file of a mapping.
fn name(mapping: &ProcessMapping) -> &str {
    mapping.name.rsplit('/').next().unwrap_or_default()
}

/// Whether a file with this name may be an interpreter or its library.
fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python");
    version.is_some_and(|version| version.is_empty() || version.starts_with(|c: char| c.is_ascii_digit()))
}

/// Where there is a library, the program only calls it. `libpython3.so` has nothing but calls of the library of a version.
fn rank(name: &str) -> u32 {
    let is_library = name.starts_with("lib");
    match (is_library, PythonVersion::of_file(name)) {
        (true, Some(_)) => 2,
        (false, _) => 1,
        (true, None) => 0,
    }
}

fn found(
    process: &ObservedProcess,
    mapping: &ProcessMapping,
    file: Option<InterpreterFile>,
) -> Result<FoundInterpreter, UnreadPython> {
    let file = file.ok_or(UnreadPython::Symbols)?;
    let start = mapping.range.start;
    let number = |at: u64| {
        let mut bytes = [0; 8];
        process.read(at, &mut bytes).then(|| u64::from_ne_bytes(bytes)).ok_or(UnreadPython::Memory)
    };
    let version = match file.version {
        Some(at) => Some(PythonVersion::of_number(number(start + at)? as u32)),
        None => PythonVersion::of_file(name(mapping)),
    };
    let version = version.ok_or(UnreadPython::Symbols)?;
    let layout = PythonLayout::of(version).ok_or(UnreadPython::Version(version))?;
    let runtime = start + file.runtime;
    if layout.minor >= 13 && number(runtime + FREE_THREADED)? != 0 {
        return Err(UnreadPython::FreeThreaded);
    }
    number(runtime)?;
    Ok(FoundInterpreter { runtime, layout, path: mapping.name.to_string() })
}

impl InterpreterFile {
    fn load(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(open_to_read(path).ok()?);
        let elf = object::File::parse(&cache).ok()?;
        let start = elf.segments().map(|segment| segment.address()).min()?;
        let start = start - start % crate::observation::PAGE;
        let find = |name: &str| {
            let of = |symbol: &object::Symbol<'_, '_, _>| symbol.name() == Ok(name) && !symbol.is_undefined();
            let found = elf.dynamic_symbols().find(of).or_else(|| elf.symbols().find(of))?;
            found.address().checked_sub(start)
        };
        Some(Self { runtime: find("_PyRuntime")?, version: find("Py_Version") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_libraries_of_python_are_known_by_name() {
        for name in ["python3.11", "libpython3.12.so.1.0", "libpython3.so", "python"] {
            assert!(is_python(name), "{name}");
        }
        for name in ["pythonic", "libpython_tools.so", "perl", ""] {
            assert!(!is_python(name), "{name}");
        }
        let best =
            ["python3", "libpython3.so", "libpython3.12.so.1.0"].into_iter().max_by_key(|name| rank(name));
        assert_eq!(best, Some("libpython3.12.so.1.0"));
        assert!(rank("python") > rank("libpython3.so"));
    }
}
