//! The directory below which files may be opened.

use crate::error::ToolError;
use numakit_recording::{Reader, tail_of};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// How deep recordings are looked for, and how many files are looked at.
const MAX_DEPTH: usize = 8;
const MAX_FILES: usize = 10_000;

/// The directory cannot be used.
#[derive(Debug, Error)]
#[error("cannot read the directory {path}: {error}; give the directory of your recordings")]
pub struct SharedDirectoryError {
    path: PathBuf,
    error: io::Error,
}

/// A directory without symbolic links in its path.
#[derive(Debug)]
pub struct SharedDirectory {
    path: PathBuf,
}

impl SharedDirectory {
    /// An existing directory.
    pub fn open(path: &Path) -> Result<Self, SharedDirectoryError> {
        let fail = |error| SharedDirectoryError { path: path.to_owned(), error };
        let real = path.canonicalize().map_err(fail)?;
        fs::read_dir(&real).map_err(fail)?;
        Ok(Self { path: real })
    }

    /// An existing file or directory below this one, without symbolic links in its path.
    pub(crate) fn inside(&self, name: &str) -> Result<PathBuf, ToolError> {
        let asked = Path::new(name);
        let directory = || self.path.display().to_string();
        let outside = || ToolError::Outside { name: name.to_owned(), directory: directory() };
        if asked.components().any(|part| part == Component::ParentDir) {
            return Err(outside());
        }
        let real = self.path.join(asked);
        // What is outside is not looked at, even to say whether it is there.
        if !real.starts_with(&self.path) {
            return Err(outside());
        }
        // Of a missing file, the part of the path that is there tells where it would be.
        let known = real.ancestors().find_map(|part| part.canonicalize().ok());
        if !known.is_some_and(|known| known.starts_with(&self.path)) {
            return Err(outside());
        }
        let unreadable =
            |error| ToolError::Unreadable { name: name.to_owned(), directory: directory(), error };
        let real = real.canonicalize().map_err(unreadable)?;
        if real.starts_with(&self.path) { Ok(real) } else { Err(outside()) }
    }

    /// Opens a recording, with its tail file if it has one.
    pub(crate) fn recording(&self, name: &str) -> Result<Reader, ToolError> {
        let file = self.inside(name)?;
        if tail_of(&file).is_symlink() {
            return Err(ToolError::LinkedTail(name.to_owned()));
        }
        Ok(Reader::open(&file)?)
    }

    /// The regular files below a directory by their paths relative to this one, and whether there are more.
    /// Symbolic links are not followed.
    pub(crate) fn files(&self, below: &str) -> Result<(Vec<PathBuf>, bool), ToolError> {
        let start = self.inside(below)?;
        if !start.is_dir() {
            return Err(ToolError::NoDirectory(below.to_owned()));
        }
        let (mut files, mut todo, mut seen) = (Vec::new(), vec![(start, 0)], 0);
        while let Some((dir, depth)) = todo.pop() {
            // A directory that may not be read has no recordings for this user.
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                seen += 1;
                if seen > MAX_FILES {
                    return Ok((files, true));
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => todo.push((entry.path(), depth + 1)),
                    Ok(kind) if kind.is_file() => {
                        files.extend(entry.path().strip_prefix(&self.path).map(Path::to_owned));
                    }
                    _ => {}
                }
            }
        }
        files.sort();
        Ok((files, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory with a file, beside another one with a secret.
    struct Scene(PathBuf);

    impl Scene {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("numakit-mcp-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("in/deep")).unwrap();
            fs::create_dir_all(path.join("out")).unwrap();
            fs::write(path.join("in/deep/a.arrows"), "a").unwrap();
            fs::write(path.join("out/secret.arrows"), "secret").unwrap();
            Self(path)
        }

        fn directory(&self) -> SharedDirectory {
            SharedDirectory::open(&self.0.join("in")).unwrap()
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn nothing_outside_is_opened() {
        let scene = Scene::new("outside");
        symlink("../out/secret.arrows", scene.0.join("in/link.arrows")).unwrap();
        symlink("../out", scene.0.join("in/linked")).unwrap();
        let directory = scene.directory();
        let absolute = scene.0.join("out/secret.arrows");
        for name in [
            "../out/secret.arrows",
            "deep/../../out/secret.arrows",
            "link.arrows",
            "linked/secret.arrows",
            "linked",
            "linked/none.arrows",
            absolute.to_str().unwrap(),
            "/etc/passwd",
            "..",
        ] {
            let error = directory.inside(name).unwrap_err().to_string();
            assert!(error.contains("is outside of") && error.contains("list_recordings"), "{name}: {error}");
        }
        assert!(directory.inside("deep/a.arrows").is_ok());
        let missing = directory.inside("none.arrows").unwrap_err().to_string();
        assert!(missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn links_are_not_followed_when_files_are_listed() {
        let scene = Scene::new("listed");
        symlink("../out", scene.0.join("in/linked")).unwrap();
        symlink(".", scene.0.join("in/loop")).unwrap();
        symlink("../out/secret.arrows", scene.0.join("in/b.arrows")).unwrap();
        assert_eq!(scene.directory().files(".").unwrap(), (vec![PathBuf::from("deep/a.arrows")], false));
        assert!(scene.directory().files("deep/a.arrows").unwrap_err().to_string().contains("no directory"));
    }

    #[test]
    fn a_linked_tail_file_is_refused() {
        let scene = Scene::new("tail");
        symlink("../../out/secret.arrows", tail_of(&scene.0.join("in/deep/a.arrows"))).unwrap();
        let error = scene.directory().recording("deep/a.arrows").unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
}
