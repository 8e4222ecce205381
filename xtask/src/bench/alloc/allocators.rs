//! The allocators that are compared: ours, glibc's, and peers, which are fetched and built on first use.

use crate::{install, peers, process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One that can be preloaded.
#[derive(Debug)]
pub struct Allocator {
    pub name: &'static str,
    pub version: String,
    pub library: PathBuf,
}

/// The one that all are compared with.
pub const BASE: &str = "glibc";
/// The one that has limits.
pub const OURS: &str = "numalloc";

type Get = fn(&Path) -> Result<(String, PathBuf)>;

const ALLOCATORS: [(&str, Get); 7] = [
    (BASE, glibc),
    (OURS, numalloc),
    ("jemalloc", |dir| debian(dir, "libjemalloc2", "libjemalloc.so.2")),
    ("tcmalloc", |dir| debian(dir, "libtcmalloc-minimal4", "libtcmalloc_minimal.so.4")),
    ("mimalloc2", |dir| mimalloc(dir, "v2")),
    ("mimalloc3", |dir| mimalloc(dir, "v3")),
    ("snmalloc", snmalloc),
];

/// Crates that contain the C and C++ sources of their allocators: cargo checks and keeps them.
const SOURCES: &str = r#"[package]
name = "sources"
version = "0.0.0"
edition = "2024"

[lib]
path = "lib.rs"

[dependencies]
libmimalloc-sys = "=0.1.49"
snmalloc-sys = "=0.7.6"

[workspace]
"#;

/// Their names.
pub fn names() -> Vec<&'static str> {
    ALLOCATORS.iter().map(|(name, _)| *name).collect()
}

/// Those with these names, the base first, and why others are missing.
pub fn get(wanted: &[&str]) -> (Vec<Allocator>, Vec<String>) {
    let dir = workspace::target().join("peers/alloc");
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (name, get) in ALLOCATORS.iter().filter(|(name, _)| *name == BASE || wanted.contains(name)) {
        match get(&dir) {
            Ok((version, library)) => found.push(Allocator { name, version, library }),
            Err(error) => missing.push(format!("{name} is missing: {error:#}")),
        }
    }
    (found, missing)
}

/// Preloaded too: a program that is linked with another allocator is then measured with glibc's.
fn glibc(_: &Path) -> Result<(String, PathBuf)> {
    let version = process::read(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    Ok((version.trim().trim_start_matches("glibc ").to_owned(), "libc.so.6".into()))
}

fn numalloc(_: &Path) -> Result<(String, PathBuf)> {
    let out = workspace::target().join("native");
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(workspace::root().join("native")).arg(format!("OUT={}", out.display()));
    process::read(&mut make)?;
    let library = out.join("libnumalloc.so");
    if !library.exists() {
        bail!("'make -C native' builds no libnumalloc.so");
    }
    Ok((env!("CARGO_PKG_VERSION").to_owned(), library))
}

fn debian(dir: &Path, package: &str, file: &str) -> Result<(String, PathBuf)> {
    let dir = dir.join(package);
    let version = peers::unpacked(&[package], &dir)?.concat();
    for folder in fs::read_dir(dir.join("usr/lib"))? {
        let library = folder?.path().join(file);
        if library.exists() {
            return Ok((version, library));
        }
    }
    bail!("the package {package} has no {file}")
}

fn mimalloc(dir: &Path, major: &str) -> Result<(String, PathBuf)> {
    let source = sources(dir)?.join("libmimalloc-sys/c_src/mimalloc").join(major);
    let header = fs::read_to_string(source.join("include/mimalloc.h"))?;
    let define =
        |line: &str| line.strip_prefix("#define MI_MALLOC_VERSION ")?.split_whitespace().next()?.parse().ok();
    let version: u32 = header.lines().find_map(define).context("mimalloc.h has no version")?;
    let library = dir.join(format!("libmimalloc-{major}.so"));
    let mut cc = Command::new("cc");
    cc.args([
        "-O3",
        "-DNDEBUG",
        "-DMI_MALLOC_OVERRIDE",
        "-DMI_SHARED_LIB",
        "-DMI_SHARED_LIB_EXPORT",
        "-DMI_BUILD_RELEASE",
    ])
    .args([
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-ftls-model=initial-exec",
        "-fno-builtin-malloc",
    ]);
    cc.arg("-I").arg(source.join("include")).arg("-I").arg(source.join("src"));
    built(cc.arg(source.join("src/static.c")).arg("-pthread"), &library)?;
    Ok((format!("{}.{}.{}", version / 10000, version / 100 % 100, version % 100), library))
}

fn snmalloc(dir: &Path) -> Result<(String, PathBuf)> {
    install::need(&["g++", "--version"], &["g++"])?;
    let crate_dir = sources(dir)?.join("snmalloc-sys");
    let manifest = fs::read_to_string(crate_dir.join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    let version = version.context("snmalloc-sys has no version")?.trim_matches('"').to_owned();
    let source = crate_dir.join("upstream/src");
    let library = dir.join("libsnmalloc.so");
    let mut cc = Command::new("g++");
    cc.args([
        "-O3",
        "-DNDEBUG",
        "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1",
        "-std=c++20",
        "-mcx16",
        "-fPIC",
        "-shared",
    ])
    .args(["-ftls-model=initial-exec", "-fomit-frame-pointer", "-w"]);
    cc.arg("-I").arg(&source).args(["malloc.cc", "new.cc"].map(|f| source.join("snmalloc/override").join(f)));
    built(cc.args(["-latomic", "-pthread"]), &library)?;
    Ok((version, library))
}

/// The folder with the crates' sources.
fn sources(dir: &Path) -> Result<PathBuf> {
    let (crates, vendor) = (dir.join("crates"), dir.join("crates/vendor"));
    let manifest = crates.join("Cargo.toml");
    if vendor.exists() && fs::read_to_string(&manifest).is_ok_and(|text| text == SOURCES) {
        return Ok(vendor);
    }
    println!("fetching the sources of mimalloc and snmalloc into {}", vendor.display());
    fs::create_dir_all(&crates)?;
    fs::write(crates.join("lib.rs"), "")?;
    fs::write(&manifest, SOURCES)?;
    let mut cargo = process::cargo(&["vendor", "--quiet", "--manifest-path"]);
    process::read(cargo.arg(&manifest).arg(&vendor))?;
    for library in ["libmimalloc-v2.so", "libmimalloc-v3.so", "libsnmalloc.so"].map(|name| dir.join(name)) {
        if library.exists() {
            fs::remove_file(library)?;
        }
    }
    Ok(vendor)
}

/// Compiles a library that is not there yet.
fn built(compiler: &mut Command, library: &Path) -> Result<()> {
    if !library.exists() {
        process::read(compiler.arg("-o").arg(library))?;
    }
    Ok(())
}
