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
/// Those whose dependencies are needed as well.
const PROGRAMS: [&str; 5] = ["qemu-system-x86", "busybox-static", "e2fsprogs", "numactl", "libomp5"];
/// Depends on the kernel of the day.
const KERNEL: &str = "linux-image-cloud-amd64";
/// After a failure nobody tries again for so long, since a test run asks many times.
const PATIENCE: Duration = Duration::from_secs(600);

/// A failure of this sort.
pub fn missing(reason: &str) -> Failure {
    Failure::Unavailable { reason: reason.to_owned(), fix: FIX.to_owned() }
}

/// The folder with what was unpacked; the first call may take a while.
pub fn root() -> Result<&'static Path, Failure> {
    static ROOT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = ROOT.get_or_init(|| unpacked().map_err(|failure| failure.to_string()));
    found.as_deref().map_err(|reason| missing(reason))
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

fn unpacked() -> Result<PathBuf, Failure> {
    let _lock = place::locked("packages")?;
    let top = place::folder("")?;
    let (root, refusal) = (top.join("root"), top.join("unavailable"));
    if is_whole(&root) {
        return Ok(root);
    }
    if let Some(reason) = recent(&refusal) {
        return Err(Failure::Request(reason));
    }
    let work = top.join("packages");
    let _ = fs::remove_dir_all(&work);
    let made = fetch(&work).and_then(|()| {
        let _ = fs::remove_dir_all(&root);
        fs::rename(work.join("root"), &root).map_err(on("rename", &work))
    });
    let _ = fs::remove_dir_all(&work);
    if let Err(failure) = &made {
        let _ = fs::write(&refusal, failure.to_string());
    }
    made.map(|()| root)
}

/// Whether all that is wanted today was unpacked.
fn is_whole(root: &Path) -> bool {
    let list = fs::read_to_string(root.join("packages")).unwrap_or_default();
    list.lines().next() == Some(&PROGRAMS.join(" "))
}

fn recent(refusal: &Path) -> Option<String> {
    let age = fs::metadata(refusal).ok()?.modified().ok()?.elapsed().ok()?;
    (age < PATIENCE).then(|| fs::read_to_string(refusal).ok())?
}

/// Unpacks into the folder `root` in `work`; its file `packages` says what was wanted and what
/// that brought.
fn fetch(work: &Path) -> Result<(), Failure> {
    if place::on_this_machine("apt-get").is_none() {
        return Err(Failure::Request("no apt-get here to fetch packages with".to_owned()));
    }
    eprintln!("fetching QEMU, a kernel and busybox into {}", work.display());
    for folder in ["lists/partial", "cache/archives/partial", "downloads", "root"] {
        let path = work.join(folder);
        fs::create_dir_all(&path).map_err(on("create", &path))?;
    }
    // A list that fails may not matter; a package that is missing does.
    let _ = apt(work, "apt-get").args(["-qq", "update"]).output();
    let mut wanted = missing_programs(work)?;
    wanted.insert(kernel(work)?);
    let downloads = work.join("downloads");
    let mut download = apt(work, "apt-get");
    finished(download.args(["-qq", "download"]).args(&wanted).current_dir(&downloads))?;
    let mut unpacked = BTreeSet::new();
    for entry in fs::read_dir(&downloads).map_err(on("list", &downloads))? {
        let package = entry.map_err(on("list", &downloads))?.path();
        finished(Command::new("dpkg-deb").arg("-x").arg(&package).arg(work.join("root")))?;
        unpacked.extend(package.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    let list = work.join("root/packages");
    let text = unpacked.into_iter().fold(PROGRAMS.join(" "), |text, name| text + "\n" + &name);
    fs::write(&list, text).map_err(on("write", &list))
}

/// The programs and all they depend on, without what is installed here.
fn missing_programs(work: &Path) -> Result<BTreeSet<String>, Failure> {
    let mut plan = apt(work, "apt-get");
    plan.args(["--print-uris", "-y", "-qq", "--no-install-recommends", "install"]).args(PROGRAMS);
    Ok(names_of(&text_of(&mut plan)?))
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
