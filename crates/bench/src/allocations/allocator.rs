//! The allocators that a program can run with.

use numakit_launch::preload::{Library, PreloadError};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// An allocator whose calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// The program's own, which is mostly that of the C library.
    None,
    /// libnumalloc, which gives free memory back at once.
    Lowmem,
    /// libnumalloc, which keeps free memory.
    Uma,
    /// libnumalloc, which keeps free memory on its node.
    Numa,
}

impl Counted {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 4] = [Self::None, Self::Lowmem, Self::Uma, Self::Numa];

    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lowmem => "lowmem",
            Self::Uma => "uma",
            Self::Numa => "numa",
        }
    }

    /// The variables of a program that runs with it. `preloaded` is what the user preloads.
    pub fn variables(self, preloaded: Option<&OsStr>) -> Result<Vec<(OsString, OsString)>, PreloadError> {
        let mut list = vec![Library::Count.extract()?];
        if self != Self::None {
            list.push(Library::Alloc.extract()?);
        }
        let mut variables = vec![("LD_PRELOAD".into(), joined(&list, preloaded))];
        if self != Self::None {
            variables.push(("NUMALLOC_PROFILE".into(), self.word().into()));
        }
        Ok(variables)
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Our libraries first, then the user's without those of the same names.
fn joined(ours: &[PathBuf], preloaded: Option<&OsStr>) -> OsString {
    let is_ours = |path: &[u8]| {
        [Library::Count, Library::Alloc].iter().any(|library| path.ends_with(library.name().as_bytes()))
    };
    let others = preloaded.unwrap_or_default().as_bytes().split(|byte| b": \t\n".contains(byte));
    let ours = ours.iter().map(|path| path.as_os_str().as_bytes());
    let all: Vec<&[u8]> = ours.chain(others.filter(|path| !path.is_empty() && !is_ours(path))).collect();
    OsString::from_vec(all.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_libraries_follow_ours() {
        let ours = [PathBuf::from("/c/libnumacount.so"), PathBuf::from("/c/libnumalloc.so")];
        let list =
            |preloaded: &str| joined(&ours, Some(OsStr::new(preloaded))).into_string().unwrap_or_default();
        assert_eq!(list(""), "/c/libnumacount.so:/c/libnumalloc.so");
        assert_eq!(list("/x/a.so: b.so"), "/c/libnumacount.so:/c/libnumalloc.so:/x/a.so:b.so");
        assert_eq!(list("/old/libnumalloc.so:b.so"), "/c/libnumacount.so:/c/libnumalloc.so:b.so");
    }
}
