//! A root directory with a shell, its libraries, and files of a test.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts /proc, /sys and /dev in the root, in a separate namespace that ends with the program.
const MOUNT: &str = "for name in proc sys dev; do mount --rbind /$name \"$0/$name\" || exit 125; done;";

pub struct Root(PathBuf);

impl Root {
    /// With a shell; `None`, and a message, if this user may not change roots.
    pub fn new(name: &str) -> Option<Self> {
        let root = Self::empty(name)?;
        root.take_program(Path::new("/bin/sh"));
        Some(root)
    }

    /// An empty root.
    pub fn empty(name: &str) -> Option<Self> {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("root-{name}"));
        let _ = fs::remove_dir_all(&path);
        let root = Self(path);
        for folder in ["proc", "sys", "dev", "tmp", "run", "var/cache"] {
            fs::create_dir_all(root.path(folder)).unwrap();
        }
        let may = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).output();
        if may.is_ok_and(|output| output.status.success()) {
            return Some(root);
        }
        numakit_skips::PRIVILEGES.skip("'unshare --map-root-user --mount true' does not work here");
        None
    }

    pub fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        let inside = inside.as_ref();
        self.0.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// A program of this machine, run as root of a user namespace.
    pub fn as_root(&self, program: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", program]);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// A program in the root.
    pub fn program(&self, program: &str, words: &[&str]) -> Command {
        let mut command = self.as_root("sh");
        command.args(["-c", &format!("{MOUNT} exec chroot \"$0\" \"$@\"")]);
        command.arg(&self.0).arg(program).args(words);
        command.env("NUMAKIT_REGISTRY", "/tmp/cores").env("XDG_RUNTIME_DIR", "/run");
        command
    }

    /// A line for the root's shell.
    pub fn command(&self, line: &str) -> Command {
        self.program("/bin/sh", &["-c", line])
    }

    /// Runs a line in the root's shell and returns its output.
    pub fn sh(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// A script of this machine's shell, outside of the root, which is $0. The registry of cores is at its usual place in the
    /// root, which no other program sees.
    pub fn beside(&self, script: &str, words: &[&str]) -> Command {
        let mut command = self.as_root("sh");
        let shared = "mount -t tmpfs none \"$0/dev/shm\" || exit 125;";
        command.args(["-c", &format!("{MOUNT} {shared} {script}")]).arg(&self.0).args(words);
        command
    }

    /// All files and folders, as paths in the root.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        let mut find = Command::new("find");
        let list = find.arg(&self.0).args(["-mindepth", "1", "-printf", "/%P\\n"]).output().unwrap();
        String::from_utf8(list.stdout).unwrap().lines().map(PathBuf::from).collect()
    }

    /// Copies a program of this machine and its libraries.
    pub fn take_program(&self, program: &Path) {
        let ldd = Command::new("ldd").arg(program).output().unwrap();
        let text = String::from_utf8(ldd.stdout).unwrap();
        let libraries = text.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new);
        for file in libraries.chain([program]) {
            fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
            fs::copy(file, self.path(file)).unwrap();
        }
        fs::set_permissions(self.path("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    }

    /// Registers a package whose files were copied with dpkg.
    pub fn know(&self, package: &str, version: &str) {
        let folder = self.path("var/lib/dpkg");
        for name in ["info", "updates", "triggers"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let arch = Command::new("dpkg").arg("--print-architecture").output().unwrap().stdout;
        let arch = String::from_utf8(arch).unwrap();
        let status = format!(
            "Package: {package}\nStatus: install ok installed\nArchitecture: {}\nVersion: {version}\n\
             Maintainer: nobody\nDescription: copied\n\n",
            arch.trim()
        );
        fs::write(folder.join("status"), status).unwrap();
        fs::write(folder.join(format!("info/{package}.list")), "/.\n").unwrap();
    }
}
