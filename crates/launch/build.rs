//! Builds the C libraries and embeds them, each with its hash as the name of this version.
#![allow(clippy::print_stdout)]

use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<()> {
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("native").canonicalize()?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    for part in ["Makefile", "include", "base", "place", "explain", "alloc", "count", "apply", "sched", "mpi"]
    {
        println!("cargo::rerun-if-changed={}", native.join(part).display());
    }
    let built = out.join("native");
    let mut make = Command::new("make");
    make.arg("-C").arg(&native).arg(format!("OUT={}", built.display())).arg("CFLAGS=-O2").arg(compiler()?);
    let status = make.status().map_err(|e| Error::other(format!("cannot start make: {e}; {FIX}")))?;
    if !status.success() {
        return Err(Error::other(format!("{make:?}: {status}; {FIX}")));
    }
    let mut code = String::new();
    for (constant, name) in [
        ("PLACE", "libnumaplace.so"),
        ("EXPLAIN", "libnumaexplain.so"),
        ("ALLOC", "libnumalloc.so"),
        ("COUNT", "libnumacount.so"),
        ("APPLY", "libnumaapply.so"),
        ("SCHED", "libnumasched.so"),
        ("MPI", "libnumampi.so"),
    ] {
        let library = built.join(name);
        let mut hash = String::new();
        for byte in &Sha256::digest(std::fs::read(&library)?)[..8] {
            let _ = write!(hash, "{byte:02x}");
        }
        let _ = writeln!(
            code,
            "const {constant}: Embedded = Embedded {{ name: {name:?}, hash: {hash:?}, content: include_bytes!({library:?}) }};"
        );
    }
    std::fs::write(out.join("libraries.rs"), code)
}

/// The compiler for the target (CC, CC_TARGET, ...) as an argument of make.
fn compiler() -> Result<OsString> {
    let tool = cc::Build::new().no_default_flags(true).try_get_compiler().map_err(Error::other)?;
    let command = tool.to_command();
    let mut assignment = OsString::from("CC=");
    assignment.push(command.get_program());
    for word in command.get_args() {
        assignment.push(" ");
        assignment.push(word);
    }
    Ok(assignment)
}

const FIX: &str = "apt-get install -y make gcc libc6-dev";
