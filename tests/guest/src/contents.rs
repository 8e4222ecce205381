//! What is on the guest's disk: a folder that becomes the image.

use crate::failure::{Failure, on};
use crate::{packages, place};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDERS: [&str; 14] = [
    "bin",
    "dev",
    "etc/guest/steps",
    "lib64",
    "out",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr/bin",
    "usr/sbin",
    "var/tmp",
];
const START: &[u8] = include_bytes!("../guest/start");
const RESET: &[u8] = include_bytes!("../guest/reset");
/// Where the loader finds libraries that are not in its usual folders.
const CACHE: &str = "/etc/ld.so.cache";
/// Names under which our program behaves otherwise.
const OTHER_NAMES: [&str; 2] = ["numascope", "numaplace"];

/// The folder, being filled.
#[derive(Debug)]
pub struct Contents {
    folder: PathBuf,
}

impl Contents {
    /// A fresh folder with what every guest has.
    pub fn new(folder: PathBuf, busybox: &Path) -> Result<Self, Failure> {
        for name in FOLDERS {
            let path = folder.join(name);
            fs::create_dir_all(&path).map_err(on("create", &path))?;
        }
        let contents = Self { folder };
        contents.copy(busybox, "/bin/busybox")?;
        contents.link("busybox", "/bin/sh")?;
        contents.write("/etc/guest/start", START)?;
        contents.executable("/etc/guest/start")?;
        contents.write("/etc/guest/reset", RESET)?;
        contents.write("/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")?;
        contents.write("/etc/group", b"root:x:0:\n")?;
        if Path::new(CACHE).is_file() {
            contents.copy(Path::new(CACHE), CACHE)?;
        }
        Ok(contents)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn place_of(&self, inside: &str) -> PathBuf {
        self.folder.join(inside.trim_start_matches('/'))
    }

    /// A folder, if it is not there yet.
    pub fn folder_of(&self, inside: &str) -> Result<(), Failure> {
        let path = self.place_of(inside);
        fs::create_dir_all(&path).map_err(on("create", &path))
    }

    /// A file with this content.
    pub fn write(&self, inside: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.place_of(inside);
        make_parent(&path)?;
        fs::write(&path, content).map_err(on("write", &path))
    }

    fn executable(&self, inside: &str) -> Result<(), Failure> {
        let path = self.place_of(inside);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(on("change", &path))
    }

    fn link(&self, to: &str, inside: &str) -> Result<(), Failure> {
        let path = self.place_of(inside);
        if fs::symlink_metadata(&path).is_ok() {
            return Ok(());
        }
        make_parent(&path)?;
        symlink(to, &path).map_err(on("link", &path))
    }

    /// A file or a whole folder of this machine. Links are followed.
    pub fn copy(&self, from: &Path, inside: &str) -> Result<(), Failure> {
        let path = self.place_of(inside);
        if from.is_dir() {
            fs::create_dir_all(&path).map_err(on("create", &path))?;
            for entry in fs::read_dir(from).map_err(on("list", from))? {
                let entry = entry.map_err(on("list", from))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                self.copy(&entry.path(), &format!("{inside}/{name}"))?;
            }
            return Ok(());
        }
        make_parent(&path)?;
        fs::copy(from, &path).map_err(on("copy", from)).map(drop)
    }

    /// A program of this machine becomes `/usr/bin/NAME`; its libraries and its interpreter go
    /// where they are here.
    pub fn program(&self, program: &Path) -> Result<(), Failure> {
        let Some(name) = program.file_name().and_then(|name| name.to_str()) else {
            return Err(Failure::Request(format!("'{}' is not a program", program.display())));
        };
        self.copy(program, &format!("/usr/bin/{name}"))?;
        if name == "numa" {
            OTHER_NAMES.iter().try_for_each(|other| self.link("numa", &format!("/usr/bin/{other}")))?;
        }
        match interpreter(program)? {
            Some(interpreter) => self.interpreter(&interpreter),
            None => self.libraries(program),
        }
    }

    /// What runs a script; `/bin/sh` is busybox.
    fn interpreter(&self, path: &Path) -> Result<(), Failure> {
        let inside = path.display().to_string();
        if inside == "/bin/sh" || self.place_of(&inside).exists() {
            return Ok(());
        }
        if inside == "/usr/bin/env" {
            return self.link("/bin/busybox", &inside);
        }
        self.copy(path, &inside)?;
        self.libraries(path)
    }

    /// The libraries of a program go where they are here.
    pub fn libraries(&self, program: &Path) -> Result<(), Failure> {
        let fetched = place::folder("root")?;
        let mut ldd = Command::new("ldd");
        if program.starts_with(&fetched) {
            ldd.env("LD_LIBRARY_PATH", packages::library_path(&fetched));
        }
        let output = ldd.arg(program).output().map_err(on("look with ldd at", program))?;
        // It fails for programs that need no libraries.
        let text = String::from_utf8_lossy(&output.stdout);
        if let Some(line) = text.lines().find(|line| line.ends_with("not found")) {
            let problem = format!("{} needs a library: {}", program.display(), line.trim());
            return Err(Failure::Request(problem));
        }
        for library in text.lines().filter_map(library) {
            let inside = library.strip_prefix(&fetched).unwrap_or(library).display().to_string();
            if !self.place_of(&inside).exists() {
                self.copy(library, &inside)?;
            }
        }
        Ok(())
    }
}

fn make_parent(path: &Path) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(on("create", parent))
}

/// The path in a line of ldd, `libm.so.6 => /lib/libm.so.6 (0x...)` or `/lib64/ld.so (0x...)`.
fn library(line: &str) -> Option<&Path> {
    let path = line.split(" => ").last()?.trim().split(" (").next()?;
    path.starts_with('/').then(|| Path::new(path))
}

/// The interpreter that the first line of a script names.
fn interpreter(program: &Path) -> Result<Option<PathBuf>, Failure> {
    let mut start = Vec::new();
    let file = fs::File::open(program).map_err(on("read", program))?;
    file.take(256).read_to_end(&mut start).map_err(on("read", program))?;
    let text = String::from_utf8_lossy(&start);
    let first = text.strip_prefix("#!").and_then(|rest| rest.lines().next());
    Ok(first.and_then(|line| line.split_whitespace().next()).map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_takes_its_libraries_along() {
        let top = std::env::temp_dir().join(format!("numakit-contents-{}", std::process::id()));
        fs::create_dir_all(&top).unwrap();
        let busybox = top.join("its-busybox");
        fs::write(&busybox, "x").unwrap();
        let contents = Contents::new(top.join("image"), &busybox).unwrap();
        contents.program(&std::env::current_exe().unwrap()).unwrap();
        let script = top.join("script");
        fs::write(&script, "#!/usr/bin/env sh\n").unwrap();
        contents.program(&script).unwrap();
        let inside = |path: &str| top.join("image").join(path);
        assert!(inside("lib64/ld-linux-x86-64.so.2").is_file());
        assert!(inside("usr/bin/script").is_file());
        assert_eq!(fs::read_link(inside("usr/bin/env")).unwrap(), Path::new("/bin/busybox"));
        assert_eq!(fs::metadata(inside("etc/guest/start")).unwrap().permissions().mode() & 0o777, 0o755);
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn libraries_are_read_from_what_ldd_says() {
        let lines = [
            ("\tlinux-vdso.so.1 (0x7ff)", None),
            ("\tlibm.so.6 => /lib/x/libm.so.6 (0x7f)", Some("/lib/x/libm.so.6")),
            ("\t/lib64/ld-linux-x86-64.so.2 (0x7f)", Some("/lib64/ld-linux-x86-64.so.2")),
            ("\tnot a dynamic executable", None),
        ];
        for (line, expected) in lines {
            assert_eq!(library(line), expected.map(Path::new), "{line}");
        }
    }
}
