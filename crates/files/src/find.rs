//! The regular files at paths and in folders.

use crate::FilesError;
use numakit_sys::file::open_to_read;
use numakit_sys::file_pages;
use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// The path of the file, as given or below a given folder.
    pub path: PathBuf,
    /// Its device and inode.
    pub id: (u64, u64),
}

impl FoundFile {
    /// Opens it for reading.
    pub fn open(&self) -> Result<File, FilesError> {
        open_to_read(&self.path).map_err(|error| FilesError::Path { path: self.path.clone(), error })
    }

    /// An error of a call with this file.
    pub(crate) fn error(&self, what: &'static str, error: io::Error) -> FilesError {
        FilesError::Kernel { path: self.path.clone(), what, error }
    }
}

/// Files and folders that were found in the given folders and not examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Symbolic links.
    pub links: u64,
    /// FIFOs, sockets and devices.
    pub special: u64,
    /// Files on hugetlbfs: their pages are memory of a pool and no cache.
    pub pool: u64,
    /// Files and folders that this user may not read.
    pub unreadable: u64,
}

/// Files, each once, in the order of the paths; those of a folder by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// The files.
    pub files: Vec<FoundFile>,
    /// What was left out of the folders.
    pub left_out: LeftOut,
}

/// Finds the files at these paths, and in the folders among them. A link that is given is followed; one in a folder is
/// not.
pub fn find(paths: &[PathBuf]) -> Result<FoundFiles, FilesError> {
    let (mut found, mut seen) = (FoundFiles::default(), HashSet::new());
    for path in paths {
        let fail = |error| FilesError::Path { path: path.clone(), error };
        let there = fs::metadata(path).map_err(fail)?;
        if there.is_dir() {
            fs::read_dir(path).map_err(fail)?;
            found.add_folder(path, &mut seen);
            continue;
        }
        let file = open_to_read(path).map_err(fail)?;
        if file_pages::is_of_pool(&file).map_err(fail)? {
            const POOL: &str = "it is on hugetlbfs, whose pages are memory of a pool and no cache";
            return Err(fail(io::Error::new(io::ErrorKind::Unsupported, POOL)));
        }
        found.add(path, &there, &mut seen);
    }
    if found.files.is_empty() && found.left_out == LeftOut::default() {
        let folders: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(FilesError::Empty(folders.join(", ")));
    }
    Ok(found)
}

impl FoundFiles {
    fn add(&mut self, path: &Path, there: &Metadata, seen: &mut HashSet<(u64, u64)>) {
        let id = (there.dev(), there.ino());
        if seen.insert(id) {
            self.files.push(FoundFile { path: path.to_owned(), id });
        }
    }

    fn add_folder(&mut self, folder: &Path, seen: &mut HashSet<(u64, u64)>) {
        let Ok(entries) = fs::read_dir(folder) else {
            self.left_out.unreadable += 1;
            return;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let Ok(there) = fs::symlink_metadata(&path) else { continue };
            let kind = there.file_type();
            match () {
                () if kind.is_dir() => self.add_folder(&path, seen),
                () if kind.is_symlink() => self.left_out.links += 1,
                () if kind.is_fifo() || kind.is_socket() => self.left_out.special += 1,
                () if kind.is_char_device() || kind.is_block_device() => self.left_out.special += 1,
                () => match open_to_read(&path).and_then(|file| file_pages::is_of_pool(&file)) {
                    Ok(false) => self.add(&path, &there, seen),
                    Ok(true) => self.left_out.pool += 1,
                    Err(_) => self.left_out.unreadable += 1,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::testing::Scratch;

    #[test]
    fn a_folder_has_its_files_once_and_says_what_it_leaves_out() {
        let folder = Scratch::folder("find");
        fs::create_dir(folder.0.join("b")).unwrap();
        fs::write(folder.0.join("b/two"), "2").unwrap();
        fs::write(folder.0.join("a"), "1").unwrap();
        fs::hard_link(folder.0.join("a"), folder.0.join("c")).unwrap();
        std::os::unix::fs::symlink("a", folder.0.join("link")).unwrap();
        std::os::unix::net::UnixListener::bind(folder.0.join("socket")).unwrap();
        let found = find(&[folder.0.clone(), folder.0.join("link")]).unwrap();
        let paths: Vec<&Path> =
            found.files.iter().map(|file| file.path.strip_prefix(&folder.0).unwrap()).collect();
        assert_eq!(paths, [Path::new("a"), Path::new("b/two")]);
        assert_eq!(found.left_out, LeftOut { links: 1, special: 1, ..LeftOut::default() });
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        let folder = Scratch::folder("nofile");
        let empty = find(std::slice::from_ref(&folder.0)).unwrap_err().to_string();
        assert!(empty.starts_with("there is no regular file in /"), "{empty}");
        for (path, why) in [
            ("/dev/null", "it is a device and not a regular file"),
            ("/no/such/file", "No such file or directory"),
        ] {
            let error = find(&[PathBuf::from(path)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{path}: {why}")), "{error}");
        }
    }
}
