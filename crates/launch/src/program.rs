//! The program to start: its file, and whether it can load our library.

use crate::file_kind::{self, Elf, FileKind, OWN_MACHINE, Sanitizer};
use crate::preload::{Library, PreloadError};
use numakit_sys::executable;
use numakit_sys::file::open_to_read;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Nested script interpreters that the kernel follows.
const MAX_DEPTH: usize = 4;

/// An executable program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file of the program. For a script, it is the script.
    pub file: PathBuf,
    /// The file of the machine code. For a script, it is the interpreter.
    pub code: PathBuf,
    /// Why it cannot load the library; none if it can.
    pub obstacle: Option<Obstacle>,
    /// The sanitizer that it is built with.
    pub sanitizer: Option<Sanitizer>,
    /// Whether it needs LLVM's or Intel's OpenMP.
    pub libomp: bool,
    /// The build ID of the machine code, if it has one.
    pub build_id: Option<String>,
}

/// Why a program cannot load the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The program has no loader.
    Static,
    /// It was built by Go, which creates its threads itself and moves its work among them.
    Go,
    /// The program's loader is not that of glibc.
    Loader(String),
    /// The program is for a different processor, or for 32 bits.
    Machine,
    /// The program runs with other privileges than its user's: setuid, setgid or capabilities.
    Rights(&'static str),
    /// The program's sanitizer ends it if a different library is loaded first.
    Sanitizer,
    /// Its file cannot be read.
    Unreadable(String),
    /// The user disabled the library.
    Declined,
    /// The library cannot be extracted, for this reason.
    NoLibrary(String),
}

impl Obstacle {
    /// Whether the processes that it starts may load the library nevertheless.
    pub fn allows_children(&self) -> bool {
        matches!(self, Self::Static | Self::Unreadable(_))
    }

    /// Whether the program, or the processes that it starts, may load our allocator.
    pub fn allows_allocator(&self) -> bool {
        self.allows_children() || matches!(self, Self::Declined | Self::NoLibrary(_))
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static => f.write_str("is statically linked"),
            Self::Go => f.write_str("is a Go program"),
            Self::Loader(name) if name.contains("ld-musl") => f.write_str("is linked with musl"),
            Self::Loader(name) => write!(f, "is loaded by {name}, not by glibc"),
            Self::Machine => write!(f, "is not built for {} with 64 bits", std::env::consts::ARCH),
            Self::Rights(how) => write!(f, "is {how}"),
            Self::Sanitizer => f.write_str("has the AddressSanitizer of GCC 7 or before"),
            Self::Declined => f.write_str("is started with --no-library"),
            Self::Unreadable(why) => write!(f, "cannot be examined ({why})"),
            Self::NoLibrary(why) => write!(f, "runs without libnumaplace.so ({why})"),
        }
    }
}

impl Program {
    /// Finds a program as the kernel and shells do; returns the error that starting it would give.
    pub fn find(name: &OsStr, path: &OsStr) -> io::Result<Self> {
        let file = executable::find(name, path)?;
        let Code { code, obstacle, sanitizer, libomp, build_id } = resolve(&file, path, MAX_DEPTH)?;
        Ok(Self { file, code, obstacle, sanitizer, libomp, build_id })
    }

    /// A program of another machine, of which nothing but the name is known.
    pub fn elsewhere(name: &OsStr) -> Self {
        Self {
            file: name.into(),
            code: name.into(),
            obstacle: None,
            sanitizer: None,
            libomp: false,
            build_id: None,
        }
    }

    /// Extracts the library, if the program can load it. If that is possible in no directory, the program runs
    /// without it.
    pub fn with_library(self) -> Result<(Self, PathBuf), PreloadError> {
        self.with(|| Library::Place.extract())
    }

    fn with(
        mut self,
        library: impl FnOnce() -> Result<PathBuf, PreloadError>,
    ) -> Result<(Self, PathBuf), PreloadError> {
        if !self.obstacle.as_ref().is_none_or(Obstacle::allows_children) {
            return Ok((self, PathBuf::new()));
        }
        match library() {
            Ok(library) => Ok((self, library)),
            Err(error @ PreloadError::NoFolder(..)) => {
                self.obstacle = Some(Obstacle::NoLibrary(error.to_string()));
                Ok((self, PathBuf::new()))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether it was built by Go.
    pub fn is_go(&self) -> bool {
        self.obstacle == Some(Obstacle::Go)
    }

    /// Its name, without directories.
    pub fn name(&self) -> &OsStr {
        self.file.file_name().unwrap_or(self.file.as_os_str())
    }
}

/// The machine code of a file, and what prevents the library.
struct Code {
    code: PathBuf,
    obstacle: Option<Obstacle>,
    sanitizer: Option<Sanitizer>,
    libomp: bool,
    build_id: Option<String>,
}

fn resolve(file: &Path, path: &OsStr, depth: usize) -> io::Result<Code> {
    let found = |obstacle| {
        Ok(Code { code: file.to_owned(), obstacle, sanitizer: None, libomp: false, build_id: None })
    };
    let open = match open_to_read(file) {
        Ok(open) => open,
        // An executable file need not be readable.
        Err(error) => return found(Some(Obstacle::Unreadable(error.to_string()))),
    };
    let mut read = |offset: u64, length: usize| {
        let mut bytes = vec![0; length];
        let filled = open.read_at(&mut bytes, offset).unwrap_or(0);
        bytes.truncate(filled);
        bytes
    };
    match file_kind::inspect(&mut read) {
        Err(damage) => found(Some(Obstacle::Unreadable(damage.to_string()))),
        Ok(FileKind::Elf(elf)) => {
            let (sanitizer, libomp, build_id) = (elf.sanitizer, elf.libomp, elf.build_id.clone());
            Ok(Code { sanitizer, libomp, build_id, ..found(obstacle_of(file, elf)?)? })
        }
        Ok(_) if depth == 0 => found(Some(Obstacle::Unreadable(
            "its interpreter is a script, whose interpreter is one, and so on".to_owned(),
        ))),
        Ok(FileKind::Other) => resolve(Path::new("/bin/sh"), path, 0),
        Ok(FileKind::Script { interpreter, argument }) => {
            let interpreter = resolve_env(&interpreter, argument.as_deref(), path);
            // If an interpreter is missing, the kernel reports a missing file, so its existence is checked here.
            std::fs::metadata(&interpreter)?;
            resolve(&interpreter, path, depth - 1)
        }
    }
}

fn obstacle_of(file: &Path, elf: Elf) -> io::Result<Option<Obstacle>> {
    Ok(match elf.interpreter {
        _ if elf.machine != OWN_MACHINE || elf.bits != 64 => Some(Obstacle::Machine),
        _ if elf.go => Some(Obstacle::Go),
        None => Some(Obstacle::Static),
        Some(loader) if !is_glibc(&loader) => Some(Obstacle::Loader(loader)),
        Some(_) if elf.sanitizer == Some(Sanitizer::Strict) => Some(Obstacle::Sanitizer),
        Some(_) => executable::raises_rights(file)?.map(Obstacle::Rights),
    })
}

/// For `env NAME`, the program NAME.
fn resolve_env(interpreter: &str, argument: Option<&str>, path: &OsStr) -> PathBuf {
    let file = PathBuf::from(interpreter);
    if file.file_name().is_none_or(|name| name != "env") {
        return file;
    }
    let words = argument.unwrap_or_default().split_ascii_whitespace();
    let name = words.into_iter().find(|word| !word.starts_with('-') && !word.contains('='));
    name.and_then(|name| executable::find(&OsString::from(name), path).ok()).unwrap_or(file)
}

fn is_glibc(loader: &str) -> bool {
    let name = loader.rsplit('/').next().unwrap_or(loader);
    ["ld-linux", "ld64.so", "ld.so"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn path() -> OsString {
        std::env::var_os("PATH").unwrap()
    }

    fn script(name: &str, text: &str) -> PathBuf {
        let file = std::env::temp_dir().join(format!("numakit-program-{name}-{}", std::process::id()));
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn the_code_of_a_script_is_its_interpreter() {
        for (name, text, code) in [
            ("plain", "echo", "/bin/sh"),
            ("sh", "#!/bin/sh\n", "/bin/sh"),
            ("env", "#!/usr/bin/env -S A=1 cat -n\n", "cat"),
        ] {
            let file = script(name, text);
            let program = Program::find(file.as_os_str(), &path()).unwrap();
            std::fs::remove_file(&file).unwrap();
            assert_eq!((program.file, program.obstacle), (file, None), "{name}");
            assert!(program.code.ends_with(code.trim_start_matches('/')), "{:?}", program.code);
        }
    }

    #[test]
    fn errors_are_those_of_the_kernel() {
        let kind = |name: &str| Program::find(OsStr::new(name), &path()).unwrap_err().kind();
        assert_eq!(kind("no-such-program"), io::ErrorKind::NotFound);
        assert_eq!(kind("/"), io::ErrorKind::PermissionDenied);
        let file = script("dangling", "#!/no/such/interpreter\n");
        let missing = kind(file.to_str().unwrap());
        std::fs::remove_file(&file).unwrap();
        assert_eq!(missing, io::ErrorKind::NotFound);
    }

    #[test]
    fn loaders_of_glibc_are_recognised() {
        for glibc in ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib64/ld64.so.2"] {
            assert!(is_glibc(glibc), "{glibc}");
        }
        assert!(!is_glibc("/lib/ld-musl-x86_64.so.1") && !is_glibc("/system/bin/linker64"));
        let musl = Obstacle::Loader("/lib/ld-musl-x86_64.so.1".into());
        assert_eq!(musl.to_string(), "is linked with musl");
        assert!(!musl.allows_children() && Obstacle::Static.allows_children());
    }

    #[test]
    fn a_program_runs_without_a_library_that_it_cannot_load_or_that_cannot_be_extracted() {
        let program = |obstacle| Program {
            file: "/bin/x".into(),
            code: "/bin/x".into(),
            obstacle,
            sanitizer: None,
            libomp: false,
            build_id: None,
        };
        let there = || Ok(PathBuf::from("/lib/a.so"));
        let nowhere = || Err(PreloadError::NoFolder(Library::Place, "full".to_owned()));
        for (before, library) in [
            (None, "/lib/a.so"),
            (Some(Obstacle::Static), "/lib/a.so"),
            (Some(Obstacle::Declined), ""),
            (Some(Obstacle::Machine), ""),
        ] {
            let (after, path) = program(before.clone()).with(there).unwrap();
            assert_eq!((after.obstacle, path.to_str().unwrap()), (before, library));
        }
        let (after, path) = program(None).with(nowhere).unwrap();
        assert!(matches!(after.obstacle, Some(Obstacle::NoLibrary(why)) if why.contains("full")));
        assert_eq!(path, PathBuf::new());
        assert!(program(Some(Obstacle::Declined)).with(nowhere).is_ok());
        assert!(program(None).with(|| Err(PreloadError::Missing(Library::Place, "/x".into()))).is_err());
    }
}
