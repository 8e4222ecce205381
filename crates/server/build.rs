//! Builds the page with Node.js and embeds it. If that fails, the program has no page and says why.
#![allow(clippy::print_stdout)]

use std::fmt::Write;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::result::Result as Either;
use std::{env, fs};

/// The files of the page and their content types.
const FILES: [(&str, &str); 4] = [
    ("index.html", "text/html; charset=utf-8"),
    ("app.js", "text/javascript; charset=utf-8"),
    ("app.css", "text/css; charset=utf-8"),
    ("icon.svg", "image/svg+xml"),
];
/// What the page is built from.
const SOURCES: [&str; 6] =
    ["build.mjs", "package.json", "package-lock.json", "index.html", "icon.svg", "src"];
/// Minimum version of Node.js; package.json says the same.
const NODE: (u32, u32) = (18, 17);
const INSTALL: &str = "install Node.js 18.17 or later with npm, then build again";

/// Why there is no page.
#[derive(Debug)]
pub struct Missing {
    /// What is missing or failed.
    pub reason: String,
    /// How to get a page.
    pub fix: String,
}

impl Missing {
    fn node(reason: String) -> Self {
        Self { reason, fix: INSTALL.into() }
    }

    /// The reason as a Rust expression for src/page.rs.
    pub fn expression(&self) -> String {
        format!("Err(NoPage {{ reason: {:?}, fix: {:?} }})", self.reason, self.fix)
    }
}

fn main() -> Result<()> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // A packaged crate has only the built page; the source tarball has both.
    let is_shipped = web.join("dist/shipped").is_file();
    let built = if web.join("package.json").is_file() && !is_shipped {
        build(&web, &out.join("web"), ["node", "npm"])?
    } else {
        println!("cargo::rerun-if-changed={}", web.display());
        Ok(web.join("dist"))
    };
    let code = match built {
        Ok(dist) => embed(&dist)?,
        Err(missing) => {
            println!("cargo::warning=numa will have no web page: {}; {}", missing.reason, missing.fix);
            // This file never exists, so the next build tries again.
            println!("cargo::rerun-if-changed={}", out.join("no-page").display());
            missing.expression()
        }
    };
    fs::write(out.join("page.rs"), code)
}

/// The files as a Rust expression.
pub fn embed(dist: &Path) -> Result<String> {
    let mut code = String::from("Ok(&[\n");
    for (name, kind) in FILES {
        let path = dist.join(name);
        if !path.is_file() {
            return Err(Error::other(format!("there is no {}", path.display())));
        }
        let _ =
            writeln!(code, "File {{ name: {name:?}, kind: {kind:?}, content: include_bytes!({path:?}) }},");
    }
    code.push_str("])");
    Ok(code)
}

/// Builds the page in a separate folder, so that the sources do not change. An error is one of the
/// sources; if this machine lacks something, the result is a [`Missing`].
pub fn build(web: &Path, copy: &Path, [node, npm]: [&str; 2]) -> Result<Either<PathBuf, Missing>> {
    for name in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(name).display());
        copy_all(&web.join(name), &copy.join(name))?;
    }
    if let Err(missing) = programs(node, npm) {
        return Ok(Err(missing));
    }
    if let Err(missing) = packages(copy, npm)? {
        return Ok(Err(missing));
    }
    output_of(Command::new(node).arg("build.mjs").current_dir(copy)).map_err(Error::other)?;
    Ok(Ok(copy.join("dist")))
}

/// Checks that both run, and that Node.js is not too old.
fn programs(node: &str, npm: &str) -> Either<(), Missing> {
    let version = output_of(Command::new(node).arg("--version")).map_err(Missing::node)?;
    let mut numbers = version.trim().trim_start_matches('v').split('.').map_while(|part| part.parse().ok());
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if number < NODE {
        return Err(Missing::node(format!("'{node} --version' says {}", version.trim())));
    }
    output_of(Command::new(npm).arg("--version")).map(drop).map_err(Missing::node)
}

/// Installs the npm packages, unless those of this lock file are installed.
fn packages(copy: &Path, npm: &str) -> Result<Either<(), Missing>> {
    let wanted = fs::read(copy.join("package-lock.json"))?;
    let installed = copy.join("node_modules/.installed");
    if fs::read(&installed).is_ok_and(|there| there == wanted) {
        return Ok(Ok(()));
    }
    let mut install = Command::new(npm);
    install.args(["ci", "--omit=dev", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"]);
    if let Err(reason) = output_of(install.current_dir(copy)) {
        let fix = "let npm reach its registry, then build again".into();
        return Ok(Err(Missing { reason, fix }));
    }
    fs::write(installed, wanted)?;
    Ok(Ok(()))
}

/// Runs a program and returns its output; an error is one line that says what failed.
fn output_of(command: &mut Command) -> Either<String, String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let output = command.output().map_err(|error| format!("'{line}' could not be started ({error})"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    Err(format!("'{line}' failed ({}): {}", output.status, text.trim()))
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::copy(from, to).map(drop);
    }
    // Files that were removed from the sources disappear here too.
    let _ = fs::remove_dir_all(to);
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
