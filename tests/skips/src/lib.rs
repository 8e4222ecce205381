//! What a test may lack on a machine, and the line that it then prints:
//!
//! ```text
//! skipped (guest): no guest: there is no apt-get to fetch QEMU with
//! skipped in part (compilers): there is no gfortran
//! ```
//!
//! `cargo xtask test` counts these lines by their kind; `--require` names kinds. Tests in C, shell and
//! TypeScript print the same lines. This crate depends on nothing, since every test and xtask use it.
#![allow(clippy::print_stdout)]

use OnCi::{Always, If, Never};
use std::fmt::Display;

/// One kind of thing that a machine may lack.
#[derive(Debug)]
pub struct Kind {
    /// The word in the line and on the command line.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether it is required where CI runs.
    pub on_ci: OnCi,
}

/// Whether a machine that runs CI must have what a kind describes.
#[derive(Debug, Clone, Copy)]
pub enum OnCi {
    /// Every machine.
    Always,
    /// Machines of which this is true.
    If(fn(&Machine) -> bool),
    /// None, for this reason.
    Never(&'static str),
}

impl OnCi {
    /// Whether this machine must have it.
    pub fn requires(self, machine: &Machine) -> bool {
        match self {
            Self::Always => true,
            Self::If(can_have) => can_have(machine),
            Self::Never(_) => false,
        }
    }
}

/// What decides which kinds a CI machine can have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    /// The tests run as root.
    pub root: bool,
    /// Packages can be fetched with apt-get, for x86-64.
    pub apt: bool,
    /// The distribution is Debian 12, whose packages have fixed versions in the tests.
    pub debian12: bool,
}

macro_rules! kinds {
    ($($constant:ident, $name:literal, $on_ci:expr, $about:literal;)*) => {
        $(#[doc = $about] pub const $constant: Kind = Kind { name: $name, about: $about, on_ci: $on_ci };)*
        /// All kinds.
        pub const KINDS: &[Kind] = &[$($constant),*];
    };
}

kinds! {
    PAGE, "page", Always, "Node.js and npm, and a numa that has the web page";
    BROWSER, "browser", Always, "Chromium for tests of the page";
    PYTHON, "python", Always, "Python with pyarrow, pandas, polars and mcp";
    TOOLS, "tools", Always, "programs that tests compare with or run: numactl, hwloc, util-linux, binutils, interpreters";
    COMPILERS, "compilers", Always, "g++, gfortran, go, musl-gcc, and GCC's sanitizers";
    SAMPLES, "samples", Always, "samples of the instructions of a running program";
    GUEST, "guest", If(|m| m.apt), "QEMU with a kernel and busybox: a NUMA guest";
    CONTAINERS, "containers", If(|m| m.apt && m.root), "runc and the seccomp profile of Podman";
    SERVERS, "servers", If(|m| m.apt), "nginx, InfluxDB, Prometheus, VictoriaMetrics, node_exporter, PostgreSQL";
    ENGINES, "engines", If(|m| m.apt), "QuestDB and chdb, which only --thorough fetches";
    SCIENCES, "sciences", If(|m| m.debian12), "OpenBLAS, BLIS, ScaLAPACK, HPL, numpy and GROMACS of Debian, which only --thorough fetches";
    SIMULATOR, "simulator", If(|m| m.debian12), "a QEMU version that the simulated interconnect works in";
    RUNTIMES, "runtimes", If(|m| m.debian12), "MPI libraries, Java and numpy in the guest";
    ROOT, "root", If(|m| m.root), "being root";
    CLANG, "clang", Never("500 MiB that nothing else needs"), "Clang and its sanitizers";
    PRIVILEGES, "privileges", Never("a container refuses root what a machine permits"), "mounts, perf events, tracefs";
    MACHINE, "machine", Never("each machine lacks something"), "hardware or a kernel that this machine does not have";
    CAPTURES, "captures", Never("they are not part of the repository"), "captures of real machines, in NUMAKIT_CAPTURES";
    OLD_GLIBC, "old-glibc", Never("no package has one"), "an old glibc, in NUMAKIT_OLD_GLIBC";
    PROGRAMS, "programs", Never("they are large, and their versions differ"), "programs of others that run with a library of ours: redis, a JVM, a browser";
    PACKAGERS, "packagers", Never("only releases need them"), "lintian, rpmbuild, helm, strace, systemd-analyze";
    LAUNCHERS, "launchers", Never("they take a cluster or a licence"), "launchers of clusters";
}

/// The variable by which `cargo xtask test --thorough` tells tests to repeat what they do often.
pub const THOROUGH: &str = "NUMAKIT_THOROUGH";

/// How often a test repeats what it does: `usually` as every submission needs it, `thoroughly` with
/// `cargo xtask test --thorough`.
pub fn rounds(usually: usize, thoroughly: usize) -> usize {
    if std::env::var_os(THOROUGH).is_some() { thoroughly } else { usually }
}

impl Kind {
    /// For a test that cannot run here and returns after this.
    pub fn skip(&self, reason: impl Display) {
        println!("skipped ({}): {reason}", self.name);
    }

    /// For a test that leaves something out and goes on.
    pub fn skip_part(&self, reason: impl Display) {
        println!("skipped in part ({}): {reason}", self.name);
    }
}

/// A line that a test printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skip<'a> {
    /// The word for the kind, known or not.
    pub kind: &'a str,
    /// The test went on and tested something.
    pub in_part: bool,
}

impl<'a> Skip<'a> {
    /// Reads a line; nothing where it is another one.
    pub fn parse(line: &'a str) -> Option<Self> {
        let rest = line.strip_prefix("skipped ")?;
        let (in_part, rest) = match rest.strip_prefix("in part ") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (kind, _) = rest.strip_prefix('(')?.split_once("): ")?;
        Some(Self { kind, in_part })
    }
}

/// The kind of that name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_printed() {
        let whole = Skip { kind: "guest", in_part: false };
        assert_eq!(Skip::parse("skipped (guest): no apt-get (really): none"), Some(whole));
        let part = Skip { kind: "compilers", in_part: true };
        assert_eq!(Skip::parse("skipped in part (compilers): no gfortran"), Some(part));
        for other in ["skipped: no kind", "skipped guest: x", " skipped (guest): x", "skipped (guest) x"] {
            assert_eq!(Skip::parse(other), None, "{other}");
        }
    }

    #[test]
    fn names_are_different_and_fit_into_a_list() {
        for (at, one) in KINDS.iter().enumerate() {
            assert!(KINDS[..at].iter().all(|other| other.name != one.name), "{}", one.name);
            assert!(one.name.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit()));
        }
    }

    #[test]
    fn what_no_ci_machine_has_is_never_required() {
        let every = Machine { root: true, apt: true, debian12: true };
        let required: Vec<&str> =
            KINDS.iter().filter(|kind| kind.on_ci.requires(&every)).map(|kind| kind.name).collect();
        for name in ["guest", "page", "browser", "python", "root"] {
            assert!(required.contains(&name), "{name}");
        }
        for name in ["captures", "machine", "privileges", "clang"] {
            assert!(!required.contains(&name), "{name}");
        }
        let least: Vec<&str> =
            KINDS.iter().filter(|k| k.on_ci.requires(&Machine::default())).map(|k| k.name).collect();
        assert_eq!(least, ["page", "browser", "python", "tools", "compilers", "samples"]);
    }
}
