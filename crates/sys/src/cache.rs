//! Where files of a user are kept: those that can be made again, and results.

use crate::user;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The variable with the directory for such files. If it is set, no other directory is used.
pub const VARIABLE: &str = "NUMAKIT_CACHE";

/// The directories for such files, in order of preference: NUMAKIT_CACHE and no other, if that is set; /var/cache/numakit
/// for root; for other users numakit in XDG_CACHE_HOME or in .cache of their home, and last a directory for `purpose` in
/// that of temporary files.
pub fn folders(purpose: &str) -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(folder) = variable(VARIABLE) {
        return vec![folder];
    }
    let user = user::id();
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let first = if user == 0 {
        Some("/var/cache/numakit".into())
    } else {
        cache().map(|folder| folder.join("numakit"))
    };
    first.into_iter().chain([std::env::temp_dir().join(format!("numakit-{user}-{purpose}"))]).collect()
}

/// The directory of root's results.
pub const SYSTEM_STATE: &str = "/var/lib/numakit";

/// The directory for results: numakit in XDG_STATE_HOME, of root in /var/lib, of others in .local/state of their home.
pub fn state_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of = |folder: PathBuf| Some(folder.join("numakit"));
    let system = || (user::id() == 0).then(|| PathBuf::from(SYSTEM_STATE));
    variable("XDG_STATE_HOME")
        .and_then(of)
        .or_else(system)
        .or_else(|| of(variable("HOME")?.join(".local/state")))
}

/// The content of a small file in a directory; `None` if there is none, or if a user other than root could have written it.
pub fn load(folder: &Path, name: &str) -> Option<String> {
    user::is_trusted(folder).ok().filter(|trusted| *trusted)?;
    fs::read_to_string(folder.join(name)).ok()
}

/// The regular files in a directory whose names end like this, with the time of their last change, the newest first; none where
/// there is no such directory.
pub fn newest_first(folder: &Path, end: &str) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        // Another process may have removed it.
        let data = entry.metadata().ok().filter(|data| data.is_file());
        if let Some(data) = data.filter(|_| entry.file_name().as_encoded_bytes().ends_with(end.as_bytes())) {
            files.push((data.modified()?, entry.path()));
        }
    }
    files.sort_by(|one, other| other.cmp(one));
    Ok(files)
}

/// Replaces a small file in a directory, which is created if necessary: a reader sees the old content or the new one.
pub fn store(folder: &Path, name: &str, content: &str) -> io::Result<()> {
    store_with(folder, name, content, 0o666)
}

/// The same of a file that only this user may read.
pub fn store_privately(folder: &Path, name: &str, content: &str) -> io::Result<()> {
    store_with(folder, name, content, 0o600)
}

/// `file_mode` is that of the new file, less the umask.
fn store_with(folder: &Path, name: &str, content: &str, file_mode: u32) -> io::Result<()> {
    let mode = if user::id() == 0 { 0o755 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    if !user::owns_privately(folder)? {
        let problem = format!("{}: only this user may be able to write to it", folder.display());
        return Err(io::Error::other(problem));
    }
    let temporary = folder.join(format!("{name}.new-{}", std::process::id()));
    let write = || {
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(file_mode).open(&temporary)?;
        file.write_all(content.as_bytes())?;
        fs::rename(&temporary, folder.join(name))
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_kept_only_where_no_other_user_writes() {
        let folder = std::env::temp_dir().join(format!("numakit-cache-{}", std::process::id())).join("deep");
        store(&folder, "one", "first").unwrap();
        store(&folder, "one", "second").unwrap();
        assert_eq!(load(&folder, "one").as_deref(), Some("second"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        store_privately(&folder, "own", "third").unwrap();
        assert_eq!(fs::metadata(folder.join("own")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!((load(&folder, "two"), load(Path::new("/nowhere"), "one")), (None, None));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(load(&folder, "one"), None);
        assert!(store(&folder, "one", "third").is_err());
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn files_are_listed_by_their_age() {
        let folder = std::env::temp_dir().join(format!("numakit-newest-{}", std::process::id()));
        assert!(newest_first(&folder, ".json").unwrap().is_empty(), "there is no folder");
        for name in ["b.json", "a.json", "c.json.new-1"] {
            store(&folder, name, "text").unwrap();
        }
        let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(9);
        File::options().append(true).open(folder.join("b.json")).unwrap().set_modified(old).unwrap();
        fs::create_dir(folder.join("d.json")).unwrap();
        let names: Vec<PathBuf> =
            newest_first(&folder, ".json").unwrap().into_iter().map(|(_, path)| path).collect();
        assert_eq!(names, [folder.join("a.json"), folder.join("b.json")]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_user_has_a_place_for_temporary_files_at_last() {
        let folders = folders("landing");
        if std::env::var_os(VARIABLE).is_some() {
            return assert_eq!(folders, [PathBuf::from(std::env::var_os(VARIABLE).unwrap())]);
        }
        assert!(folders.len() <= 2 && folders.iter().all(|folder| folder.is_absolute()), "{folders:?}");
        assert!(folders.last().unwrap().ends_with(format!("numakit-{}-landing", user::id())));
    }
}
