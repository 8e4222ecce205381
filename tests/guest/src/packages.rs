//! Packages that are downloaded and unpacked below `target/guest`, without root and without
//! touching the machine's own lists. Once; several processes may ask at the same time.

use crate::failure::{Failure, finished, on, text_of};
use crate::place;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// What brings all of it where it may be installed.
pub const FIX: &str =
    "apt-get install qemu-system-x86 linux-image-cloud-amd64 busybox-static e2fsprogs numactl libomp5";
/// Packages that are unpacked together, into a folder of their own.
#[derive(Debug)]
pub struct Set {
    /// The folder below `target/guest`.
    folder: &'static str,
    /// What it is, for people.
    about: &'static str,
    /// The packages; their dependencies come along where they are not installed here.
    wanted: &'static [&'static str],
    /// A kernel too.
    kernel: bool,
    /// Those that are wanted come even if they are installed here.
    anyway: bool,
}

/// What guests are made with.
const MACHINE: Set = Set {
    folder: "root",
    about: "QEMU, a kernel and busybox",
    wanted: &["qemu-system-x86", "busybox-static", "e2fsprogs", "numactl", "libomp5"],
    kernel: true,
    anyway: false,
};
/// Open MPI 4 and MPICH.
pub const MPI: Set = Set {
    folder: "mpi",
    about: "Open MPI and MPICH",
    wanted: &[
        "openmpi-bin",
        "libopenmpi3",
        "openmpi-common",
        "libpmix2",
        "mpich",
        "libmpich12",
        "libhwloc15",
        "libevent-core-2.1-7",
        "libevent-pthreads-2.1-7",
    ],
    kernel: false,
    anyway: true,
};
/// Python with numpy on OpenBLAS.
pub const NUMPY: Set = Set {
    folder: "numpy",
    about: "Python with numpy",
    wanted: &[
        "python3.11-minimal",
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        "python3-numpy",
        "libopenblas0-pthread",
        "libgfortran5",
    ],
    kernel: false,
    anyway: true,
};
/// A compiler of Fortran, for the installed GCC of Debian 12.
pub const FORTRAN: Set = Set {
    folder: "fortran",
    about: "a compiler of Fortran",
    wanted: &["gfortran-12"],
    kernel: false,
    anyway: true,
};
/// Allocators to compare with.
pub const JEMALLOC: Set =
    Set { folder: "jemalloc", about: "jemalloc", wanted: &["libjemalloc2"], kernel: false, anyway: true };
pub const MIMALLOC: Set =
    Set { folder: "mimalloc", about: "mimalloc", wanted: &["libmimalloc2.0"], kernel: false, anyway: true };
/// Depends on the kernel of the day.
const KERNEL: &str = "linux-image-cloud-amd64";
/// After a failure nobody tries again for so long, since a test run asks many times.
const PATIENCE: Duration = Duration::from_secs(600);

/// A failure of this sort.
pub fn missing(reason: &str) -> Failure {
    Failure::Unavailable { reason: reason.to_owned(), fix: FIX.to_owned(), kind: &numakit_skips::GUEST }
}

/// The folder with what was unpacked; the first call may take a while.
pub fn root() -> Result<&'static Path, Failure> {
    static ROOT: OnceLock<Result<PathBuf, (bool, String)>> = OnceLock::new();
    let unpacked = || {
        MACHINE.unpacked().map_err(|failure| match failure {
            Failure::Unavailable { reason, .. } => (true, reason),
            other => (false, other.to_string()),
        })
    };
    let found = ROOT.get_or_init(unpacked);
    found.as_deref().map_err(
        |(is_missing, reason)| {
            if *is_missing { missing(reason) } else { Failure::Request(reason.clone()) }
        },
    )
}

/// A program in the unpacked folder.
pub fn program(root: &Path, name: &str) -> Result<PathBuf, Failure> {
    let folders = ["usr/bin", "usr/sbin", "bin", "sbin"].map(|folder| root.join(folder).join(name));
    let found = folders.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| missing(&format!("{name} is not installed, and not in {}", root.display())))
}

/// Where the unpacked programs find their libraries.
pub fn library_path(root: &Path) -> String {
    ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
        .map(|folder| root.join(folder).display().to_string())
        .join(":")
}

impl Set {
    /// The folder with what was unpacked; it is fetched if it is not there. What cannot be fetched is `Unavailable`.
    pub fn unpacked(&self) -> Result<PathBuf, Failure> {
        let _lock = place::locked("packages")?;
        let top = place::folder("")?;
        let (root, refusal) = (top.join(self.folder), top.join(format!("unavailable-{}", self.folder)));
        if self.is_whole(&root) {
            return Ok(root);
        }
        if let Some(reason) = recent(&refusal) {
            return Err(missing(&reason));
        }
        let work = top.join("packages");
        let _ = fs::remove_dir_all(&work);
        let made = self.fetch(&work).and_then(|()| {
            let _ = fs::remove_dir_all(&root);
            fs::rename(work.join("root"), &root).map_err(on("rename", &work))
        });
        let _ = fs::remove_dir_all(&work);
        if let Err(Failure::Unavailable { reason, .. }) = &made {
            let _ = fs::write(&refusal, reason);
        }
        made.map(|()| root)
    }

    /// Whether all that is wanted today was unpacked.
    fn is_whole(&self, root: &Path) -> bool {
        let list = fs::read_to_string(root.join("packages")).unwrap_or_default();
        list.lines().next() == Some(&self.wanted.join(" "))
    }

    /// Unpacks into the folder `root` in `work`; its file `packages` says what was wanted and what
    /// that brought.
    fn fetch(&self, work: &Path) -> Result<(), Failure> {
        if place::on_this_machine("apt-get").is_none() {
            return Err(missing("no apt-get here to fetch packages with"));
        }
        eprintln!("fetching {} into {}", self.about, work.display());
        for folder in ["lists/partial", "cache/archives/partial", "downloads", "root"] {
            let path = work.join(folder);
            fs::create_dir_all(&path).map_err(on("create", &path))?;
        }
        // A list that fails may not matter; a package that is missing does.
        let _ = apt(work, "apt-get").args(["-qq", "update"]).output();
        let mut names = self.missing(work).map_err(unfetched)?;
        if self.kernel {
            names.insert(kernel(work).map_err(unfetched)?);
        }
        let downloads = work.join("downloads");
        let mut download = apt(work, "apt-get");
        finished(download.args(["-qq", "download"]).args(&names).current_dir(&downloads))
            .map_err(unfetched)?;
        let mut unpacked = BTreeSet::new();
        for entry in fs::read_dir(&downloads).map_err(on("list", &downloads))? {
            let package = entry.map_err(on("list", &downloads))?.path();
            finished(Command::new("dpkg-deb").arg("-x").arg(&package).arg(work.join("root")))?;
            unpacked.extend(package.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
        let list = work.join("root/packages");
        let text = unpacked.into_iter().fold(self.wanted.join(" "), |text, name| text + "\n" + &name);
        fs::write(&list, text).map_err(on("write", &list))
    }

    /// The packages and all they depend on, without what is installed here.
    fn missing(&self, work: &Path) -> Result<BTreeSet<String>, Failure> {
        let mut plan = apt(work, "apt-get");
        plan.args(["--print-uris", "-y", "-qq", "--no-install-recommends", "install"]);
        if self.anyway {
            plan.arg("--reinstall");
        }
        Ok(names_of(&text_of(plan.args(self.wanted))?))
    }
}

/// apt could not bring it.
fn unfetched(failure: Failure) -> Failure {
    missing(&failure.to_string())
}

fn recent(refusal: &Path) -> Option<String> {
    let age = fs::metadata(refusal).ok()?.modified().ok()?.elapsed().ok()?;
    (age < PATIENCE).then(|| fs::read_to_string(refusal).ok())?
}

/// Names in lines such as `'http://.../x_1.0_amd64.deb' x_1.0_amd64.deb 1234 SHA256:...`.
fn names_of(uris: &str) -> BTreeSet<String> {
    let files = uris.lines().filter(|line| line.starts_with('\'')).filter_map(|line| line.split(' ').nth(1));
    files.filter_map(|file| file.split('_').next()).map(str::to_owned).collect()
}

fn kernel(work: &Path) -> Result<String, Failure> {
    let text = text_of(apt(work, "apt-cache").args(["depends", KERNEL]))?;
    let depends = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let image = depends.into_iter().find(|name| name.starts_with("linux-image-"));
    image.map(str::to_owned).ok_or_else(|| Failure::Request(format!("no package {KERNEL} here")))
}

/// A program of apt that uses lists and caches of ours.
fn apt(work: &Path, name: &str) -> Command {
    let mut command = Command::new(name);
    let at = |folder: &str| work.join(folder).display().to_string();
    for option in [
        format!("Dir::State::lists={}", at("lists")),
        format!("Dir::Cache={}", at("cache")),
        "APT::Sandbox::User=".to_owned(),
        "Acquire::http::Timeout=20".to_owned(),
        "Debug::NoLocking=1".to_owned(),
    ] {
        command.args(["-o", &option]);
    }
    command.env("LC_ALL", "C");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_from_what_apt_would_download() {
        let text = "'http://deb/p/q/qemu-system-x86_7.2%2bdfsg_amd64.deb' qemu-system-x86_1%3a7.2_amd64.deb 9 S\n\
                    Reading...\n'http://deb/libfdt1_1.6_amd64.deb' libfdt1_1.6_amd64.deb 20 SHA256:0\n";
        let names: Vec<String> = names_of(text).into_iter().collect();
        assert_eq!(names, ["libfdt1", "qemu-system-x86"]);
    }
}
