//! Where running observations can be found: one directory a user, one FIFO and one socket
//! a process.

use numakit_sys::user;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory for this user, made if it is not there: `$XDG_RUNTIME_DIR/numakit`, else
/// `/run/numakit` for root, else a private folder in the temporary directory.
pub fn open() -> io::Result<PathBuf> {
    let path = place(std::env::var_os("XDG_RUNTIME_DIR"), user::id(), &std::env::temp_dir());
    open_at(&path)?;
    Ok(path)
}

fn place(runtime: Option<OsString>, user: u32, temporary: &Path) -> PathBuf {
    match runtime {
        Some(directory) if Path::new(&directory).is_absolute() => Path::new(&directory).join("numakit"),
        _ if user == 0 => PathBuf::from("/run/numakit"),
        _ => temporary.join(format!("numakit-{user}")),
    }
}

fn open_at(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
        }
        _ => {}
    }
    if user::owns_privately(path)? {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} belongs to another user or others may write to it; remove it, or set XDG_RUNTIME_DIR to a directory of your own",
            path.display()
        ),
    ))
}

/// The FIFO of a process.
pub fn fifo(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.fifo"))
}

/// The socket of a process.
pub fn socket(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.sock"))
}

/// The processes that have a socket here.
pub fn processes(directory: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<u32> =
        entries.filter_map(|e| e.ok()?.file_name().to_str()?.strip_suffix(".sock")?.parse().ok()).collect();
    found.sort_unstable();
    found
}

/// Removes what a process that ended without doing so left.
pub fn forget(directory: &Path, process: u32) {
    let _ = std::fs::remove_file(fifo(directory, process));
    let _ = std::fs::remove_file(socket(directory, process));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_user_has_a_place() {
        let tmp = Path::new("/tmp");
        assert_eq!(place(Some("/run/user/7".into()), 7, tmp), Path::new("/run/user/7/numakit"));
        assert_eq!(place(Some("relative".into()), 7, tmp), Path::new("/tmp/numakit-7"));
        assert_eq!(place(None, 0, tmp), Path::new("/run/numakit"));
        assert_eq!(place(None, 65534, tmp), Path::new("/tmp/numakit-65534"));
    }

    #[test]
    fn a_place_that_others_may_write_to_is_refused() {
        let path = std::env::temp_dir().join(format!("numakit-place-{}", std::process::id()));
        open_at(&path).unwrap();
        open_at(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(open_at(&path).unwrap_err().to_string().contains("others may write"));
        std::fs::remove_dir(&path).unwrap();
        let link = path.with_extension("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(open_at(&link).is_err());
        std::fs::remove_file(&link).unwrap();
    }
}
