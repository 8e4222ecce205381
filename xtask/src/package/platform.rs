//! The platform of a package.

use crate::process;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// All platforms, with their names in Rust, GNU and Debian.
const ALL: [Platform; 2] = [
    Platform {
        triple: "x86_64-unknown-linux-gnu",
        machine: "x86_64",
        gnu: "x86_64-linux-gnu",
        debian: "amd64",
    },
    Platform {
        triple: "aarch64-unknown-linux-gnu",
        machine: "aarch64",
        gnu: "aarch64-linux-gnu",
        debian: "arm64",
    },
];

#[derive(Debug, Clone, Copy)]
pub struct Platform {
    /// Rust's target.
    pub triple: &'static str,
    /// As in `uname -m`.
    pub machine: &'static str,
    /// In the names of compilers and folders of libraries.
    pub gnu: &'static str,
    /// Debian's architecture.
    pub debian: &'static str,
}

impl Platform {
    /// The platform of a Rust target; without one, of this machine.
    pub fn of(triple: Option<&str>) -> Result<Self> {
        let here = host()?;
        let triple = triple.unwrap_or(&here);
        let known = ALL.iter().find(|platform| platform.triple == triple);
        known.copied().with_context(|| {
            let names = ALL.map(|platform| platform.triple).join(", ");
            format!("'{triple}' is not supported; --target takes {names}")
        })
    }

    /// Whether its programs run here.
    pub fn is_here(&self) -> Result<bool> {
        Ok(host()? == self.triple)
    }

    /// Checks that this machine can build for it.
    pub fn check(&self) -> Result<()> {
        let mut missing = Vec::new();
        let folder =
            process::read(Command::new(rustc()).args(["--print", "target-libdir", "--target", self.triple]))?;
        if !Path::new(folder.trim()).is_dir() {
            missing.push(format!("Rust's standard library for it: rustup target add {}", self.triple));
        }
        if !self.is_here()? && std::env::var_os(self.linker_variable()).is_none() {
            let gcc = self.gcc();
            if process::read(Command::new(&gcc).arg("--version")).is_err() {
                let package = format!("gcc-{}", self.gnu);
                missing.push(format!(
                    "{gcc}, which compiles the libraries in C and links: apt-get install {package} \
                     (or name a compiler in {} and CC_{})",
                    self.linker_variable(),
                    self.triple.replace('-', "_")
                ));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        bail!(
            "no package for {} can be built on this machine; it lacks\n  {}",
            self.triple,
            missing.join("\n  ")
        )
    }

    /// Its cross compiler.
    pub fn gcc(&self) -> String {
        format!("{}-gcc", self.gnu)
    }

    /// The compiler of C for it.
    pub fn c_compiler(&self) -> Result<String> {
        Ok(if self.is_here()? { "gcc".to_owned() } else { self.gcc() })
    }

    /// Removes symbols that the loader does not need from its programs and libraries.
    pub fn strip(&self) -> String {
        format!("{}-strip", self.gnu)
    }

    /// The variable that tells cargo the linker.
    pub fn linker_variable(&self) -> String {
        format!("CARGO_TARGET_{}_LINKER", self.triple.replace('-', "_").to_uppercase())
    }
}

/// The compiler of Rust.
pub fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// The Rust target of this machine.
fn host() -> Result<String> {
    let text = process::read(Command::new(rustc()).arg("-vV"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("'rustc -vV' names no host")?.to_owned())
}
