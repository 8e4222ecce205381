//! The static program, the library that it embeds, and a `numa` that runs here.

use super::PROFILE;
use super::platform::Platform;
use crate::{build, process, workspace};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest glibc that the library works with.
pub const OLDEST_GLIBC: (u32, u32) = (2, 17);

/// The libraries for programs that are packaged.
pub const LIBRARIES: [&str; 3] = ["libnumaplace.so", "libnumalloc.so", "libnumasched.so"];
/// The libraries that are in the program only.
pub const EMBEDDED: [&str; 4] = ["libnumaexplain.so", "libnumacount.so", "libnumaapply.so", "libnumampi.so"];

/// Linked without shared libraries and without symbols. The crates below are the same as in any
/// build of this profile.
const LINK: [&str; 4] = ["-C", "target-feature=+crt-static", "-C", "strip=symbols"];

pub struct Built {
    /// The program, which needs no shared library.
    pub numa: PathBuf,
    /// The program with the drivers of databases, which needs none either.
    pub drivers: PathBuf,
    /// The libraries for programs, as the program embeds them, in the order of `LIBRARIES`.
    pub libraries: Vec<PathBuf>,
    /// The packages that the web page is bundled from.
    pub page_packages: PathBuf,
    /// The built page.
    pub page: PathBuf,
    /// A `numa` that runs on this machine, for man pages and completions.
    pub runs_here: PathBuf,
}

impl Built {
    pub fn new(platform: &Platform, profile: &str) -> Result<Self> {
        let here = platform.is_here()?;
        let messages = compiled(platform, profile, "numakit-cli", "numa")?;
        let drivers = compiled(platform, profile, "numakit-drivers", build::DRIVERS)?;
        let drivers = executable(&drivers, build::DRIVERS).context("cargo names no program with drivers")?;
        let numa = executable(&messages, "numa").context("cargo names no program 'numa'")?;
        let web = folder(&messages, "numakit-server")?.join("web");
        if !web.join("dist/app.js").is_file() {
            bail!("the program has no web page; cargo's warning above says why");
        }
        let native = folder(&messages, "numakit-launch")?.join("native");
        let libraries = LIBRARIES.map(|name| native.join(name)).to_vec();
        let embedded = EMBEDDED.map(|name| native.join(name));
        for library in libraries.iter().chain(&embedded) {
            check_glibc(library)?;
        }
        let runs_here = if here { numa.clone() } else { build::numa()? };
        Ok(Self {
            numa,
            drivers,
            libraries,
            page_packages: web.join("node_modules"),
            page: web.join("dist"),
            runs_here,
        })
    }
}

/// Builds a program; returns cargo's messages.
fn compiled(platform: &Platform, profile: &str, package: &str, program: &str) -> Result<Vec<Value>> {
    let mut command = process::cargo(&["rustc", "--locked", "--package", package, "--bin", program]);
    command.args(["--profile", profile, "--message-format", "json-render-diagnostics"]);
    // Does not replace files of other tasks in target/PROFILE.
    command.env("CARGO_BUILD_BUILD_DIR", workspace::target());
    command.env("CARGO_TARGET_DIR", workspace::target().join("static"));
    if profile == PROFILE {
        command.env("CARGO_ENCODED_RUSTFLAGS", without_paths()?);
    }
    if !platform.is_here()? {
        command.args(["--target", platform.triple]);
        if std::env::var_os(platform.linker_variable()).is_none() {
            command.env(platform.linker_variable(), platform.gcc());
        }
    }
    messages(command.arg("--").args(LINK))
}

/// Flags of the compiler that replace the folders of this machine in messages of panics, wherever the clone is. The last prefix
/// that matches counts.
fn without_paths() -> Result<String> {
    let home = match (std::env::var_os("CARGO_HOME"), std::env::var_os("HOME")) {
        (Some(cargo), _) => PathBuf::from(cargo),
        (None, Some(home)) => Path::new(&home).join(".cargo"),
        (None, None) => bail!("neither CARGO_HOME nor HOME says where cargo keeps crates; set CARGO_HOME"),
    };
    let target = workspace::target();
    let folders =
        [(home.as_path(), "/cargo"), (workspace::root(), "/numakit"), (target.as_path(), "/target")];
    let flags = folders.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    Ok(flags.join("\x1f"))
}

/// Cargo's messages while it builds. Its progress goes to the terminal.
fn messages(command: &mut Command) -> Result<Vec<Value>> {
    let line = process::line(command);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start: {line}"))?;
    if !output.status.success() {
        bail!("{}: {line}", output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn executable(messages: &[Value], name: &str) -> Option<PathBuf> {
    let program = messages.iter().find(|message| message["target"]["name"] == name)?;
    Some(program["executable"].as_str()?.into())
}

/// The output folder of the build script of a package.
fn folder(messages: &[Value], package: &str) -> Result<PathBuf> {
    let of_package = |message: &&Value| {
        message["reason"] == "build-script-executed"
            && message["package_id"].as_str().is_some_and(|id| id.contains(&format!("#{package}@")))
    };
    let message = messages.iter().find(of_package);
    let folder = message.and_then(|message| message["out_dir"].as_str());
    Ok(folder.with_context(|| format!("cargo names no folder of the build script of {package}"))?.into())
}

/// Checks that the library needs no function of a later glibc.
fn check_glibc(library: &Path) -> Result<()> {
    let text = process::read(Command::new("readelf").args(["--version-info", "--wide"]).arg(library))?;
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    let (major, minor) = newest_glibc(&text).with_context(|| format!("{name} names no version of glibc"))?;
    if (major, minor) > OLDEST_GLIBC {
        bail!(
            "{} needs glibc {major}.{minor}, and has to load with {}.{}: see native/base/versions.h",
            library.display(),
            OLDEST_GLIBC.0,
            OLDEST_GLIBC.1
        );
    }
    println!("{name}: newest function of glibc {major}.{minor}");
    Ok(())
}

/// The latest version of glibc in readelf's list of needed versions.
fn newest_glibc(text: &str) -> Option<(u32, u32)> {
    let versions = text.split("Name: GLIBC_").skip(1).filter_map(|rest| {
        let mut numbers = rest.split_whitespace().next()?.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let text = "  0x0010: Name: GLIBC_2.4  Flags: none  Version: 9\n\
                    0x0020: Name: GLIBC_2.2.5  Flags: none\n  0x30: Name: GLIBC_2.18  Flags: none\n";
        assert_eq!(newest_glibc(text), Some((2, 18)));
        assert_eq!(newest_glibc("No version information"), None);
    }
}
