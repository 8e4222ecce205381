//! Names of recordings and of what stands beside them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What names of recordings end in.
pub const EXTENSION: &str = "arrows";

/// Endings that promise another format, and what that is. `numa export` writes all but the last two.
const OTHERS: [(&str, &str); 11] = [
    ("csv", "CSV"),
    ("json", "JSON"),
    ("parquet", "Parquet"),
    ("pftrace", "a Perfetto trace"),
    ("lp", "line protocol"),
    ("influx", "line protocol"),
    ("om", "OpenMetrics"),
    ("prom", "Prometheus text"),
    ("txt", "text"),
    ("arrow", "an Arrow file, which is no stream"),
    ("feather", "an Arrow file, which is no stream"),
];

/// The side file of a recording. Where the path is a symbolic link, it is beside what that leads to.
pub fn tail_of(path: &Path) -> PathBuf {
    let place = match path.symlink_metadata() {
        Ok(there) if there.is_symlink() => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        _ => path.to_owned(),
    };
    let mut name: OsString = place.into_os_string();
    name.push(".tail");
    name.into()
}

/// What a file of that name would be taken for, if not for a recording.
pub(crate) fn promises(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    OTHERS.iter().find(|(ending, _)| *ending == extension).map(|(_, format)| *format)
}
