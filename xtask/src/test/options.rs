//! The options of `cargo xtask test`: kinds of skips that are failures.

use anyhow::{Result, bail};
use numakit_skips::{KINDS, Kind, Machine};
use std::path::Path;

/// The kinds that must not be skipped.
#[derive(Debug, Default)]
pub struct Required {
    /// Distinct, in the order of the table.
    pub kinds: Vec<&'static Kind>,
}

impl Required {
    /// Parses the options; `ci` adds the kinds that such a machine can have.
    pub fn parse(words: &[String], ci: Option<Machine>) -> Result<Self> {
        let mut named = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let list = match (word.as_str(), word.strip_prefix("--require=")) {
                ("--require", _) => words.next().map(String::as_str),
                (_, Some(list)) => Some(list),
                _ => bail!(
                    "test knows --require KINDS, got '{word}'; for some tests only: cargo test -p PACKAGE NAME"
                ),
            };
            let Some(list) = list else { bail!("--require needs kinds; there are:\n{}", table()) };
            named.extend(list.split(',').map(known).collect::<Result<Vec<_>>>()?);
        }
        let wanted = |kind: &&Kind| {
            named.iter().any(|one: &&Kind| one.name == kind.name) || ci.is_some_and(|m| (kind.on_ci)(&m))
        };
        Ok(Self { kinds: KINDS.iter().filter(wanted).collect() })
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

    fn parse(words: &[&str], ci: Option<Machine>) -> Result<Vec<&'static str>> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(Required::parse(&words, ci)?.kinds.iter().map(|kind| kind.name).collect())
    }

    #[test]
    fn kinds_come_from_the_list_and_from_the_machine() {
        assert_eq!(parse(&[], None).unwrap(), Vec::<&str>::new());
        let both = ["--require", "guest,page", "--require=captures"];
        assert_eq!(parse(&both, None).unwrap(), ["page", "guest", "captures"]);
        let root = Machine { root: true, ..Machine::default() };
        let on_ci = parse(&["--require", "captures"], Some(root)).unwrap();
        assert_eq!(on_ci, ["page", "browser", "python", "tools", "compilers", "root", "captures"]);
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
