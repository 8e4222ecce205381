//! Files that several users share: opened without creating them, created atomically.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatVfsMountFlags, linkat, openat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::borrow::Borrow;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Opens an existing regular file without O_CREAT, so that the kernel's protection of other users' files in shared
/// directories (fs.protected_regular) does not apply. If it is a symbolic link, or no regular file, the error is of the kind
/// `InvalidInput`.
pub fn open_existing(path: &Path, writable: bool) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = File::options().read(true).write(writable).custom_flags(flags).open(path);
    let odd = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what.to_owned()));
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return odd("it is a symbolic link"),
        Err(error) if error.raw_os_error() == Some(libc::EISDIR) => return odd("it is a folder"),
        other => other?,
    };
    if file.metadata()?.is_file() { Ok(file) } else { odd("it is not a regular file") }
}

/// Opens a file for reading, following links. If it is no regular file but a FIFO, a device or a directory, the error is of
/// the kind `InvalidInput`: so this never waits.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    // Opening a device can have effects, so its kind is checked first.
    regular(&std::fs::metadata(path)?)?;
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a text that a process wrote for its observers, such as the names of its compiled code. The file must have at most
/// `most` bytes, and belong to root, to this user or to the user of the process, since any user may write into /tmp. This
/// never waits, as [`open_to_read`] does not.
pub fn text_of_process(path: &Path, process: u32, most: u64) -> io::Result<String> {
    let file = open_to_read(path)?;
    let own = rustix::process::geteuid().as_raw();
    // Nobody's files are read for a process that is gone.
    let user = match std::fs::metadata(format!("/proc/{process}")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => own,
        there => there?.uid(),
    };
    let owner = file.metadata()?.uid();
    if ![0, own, user].contains(&owner) {
        let why = format!("it belongs to user {owner}, and the process to user {user}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    bounded_text(file, most)
}

/// Reads a text that a program names which a user of this number runs, such as one of its source files, of at most `most`
/// bytes. Everybody may read the file, or it belongs to that user: else the program would make any user who observes it show what
/// its user may not read. This never waits, as [`open_to_read`] does not.
pub fn text_named_by_program(path: &Path, user: u32, most: u64) -> io::Result<String> {
    const OTHERS: u32 = 0o004;
    let file = open_to_read(path)?;
    let data = file.metadata()?;
    if user != 0 && data.uid() != user && data.mode() & OTHERS == 0 {
        let why = format!(
            "it belongs to user {}, and user {user}, who runs the program, may not read it",
            data.uid()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    bounded_text(file, most)
}

/// Removes a regular file of this user, and nothing else.
pub fn remove_own(path: &Path) -> io::Result<()> {
    let there = std::fs::symlink_metadata(path)?;
    regular(&there)?;
    if there.uid() != rustix::process::geteuid().as_raw() {
        let why = format!("it belongs to user {}", there.uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    std::fs::remove_file(path)
}

/// Reads a text that a user or a variable of the environment names, of at most `most` bytes. Never waits, as [`open_to_read`].
pub fn named_text(path: &Path, most: u64) -> io::Result<String> {
    bounded_text(open_to_read(path)?, most)
}

/// Whether users other than the owner and those of its group may read a file, or the one that a link leads to.
pub fn others_may_read(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(path)?.mode() & 0o004 != 0)
}

/// The text of an open file, of at most `most` bytes, from where it is read next.
pub(crate) fn bounded_text(file: impl Borrow<File>, most: u64) -> io::Result<String> {
    let file = file.borrow();
    let bytes = file.metadata()?.len();
    if bytes > most {
        let why = format!("it has {bytes} bytes, of which at most {most} are read");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut text = Vec::new();
    file.take(most).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The paths that match a pattern of the shell, sorted: `/models/*.gguf`. None is no error.
pub fn matching(pattern: &OsStr) -> io::Result<Vec<PathBuf>> {
    let pattern = CString::new(pattern.as_bytes())?;
    // SAFETY: a structure of integers and pointers, which glob fills.
    let mut found: libc::glob_t = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid during the call.
    let result = unsafe { libc::glob(pattern.as_ptr(), 0, None, &raw mut found) };
    let paths = (0..found.gl_pathc).map(|at| {
        // SAFETY: glob has stored this number of strings.
        let path = unsafe { CStr::from_ptr(*found.gl_pathv.add(at)) };
        PathBuf::from(OsStr::from_bytes(path.to_bytes()))
    });
    let paths = if result == 0 { paths.collect() } else { Vec::new() };
    // SAFETY: it was filled or zeroed above.
    unsafe { libc::globfree(&raw mut found) };
    match result {
        0 | libc::GLOB_NOMATCH => Ok(paths),
        _ => Err(io::Error::other("the folders of the pattern cannot be read")),
    }
}

/// An error if this is not a regular file.
pub(crate) fn regular(there: &Metadata) -> io::Result<()> {
    if there.is_file() {
        return Ok(());
    }
    let why = format!("it is {} and not a regular file", kind(there));
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// The kind of a file, as a noun.
pub(crate) fn kind(there: &Metadata) -> &'static str {
    let kind = there.file_type();
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "something else",
    }
}

/// Creates a file with this content and exactly this mode; an error of the kind `AlreadyExists` if the name is taken.
/// It appears with all its content, or not at all.
pub fn create_atomically(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let nameless = File::options().write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    match nameless {
        Ok(mut file) => {
            fill(&mut file, content, mode)?;
            link(&file, path)
        }
        // The file system has no unnamed files.
        Err(error) if has_no_nameless(&error) => {
            let mut file = File::options().write(true).create_new(true).mode(mode).open(path)?;
            fill(&mut file, content, mode).inspect_err(|_| {
                let _ = std::fs::remove_file(path);
            })
        }
        Err(error) => Err(error),
    }
}

/// A flag for opening a file: if the path ends with a link, that is an error, and the link is not followed.
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// An unnamed file in memory.
pub fn create_in_memory() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("numa", rustix::fs::MemfdFlags::CLOEXEC)?))
}

/// An unnamed file in this directory's file system: the kernel removes it when it is closed.
pub fn create_unnamed(folder: &Path) -> io::Result<File> {
    let options = || {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600);
        options
    };
    match options().custom_flags(libc::O_TMPFILE).open(folder) {
        Err(error) if has_no_nameless(&error) => {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("numakit-{}-{number}", std::process::id()));
            let file = options().create_new(true).open(&path)?;
            std::fs::remove_file(path)?;
            Ok(file)
        }
        opened => opened,
    }
}

fn has_no_nameless(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL))
}

/// The bytes that this user may still write to the file system of this path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(path)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

/// Whether programs and libraries on the file system of this path can be executed.
pub fn allows_execution(path: &Path) -> io::Result<bool> {
    Ok(!rustix::fs::statvfs(path)?.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// A path to an open file or directory, valid as long as it is open. Files in a directory are found below this path
/// even after the directory was moved.
pub fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A path to an open file for other processes, valid as long as this one has it open.
pub fn path_for_others(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

/// Opens a directory.
pub fn open_folder(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path)
}

/// Opens a subdirectory; a symbolic link is an error.
pub fn open_folder_in(folder: &File, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

fn fill(file: &mut File, content: &[u8], mode: u32) -> io::Result<()> {
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))
}

/// Gives an unnamed file this name, unless the name is taken.
pub(crate) fn link(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, path_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Whether both are open on the same file.
pub fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// What the kernel calls an open file in its own lists, such as that of locks: `fe:00:12345`.
pub fn kernel_name(file: &File) -> io::Result<String> {
    let data = file.metadata()?;
    let device = data.dev();
    Ok(format!("{:02x}:{:02x}:{}", libc::major(device), libc::minor(device), data.ino()))
}

/// Whether the name still leads to this open file.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Duplicates the descriptor to the first free number from `minimum` on; closed at exec.
pub fn duplicate_from(file: &File, minimum: RawFd) -> io::Result<File> {
    match fcntl_dupfd_cloexec(file, minimum) {
        // The kernel calls a minimum beyond the limit of open files an invalid argument.
        Err(Errno::INVAL) => Err(Errno::MFILE.into()),
        duplicated => Ok(duplicated?.into()),
    }
}

/// Whether an error is the limit of open files of this process.
pub fn is_at_open_files_limit(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}

/// A duplicate of a descriptor that this process inherited; none if that number is not open.
pub fn inherited(number: RawFd) -> Option<File> {
    if number < 0 {
        return None;
    }
    // SAFETY: it is borrowed for this call only, which fails if it is not open.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_dupfd_cloexec(inherited, 3).ok().map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("numakit-file-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_file_appears_whole_and_once() {
        let path = scratch("whole");
        create_atomically(&path, b"abc", 0o666).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abc");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        let again = create_atomically(&path, b"x", 0o666).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        let file = open_existing(&path, true).unwrap();
        assert!(is_at(&file, &path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path).unwrap());
        assert_eq!(open_existing(&path, true).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let link = scratch("link");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        for path in [link.as_path(), Path::new("/dev/null"), Path::new("/tmp")] {
            let kind = open_existing(path, false).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::InvalidInput, "{}", path.display());
        }
        assert!(open_to_read(&link).unwrap().metadata().unwrap().len() > 0);
        for path in ["/dev/null", "/tmp"] {
            let error = open_to_read(Path::new(path)).unwrap_err();
            assert!(error.to_string().ends_with("and not a regular file"), "{error}");
        }
        std::fs::remove_file(&link).unwrap();
    }

    #[test]
    fn a_program_names_no_text_that_its_user_may_not_read() {
        let path = scratch("named");
        let own = rustix::process::geteuid().as_raw();
        let other = own + 1000;
        for (mode, user, is_shown) in
            [(0o644, own, true), (0o600, own, true), (0o644, other, true), (0o640, other, false)]
        {
            create_atomically(&path, b"int x;\n", mode).unwrap();
            let text = text_named_by_program(&path, user, 100);
            assert_eq!(text.is_ok(), is_shown, "{mode:o} {user}: {text:?}");
            std::fs::remove_file(&path).unwrap();
        }
        create_atomically(&path, &[b'x'; 101], 0o644).unwrap();
        let error = text_named_by_program(&path, own, 100).unwrap_err();
        assert_eq!(error.to_string(), "it has 101 bytes, of which at most 100 are read");
        std::fs::remove_file(&path).unwrap();
        assert!(text_named_by_program(Path::new("/dev/zero"), own, 100).is_err());
    }

    #[test]
    fn a_fifo_without_a_writer_is_refused_at_once() {
        let path = scratch("fifo");
        drop(crate::command::named_pipe(&path, 0o600).unwrap());
        let error = open_to_read(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(error.to_string(), "it is a FIFO and not a regular file");
    }

    #[test]
    fn a_text_of_a_process_is_short_and_of_its_user() {
        let own = std::process::id();
        let path = scratch("map");
        std::fs::write(&path, "1000 10 f\n").unwrap();
        assert_eq!(text_of_process(&path, own, 100).unwrap(), "1000 10 f\n");
        let error = text_of_process(&path, own, 9).unwrap_err();
        assert_eq!(error.to_string(), "it has 10 bytes, of which at most 9 are read");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            let error = text_of_process(&path, own, 100).unwrap_err();
            assert!(error.to_string().starts_with("it belongs to user 65534"), "{error}");
        } else {
            numakit_skips::ROOT.skip_part("giving a file to another user needs root");
        }
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(text_of_process(&path, own, 100).is_err());
        assert!(remove_own(&path).is_err() && std::fs::symlink_metadata(&path).is_ok(), "a link stays");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "1000 10 f\n").unwrap();
        let none = u32::MAX;
        assert_eq!(text_of_process(&path, none, 100).unwrap(), "1000 10 f\n", "of a process that has ended");
        remove_own(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_nameless_file_is_found_by_its_descriptor_alone() {
        let folder = scratch("nameless");
        std::fs::create_dir(&folder).unwrap();
        let mut file = create_unnamed(&folder).unwrap();
        file.write_all(b"abc").unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        let mut text = String::new();
        File::open(path_of(&file)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), file.metadata().unwrap().mode() & 0o777), ("abc", 0o600));
        std::fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn folders_are_entered_and_links_are_not() {
        let folder = scratch("folders");
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.join("link")).unwrap();
        std::fs::write(folder.join("file"), "").unwrap();
        let top = open_folder(&folder).unwrap();
        let inner = open_folder_in(&open_folder_in(&top, OsStr::new("a")).unwrap(), OsStr::new("b")).unwrap();
        std::fs::rename(folder.join("a"), folder.join("c")).unwrap();
        std::fs::write(path_of(&inner).join("x"), "x").unwrap();
        assert_eq!(std::fs::read(folder.join("c/b/x")).unwrap(), b"x");
        for odd in ["link", "file"] {
            let error = open_folder_in(&top, OsStr::new(odd)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotADirectory, "{odd}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        let folder = scratch("matching");
        std::fs::create_dir(&folder).unwrap();
        for name in ["b.gguf", "a.gguf", "c.txt"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let found = |pattern: &str| matching(folder.join(pattern).as_os_str()).unwrap();
        assert_eq!(found("*.gguf"), [folder.join("a.gguf"), folder.join("b.gguf")]);
        assert_eq!(found("[c-z]*"), [folder.join("c.txt")]);
        assert!(found("none*").is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_copy_has_a_number_from_the_asked_one_on() {
        let file = File::open("/dev/null").unwrap();
        assert!(duplicate_from(&file, 100).unwrap().as_raw_fd() >= 100);
        assert!(is_at_open_files_limit(&duplicate_from(&file, i32::MAX).unwrap_err()));
    }
}
