//! The options of `cargo xtask test`: which tests run, and which kinds of skips are failures.

use anyhow::{Result, bail};
use numakit_skips::{KINDS, Kind, Machine};
use std::path::Path;

/// What becomes of the tests that measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measuring {
    /// They run last, after all others.
    #[default]
    Last,
    /// They are left out: the machine is busy.
    Without,
    /// Nothing else runs: the rest ran before, on a busy machine.
    Only,
}

/// What is asked for.
#[derive(Debug, Default)]
pub struct Options {
    /// Kinds that must not be skipped: distinct, in the order of the table.
    pub required: Vec<&'static Kind>,
    /// The second tier runs as well.
    pub thorough: bool,
    /// What becomes of the tests that measure.
    pub measuring: Measuring,
    /// Only the tests of these packages of Rust, such as `sensors`; none means all checks.
    pub packages: Vec<String>,
}

impl Options {
    /// Parses the options; `ci` adds the kinds that such a machine can have.
    pub fn parse(words: &[String], ci: Option<Machine>) -> Result<Self> {
        let mut options = Self::default();
        let mut named: Vec<&Kind> = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word.as_str(), None),
            };
            let mut value = |what: &str| match value.or_else(|| words.next().map(String::as_str)) {
                Some(value) => Ok(value.split(',').map(str::to_owned).collect::<Vec<_>>()),
                None => bail!("{name} needs {what}"),
            };
            match name {
                "--thorough" => options.thorough = true,
                "--without-measuring" => options.measuring = Measuring::Without,
                "--only-measuring" => options.measuring = Measuring::Only,
                "--package" => options.packages.extend(value("names of packages, such as sensors")?),
                "--require" => {
                    let names = value(&format!("kinds; there are:\n{}", table()))?;
                    named.extend(names.iter().map(|name| known(name)).collect::<Result<Vec<_>>>()?);
                }
                _ => bail!(
                    "test knows --thorough, --without-measuring, --only-measuring, --package NAMES and --require KINDS, \
                     got '{word}'; for some tests only: cargo test -p PACKAGE NAME"
                ),
            }
        }
        let wanted = |kind: &&Kind| {
            named.iter().any(|one| one.name == kind.name) || ci.is_some_and(|m| kind.on_ci.requires(&m))
        };
        options.required = KINDS.iter().filter(wanted).collect();
        Ok(options)
    }
}

fn known(name: &str) -> Result<&'static Kind> {
    match numakit_skips::kind(name) {
        Some(kind) => Ok(kind),
        None => bail!("--require: no kind '{name}'; there are:\n{}", table()),
    }
}

fn table() -> String {
    KINDS.iter().map(|kind| format!("  {:<11} {}", kind.name, kind.about)).collect::<Vec<_>>().join("\n")
}

/// This machine, if it runs CI: the variable `CI` is `true`, as every CI service sets it.
pub fn ci() -> Option<Machine> {
    std::env::var_os("CI").is_some_and(|value| value == "true").then(machine)
}

fn machine() -> Machine {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let apt = cfg!(target_arch = "x86_64") && Path::new("/usr/bin/apt-get").exists();
    Machine { root: crate::install::is_root(), apt, debian12: apt && is_debian12(&release) }
}

fn is_debian12(release: &str) -> bool {
    ["ID=debian", "VERSION_ID=\"12\""].iter().all(|line| release.lines().any(|l| l == *line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str], ci: Option<Machine>) -> Result<Options> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Options::parse(&words, ci)
    }

    fn parse(words: &[&str], ci: Option<Machine>) -> Result<Vec<&'static str>> {
        Ok(options(words, ci)?.required.iter().map(|kind| kind.name).collect())
    }

    #[test]
    fn tiers_and_packages_are_chosen() {
        let none = options(&[], None).unwrap();
        assert!(!none.thorough && none.measuring == Measuring::Last && none.packages.is_empty());
        let words = ["--thorough", "--package", "sensors,cli", "--package=model", "--without-measuring"];
        let all = options(&words, None).unwrap();
        assert!(all.thorough && all.measuring == Measuring::Without);
        assert_eq!(options(&["--only-measuring"], None).unwrap().measuring, Measuring::Only);
        assert_eq!(all.packages, ["sensors", "cli", "model"]);
        assert!(options(&["--package"], None).unwrap_err().to_string().contains("needs names"));
    }

    #[test]
    fn kinds_come_from_the_list_and_from_the_machine() {
        assert_eq!(parse(&[], None).unwrap(), Vec::<&str>::new());
        let both = ["--require", "guest,page", "--require=captures"];
        assert_eq!(parse(&both, None).unwrap(), ["page", "guest", "captures"]);
        let root = Machine { root: true, ..Machine::default() };
        let on_ci = parse(&["--require", "captures"], Some(root)).unwrap();
        assert_eq!(on_ci, ["page", "browser", "python", "tools", "compilers", "samples", "root", "captures"]);
    }

    #[test]
    fn unknown_kinds_are_refused_with_the_known_ones() {
        for words in [&["--require", "guest,qemu"][..], &["--require=qemu"], &["--require"]] {
            let error = parse(words, None).unwrap_err().to_string();
            assert!(KINDS.iter().all(|kind| error.contains(kind.about)), "{error}");
        }
        assert!(parse(&["numakit-cli"], None).unwrap_err().to_string().contains("cargo test -p"));
    }

    #[test]
    fn the_release_is_read_line_by_line() {
        assert!(is_debian12("NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n"));
        assert!(!is_debian12("VERSION_ID=\"12\"\nID_LIKE=debian\nID=other\n"));
    }
}
