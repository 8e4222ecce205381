//! Captures of real machines that are at hand for tests.

use std::path::{Path, PathBuf};

/// Four Opteron 6276 as hwloc lists such a machine, in the JSON form of a topology: pairs of cores
/// share a unit, which the kernel shows as one core of two threads.
pub const OPTERON_6276: &str = include_str!("../opteron-6276.json");

/// Their folder: `$NUMAKIT_CAPTURES`, else one beside this project.
fn folder() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    std::env::var_os("NUMAKIT_CAPTURES").map_or_else(beside, PathBuf::from)
}

/// The archives; none, and a line that says so, where there are none.
pub fn archives() -> Vec<PathBuf> {
    found().unwrap_or_else(|reason| {
        numakit_skips::CAPTURES.skip(reason);
        Vec::new()
    })
}

/// The same for a test that has other machines too.
pub fn further_archives() -> Vec<PathBuf> {
    found().unwrap_or_else(|reason| {
        numakit_skips::CAPTURES.skip_part(reason);
        Vec::new()
    })
}

/// The archive of a machine that is odd in one way, from the folder of such cases beside the captures; none, and a line that
/// says so, where it is missing.
pub fn case(name: &str) -> Option<PathBuf> {
    let path = folder().join("../cases").join(name);
    if path.is_file() {
        return Some(path);
    }
    numakit_skips::CAPTURES.skip(format!("there is no {}", path.display()));
    None
}

fn found() -> Result<Vec<PathBuf>, String> {
    let folder = folder();
    let none = || format!("no captures in {}; name their folder in NUMAKIT_CAPTURES", folder.display());
    let entries = std::fs::read_dir(&folder).map_err(|_| none())?;
    let mut archives: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    archives.retain(|path| path.to_string_lossy().ends_with(".tar.bz2"));
    archives.sort();
    if archives.is_empty() { Err(none()) } else { Ok(archives) }
}
