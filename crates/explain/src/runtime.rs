//! What a program is written with.

use std::ops::Range;

/// What a program is written with, as far as its libraries tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgramRuntime {
    /// Threads of its own.
    #[default]
    Threads,
    /// OpenMP.
    OpenMp,
    /// MPI.
    Mpi,
    /// A Java virtual machine.
    Java,
    /// Python.
    Python,
    /// Node.js.
    Node,
    /// Go.
    Go,
}

/// Which library serves `malloc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MallocLibrary {
    /// The C library.
    #[default]
    C,
    /// jemalloc.
    Jemalloc,
    /// tcmalloc.
    Tcmalloc,
    /// mimalloc.
    Mimalloc,
    /// libnumalloc.
    Numalloc,
}

const MALLOCS: [(&str, MallocLibrary); 4] = [
    ("libjemalloc", MallocLibrary::Jemalloc),
    ("libtcmalloc", MallocLibrary::Tcmalloc),
    ("libmimalloc", MallocLibrary::Mimalloc),
    ("libnumalloc", MallocLibrary::Numalloc),
];

impl MallocLibrary {
    /// By the names of the files that a program has loaded. One that is linked into the program is not seen.
    pub fn of<'a>(files: impl Iterator<Item = &'a str> + Clone) -> Self {
        let has = |start: &str| files.clone().any(|file| file.starts_with(start));
        MALLOCS.iter().find(|(start, _)| has(start)).map_or(Self::C, |(_, library)| *library)
    }
}

/// Names of libraries and programs start with this.
const LIBRARIES: [(&str, ProgramRuntime); 11] = [
    ("libjvm.", ProgramRuntime::Java),
    ("libpython", ProgramRuntime::Python),
    ("python", ProgramRuntime::Python),
    ("node", ProgramRuntime::Node),
    ("libnode.", ProgramRuntime::Node),
    ("libmpi", ProgramRuntime::Mpi),
    ("libpmi", ProgramRuntime::Mpi),
    ("libgomp.", ProgramRuntime::OpenMp),
    ("libomp.", ProgramRuntime::OpenMp),
    ("libiomp5.", ProgramRuntime::OpenMp),
    ("libnvomp.", ProgramRuntime::OpenMp),
];

/// The addresses at which the Java virtual machine places its heap, unless that is larger than 32 GiB. Its classes follow.
const JAVA_HEAP: Range<u64> = 1 << 32..JAVA_CLASSES.start;
const JAVA_CLASSES: Range<u64> = 0x8_0000_0000..0xc_0000_0000;
/// Memory of V8's heap begins at multiples of this.
const V8_ALIGNMENT: u64 = 256 << 10;
/// Memory of Go's heap begins at multiples of this.
const GO_ALIGNMENT: u64 = 4 << 20;

impl ProgramRuntime {
    /// By the names of the files that a program has loaded. Go's library is a part of each program, which tells nothing.
    pub fn of<'a>(files: impl Iterator<Item = &'a str> + Clone) -> Self {
        let has = |start: &str| files.clone().any(|file| file.starts_with(start));
        LIBRARIES.iter().find(|(start, _)| has(start)).map_or(Self::Threads, |(_, runtime)| *runtime)
    }

    /// The heap whose memory begins at this address, in a mapping without a name.
    pub fn heap_at(self, start: u64) -> Option<&'static str> {
        match self {
            Self::Java if JAVA_HEAP.contains(&start) => Some("Java heap"),
            Self::Java if JAVA_CLASSES.contains(&start) => Some("Java classes"),
            Self::Node if start.is_multiple_of(V8_ALIGNMENT) => Some("JavaScript heap"),
            Self::Go if start.is_multiple_of(GO_ALIGNMENT) => Some("Go heap"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_have_their_heap_at_addresses_of_their_own() {
        use ProgramRuntime::{Go, Java, Node, Threads};
        let heap = "Java heap";
        let all = [
            (Java, 1 << 32, Some(heap)),
            (Java, 0x8_0000_0000, Some("Java classes")),
            (Java, 0x7f00_0000_1000, None),
            (Node, 0x2f_0004_0000, Some("JavaScript heap")),
            (Node, 0x7f00_0000_1000, None),
            (Go, 0xc0_0000_0000, Some("Go heap")),
            (Go, 0x7f00_0000_1000, None),
            (Threads, 0xc0_0000_0000, None),
        ];
        for (runtime, start, expected) in all {
            assert_eq!(runtime.heap_at(start), expected, "{runtime:?} {start:x}");
        }
    }

    #[test]
    fn libraries_tell_the_runtime() {
        let of = |files: &[&'static str]| ProgramRuntime::of(files.iter().copied());
        assert_eq!(of(&["app", "libgomp.so.1", "libc.so.6"]), ProgramRuntime::OpenMp);
        assert_eq!(of(&["java", "libjvm.so"]), ProgramRuntime::Java);
        assert_eq!(of(&["python3.11", "libgomp.so.1"]), ProgramRuntime::Python);
        assert_eq!(of(&["app", "libmpi.so.40", "libgomp.so.1"]), ProgramRuntime::Mpi);
        assert_eq!(of(&["app"]), ProgramRuntime::Threads);
        assert_eq!(of(&["node", "libc.so.6"]), ProgramRuntime::Node);
        let malloc = |files: &[&'static str]| MallocLibrary::of(files.iter().copied());
        assert_eq!(malloc(&["app", "libjemalloc.so.2", "libc.so.6"]), MallocLibrary::Jemalloc);
        assert_eq!(malloc(&["app", "libc.so.6"]), MallocLibrary::C);
    }
}
