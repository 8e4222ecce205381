//! The directory of running observations: one per user, with a FIFO and a socket
//! per process.

use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, user};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For this long, a socket without a listener is assumed to be new.
const NEW_SOCKET: Duration = Duration::from_secs(60);

/// The directory of this user, created if missing: `$XDG_RUNTIME_DIR/numakit`, else
/// `/run/numakit` for root, else a private folder in the temporary directory. Files that killed
/// processes left there are removed.
pub fn open() -> io::Result<PathBuf> {
    let path = place(std::env::var_os("XDG_RUNTIME_DIR"), user::id(), &std::env::temp_dir());
    open_at(&path)?;
    sweep(&path);
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
    let there = std::fs::symlink_metadata(path)?;
    let (owner, mode) = (there.uid(), there.mode() & 0o7777);
    // What runs has its sockets in there, so it is not to be removed.
    let problem = match () {
        () if !there.is_dir() => "is not a directory; set XDG_RUNTIME_DIR to your own directory".to_owned(),
        () if owner != user::id() => {
            format!("belongs to user {owner}; set XDG_RUNTIME_DIR to your own directory")
        }
        () => format!("has mode {mode:o}, so others may write to it; run: chmod 700 {}", path.display()),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {problem}", path.display())))
}

/// The FIFO of a process.
pub fn fifo(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.fifo"))
}

/// The socket of a process.
pub fn socket(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.sock"))
}

/// The page that opens the server of a process in a browser.
pub fn launcher(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.html"))
}

/// The processes that have a socket here.
pub fn processes(directory: &Path) -> Vec<u32> {
    numbers(directory, &["sock"]).into_iter().collect()
}

/// The processes that have files with these extensions here.
fn numbers(directory: &Path, endings: &[&str]) -> BTreeSet<u32> {
    let Ok(entries) = std::fs::read_dir(directory) else { return BTreeSet::new() };
    let number = |name: &OsStr| {
        let (number, ending) = name.to_str()?.rsplit_once('.')?;
        endings.contains(&ending).then(|| number.parse().ok())?
    };
    entries.filter_map(|entry| number(&entry.ok()?.file_name())).collect()
}

/// Removes the files of a process.
pub fn remove_files(directory: &Path, process: u32) {
    for path in [fifo(directory, process), socket(directory, process), launcher(directory, process)] {
        let _ = std::fs::remove_file(path);
    }
}

/// Removes files of killed processes. Only this user can create files in the directory.
fn sweep(directory: &Path) {
    let left = numbers(directory, &["sock", "fifo", "html"]);
    left.into_iter().filter(|process| is_dead(directory, *process)).for_each(|p| remove_files(directory, p));
}

/// Whether the process that created files here has ended. The socket of a running one accepts
/// connections; the PID of an ended one may belong to another program now.
fn is_dead(directory: &Path, process: u32) -> bool {
    let no_process = || !TaskDir::of(&SysRoot::host(), process).exists();
    let path = socket(directory, process);
    let Ok(meta) = std::fs::symlink_metadata(&path) else { return no_process() };
    let refused = UnixStream::connect(&path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
    // A new socket may not accept connections yet.
    let old = || meta.modified().is_ok_and(|created| created.elapsed().is_ok_and(|age| age > NEW_SOCKET));
    refused && (no_process() || old())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn each_user_has_a_directory() {
        let tmp = Path::new("/tmp");
        assert_eq!(place(Some("/run/user/7".into()), 7, tmp), Path::new("/run/user/7/numakit"));
        assert_eq!(place(Some("relative".into()), 7, tmp), Path::new("/tmp/numakit-7"));
        assert_eq!(place(None, 0, tmp), Path::new("/run/numakit"));
        assert_eq!(place(None, 65534, tmp), Path::new("/tmp/numakit-65534"));
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let path = std::env::temp_dir().join(format!("numakit-place-{}", std::process::id()));
        open_at(&path).unwrap();
        open_at(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        let open = open_at(&path).unwrap_err().to_string();
        let fix = format!("has mode 777, so others may write to it; run: chmod 700 {}", path.display());
        assert!(open.ends_with(&fix), "{open}");
        std::fs::remove_dir(&path).unwrap();
        let link = path.with_extension("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        let linked = open_at(&link).unwrap_err().to_string();
        assert!(
            linked.ends_with("is not a directory; set XDG_RUNTIME_DIR to your own directory"),
            "{linked}"
        );
        std::fs::remove_file(&link).unwrap();
    }

    #[test]
    fn only_files_of_killed_processes_are_removed() {
        let path = std::env::temp_dir().join(format!("numakit-swept-{}", std::process::id()));
        open_at(&path).unwrap();
        // A PID that no process can have; a socket without a listener.
        let (dead, own) = (4_194_305, std::process::id());
        drop(UnixListener::bind(socket(&path, dead)).unwrap());
        let _own = UnixListener::bind(socket(&path, own)).unwrap();
        for file in [fifo(&path, dead), launcher(&path, dead), fifo(&path, own), launcher(&path, own)] {
            std::fs::write(file, "").unwrap();
        }
        for kept in ["x.sock", "4194305.txt", "4194305", "-1.sock"] {
            std::fs::write(path.join(kept), "").unwrap();
        }
        // Process 1 has only a page, like a server of recordings, which may be running.
        std::fs::write(launcher(&path, 1), "").unwrap();
        sweep(&path);
        let left: BTreeSet<_> = std::fs::read_dir(&path)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        let own: Vec<String> = ["fifo", "html", "sock"].map(|e| format!("{own}.{e}")).into();
        let kept = ["x.sock", "4194305.txt", "4194305", "-1.sock", "1.html"].map(str::to_owned);
        assert_eq!(left, own.into_iter().chain(kept).collect());
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_reused_pid_does_not_keep_a_socket() {
        let path = std::env::temp_dir().join(format!("numakit-reused-{}", std::process::id()));
        open_at(&path).unwrap();
        let socket = socket(&path, 1);
        drop(UnixListener::bind(&socket).unwrap());
        sweep(&path);
        assert!(socket.exists(), "its process may be about to listen");
        let aged = std::process::Command::new("touch").args(["-d", "2 minutes ago"]).arg(&socket).status();
        assert!(aged.unwrap().success());
        sweep(&path);
        assert!(!socket.exists());
        std::fs::remove_dir_all(&path).unwrap();
    }
}
