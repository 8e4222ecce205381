//! The folder for recordings of control commands. Users who may send commands may lack the
//! permissions of the user who started the observation, so they may only write below this folder.

use numakit_recording::WriteError;
use numakit_sys::file;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// An open folder, which stays the same if its path changes.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    handle: File,
}

/// A file to be created: a name in an open folder.
#[derive(Debug)]
pub struct NewFile {
    folder: File,
    name: OsString,
    /// The path for messages.
    pub shown: PathBuf,
}

/// Why a control command may not record to a path.
#[derive(Debug, Error)]
#[error(
    "cannot record to {}: {why}; choose a path below {}, where control commands may record",
    wanted.display(), folder.display()
)]
pub struct FolderError {
    /// The requested path.
    pub wanted: PathBuf,
    /// What is wrong with it.
    pub why: FolderErrorKind,
    /// The folder for recordings of control commands.
    pub folder: PathBuf,
}

/// Why a path is not a file below a folder.
#[derive(Debug, Error)]
pub enum FolderErrorKind {
    /// It contains `..`.
    #[error("'..' is not allowed")]
    Parent,
    /// It is outside of the folder.
    #[error("it is outside of the folder")]
    OtherFolder,
    /// It is the folder itself.
    #[error("it is not a file")]
    NotAFile,
    /// A folder in it does not exist.
    #[error("there is no folder {}", .0.display())]
    NotFound(PathBuf),
    /// A part of it is not a folder.
    #[error("{} is a link or not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// A folder in it cannot be entered.
    #[error("{}: {error}", path.display())]
    Part {
        /// Up to that folder.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The folder itself cannot be used.
    #[error(transparent)]
    Folder(#[from] io::Error),
}

impl Folder {
    /// Opens it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        Ok(Self { handle: file::open_folder(&path)?, path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file by a path that is relative to this folder, or below it. Each component is
    /// opened in the folder before it, so that neither `..` nor a link leads out, even if it
    /// is created meanwhile.
    pub fn place(&self, wanted: &Path) -> Result<NewFile, FolderError> {
        self.below(wanted).map_err(|why| FolderError {
            wanted: wanted.to_owned(),
            why,
            folder: self.path.clone(),
        })
    }

    fn below(&self, wanted: &Path) -> Result<NewFile, FolderErrorKind> {
        let below = wanted.strip_prefix(&self.path).unwrap_or(wanted);
        let mut names = Vec::new();
        for part in below.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir => return Err(FolderErrorKind::Parent),
                Component::RootDir | Component::Prefix(_) => return Err(FolderErrorKind::OtherFolder),
            }
        }
        let Some(name) = names.pop() else { return Err(FolderErrorKind::NotAFile) };
        let mut folder = self.handle.try_clone()?;
        let mut shown = self.path.clone();
        for part in names {
            shown.push(part);
            folder = file::open_folder_in(&folder, part).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => FolderErrorKind::NotFound(shown.clone()),
                io::ErrorKind::NotADirectory => FolderErrorKind::NotAFolder(shown.clone()),
                _ => FolderErrorKind::Part { path: shown.clone(), error },
            })?;
        }
        shown.push(name);
        Ok(NewFile { folder, name: name.to_owned(), shown })
    }
}

impl NewFile {
    /// A path of the file through the open folder, valid as long as `self` exists.
    pub fn path(&self) -> PathBuf {
        file::path_of(&self.folder).join(&self.name)
    }

    /// A path in the same folder, for messages.
    pub fn display_path(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(file::path_of(&self.folder)) {
            Ok(rest) => self.shown.with_file_name(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// An error about that path, with the path for messages.
    pub fn rename_in_error(&self, error: WriteError) -> WriteError {
        let known = |path: PathBuf| self.display_path(&path);
        match error {
            WriteError::Name { path, format, instead } => {
                WriteError::Name { path: known(path), format, instead: known(instead) }
            }
            WriteError::Exists(path) => WriteError::Exists(known(path)),
            WriteError::LeftBehind(path) => WriteError::LeftBehind(known(path)),
            WriteError::Busy(path) => WriteError::Busy(known(path)),
            WriteError::Create { path, error, fix } => WriteError::Create { path: known(path), error, fix },
            WriteError::Stopped { path, error, kept } => {
                let kept = kept.replace(&*self.path().to_string_lossy(), &self.shown.to_string_lossy());
                WriteError::Stopped { path: known(path), error, kept }
            }
            // No other variant has a path.
            #[allow(unreachable_patterns)]
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("numakit-folder-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("in/side")).unwrap();
        Folder::open(&path).unwrap()
    }

    #[test]
    fn files_are_placed_below_the_folder() {
        let folder = folder("below");
        for good in ["a", "./a", "in/a", "in//side/./a"] {
            let place = folder.place(Path::new(good)).unwrap();
            std::fs::write(place.path(), good).unwrap();
            assert_eq!(std::fs::read_to_string(folder.path().join(good)).unwrap(), good);
            assert_eq!(place.shown, folder.path().join(good).components().collect::<PathBuf>());
        }
        assert_eq!(folder.place(&folder.path().join("in/b")).unwrap().shown, folder.path().join("in/b"));
        std::fs::remove_dir_all(folder.path()).unwrap();
    }

    #[test]
    fn no_path_leads_out_of_it() {
        let folder = folder("out");
        symlink("/etc", folder.path().join("link")).unwrap();
        symlink("../../..", folder.path().join("in/up")).unwrap();
        let neighbour = format!("{}-neighbour/a", folder.path().display());
        for bad in
            ["/etc/a", "..", "../a", "in/../a", "in/../../a", "link/a", "in/up/a", "", ".", "/", &neighbour]
        {
            let error = folder.place(Path::new(bad)).unwrap_err().to_string();
            assert!(error.contains(&format!("below {}", folder.path().display())), "{bad}: {error}");
        }
        assert!(folder.place(Path::new("none/a")).unwrap_err().to_string().contains("there is no folder"));
        std::fs::remove_dir_all(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_becomes_a_link_is_not_followed() {
        let folder = folder("swapped");
        let place = folder.place(Path::new("in/side/a")).unwrap();
        std::fs::rename(folder.path().join("in/side"), folder.path().join("was")).unwrap();
        symlink("/etc", folder.path().join("in/side")).unwrap();
        std::fs::write(place.path(), "x").unwrap();
        assert!(folder.path().join("was/a").exists() && !Path::new("/etc/a").exists());
        let error =
            place.rename_in_error(WriteError::Exists(place.path().with_file_name("a.tail"))).to_string();
        assert!(error.contains("in/side/a.tail exists") && !error.contains("/proc/"), "{error}");
        std::fs::remove_dir_all(folder.path()).unwrap();
    }
}
