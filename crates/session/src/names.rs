//! Which file a recording is made in.

use numakit_recording::{Header, Recorder, WriteError, names};
use std::path::{Path, PathBuf};

/// How a name is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// As it stands. A file that is there is replaced once, if forced: by the first recording.
    Own {
        /// Whether it is.
        force: bool,
    },
    /// As the original NUMAscope does: a name that is taken gets a number, as in `output_1.json`,
    /// unless it may be overwritten. What is to become JSON is first recorded beside it.
    Original {
        /// Whether it may.
        overwrite: bool,
    },
}

impl Names {
    /// Begins a recording. The name is that which the user knows it by.
    pub(crate) fn create(&mut self, path: &Path, header: &Header) -> Result<(PathBuf, Recorder), WriteError> {
        match self {
            Self::Own { force } => {
                let recorder = Recorder::create(path, header, *force)?;
                *force = false;
                Ok((path.to_owned(), recorder))
            }
            Self::Original { overwrite } => numbered(path, header, *overwrite),
        }
    }
}

/// Where the recording is kept until it becomes this file, if it is to become JSON.
fn before_json(name: &Path) -> Option<PathBuf> {
    let json = name.extension().is_some_and(|extension| extension == "json");
    json.then(|| {
        let mut path = name.as_os_str().to_owned();
        path.push(".");
        path.push(names::EXTENSION);
        path.into()
    })
}

/// The file that a recording of [`Names::Original`] is to become; none where it stays as it is.
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
            Err(WriteError::Exists(_) | WriteError::Busy(_)) if !overwrite => {}
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
    fn names_get_numbers_before_their_ending() {
        assert_eq!(with_number(Path::new("a/output.json"), 1), Path::new("a/output_1.json"));
        assert_eq!(with_number(Path::new("run"), 12), Path::new("run_12"));
    }

    #[test]
    fn what_becomes_json_is_known_by_its_name() {
        assert_eq!(before_json(Path::new("a/f.json")), Some("a/f.json.arrows".into()));
        assert_eq!(before_json(Path::new("f.arrows")), None);
        assert_eq!(json_of(Path::new("a/f.json.arrows")), Some("a/f.json".into()));
        assert_eq!(json_of(Path::new("f.arrows")), None);
    }
}
