//! What a program is written with.

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

impl ProgramRuntime {
    /// By the names of the files that a program has loaded.
    pub fn of<'a>(files: impl Iterator<Item = &'a str> + Clone) -> Self {
        let has = |start: &str| files.clone().any(|file| file.starts_with(start));
        LIBRARIES.iter().find(|(start, _)| has(start)).map_or(Self::Threads, |(_, runtime)| *runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_tell_the_runtime() {
        let of = |files: &[&'static str]| ProgramRuntime::of(files.iter().copied());
        assert_eq!(of(&["app", "libgomp.so.1", "libc.so.6"]), ProgramRuntime::OpenMp);
        assert_eq!(of(&["java", "libjvm.so"]), ProgramRuntime::Java);
        assert_eq!(of(&["python3.11", "libgomp.so.1"]), ProgramRuntime::Python);
        assert_eq!(of(&["app", "libmpi.so.40", "libgomp.so.1"]), ProgramRuntime::Mpi);
        assert_eq!(of(&["app"]), ProgramRuntime::Threads);
        let malloc = |files: &[&'static str]| MallocLibrary::of(files.iter().copied());
        assert_eq!(malloc(&["app", "libjemalloc.so.2", "libc.so.6"]), MallocLibrary::Jemalloc);
        assert_eq!(malloc(&["app", "libc.so.6"]), MallocLibrary::C);
    }
}
