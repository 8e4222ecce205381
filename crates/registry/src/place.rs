//! Where the registry is, and by what files that were one and the same registry are told.

use crate::FileError;
use crate::record::fnv;
use numakit_model::Fix;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Made by whoever looks after the machine, so that only root can remove it.
const OF_THE_MACHINE: &str = "/run/numakit-cores";
/// Made by whoever comes first.
const OF_ALL: &str = "/dev/shm/numakit-cores";

/// Name of the file in a folder.
const IN_A_FOLDER: &str = "numakit-cores";

/// The folder that the command line names.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// From now on the registry of this process is in this folder, which several containers mount. What
/// it starts gets the variable [`VARIABLE`] with it.
pub fn use_folder(folder: &Path) -> Result<(), FileError> {
    if !folder.is_dir() {
        let problem = format!("{} is no folder for the registry of cores", folder.display());
        let fix = "make it, and mount it into all containers that share the machine's cores";
        return Err(FileError { problem, fix: Fix::Step(fix.to_owned()) });
    }
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // A second name in the same process is the same command line.
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
    /// Where `NUMAKIT_REGISTRY` says.
    Named(PathBuf),
    /// The one of the machine if it is there, else the one that all make.
    Usual,
}

impl RegistryLocation {
    /// For this process.
    pub fn of_this_process() -> Self {
        Self::of(named())
    }

    fn of(named: Option<PathBuf>) -> Self {
        named.map_or(Self::Usual, |path| Self::named(&path))
    }

    /// In this file, or in a file of this folder, also when this process goes to another folder.
    pub fn named(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self::Named(if path.is_dir() { path.join(IN_A_FOLDER) } else { path })
    }

    /// The file at this moment.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Named(path) => path.clone(),
            Self::Usual => usual(Path::new(OF_THE_MACHINE).exists()),
        }
    }

    /// What tells this file, and others that had its name before, from all other registries.
    pub fn identity(&self, file: &File) -> u64 {
        file.metadata().map_or(0, |data| self.identity_on(&data))
    }

    /// The same for all files that this registry may have been, whether they are still there or not.
    pub fn identities(&self, file: Option<&File>) -> Vec<u64> {
        let folders = match self {
            Self::Named(path) => vec![folder(path)],
            Self::Usual => [OF_THE_MACHINE, OF_ALL].map(|path| folder(Path::new(path))).to_vec(),
        };
        let folders = folders.iter().filter_map(|folder| fs::metadata(folder).ok());
        let file = file.and_then(|file| file.metadata().ok());
        folders.chain(file).map(|data| self.identity_on(&data)).collect()
    }

    /// Containers have folders of the same names on other devices.
    fn identity_on(&self, data: &Metadata) -> u64 {
        let name = match self {
            Self::Named(path) => {
                let folder = folder(path);
                let folder = fs::canonicalize(&folder).unwrap_or(folder);
                path.file_name().map_or(folder.clone(), |name| folder.join(name)).into_os_string()
            }
            Self::Usual => OsString::new(),
        };
        fnv(name.as_bytes().iter().copied().chain(data.dev().to_le_bytes()))
    }
}

fn usual(of_the_machine: bool) -> PathBuf {
    PathBuf::from(if of_the_machine { OF_THE_MACHINE } else { OF_ALL })
}

fn folder(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_named_or_the_first_that_is_there() {
        assert_eq!(RegistryLocation::of(Some("/x/y".into())), RegistryLocation::Named("/x/y".into()));
        let here = std::env::current_dir().unwrap();
        assert_eq!(RegistryLocation::of(Some("x/y".into())), RegistryLocation::Named(here.join("x/y")));
        let folder = std::env::temp_dir();
        let inside = folder.join(IN_A_FOLDER);
        assert_eq!(RegistryLocation::of(Some(folder)), RegistryLocation::Named(inside));
        assert_eq!(RegistryLocation::of(None), RegistryLocation::Usual);
        assert_eq!([usual(true), usual(false)], [OF_THE_MACHINE, OF_ALL].map(PathBuf::from));
    }

    #[test]
    fn a_registry_is_told_by_name_and_device() {
        let path = std::env::temp_dir().join(format!("numakit-place-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let place = RegistryLocation::Named(path.clone());
        let same = RegistryLocation::Named(path.parent().unwrap().join(".").join(path.file_name().unwrap()));
        let other = RegistryLocation::Named(path.with_extension("other"));
        assert_eq!(place.identity(&file), same.identity(&file));
        assert_ne!(place.identity(&file), other.identity(&file));
        assert_ne!(place.identity(&file), RegistryLocation::Usual.identity(&file));
        fs::remove_file(&path).unwrap();
        // Its folder is enough to tell it.
        assert_eq!(place.identities(None), [place.identity(&file)]);
    }
}
