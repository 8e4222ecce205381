//! Packs all documents, so that they take a third of their size in the program.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::fmt::Write as _;
use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What is embedded, below the top of the repository.
const SOURCES: [&str; 2] = ["docs", "corpus/bench/README.md"];

fn main() -> Result<()> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut paths = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", top.join(source).display());
        collect(&top, Path::new(source), &mut paths)?;
    }
    paths.sort();
    let mut code = String::from("[\n");
    for (number, path) in paths.iter().enumerate() {
        let plain = fs::read(top.join(path))?;
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
        packer.write_all(&plain)?;
        let packed = out.join(format!("{number}.deflate"));
        fs::write(&packed, packer.finish()?)?;
        // Writing to a string cannot fail.
        let _ = writeln!(code, "Document {{ path: {path:?}, packed: include_bytes!({packed:?}) }},");
    }
    fs::write(out.join("documents.rs"), code + "]")
}

fn collect(top: &Path, path: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    if !top.join(path).is_dir() {
        paths.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(top.join(path))? {
        collect(top, &path.join(entry?.file_name()), paths)?;
    }
    Ok(())
}
