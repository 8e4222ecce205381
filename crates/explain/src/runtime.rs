//! What a program is written with, and where the names of code come from that a runtime compiles while it runs.

use serde::{Deserialize, Serialize};

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
const LIBRARIES: [(&str, ProgramRuntime); 9] = [
    ("libjvm.", ProgramRuntime::Java),
    ("libpython", ProgramRuntime::Python),
    ("python", ProgramRuntime::Python),
    ("libmpi", ProgramRuntime::Mpi),
    ("libpmi", ProgramRuntime::Mpi),
    ("libgomp.", ProgramRuntime::OpenMp),
    ("libomp.", ProgramRuntime::OpenMp),
    ("libiomp5.", ProgramRuntime::OpenMp),
    ("libnvomp.", ProgramRuntime::OpenMp),
];

/// The addresses at which the Java virtual machine places its heap, unless that is larger than 32 GiB: from HeapBaseMinAddress on, so
/// that a small heap is below 4 GiB. Its classes follow.
const JAVA_HEAP: Range<u64> = 2 << 30..JAVA_CLASSES.start;
const JAVA_CLASSES: Range<u64> = 0x8_0000_0000..0xc_0000_0000;
/// The name of that heap.
pub const JAVA_HEAP_NAME: &str = "Java heap";
/// A larger one is placed by the kernel, behind these addresses.
pub const LARGE_JAVA_HEAP: u64 = 32 << 30;
/// Memory of V8's heap begins at multiples of this.
const V8_ALIGNMENT: u64 = 256 << 10;
/// Memory of Go's heap begins at multiples of this.
const GO_ALIGNMENT: u64 = 4 << 20;

impl ProgramRuntime {
    /// By the names of the files that a program has loaded. Go's library is a part of each program, which tells nothing.
    pub fn of<'a>(files: impl Iterator<Item = &'a str> + Clone) -> Self {
        let has = |start: &str| files.clone().any(|file| file.starts_with(start));
        if files.clone().any(is_node) {
            return Self::Node;
        }
        LIBRARIES.iter().find(|(start, _)| has(start)).map_or(Self::Threads, |(_, runtime)| *runtime)
    }

    /// The heap whose memory begins at this address, in a mapping without a name.
    pub fn heap_at(self, start: u64) -> Option<&'static str> {
        match self {
            Self::Java if JAVA_HEAP.contains(&start) => Some(JAVA_HEAP_NAME),
            Self::Java if JAVA_CLASSES.contains(&start) => Some("Java classes"),
            Self::Node if start.is_multiple_of(V8_ALIGNMENT) => Some("JavaScript heap"),
            Self::Go if start.is_multiple_of(GO_ALIGNMENT) => Some("Go heap"),
            _ => None,
        }
    }
}

/// Whether this is the name of the program of Node.js, or of its library.
pub fn is_node(name: &str) -> bool {
    ["node", "nodejs"].contains(&name) || name.starts_with("libnode.")
}

/// A runtime that compiles code while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeProgram {
    /// A Java virtual machine.
    Java,
    /// Node.js.
    Node,
}

/// Where the names of compiled code come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum NamesSource {
    /// The runtime writes `/tmp/perf-PID.map`.
    Map,
    /// The machine was asked.
    Asked {
        /// How often.
        times: u64,
    },
    /// It is too old to tell them.
    Old {
        /// Its version.
        version: u32,
    },
    /// It does not tell them.
    Refused {
        /// Why.
        why: String,
    },
    /// Nobody has asked.
    Nothing,
}

/// The names of the code that a process compiled while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeNames {
    /// The process.
    pub process: u32,
    /// Its runtime.
    pub program: RuntimeProgram,
    /// Where they come from.
    pub source: NamesSource,
    /// Whether call chains can be followed through that code.
    pub chains: bool,
    /// The CPU time of samples in compiled code that has no name, in ns.
    pub nameless: u64,
    /// How often it was asked what its threads do, for which it stops them.
    pub dumps: u64,
    /// What the longest of these took, in ns.
    pub longest_dump: u64,
}

/// Code of a file whose functions have no names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamelessCode {
    /// The file, as its process sees it.
    pub path: String,
    /// The CPU time of samples in it, in ns.
    pub time: u64,
}

/// How names of code came about, and where they are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamesReport {
    /// Processes that compile code while they run.
    pub runtimes: Vec<RuntimeNames>,
    /// Files without names; that with most time comes first.
    pub nameless: Vec<NamelessCode>,
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
            (Java, 0x8000_0000, Some(heap)),
            (Java, 0x40_0000, None),
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
        assert_eq!(of(&["node_exporter", "libc.so.6"]), ProgramRuntime::Threads, "another program");
        let malloc = |files: &[&'static str]| MallocLibrary::of(files.iter().copied());
        assert_eq!(malloc(&["app", "libjemalloc.so.2", "libc.so.6"]), MallocLibrary::Jemalloc);
        assert_eq!(malloc(&["app", "libc.so.6"]), MallocLibrary::C);
    }
}
