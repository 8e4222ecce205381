//! The Debian package: the same files in Debian's folders.

use super::built::{LIBRARIES, OLDEST_GLIBC};
use super::platform::Platform;
use super::{VERSION, date, scripts, tree};
use crate::{process, workspace};
use anyhow::Result;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const MAINTAINER: &str = "The numakit developers <numakit@localhost>";

/// Files with other paths in Debian than in the tarball.
const MOVED: [(&str, &str); 4] = [
    ("share/zsh/site-functions", "share/zsh/vendor-completions"),
    ("share/doc/numakit/LICENSE-APACHE", ""),
    ("share/doc/numakit/LICENSE-MIT", ""),
    ("share/doc/numakit/CHANGELOG.md", "share/doc/numakit/NEWS"),
];

/// What Debian's checker lintian would have and is not done, with the reason.
const OVERRIDDEN: [(&str, &str); 5] = [
    ("bogus-mail-host", "the developers have no address yet"),
    ("bogus-mail-host-in-debian-changelog", "the developers have no address yet"),
    ("package-name-doesnt-match-sonames", "programs preload the libraries; none is linked with them"),
    ("shared-library-lacks-prerequisites", "numa is linked statically, so that it runs on any Linux"),
    ("shared-library-lacks-version", "variables of running programs name the libraries, so their names stay"),
];

/// Builds it from the folder of the tarball.
pub fn make(out: &Path, top: &Path, platform: &Platform, is_quick: bool) -> Result<PathBuf> {
    let name = format!("numakit_{VERSION}_{}", platform.debian);
    let root = out.join(&name);
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let usr = root.join("usr");
    fs::create_dir_all(&root)?;
    process::run(Command::new("cp").arg("-a").arg(top).arg(&usr))?;
    let libraries = usr.join("lib").join(platform.gnu);
    fs::create_dir_all(&libraries)?;
    for library in LIBRARIES {
        fs::rename(usr.join("lib").join(library), libraries.join(library))?;
    }
    for (from, to) in MOVED {
        match to {
            "" => fs::remove_file(usr.join(from))?,
            to => fs::rename(usr.join(from), usr.join(to))?,
        }
    }
    let stripped = LIBRARIES.map(|library| libraries.join(library));
    process::run(Command::new(platform.strip()).arg("--strip-unneeded").args(&stripped))?;
    write(&usr.join("share/doc/numakit/copyright"), &copyright()?)?;
    write(&usr.join("share/doc/numakit/changelog"), &changelog()?)?;
    let reasons = OVERRIDDEN.map(|(tag, reason)| format!("# {reason}\nnumakit: {tag}\n"));
    write(&usr.join("share/lintian/overrides/numakit"), &reasons.concat())?;
    compress(&usr)?;
    write(&root.join("DEBIAN/control"), &control(&usr, platform)?)?;
    // The library is in a folder of the loader, so the loader's cache must be updated.
    write(&root.join("DEBIAN/triggers"), "activate-noawait ldconfig\n")?;
    for (name, script) in scripts::of_dpkg() {
        let path = root.join("DEBIAN").join(name);
        write(&path, &script)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    write(&root.join("DEBIAN/md5sums"), &sums(&root)?)?;
    tree::readable(&root)?;
    let path = out.join(format!("{name}.deb"));
    let level = if is_quick { 0 } else { 6 };
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--root-owner-group", "-Zxz"]).arg(format!("-z{level}")).arg("--build").arg(&root).arg(&path);
    process::read(deb.env("SOURCE_DATE_EPOCH", date()?.to_string()))?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}

/// In the format that Debian's tools read: the changes themselves are in NEWS.
fn changelog() -> Result<String> {
    let date = process::read(Command::new("date").args(["-u", "-R", "-d"]).arg(format!("@{}", date()?)))?;
    Ok(format!(
        "numakit ({VERSION}) unstable; urgency=medium\n\n  * The changes are in /usr/share/doc/numakit/NEWS.gz.\n\n \
         -- {MAINTAINER}  {}\n",
        date.trim()
    ))
}

fn control(usr: &Path, platform: &Platform) -> Result<String> {
    let size = process::read(Command::new("du").args(["-sk", "--apparent-size"]).arg(usr))?;
    let size = size.split_whitespace().next().unwrap_or_default().to_owned();
    let (major, minor) = OLDEST_GLIBC;
    Ok(format!(
        "Package: numakit\n\
         Version: {VERSION}\n\
         Architecture: {}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {size}\n\
         Depends: libc6 (>= {major}.{minor})\n\
         Section: utils\n\
         Priority: optional\n\
         Description: see, record and place programs on NUMA machines\n \
         numa shows what a NUMA machine does, records it, and runs programs on the\n \
         nearest free cores with their memory on the same nodes. The package also has\n \
         the names numakit, where another program is called numa, numascope and\n \
         numaplace, and the libraries libnumaplace.so (threads), libnumalloc.so\n \
         (malloc) and libnumasched.so (loops), which load into programs with glibc {major}.{minor} and later.\n",
        platform.debian
    ))
}

/// In the format that Debian's tools read.
fn copyright() -> Result<String> {
    let mit = fs::read_to_string(workspace::root().join("LICENSE-MIT"))?;
    let indented: String = mit
        .lines()
        .map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: numakit\n\
         Comment: THIRD-PARTY-LICENSES has the licenses of the crates that are linked in.\n\
         \n\
         Files: *\n\
         Copyright: the numakit developers\n\
         License: Expat or Apache-2.0\n\
         \n\
         License: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n\
         \n\
         License: Expat\n{indented}"
    ))
}

/// Man pages and changelogs are compressed in Debian.
fn compress(usr: &Path) -> Result<()> {
    let mut files = ["changelog", "NEWS"].map(|name| usr.join("share/doc/numakit").join(name)).to_vec();
    for entry in fs::read_dir(usr.join("share/man/man1"))? {
        files.push(entry?.path());
    }
    process::run(Command::new("gzip").args(["-9", "--no-name", "--force"]).args(files))
}

/// The checksums for `dpkg --verify`.
fn sums(root: &Path) -> Result<String> {
    let line = "find usr -type f -print0 | sort -z | xargs -0 md5sum";
    process::read(Command::new("sh").args(["-c", line]).current_dir(root))
}
