//! Names of recordings and of their tail files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The extension of recordings.
pub const EXTENSION: &str = "arrows";

/// Extensions of other formats. `numa export` writes all but the last two.
const OTHER_FORMATS: [(&str, &str); 11] = [
    ("csv", "CSV"),
    ("json", "JSON"),
    ("parquet", "Parquet"),
    ("pftrace", "a Perfetto trace"),
    ("lp", "line protocol"),
    ("influx", "line protocol"),
    ("om", "OpenMetrics"),
    ("prom", "Prometheus text"),
    ("txt", "text"),
    ("arrow", "an Arrow file, which is not a stream"),
    ("feather", "an Arrow file, which is not a stream"),
];

/// The tail file of a recording. If the path is a symbolic link, it is next to the link's target.
pub fn tail_of(path: &Path) -> PathBuf {
    let place = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        _ => path.to_owned(),
    };
    let mut name: OsString = place.into_os_string();
    name.push(".tail");
    name.into()
}

/// The format of a file name, if it is not a recording.
pub(crate) fn other_format(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    OTHER_FORMATS.iter().find(|(ending, _)| *ending == extension).map(|(_, format)| *format)
}
