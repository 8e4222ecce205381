//! The test programs: built by cargo once, with their packages.

use crate::process;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Tests measure if this begins their name, that of a module around them, or that of their program.
const MEASURING: &str = "measuring";

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
    /// Its tests run one after the other, since each keeps a CPU busy: they are guests.
    pub one_by_one: bool,
    /// Its position in the order of the package's programs.
    order: usize,
}

/// Tests of a program that run in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub program: Program,
    /// Their number.
    pub count: usize,
    /// The arguments of the program that choose them.
    pub choice: Vec<String>,
}

/// The tests of a program: those that run beside others, those that run alone, and the number of those for
/// `--thorough`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    pub beside: Option<Job>,
    pub alone: Option<Job>,
    pub left: usize,
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

    /// Names of its tests; with `ignored`, only those that run with `--thorough`.
    fn list(&self, ignored: bool) -> Result<Vec<String>> {
        let mut command = self.command();
        command.args(["--list", "--format", "terse"]).args(ignored.then_some("--ignored"));
        let list = process::read(&mut command)?;
        Ok(list.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect())
    }

    /// Divides its tests.
    pub fn split(self, thorough: bool) -> Result<Split> {
        let (all, ignored) = (self.list(false)?, self.list(true)?);
        Ok(self.split_lists(&all, &ignored, thorough))
    }

    fn split_lists(self, all: &[String], ignored: &[String], thorough: bool) -> Split {
        let (own, rest): (Vec<&String>, Vec<&String>) =
            all.iter().partition(|name| thorough || !ignored.contains(name));
        let (measuring, others): (Vec<&String>, Vec<&String>) =
            own.iter().copied().partition(|name| self.measures(name));
        let job = |tests: &[&String], choice: Vec<String>| {
            let tier = thorough.then(|| "--include-ignored".to_owned());
            let choice = choice.into_iter().chain(tier).collect();
            (!tests.is_empty()).then(|| Job { program: self.clone(), count: tests.len(), choice })
        };
        let named = |flag: Option<&str>| {
            let words = measuring.iter().flat_map(|name| flag.into_iter().chain([name.as_str()]));
            words.map(str::to_owned).chain((!measuring.is_empty()).then(|| "--exact".to_owned())).collect()
        };
        Split {
            beside: job(&others, named(Some("--skip"))),
            alone: job(&measuring, named(None)),
            left: rest.len(),
        }
    }

    /// What the order of programs depends on.
    fn key(&self) -> (usize, bool, &str, &str) {
        (self.order, !self.one_by_one, &self.package, &self.target)
    }

    fn measures(&self, test: &str) -> bool {
        std::iter::once(self.target.as_str()).chain(test.split("::")).any(|part| part.starts_with(MEASURING))
    }
}

/// Packages by their manifests.
type Packages = BTreeMap<PathBuf, Package>;

/// A package, with its settings in `[package.metadata.tests]`.
#[derive(Debug)]
struct Package {
    name: String,
    one_by_one: bool,
    /// Targets that run first, in this order.
    first: Vec<String>,
}

/// Builds the test programs of these packages, or of all, with numa and the examples, and shows cargo's progress.
pub fn build(packages_wanted: &[String]) -> Result<Vec<Program>> {
    let metadata = process::read(&mut process::cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let packages = packages(&serde_json::from_str(&metadata)?);
    let mut cargo = process::cargo(&["test", "--no-run", "--message-format", "json-render-diagnostics"]);
    cargo.args(chosen(packages_wanted, &packages)?);
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
    // What takes longest begins first, so that none of it is left at the end.
    programs.sort_by(|a: &Program, b| a.key().cmp(&b.key()));
    Ok(programs)
}

/// The packages as arguments of cargo: `sensors` means numakit-sensors.
fn chosen(wanted: &[String], packages: &Packages) -> Result<Vec<String>> {
    if wanted.is_empty() {
        return Ok(vec!["--workspace".to_owned()]);
    }
    let mut words = Vec::new();
    for name in wanted {
        let full = [name.clone(), format!("numakit-{name}")];
        let Some(package) = packages.values().find(|package| full.contains(&package.name)) else {
            let names: Vec<&str> = packages.values().map(|package| package.name.as_str()).collect();
            bail!("--package: no package '{name}'; there are: {}", names.join(", "));
        };
        words.extend(["--package".to_owned(), package.name.clone()]);
    }
    Ok(words)
}

fn packages(metadata: &Value) -> Packages {
    let all = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |package: &Value| {
        let tests = &package["metadata"]["tests"];
        let first = tests["first"].as_array().map(Vec::as_slice).unwrap_or_default();
        let first = first.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        let name = package["name"].as_str()?.to_owned();
        let manifest = PathBuf::from(package["manifest_path"].as_str()?);
        Some((manifest, Package { name, one_by_one: tests["one-by-one"] == true, first }))
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
        one_by_one: package.one_by_one,
        order: package.first.iter().position(|name| name == target).unwrap_or(usize::MAX),
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
            {"name": "two", "manifest_path": "/r/two/Cargo.toml", "metadata": {"tests": {"one-by-one": true, "first": ["plain"]}}},
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
        assert_eq!((two.name().as_str(), two.one_by_one, two.order), ("two plain", true, 0));
        assert_eq!((two.executable, two.folder), (PathBuf::from("/t/plain-1"), PathBuf::from("/r/two")));
        assert!(!found("one").one_by_one);
    }

    fn names(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn tests_are_divided_by_tier_and_by_what_they_do() {
        let program = |target: &str| Program {
            package: "p".to_owned(),
            target: target.to_owned(),
            executable: PathBuf::new(),
            folder: PathBuf::new(),
            one_by_one: false,
            order: 0,
        };
        let all = names(&["a", "b::measuring::c", "measuring_d", "e", "not_measuring"]);
        let ignored = names(&["measuring_d", "e"]);
        let first = program("t").split_lists(&all, &ignored, false);
        let (beside, alone) = (first.beside.unwrap(), first.alone.unwrap());
        assert_eq!((beside.count, alone.count, first.left), (2, 1, 2));
        assert_eq!(beside.choice, ["--skip", "b::measuring::c", "--exact"]);
        assert_eq!(alone.choice, ["b::measuring::c", "--exact"]);
        let both = program("t").split_lists(&all, &ignored, true);
        let (beside, alone) = (both.beside.unwrap(), both.alone.unwrap());
        assert_eq!((beside.count, alone.count, both.left), (3, 2, 0));
        assert_eq!(alone.choice, ["b::measuring::c", "measuring_d", "--exact", "--include-ignored"]);
        let whole = program("measuring").split_lists(&all, &ignored, false);
        assert_eq!((whole.beside, whole.alone.unwrap().count), (None, 3));
        let none = program("t").split_lists(&names(&["a"]), &names(&["a"]), false);
        assert_eq!(none, Split { left: 1, ..Split::default() });
    }

    #[test]
    fn packages_are_chosen_by_short_names() {
        let metadata = json!({"packages": [{"name": "numakit-sys", "manifest_path": "/r/sys/Cargo.toml"}]});
        let packages = packages(&metadata);
        assert_eq!(chosen(&[], &packages).unwrap(), ["--workspace"]);
        assert_eq!(chosen(&names(&["sys"]), &packages).unwrap(), ["--package", "numakit-sys"]);
        assert!(chosen(&names(&["sis"]), &packages).unwrap_err().to_string().contains("numakit-sys"));
    }
}
