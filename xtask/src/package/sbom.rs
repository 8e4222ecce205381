//! The bill of materials of a package, in the format CycloneDX: what is linked into its programs and bundled into its page.

use super::built::{EMBEDDED, LIBRARIES};
use super::licences::{PAGE_PACKAGES, ThirdParty};
use super::platform::{Platform, rustc};
use super::{VERSION, date};
use crate::{process, workspace};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Our licences, and those of Rust.
const OWN: &str = "MIT OR Apache-2.0";
/// The version of the format.
const FORMAT: &str = "1.6";

/// The text of the file. It depends on nothing but the commit and the tools.
pub fn of(platform: &Platform, crates: &[ThirdParty]) -> Result<String> {
    let ours = LIBRARIES.iter().chain(&EMBEDDED).map(|name| Part::new("generic", name, VERSION, OWN));
    let mut parts: Vec<Part> = ours.collect();
    parts.extend(static_libraries(platform)?);
    parts.extend(in_page()?);
    let checksums = checksums(&fs::read_to_string(workspace::root().join("Cargo.lock"))?);
    for linked in crates {
        let mut part = Part::new("cargo", &linked.name, &linked.version, &linked.licence);
        part.sha256 = checksums.get(&(linked.name.clone(), linked.version.clone())).cloned();
        parts.extend(in_crate(linked));
        parts.push(part);
    }
    parts.sort_by(|one, other| one.purl.cmp(&other.purl));
    parts.dedup_by(|one, other| one.purl == other.purl);
    let time =
        process::read(Command::new("date").args(["-u", "+%FT%TZ", "-d"]).arg(format!("@{}", date()?)))?;
    let mut numakit = Part::new("generic", "numakit", VERSION, OWN).json();
    numakit["type"] = "application".into();
    let all = json!({
        "bomFormat": "CycloneDX",
        "specVersion": FORMAT,
        "version": 1,
        "metadata": { "timestamp": time.trim(), "component": numakit },
        "components": parts.iter().map(Part::json).collect::<Vec<_>>(),
    });
    Ok(format!("{all:#}\n"))
}

/// A part of the package.
struct Part {
    name: String,
    version: String,
    licence: String,
    /// The package URL.
    purl: String,
    sha256: Option<String>,
}

impl Part {
    fn new(kind: &str, name: &str, version: &str, licence: &str) -> Self {
        // A plus is a blank in URLs.
        let purl = format!("pkg:{kind}/{name}@{}", version.replace('+', "%2B"));
        // An older way to say it.
        let licence = licence.replace('/', " OR ");
        Self { name: name.to_owned(), version: version.to_owned(), licence, purl, sha256: None }
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "type": "library",
            "bom-ref": self.purl,
            "name": self.name,
            "version": self.version,
            "licenses": [{ "expression": self.licence }],
            "purl": self.purl,
        });
        if let Some(sha256) = &self.sha256 {
            value["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
        }
        value
    }
}

/// What the linker adds: the C library, the library of the compiler for C, and that of Rust.
fn static_libraries(platform: &Platform) -> Result<[Part; 3]> {
    let gcc = platform.c_compiler()?;
    let print =
        |word: &str| -> Result<String> { Ok(process::read(Command::new(&gcc).arg(word))?.trim().to_owned()) };
    let banner = "GNU C Library .* version [0-9.]*[0-9]";
    let library = print("-print-file-name=libc.a")?;
    let found = process::read(Command::new("grep").args(["-a", "-o", "-m", "1", banner]).arg(&library))?;
    let glibc = found.split_whitespace().last().with_context(|| format!("{library} names no version"))?;
    let rustc = process::read(Command::new(rustc()).arg("--version"))?;
    let rust = rustc.split_whitespace().nth(1).context("'rustc --version' names no version")?;
    Ok([
        Part::new("generic", "glibc", glibc, "LGPL-2.1-or-later"),
        Part::new(
            "generic",
            "libgcc",
            &print("-dumpfullversion")?,
            "GPL-3.0-or-later WITH GCC-exception-3.1",
        ),
        Part::new("generic", "rust-std", rust, OWN),
    ])
}

/// The packages of npm that are bundled into the page.
fn in_page() -> Result<Vec<Part>> {
    let lock: Value = serde_json::from_slice(&fs::read(workspace::root().join("web/package-lock.json"))?)?;
    let part = |name: &&str| {
        let entry = &lock["packages"][format!("node_modules/{name}")];
        let (version, licence) = (entry["version"].as_str(), entry["license"].as_str());
        let (version, licence) =
            version.zip(licence).with_context(|| format!("web/package-lock.json lacks {name}"))?;
        Ok(Part::new("npm", name, version, licence))
    };
    PAGE_PACKAGES.iter().map(part).collect()
}

/// The C library in a crate whose version names it, as `2.1.2+zstd.1.5.7` does.
fn in_crate(linked: &ThirdParty) -> Option<Part> {
    let (name, version) = linked.version.split_once('+')?.1.split_once('.')?;
    Some(Part::new("generic", name, version, &linked.licence))
}

/// The checksums of crates, by name and version, in Cargo.lock.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let entry = |package: &str| {
        Some(((value(package, "name")?, value(package, "version")?), value(package, "checksum")?))
    };
    lock.split("[[package]]").filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_crates_are_read() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"x\"\nchecksum = \"0f\"\n\n\
                    [[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let key = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(checksums(lock), BTreeMap::from([(key("a", "1.0.0"), "0f".to_owned())]));
    }

    #[test]
    fn a_version_names_the_library_that_a_crate_contains() {
        let linked = |version: &str| ThirdParty {
            name: "zstd-sys".to_owned(),
            version: version.to_owned(),
            licence: "MIT/Apache-2.0".to_owned(),
            manifest: String::new(),
        };
        let zstd = in_crate(&linked("2.1.2+zstd.1.5.7")).unwrap();
        assert_eq!((&*zstd.purl, &*zstd.licence), ("pkg:generic/zstd@1.5.7", OWN));
        assert!(in_crate(&linked("2.1.2")).is_none());
        assert_eq!(Part::new("cargo", "a", "1+b", OWN).purl, "pkg:cargo/a@1%2Bb");
    }

    #[test]
    fn static_libraries_have_versions() {
        for part in static_libraries(&Platform::of(None).unwrap()).unwrap() {
            let numbers = part.version.split('.').map(str::parse::<u32>);
            assert!(
                numbers.clone().count() > 1 && numbers.flatten().count() > 1,
                "{} {}",
                part.name,
                part.version
            );
        }
    }

    #[test]
    fn the_page_bundles_no_other_package() {
        let mut folders = vec![workspace::root().join("web/src")];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = fs::read_to_string(&path).unwrap();
                let imported = text.split(" from \"").skip(1).filter_map(|rest| rest.split('"').next());
                for name in imported.filter(|name| !name.starts_with('.')) {
                    assert!(PAGE_PACKAGES.contains(&name), "{} imports {name}", path.display());
                }
            }
        }
        assert_eq!(in_page().unwrap().len(), PAGE_PACKAGES.len());
    }
}
