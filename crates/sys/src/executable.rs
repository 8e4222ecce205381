//! Program files: their paths, and the privileges that the kernel gives them.

use crate::user;
use rustix::fs::{Access, getxattr_query};
use rustix::process::{getgid, getuid};
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file of a program, found as execvp does: in the directories of `path`, unless the name has a slash.
/// Returns the error of execvp if it does not exist or is not executable.
pub fn find(name: &OsStr, path: &OsStr) -> io::Result<PathBuf> {
    if name.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return executable(&file).map(|()| file);
    }
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        // An empty entry is the working directory.
        let file = if folder.as_os_str().is_empty() { Path::new(".").join(name) } else { folder.join(name) };
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = Some(error),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| in_no_folder(name)))
}

/// Why a program could not be started, for its user.
pub(crate) fn start_error(name: &OsStr, error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound { in_no_folder(name) } else { error }
}

/// The error for a name that no directory of the path has. A file of that name in the working directory is named as it is started.
fn in_no_folder(name: &OsStr) -> io::Error {
    let none = io::Error::from_raw_os_error(libc::ENOENT);
    let here = Path::new(".").join(name);
    if name.is_empty() || name.as_bytes().contains(&b'/') || !here.is_file() {
        return none;
    }
    let words =
        format!("{none}; the file in this directory is started as {}", crate::command::quoted(&[&here]));
    io::Error::new(none.kind(), words)
}

/// Whether this process may execute the file.
fn executable(file: &Path) -> io::Result<()> {
    if std::fs::metadata(file)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    user::access(file, Access::EXEC_OK)
}

/// Why a program runs with other privileges than its user's; the loader then ignores preloaded libraries. `None` if the
/// program does not.
pub fn raises_rights(file: &Path) -> io::Result<Option<&'static str>> {
    let meta = std::fs::metadata(file)?;
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    if meta.mode() & libc::S_ISUID != 0 && meta.uid() != user {
        return Ok(Some("setuid"));
    }
    if meta.mode() & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP && meta.gid() != group {
        return Ok(Some("setgid"));
    }
    let capable = getxattr_query(file, "security.capability").is_ok_and(|length| length > 0);
    // Root has all capabilities anyway; its programs load libraries.
    Ok((capable && user != 0).then_some("with file capabilities"))
}

/// The file of the C library that this process has loaded; none if it is statically linked.
pub fn c_library() -> Option<PathBuf> {
    file_of(c"getpid")
}

/// The file of this process's allocator: the C library, or a preloaded library that replaces its allocator; `None` if the
/// program is statically linked.
pub fn allocator() -> Option<PathBuf> {
    file_of(c"malloc")
}

/// The file with the function that every caller of this name gets.
fn file_of(function: &CStr) -> Option<PathBuf> {
    // SAFETY: the name is a C string, and the structure is plain; what it points to belongs to the loader, and stays
    // as long as the library, which nobody unloads: the program itself needs it.
    unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, function.as_ptr());
        let mut found: libc::Dl_info = std::mem::zeroed();
        if function.is_null() || libc::dladdr(function, &mut found) == 0 || found.dli_fname.is_null() {
            return None;
        }
        Some(PathBuf::from(OsStr::from_bytes(CStr::from_ptr(found.dli_fname).to_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = std::env::temp_dir().join(format!("numakit-executable-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("directory")).unwrap();
        std::fs::write(folder.join("plain"), "").unwrap();
        std::fs::write(folder.join("runs"), "").unwrap();
        std::fs::set_permissions(folder.join("runs"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), &folder]).unwrap();
        let find = |name: &str| find(name.as_ref(), &path).map_err(|e| e.kind());
        assert_eq!(find("runs"), Ok(folder.join("runs")));
        assert_eq!(find("plain"), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(find("directory"), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(find("nothing"), Err(io::ErrorKind::NotFound));
        assert_eq!(find(""), Err(io::ErrorKind::NotFound));
        let full = folder.join("plain");
        assert_eq!(find(full.to_str().unwrap()), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(raises_rights(&folder.join("runs")).unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_program_of_another_user_raises_rights() {
        if crate::user::id() != 0 {
            numakit_skips::ROOT.skip("giving a file to another user needs root");
            return;
        }
        let file = std::env::temp_dir().join(format!("numakit-setuid-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::chown(&file, Some(65534), Some(65534)).unwrap();
        let mut seen = Vec::new();
        for mode in [0o755, 0o4755, 0o2755, 0o2745] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            seen.push(raises_rights(&file).unwrap());
        }
        std::fs::remove_file(file).unwrap();
        assert_eq!(seen, [None, Some("setuid"), Some("setgid"), None]);
    }

    #[test]
    fn the_c_library_is_where_the_loader_put_it() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        match c_library() {
            Some(library) => {
                let real = library.canonicalize().unwrap();
                assert!(maps.contains(real.to_str().unwrap()), "{}", library.display());
            }
            None => assert!(!maps.contains("/libc.so")),
        }
    }
}
