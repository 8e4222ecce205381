//! Captures of real machines that are at hand for tests.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};

/// Four Opteron 6276 as hwloc lists such a machine, in the JSON form of a topology: pairs of cores
/// share a unit, which the kernel shows as one core of two threads.
pub const OPTERON_6276: &str = include_str!("../opteron-6276.json");

/// Their folder: `$NUMAKIT_CAPTURES`, else one beside this project.
fn folder() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    std::env::var_os("NUMAKIT_CAPTURES").map_or_else(beside, PathBuf::from)
}

/// The archives; none, and a line that says so, where they are not to be had.
pub fn archives() -> Vec<PathBuf> {
    let folder = folder();
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no captures in {}; name their folder in NUMAKIT_CAPTURES", folder.display());
        return Vec::new();
    };
    let mut archives: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    archives.retain(|path| path.to_string_lossy().ends_with(".tar.bz2"));
    archives.sort();
    archives
}
