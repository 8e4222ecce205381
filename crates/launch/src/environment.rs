//! The environment of a program: variables that placement sets or unsets, and those that the user set and keeps.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The loader's list of libraries.
pub const PRELOAD: &str = "LD_PRELOAD";
/// Variables by which other tools bind threads, against the plan.
const BINDING: [&str; 7] = [
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_HW_SUBSET",
    "KMP_PLACE_THREADS",
    "MP_BIND",
    "MP_BLIST",
    "SUNW_MP_PROCBIND",
];
/// Variables of numakit; a launch within another one must not inherit some of them.
const OURS: [&str; 12] = [
    "NUMA_PLACE",
    "NUMA_MASK",
    "NUMA_NODES",
    "NUMA_MEMORY",
    "NUMA_HOLD",
    "NUMA_VERBOSE",
    "NUMA_INHERIT",
    "NUMA_MAIN",
    "NUMA_RANKS",
    "NUMA_PROCESS",
    "NUMA_APPLY",
    "NUMA_MPI",
];
const LIBRARY: &[u8] = b"libnumaplace.so";
const ALLOCATOR: &[u8] = b"libnumalloc.so";
const CURE: &[u8] = b"libnumaapply.so";
/// The library of loops.
const LOOPS: &[u8] = b"libnumasched.so";
const MPI: &[u8] = b"libnumampi.so";
/// Those of our libraries that observe the program: blocks are theirs to see before a cure gives them memory.
const OBSERVERS: [&[u8]; 2] = [b"libnumaexplain.so", b"libnumacount.so"];

/// A changed variable of the environment, or one that would have been changed but that the user set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentChange {
    /// Name, value, and the value before, if any.
    Set(String, OsString, Option<OsString>),
    /// Name, and the value before.
    Unset(String, OsString),
    /// Name, and the value that the user set.
    Kept(String, OsString),
}

impl fmt::Display for EnvironmentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(name, value, None) => write!(f, "set {name}={}", value.display()),
            Self::Set(name, value, Some(before)) => {
                write!(f, "set {name}={} (was '{}')", value.display(), before.display())
            }
            Self::Unset(name, value) => {
                write!(f, "unset {name} (was '{}'): it would bind threads differently", value.display())
            }
            Self::Kept(name, value) => write!(f, "kept {name}={}: it was set before", value.display()),
        }
    }
}

/// An environment with a list of its changes.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    changes: Vec<EnvironmentChange>,
}

impl Environment {
    /// The caller's environment. If this launch is within another launch, that one's variables are left out.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Self { variables: variables.into_iter().collect(), changes: Vec::new() };
        for name in OURS {
            environment.variables.remove(OsStr::new(name));
        }
        environment
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        let value = value.into();
        let before = self.variables.insert(name.into(), value.clone());
        if before.as_ref() != Some(&value) {
            self.changes.push(EnvironmentChange::Set(name.to_owned(), value, before));
        }
    }

    /// Sets a variable unless the user did.
    pub fn set_default(&mut self, name: &str, value: impl Into<OsString>) {
        match self.get(name).map(OsStr::to_owned) {
            None => self.set(name, value),
            Some(present) => self.changes.push(EnvironmentChange::Kept(name.to_owned(), present)),
        }
    }

    /// Adds an option to those that the user has set: one of a list with blanks for Java, else one with colons. A variable without
    /// a list keeps the user's value.
    pub fn add_option(&mut self, name: &str, value: &str) {
        let separator = match name {
            "GLIBC_TUNABLES" | "ASAN_OPTIONS" => ":",
            "JDK_JAVA_OPTIONS" => " ",
            "GODEBUG" | "MALLOC_CONF" => ",",
            _ => return self.set_default(name, value),
        };
        let option = value.split('=').next().unwrap_or(value);
        let mut list = self.get(name).unwrap_or_default().to_owned();
        if list.to_string_lossy().contains(option) {
            return self.report_kept(name);
        }
        if !list.is_empty() {
            list.push(separator);
        }
        list.push(value);
        self.set(name, list);
    }

    /// Reports that a variable keeps the user's value, if it is set.
    pub fn report_kept(&mut self, name: &str) {
        if let Some(present) = self.get(name).map(OsStr::to_owned) {
            self.changes.push(EnvironmentChange::Kept(name.to_owned(), present));
        }
    }

    /// Unsets a variable.
    pub fn unset(&mut self, name: &str) {
        if let Some(before) = self.variables.remove(OsStr::new(name)) {
            self.changes.push(EnvironmentChange::Unset(name.to_owned(), before));
        }
    }

    /// Unsets variables that would bind threads differently.
    pub fn unset_bindings(&mut self) {
        BINDING.iter().for_each(|name| self.unset(name));
    }

    /// Puts our library first in the list of preloaded ones.
    pub fn preload(&mut self, library: &Path) {
        self.preload_first(library, LIBRARY);
    }

    /// Puts our allocator first in the list of preloaded libraries, before any other allocator.
    pub fn preload_allocator(&mut self, library: &Path) {
        self.preload_first(library, ALLOCATOR);
    }

    /// Puts the library of cures behind those that observe the program, and before any allocator.
    pub fn preload_cure(&mut self, library: &Path) {
        let mut list = self.preloaded_except(CURE);
        let is_observer = |entry: &Vec<u8>| OBSERVERS.contains(&file_name(entry));
        let behind = list.iter().rposition(is_observer).map_or(0, |last| last + 1);
        list.insert(behind, library.as_os_str().as_bytes().to_vec());
        self.set(PRELOAD, OsString::from_vec(list.join(&b':')));
    }

    /// Puts the library of loops first in the list of preloaded ones.
    pub fn preload_loops(&mut self, library: &Path) {
        self.preload_first(library, LOOPS);
    }

    /// Puts the library that writes down calls of MPI last: it has no function that another library has, but for tools that
    /// observe MPI too, which it calls.
    pub fn preload_mpi(&mut self, library: &Path) {
        let mut list = self.preloaded_except(MPI);
        list.push(library.as_os_str().as_bytes().to_vec());
        self.set(PRELOAD, OsString::from_vec(list.join(&b':')));
    }

    fn preload_first(&mut self, library: &Path, name: &[u8]) {
        let mut list = library.as_os_str().as_bytes().to_vec();
        for other in self.preloaded_except(name) {
            list.push(b':');
            list.extend(other);
        }
        self.set(PRELOAD, OsString::from_vec(list));
    }

    /// Removes our library from the list of preloaded libraries, if a launch around this one has put it there.
    pub fn remove_preload(&mut self) {
        let others = self.preloaded_except(LIBRARY);
        let Some(before) = self.get(PRELOAD) else { return };
        let kept = OsString::from_vec(others.join(&b':'));
        if kept.is_empty() {
            self.variables.remove(OsStr::new(PRELOAD));
        } else if kept != before {
            self.variables.insert(PRELOAD.into(), kept);
        }
    }

    /// The libraries in the list, without the one of this name.
    fn preloaded_except(&self, name: &[u8]) -> Vec<Vec<u8>> {
        entries_except(self.get(PRELOAD).unwrap_or_default(), name)
    }

    /// The changes.
    pub fn changes(&self) -> &[EnvironmentChange] {
        &self.changes
    }

    /// All variables.
    pub fn into_variables(self) -> Vec<(OsString, OsString)> {
        self.variables.into_iter().collect()
    }
}

/// The libraries of a list, without the one of this name.
fn entries_except(list: &OsStr, name: &[u8]) -> Vec<Vec<u8>> {
    // The loader accepts colons and spaces as separators.
    let names = list.as_bytes().split(|&b| b == b':' || b == b' ');
    let is_it = |entry: &[u8]| file_name(entry) == name;
    names.filter(|entry| !entry.is_empty() && !is_it(entry)).map(<[u8]>::to_vec).collect()
}

/// A list of preloaded libraries without that of cures.
pub(crate) fn without_cure(list: &OsStr) -> OsString {
    OsString::from_vec(entries_except(list, CURE).join(&b':'))
}

/// The last part of a path.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Environment {
        Environment::of(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    fn changes(environment: &Environment) -> Vec<String> {
        environment.changes().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_users_values_are_kept_and_bindings_are_unset() {
        let mut environment =
            of(&[("OMP_NUM_THREADS", "3"), ("KMP_AFFINITY", "compact"), ("OMP_PLACES", "cores"), ("A", "b")]);
        environment.unset_bindings();
        environment.set("OMP_PLACES", "{0},{1}");
        environment.set_default("OMP_NUM_THREADS", "2");
        environment.set_default("OMP_WAIT_POLICY", "ACTIVE");
        assert_eq!(
            changes(&environment),
            [
                "unset KMP_AFFINITY (was 'compact'): it would bind threads differently",
                "set OMP_PLACES={0},{1} (was 'cores')",
                "kept OMP_NUM_THREADS=3: it was set before",
                "set OMP_WAIT_POLICY=ACTIVE",
            ]
        );
        assert_eq!(environment.get("A"), Some(OsStr::new("b")));
        assert!(environment.into_variables().iter().all(|(name, _)| name != "KMP_AFFINITY"));
    }

    #[test]
    fn other_preloaded_libraries_follow_ours() {
        let list = |before: Option<&str>| {
            let mut environment = of(&before.map(|b| ("LD_PRELOAD", b)).into_iter().collect::<Vec<_>>());
            environment.preload(Path::new("/c/libnumaplace.so"));
            environment.get(PRELOAD).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(list(None), "/c/libnumaplace.so");
        assert_eq!(list(Some("")), "/c/libnumaplace.so");
        assert_eq!(list(Some("libjemalloc.so.2 /x/a.so")), "/c/libnumaplace.so:libjemalloc.so.2:/x/a.so");
        assert_eq!(list(Some("/old/libnumaplace.so:/x/a.so")), "/c/libnumaplace.so:/x/a.so");
    }

    #[test]
    fn a_cure_s_library_is_behind_observers_and_before_allocators() {
        let list = |before: &str| {
            let mut environment = of(&[("LD_PRELOAD", before)]);
            environment.preload_cure(Path::new("/c/libnumaapply.so"));
            environment.get(PRELOAD).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(list(""), "/c/libnumaapply.so");
        assert_eq!(list("a.so"), "/c/libnumaapply.so:a.so");
        assert_eq!(list("/e/libnumaexplain.so:a.so"), "/e/libnumaexplain.so:/c/libnumaapply.so:a.so");
        assert_eq!(list("/o/libnumaapply.so:a.so"), "/c/libnumaapply.so:a.so");
    }

    #[test]
    fn options_are_added_to_those_of_the_user() {
        let added = |name: &str, before: &str, value: &str| {
            let mut environment = of(&[(name, before)]);
            environment.add_option(name, value);
            environment.get(name).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(added("JDK_JAVA_OPTIONS", "-Xmx1g", "-XX:+UseNUMA"), "-Xmx1g -XX:+UseNUMA");
        assert_eq!(added("GLIBC_TUNABLES", "a=1", "a=2"), "a=1");
        assert_eq!(added("PYTHONMALLOC", "debug", "malloc"), "debug");
    }

    #[test]
    fn variables_of_a_launch_around_this_one_are_removed() {
        let mut environment =
            of(&[("NUMA_PLACE", "0-3"), ("NUMA_HOLD", "100"), ("LD_PRELOAD", "/c/libnumaplace.so")]);
        assert_eq!((environment.get("NUMA_PLACE"), environment.get("NUMA_HOLD")), (None, None));
        environment.remove_preload();
        assert_eq!(environment.get(PRELOAD), None);
        let mut environment = of(&[("LD_PRELOAD", "a.so:/c/libnumaplace.so")]);
        environment.remove_preload();
        assert_eq!(environment.get(PRELOAD), Some(OsStr::new("a.so")));
    }
}
