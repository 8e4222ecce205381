//! The file name of a recording.

use numakit_recording::{Header, Recorder, WriteError, names};
use std::path::{Path, PathBuf};

/// How the name of a recording is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingNames {
    /// Exactly. An existing file is replaced once, if forced: by the first recording.
    Exact {
        /// Whether it is.
        force: bool,
    },
    /// As in the original NUMAscope: if the file exists, the name gets a number, as in `output_1.json`,
    /// unless it may be overwritten. JSON is recorded to another file first and then converted.
    Original {
        /// Whether it may.
        overwrite: bool,
    },
}

impl RecordingNames {
    /// Starts a recording. Returns the name for messages.
    pub(crate) fn create(&mut self, path: &Path, header: &Header) -> Result<(PathBuf, Recorder), WriteError> {
        match self {
            Self::Exact { force } => {
                let recorder = Recorder::create(path, header, *force)?;
                *force = false;
                Ok((path.to_owned(), recorder))
            }
            Self::Original { overwrite } => numbered(path, header, *overwrite),
        }
    }
}

/// The file to which a recording is written before it becomes this JSON file.
fn before_json(name: &Path) -> Option<PathBuf> {
    let json = name.extension().is_some_and(|extension| extension == "json");
    json.then(|| {
        let mut path = name.as_os_str().to_owned();
        path.push(".");
        path.push(names::EXTENSION);
        path.into()
    })
}

/// The JSON file that a recording of [`RecordingNames::Original`] becomes, if it does.
pub fn json_of(recording: &Path) -> Option<PathBuf> {
    let name = recording.with_extension("");
    before_json(&name).filter(|path| path == recording).map(|_| name)
}

fn numbered(path: &Path, header: &Header, overwrite: bool) -> Result<(PathBuf, Recorder), WriteError> {
    let mut number = 0u32;
    loop {
        let name = if number == 0 { path.to_owned() } else { with_number(path, number) };
        number += 1;
        let before = before_json(&name);
        if before.is_some() && !overwrite && name.symlink_metadata().is_ok() {
            continue;
        }
        match Recorder::create(before.as_deref().unwrap_or(&name), header, overwrite) {
            Err(WriteError::Exists(_) | WriteError::LeftBehind(_) | WriteError::Busy(_)) if !overwrite => {}
            other => return other.map(|recorder| (name, recorder)),
        }
    }
}

/// `output.json` with 1 is `output_1.json`.
fn with_number(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("_{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_before_the_extension() {
        assert_eq!(with_number(Path::new("a/output.json"), 1), Path::new("a/output_1.json"));
        assert_eq!(with_number(Path::new("run"), 12), Path::new("run_12"));
    }

    #[test]
    fn json_is_recognised_by_its_extension() {
        assert_eq!(before_json(Path::new("a/f.json")), Some("a/f.json.arrows".into()));
        assert_eq!(before_json(Path::new("f.arrows")), None);
        assert_eq!(json_of(Path::new("a/f.json.arrows")), Some("a/f.json".into()));
        assert_eq!(json_of(Path::new("f.arrows")), None);
    }
}
