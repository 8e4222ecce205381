//! `cargo xtask package`: tarball, .deb, .rpm, image, sources and recipes, with everything that a user of numakit needs.

mod archive;
mod built;
mod deb;
mod licences;
mod oci;
mod platform;
mod recipes;
mod rpm;
mod sbom;
mod scripts;
mod source;
mod tree;

use crate::{install, process, workspace};
use anyhow::{Result, bail};
use built::Built;
use platform::Platform;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use tree::AboutThirdParties;

/// The profile of packages: with the long link.
const PROFILE: &str = "dist";
/// The version of numakit.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The options.
struct Options {
    target: Option<String>,
    profile: String,
    out: PathBuf,
}

impl Options {
    fn parse(words: &[String]) -> Result<Self> {
        let mut options =
            Self { target: None, profile: PROFILE.into(), out: workspace::target().join("package") };
        let mut words = words.iter();
        while let Some(option) = words.next() {
            let mut value = || match words.next() {
                Some(value) => Ok(value.clone()),
                None => bail!("{option} needs a value"),
            };
            match option.as_str() {
                "--target" => options.target = Some(value()?),
                "--profile" => options.profile = value()?,
                "--out" => options.out = std::path::absolute(value()?)?,
                _ => bail!("package takes --target TRIPLE, --profile NAME and --out DIR, got '{option}'"),
            }
        }
        Ok(options)
    }
}

/// Builds the packages, and prints where they are.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(words)?;
    let platform = Platform::of(options.target.as_deref())?;
    platform.check()?;
    install::need_c()?;
    install::need(&["readelf", "--version"], &["binutils"])?;
    fs::create_dir_all(&options.out)?;
    let begin = Instant::now();
    if options.profile == PROFILE {
        process::step(
            "building numa with optimisation over all libraries: five to eight minutes on two CPUs. The last step, the link of \
             numa, takes two to three of them and prints nothing",
        );
    }
    let built = Built::new(&platform, &options.profile)?;
    println!("{}: built in {:.0} s", platform.triple, begin.elapsed().as_secs_f64());
    let name = format!("numakit-{VERSION}-{}-linux", platform.machine);
    let top = options.out.join(&name);
    let crates = licences::linked(&platform)?;
    let about = AboutThirdParties {
        licences: licences::of_all(&crates, &built.page_packages)?,
        sbom: sbom::of(&platform, &crates)?,
    };
    tree::lay_out(&top, &built, &about)?;
    fs::write(options.out.join(format!("{name}.cdx.json")), &about.sbom)?;
    // A profile without link-time optimisation is for quick builds.
    let is_quick = options.profile != PROFILE;
    let tarball = options.out.join(format!("{name}.tar.gz"));
    archive::compressed(&tarball, &options.out, &[&name], is_quick)?;
    report(&tarball)?;
    match install::need(&["dpkg-deb", "--version"], &["dpkg"]) {
        Ok(()) => report(&deb::make(&options.out, &top, &platform, is_quick)?)?,
        Err(error) => println!("no Debian package: {error:#}"),
    }
    match install::need(&["rpmbuild", "--version"], &["rpm"]) {
        Ok(()) => report(&rpm::make(&options.out, &top, &platform, is_quick)?)?,
        Err(error) => println!("no package for rpm: {error:#}"),
    }
    report(&oci::make(&options.out, &top, &platform, is_quick)?)?;
    let source = source::make(&options.out, &built, is_quick)?;
    report(&source)?;
    for path in recipes::make(&options.out, &source, &tarball, is_quick)? {
        report(&path)?;
    }
    checksums(&options.out)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the checksums of all packages of this version, of all platforms, for `sha256sum --check`.
fn checksums(out: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_file = [".tar.gz", ".tgz", ".deb", ".rpm", "-image.tar", ".cdx.json"]
            .iter()
            .any(|ending| name.ends_with(ending));
        if is_file && name.starts_with("numakit") && name.contains(VERSION) {
            names.push(name);
        }
    }
    names.sort();
    let sums = process::read(Command::new("sha256sum").args(&names).current_dir(out))?;
    Ok(fs::write(out.join("SHA256SUMS"), sums)?)
}

/// The date of all files in packages, in seconds since 1970: SOURCE_DATE_EPOCH, or that of the last
/// commit.
fn date() -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => process::read(
            Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(workspace::root()),
        )?,
    };
    Ok(text.trim().parse()?)
}

fn report(path: &Path) -> Result<()> {
    println!("{} ({:.1} MB)", path.display(), fs::metadata(path)?.len() as f64 / 1e6);
    Ok(())
}
