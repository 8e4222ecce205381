//! Where the registry is, and the identity by which files that were the same registry are recognised.

use crate::FileError;
use crate::record::fnv;
use numakit_model::Fix;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The registry that an administrator has created, so that only root can remove it.
const MACHINE_FILE: &str = "/run/numakit-cores";
/// The registry that the first user creates, if there is no other.
const SHARED_FILE: &str = "/dev/shm/numakit-cores";

/// Name of the file in a folder.
const IN_A_FOLDER: &str = "numakit-cores";

/// The folder that the command line names.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// From now on the registry of this process is in this folder, which several containers mount. Programs that it starts get
/// the variable [`VARIABLE`] with the folder.
pub fn use_folder(folder: &Path) -> Result<(), FileError> {
    if !folder.is_dir() {
        let problem = format!("{} is no folder for the registry of cores", folder.display());
        let fix = "make it, and mount it into all containers that share the machine's cores";
        return Err(FileError { problem, fix: Fix::Step(fix.to_owned()) });
    }
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // The folder can be set only once; a second call comes from the same command line.
    let _ = FOLDER.set(folder);
    Ok(())
}

/// The folder or file of the registry in the environment.
pub const VARIABLE: &str = "NUMAKIT_REGISTRY";

/// The folder or file that the command line or the environment names.
pub fn named() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    FOLDER.get().cloned().or(named)
}

/// Where the registry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryLocation {
    /// In the file that `NUMAKIT_REGISTRY` names.
    Named(PathBuf),
    /// In `/run` if an administrator created it there, else in `/dev/shm`.
    Default,
}

impl RegistryLocation {
    /// The location of this process's registry.
    pub fn of_this_process() -> Self {
        Self::of(named())
    }

    fn of(named: Option<PathBuf>) -> Self {
        named.map_or(Self::Default, |path| Self::named(&path))
    }

    /// The location in this file, or in a file of this folder. It stays the same if this process changes its working
    /// directory.
    pub fn named(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self::Named(if path.is_dir() { path.join(IN_A_FOLDER) } else { path })
    }

    /// The file, at present.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Named(path) => path.clone(),
            Self::Default => default_file(Path::new(MACHINE_FILE).exists()),
        }
    }

    /// An identity for this file. It is the same for all files that ever had this file's name, and different for all other
    /// registries.
    pub fn identity(&self, file: &File) -> u64 {
        file.metadata().map_or(0, |data| self.identity_on(&data))
    }

    /// The identities of all files that may be or have been this registry.
    pub fn identities(&self, file: Option<&File>) -> Vec<u64> {
        let folders = match self {
            Self::Named(path) => vec![folder(path)],
            Self::Default => [MACHINE_FILE, SHARED_FILE].map(|path| folder(Path::new(path))).to_vec(),
        };
        let folders = folders.iter().filter_map(|folder| fs::metadata(folder).ok());
        let file = file.and_then(|file| file.metadata().ok());
        folders.chain(file).map(|data| self.identity_on(&data)).collect()
    }

    /// The identity includes the device: containers have folders of the same names on other devices.
    fn identity_on(&self, data: &Metadata) -> u64 {
        let name = match self {
            Self::Named(path) => {
                let folder = folder(path);
                let folder = fs::canonicalize(&folder).unwrap_or(folder);
                path.file_name().map_or(folder.clone(), |name| folder.join(name)).into_os_string()
            }
            Self::Default => OsString::new(),
        };
        fnv(name.as_bytes().iter().copied().chain(data.dev().to_le_bytes()))
    }
}

fn default_file(has_machine_file: bool) -> PathBuf {
    PathBuf::from(if has_machine_file { MACHINE_FILE } else { SHARED_FILE })
}

fn folder(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_file() {
        assert_eq!(RegistryLocation::of(Some("/x/y".into())), RegistryLocation::Named("/x/y".into()));
        let here = std::env::current_dir().unwrap();
        assert_eq!(RegistryLocation::of(Some("x/y".into())), RegistryLocation::Named(here.join("x/y")));
        let folder = std::env::temp_dir();
        let inside = folder.join(IN_A_FOLDER);
        assert_eq!(RegistryLocation::of(Some(folder)), RegistryLocation::Named(inside));
        assert_eq!(RegistryLocation::of(None), RegistryLocation::Default);
        assert_eq!([default_file(true), default_file(false)], [MACHINE_FILE, SHARED_FILE].map(PathBuf::from));
    }

    #[test]
    fn the_identity_is_that_of_name_and_device() {
        let path = std::env::temp_dir().join(format!("numakit-place-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let location = RegistryLocation::Named(path.clone());
        let same = RegistryLocation::Named(path.parent().unwrap().join(".").join(path.file_name().unwrap()));
        let other = RegistryLocation::Named(path.with_extension("other"));
        assert_eq!(location.identity(&file), same.identity(&file));
        assert_ne!(location.identity(&file), other.identity(&file));
        assert_ne!(location.identity(&file), RegistryLocation::Default.identity(&file));
        fs::remove_file(&path).unwrap();
        // The folder's device is enough.
        assert_eq!(location.identities(None), [location.identity(&file)]);
    }
}
