//! The test programs: built by cargo once, with their packages.

use crate::process;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Name of its package.
    pub package: String,
    /// Name of its target, such as a file in `tests`.
    pub target: String,
    /// The executable.
    pub executable: PathBuf,
    /// Folder of the package, in which its tests run.
    pub folder: PathBuf,
    /// Whether it may run in parallel with others of its package, because it mostly uses one CPU.
    pub parallel: bool,
    /// Its position in the order of the package's programs.
    order: usize,
}

impl Program {
    /// Package and target, for messages.
    pub fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// The command, as cargo runs it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("CARGO_PKG_NAME", &self.package);
        command
    }

    /// Number of its tests.
    pub fn count(&self) -> Result<usize> {
        let list = process::read(self.command().args(["--list", "--format", "terse"]))?;
        Ok(list.lines().filter(|line| line.ends_with(": test")).count())
    }
}

/// Packages by their manifests.
type Packages = BTreeMap<PathBuf, Package>;

/// A package, with its settings in `[package.metadata.tests]`.
#[derive(Debug)]
struct Package {
    name: String,
    parallel: bool,
    /// Targets that run first, in this order.
    first: Vec<String>,
}

/// Builds all test programs, and shows cargo's progress.
pub fn build() -> Result<Vec<Program>> {
    let metadata = process::read(&mut process::cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let packages = packages(&serde_json::from_str(&metadata)?);
    let words = ["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"];
    let mut cargo = process::cargo(&words);
    let line = process::line(&cargo);
    let mut child = cargo.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start: {line}"))?;
    let mut programs = Vec::new();
    if let Some(output) = child.stdout.take() {
        for message in BufReader::new(output).lines() {
            programs.extend(program(&serde_json::from_str(&message?)?, &packages));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{status}: {line}");
    }
    programs
        .sort_by(|a: &Program, b| (&a.package, a.order, &a.target).cmp(&(&b.package, b.order, &b.target)));
    Ok(programs)
}

fn packages(metadata: &Value) -> Packages {
    let all = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |package: &Value| {
        let tests = &package["metadata"]["tests"];
        let first = tests["first"].as_array().map(Vec::as_slice).unwrap_or_default();
        let first = first.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        let name = package["name"].as_str()?.to_owned();
        let manifest = PathBuf::from(package["manifest_path"].as_str()?);
        Some((manifest, Package { name, parallel: tests["side-by-side"] == true, first }))
    };
    all.iter().filter_map(one).collect()
}

/// The test program in a message of cargo, if any.
fn program(message: &Value, packages: &Packages) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let package = packages.get(&manifest)?;
    let target = message["target"]["name"].as_str()?;
    Some(Program {
        package: package.name.clone(),
        target: target.to_owned(),
        executable: PathBuf::from(message["executable"].as_str()?),
        folder: manifest.parent()?.to_owned(),
        parallel: package.parallel,
        order: package.first.iter().position(|name| name == target).unwrap_or(package.first.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn programs_of_tests_are_found_among_the_messages() {
        let metadata = json!({"packages": [
            {"name": "one", "manifest_path": "/r/one/Cargo.toml", "metadata": null},
            {"name": "two", "manifest_path": "/r/two/Cargo.toml", "metadata": {"tests": {"side-by-side": true, "first": ["plain"]}}},
        ]});
        let packages = packages(&metadata);
        let artifact = |package: &str, test: bool, executable: Value| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": format!("/r/{package}/Cargo.toml"),
                "target": {"name": "plain"},
                "profile": {"test": test},
                "executable": executable,
            })
        };
        for other in [
            json!({"reason": "build-finished"}),
            artifact("one", false, json!("/t/one")),
            artifact("one", true, Value::Null),
            artifact("of-others", true, json!("/t/x")),
        ] {
            assert_eq!(program(&other, &packages), None, "{other}");
        }
        let found = |package| program(&artifact(package, true, json!("/t/plain-1")), &packages).unwrap();
        let two = found("two");
        assert_eq!((two.name().as_str(), two.parallel, two.order), ("two plain", true, 0));
        assert_eq!((two.executable, two.folder), (PathBuf::from("/t/plain-1"), PathBuf::from("/r/two")));
        assert!(!found("one").parallel);
    }
}
