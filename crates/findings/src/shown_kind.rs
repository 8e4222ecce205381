//! What a file that numa wrote contains, by its content.

use crate::comparison::explained::saved::{self, SavedResultError};
use numakit_sys::file::open_to_read;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The bytes that tell JSON from other files.
const HEAD: usize = 64;

/// What a file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownKind {
    /// A recording, or something that is none of the others: who reads it says what is wrong.
    Recording,
    /// What `numa explain --json` wrote.
    Explained,
    /// What `numa bench --json` wrote.
    Bench,
}

impl fmt::Display for ShownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recording => "a recording",
            Self::Explained => "a result of 'numa explain'",
            Self::Bench => "a result of 'numa bench'",
        })
    }
}

/// Why files cannot be shown.
#[derive(Debug, Error)]
pub enum ShownKindError {
    /// It cannot be read.
    #[error(
        "cannot read {path}: {error}; give a recording, or a result of 'numa explain --json' or 'numa bench --json'"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It cannot be read as a whole.
    #[error(transparent)]
    Result(#[from] SavedResultError),
    /// It is JSON of another kind.
    #[error(
        "{path} is neither a recording nor a result of 'numa explain --json' or 'numa bench --json': {why}"
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// They are of several kinds.
    #[error("{first} is {kind}, and {other} is {other_kind}: show files of one kind at a time")]
    Mixed {
        /// The first file.
        first: PathBuf,
        /// Its kind.
        kind: ShownKind,
        /// A file of another kind.
        other: PathBuf,
        /// The kind of that.
        other_kind: ShownKind,
    },
}

impl ShownKind {
    /// The kind of a file.
    pub fn of(path: &Path) -> Result<Self, ShownKindError> {
        /// The keys by which results are told from each other.
        #[derive(Deserialize)]
        struct Keys {
            regime: Option<IgnoredAny>,
            benchmarks: Option<IgnoredAny>,
        }
        let mut head = Vec::with_capacity(HEAD);
        let read = open_to_read(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
        read.map_err(|error| ShownKindError::Read { path: path.to_owned(), error })?;
        if head.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Ok(Self::Recording);
        }
        let unknown = |why: String| ShownKindError::Unknown { path: path.to_owned(), why };
        let keys: Keys =
            serde_json::from_slice(&saved::read(path)?).map_err(|error| unknown(error.to_string()))?;
        match (keys.regime, keys.benchmarks) {
            (Some(_), _) => Ok(Self::Explained),
            (None, Some(_)) => Ok(Self::Bench),
            (None, None) => Err(unknown("it is another kind of JSON".to_owned())),
        }
    }

    /// The kind of all files, which is one. No files are recordings.
    pub fn of_all(paths: &[PathBuf]) -> Result<Self, ShownKindError> {
        let Some((first, others)) = paths.split_first() else { return Ok(Self::Recording) };
        let kind = Self::of(first)?;
        for other in others {
            let other_kind = Self::of(other)?;
            if other_kind != kind {
                let (first, other) = (first.clone(), other.clone());
                return Err(ShownKindError::Mixed { first, kind, other, other_kind });
            }
        }
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_says_what_a_file_is() {
        let folder = std::env::temp_dir().join(format!("numakit-kinds-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, content: &str| {
            std::fs::write(folder.join(name), content).unwrap();
            folder.join(name)
        };
        let recording = file("explain.json", "[[\"links\",2,1000]");
        let explained = file("a.arrows", " \n{\"version\": 1, \"regime\": \"precise\"}");
        let bench = file("b", "{\"version\": 1, \"benchmarks\": []}");
        let empty = file("empty", "");
        for (path, kind) in [
            (&recording, ShownKind::Recording),
            (&explained, ShownKind::Explained),
            (&bench, ShownKind::Bench),
            (&empty, ShownKind::Recording),
        ] {
            assert_eq!(ShownKind::of(path).unwrap(), kind, "{path:?}");
            assert_eq!(ShownKind::of_all(&[path.clone(), path.clone()]).unwrap(), kind, "{path:?}");
        }
        for (paths, part) in [
            (vec![explained.clone(), bench.clone()], "a.arrows is a result of 'numa explain', and "),
            (
                vec![recording, explained.clone()],
                "a.arrows is a result of 'numa explain': show files of one kind",
            ),
            (vec![file("other", "{\"runs\": []}")], "it is another kind of JSON"),
            (vec![file("cut", "{\"regime\": \"precise\"")], "EOF while parsing"),
            (vec![folder.join("none")], "No such file"),
            (vec![folder.clone()], "folder"),
        ] {
            let error = ShownKind::of_all(&paths).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
