//! The folder that recordings of orders stay in. Those who may give orders need not have the
//! rights of the user who started the observation, so they choose names below this folder only.

use numakit_recording::WriteError;
use numakit_sys::file;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// A folder, whatever its path leads to later.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    handle: File,
}

/// Where a file may be made: a name in an open folder.
#[derive(Debug)]
pub struct NewFile {
    folder: File,
    name: OsString,
    /// The path as people know it.
    pub shown: PathBuf,
}

/// A recording that an order may not begin there.
#[derive(Debug, Error)]
#[error(
    "cannot record to {}: {why}; give a path below {}, where the orders to this process may write",
    wanted.display(), folder.display()
)]
pub struct FolderError {
    /// The path that was asked for.
    pub wanted: PathBuf,
    /// What is wrong with it.
    pub why: Outside,
    /// The folder that recordings of orders stay in.
    pub folder: PathBuf,
}

/// Why a path does not lead to a file below a folder.
#[derive(Debug, Error)]
pub enum Outside {
    /// It goes up.
    #[error("'..' is not followed")]
    Parent,
    /// It begins somewhere else.
    #[error("it is elsewhere")]
    Elsewhere,
    /// It is the folder itself.
    #[error("it is no file")]
    NoFile,
    /// A folder in it does not exist.
    #[error("there is no folder {}", .0.display())]
    NotThere(PathBuf),
    /// A part of it is something else than a folder.
    #[error("{} is a link or no folder", .0.display())]
    NoFolder(PathBuf),
    /// A folder in it cannot be entered.
    #[error("{}: {error}", path.display())]
    Part {
        /// Up to that folder.
        path: PathBuf,
        /// What the system said.
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

    /// The place of a file: relative to this folder, or a path below it. One folder after the
    /// other is entered by its name alone, so that neither `..` nor a link leads out, also one
    /// that appears meanwhile.
    pub fn place(&self, wanted: &Path) -> Result<NewFile, FolderError> {
        self.below(wanted).map_err(|why| FolderError {
            wanted: wanted.to_owned(),
            why,
            folder: self.path.clone(),
        })
    }

    fn below(&self, wanted: &Path) -> Result<NewFile, Outside> {
        let below = wanted.strip_prefix(&self.path).unwrap_or(wanted);
        let mut names = Vec::new();
        for part in below.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir => return Err(Outside::Parent),
                Component::RootDir | Component::Prefix(_) => return Err(Outside::Elsewhere),
            }
        }
        let Some(name) = names.pop() else { return Err(Outside::NoFile) };
        let mut folder = self.handle.try_clone()?;
        let mut shown = self.path.clone();
        for part in names {
            shown.push(part);
            folder = file::open_folder_in(&folder, part).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Outside::NotThere(shown.clone()),
                io::ErrorKind::NotADirectory => Outside::NoFolder(shown.clone()),
                _ => Outside::Part { path: shown.clone(), error },
            })?;
        }
        shown.push(name);
        Ok(NewFile { folder, name: name.to_owned(), shown })
    }
}

impl NewFile {
    /// A path that leads there and nowhere else while this place is kept.
    pub fn path(&self) -> PathBuf {
        file::path_of(&self.folder).join(&self.name)
    }

    /// A path beside it, as people know it.
    pub fn known(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(file::path_of(&self.folder)) {
            Ok(rest) => self.shown.with_file_name(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// An error of what was done at that path, with the path that people know.
    pub fn name(&self, error: WriteError) -> WriteError {
        let known = |path: PathBuf| self.known(&path);
        match error {
            WriteError::Name { path, format, instead } => {
                WriteError::Name { path: known(path), format, instead: known(instead) }
            }
            WriteError::Exists(path) => WriteError::Exists(known(path)),
            WriteError::Busy(path) => WriteError::Busy(known(path)),
            WriteError::Create { path, error, fix } => WriteError::Create { path: known(path), error, fix },
            WriteError::Stopped { path, error, kept } => {
                let kept = kept.replace(&*self.path().to_string_lossy(), &self.shown.to_string_lossy());
                WriteError::Stopped { path: known(path), error, kept }
            }
            // Whatever else there is says no path.
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
    fn nothing_leads_out_of_it() {
        let folder = folder("out");
        symlink("/etc", folder.path().join("link")).unwrap();
        symlink("../../..", folder.path().join("in/up")).unwrap();
        let beside = format!("{}-beside/a", folder.path().display());
        for bad in
            ["/etc/a", "..", "../a", "in/../a", "in/../../a", "link/a", "in/up/a", "", ".", "/", &beside]
        {
            let error = folder.place(Path::new(bad)).unwrap_err().to_string();
            assert!(error.contains(&format!("below {}", folder.path().display())), "{bad}: {error}");
        }
        assert!(folder.place(Path::new("none/a")).unwrap_err().to_string().contains("there is no folder"));
        std::fs::remove_dir_all(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_becomes_a_link_leads_nowhere_else() {
        let folder = folder("swapped");
        let place = folder.place(Path::new("in/side/a")).unwrap();
        std::fs::rename(folder.path().join("in/side"), folder.path().join("was")).unwrap();
        symlink("/etc", folder.path().join("in/side")).unwrap();
        std::fs::write(place.path(), "x").unwrap();
        assert!(folder.path().join("was/a").exists() && !Path::new("/etc/a").exists());
        let error = place.name(WriteError::Exists(place.path().with_file_name("a.tail"))).to_string();
        assert!(error.contains("in/side/a.tail exists") && !error.contains("/proc/"), "{error}");
        std::fs::remove_dir_all(folder.path()).unwrap();
    }
}
