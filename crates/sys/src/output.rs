//! Output files. They get their name only when they are complete, so that a full disk, a signal or a crash leaves the
//! previous file; and only regular files are replaced.

use crate::file::{kind, link};
use crate::stdio;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::stdio::{dup2_stdout, stderr};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What to do with an existing file of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Keep it: an error of the kind `AlreadyExists`.
    Keep,
    /// Replace it when the new one is complete.
    Replace,
}

impl Existing {
    /// According to an option `--force`.
    pub fn forced(force: bool) -> Self {
        if force { Self::Replace } else { Self::Keep }
    }
}

/// A file without its final name. If it is dropped without [`OutputFile::persist`], it is removed.
#[derive(Debug)]
pub struct OutputFile {
    place: PathBuf,
    existing: Existing,
    file: File,
    /// Its temporary name, if the file system has no unnamed files.
    name: Option<PathBuf>,
}

impl OutputFile {
    /// Creates the file. If something other than a regular file has the name (a FIFO, a device, a directory), that is an
    /// error of the kind `InvalidInput`; this never waits.
    pub fn create(path: &Path, existing: Existing) -> io::Result<Self> {
        let place = place(path, existing)?;
        let nameless = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .mode(0o666)
            .open(folder(&place));
        let (file, name) = match nameless {
            Ok(file) => (file, None),
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) =>
            {
                let name = temporary_name(&place);
                (File::options().read(true).write(true).create_new(true).open(&name)?, Some(name))
            }
            Err(error) => return Err(error),
        };
        if let Ok(replaced) = fs::metadata(&place) {
            take_after(&file, &replaced)?;
        }
        Ok(Self { place, existing, file, name })
    }

    /// Its final path: that of the target, if the path is a symbolic link.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name.
    pub fn persist(mut self) -> io::Result<File> {
        if self.name.is_none() && self.existing == Existing::Keep {
            link(&self.file, &self.place)?;
            return self.file.try_clone();
        }
        let name = match self.name.take() {
            Some(name) => name,
            None => {
                let name = temporary_name(&self.place);
                link(&self.file, &name)?;
                name
            }
        };
        let renamed = match self.existing {
            Existing::Keep => rename_to_free(&name, &self.place),
            // Something else may have replaced the existing file meanwhile, so it is checked again.
            Existing::Replace => place(&self.place, self.existing).and_then(|place| fs::rename(&name, place)),
        };
        self.name = Some(name);
        renamed?;
        self.name = None;
        self.file.try_clone()
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = fs::remove_file(name);
        }
    }
}

/// The final path of a file of that name.
fn place(path: &Path, existing: Existing) -> io::Result<PathBuf> {
    let odd = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned()),
        Err(error) => return Err(error),
        Ok(there) => there,
    };
    let (place, there) = if there.is_symlink() {
        match fs::metadata(path) {
            Ok(there) => (fs::canonicalize(path)?, there),
            Err(_) => return odd("it is a symbolic link that leads nowhere".into()),
        }
    } else {
        (path.to_owned(), there)
    };
    if !there.is_file() {
        return odd(format!("it is {} and not a regular file", kind(&there)));
    }
    match existing {
        Existing::Keep => Err(io::ErrorKind::AlreadyExists.into()),
        Existing::Replace => Ok(place),
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// An unused name in the same directory.
fn temporary_name(place: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = place.as_os_str().to_owned();
    name.push(format!(".{}-{number}", std::process::id()));
    name.into()
}

/// Copies the mode of the file that is replaced and, if permitted, its owner.
fn take_after(file: &File, replaced: &Metadata) -> io::Result<()> {
    file.set_permissions(replaced.permissions())?;
    let _ = fchown(file.as_fd(), Some(replaced.uid()), Some(replaced.gid()));
    Ok(())
}

/// Renames unless the new name exists.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot do that atomically; a file that gets the name just now is lost.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        other => Ok(other?),
    }
}

/// Returns standard output as a file, and redirects the standard output of this process and its children to standard
/// error.
pub fn redirect_standard_output() -> io::Result<File> {
    let taken = stdio::duplicate_output()?;
    dup2_stdout(stderr())?;
    Ok(taken)
}

/// Standard output that is kept from programs: meanwhile, what this process and its children print goes to standard error.
#[derive(Debug)]
pub struct KeptOutput(File);

impl KeptOutput {
    /// Redirects standard output to standard error.
    pub fn redirect() -> io::Result<Self> {
        redirect_standard_output().map(Self)
    }

    /// Gives standard output back to this process. Children that still run keep standard error.
    pub fn give_back(self) -> io::Result<()> {
        Ok(dup2_stdout(self.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("numakit-output-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_has_its_name_once_it_is_kept() {
        let folder = Scratch::new("kept");
        let path = folder.0.join("a");
        let mut output = OutputFile::create(&path, Existing::Keep).unwrap();
        output.write_all(b"new").unwrap();
        assert!(!path.exists());
        output.persist().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let taken = OutputFile::create(&path, Existing::Keep).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn a_dropped_file_leaves_the_old_one() {
        let folder = Scratch::new("dropped");
        let path = folder.0.join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let mut output = OutputFile::create(&path, Existing::Replace).unwrap();
        output.write_all(b"new").unwrap();
        drop(output);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let mut output = OutputFile::create(&path, Existing::Replace).unwrap();
        output.write_all(b"new").unwrap();
        output.persist().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn a_name_that_is_taken_meanwhile_is_not_replaced() {
        let folder = Scratch::new("meanwhile");
        let path = folder.0.join("a");
        for nameless in [true, false] {
            let _ = fs::remove_file(&path);
            let mut output = OutputFile::create(&path, Existing::Keep).unwrap();
            if !nameless {
                let name = temporary_name(&path);
                output.file = File::create(&name).unwrap();
                output.name = Some(name);
            }
            fs::write(&path, "theirs").unwrap();
            assert_eq!(output.persist().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!((fs::read(&path).unwrap(), folder.names().len()), (b"theirs".to_vec(), 1));
        }
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let folder = Scratch::new("odd");
        let fifo = folder.0.join("fifo");
        drop(crate::command::named_pipe(&fifo, 0o600).unwrap());
        for path in [fifo.as_path(), Path::new("/dev/null"), &folder.0] {
            for existing in [Existing::Keep, Existing::Replace] {
                let error = OutputFile::create(path, existing).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
                assert!(error.to_string().contains("not a regular file"), "{error}");
            }
        }
        assert_eq!(folder.names(), ["fifo"]);
    }

    #[test]
    fn a_link_still_points_to_the_replaced_file() {
        let folder = Scratch::new("link");
        let (link, file) = (folder.0.join("link"), folder.0.join("file"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let error = OutputFile::create(&link, Existing::Replace).unwrap_err();
        assert!(error.to_string().contains("leads nowhere"), "{error}");
        fs::write(&file, "old").unwrap();
        let mut output = OutputFile::create(&link, Existing::Replace).unwrap();
        output.write_all(b"new").unwrap();
        output.persist().unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), file);
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }
}
