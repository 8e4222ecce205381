//! Folders that a test program has for itself, so that it neither reads nor writes what is the user's, root's, or another
//! program's: caches (with calibrations), settings, results, the registry of cores.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders by the variables that name them.
const FOLDERS: [(&str, &str); 5] = [
    ("HOME", "home"),
    ("XDG_STATE_HOME", "state"),
    ("XDG_RUNTIME_DIR", "run"),
    ("NUMAKIT_CACHE", "cache"),
    ("NUMAKIT_REGISTRY", "registry"),
];
/// Without these, the folders are below the home.
const BELOW_HOME: [&str; 3] = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];
/// What compilers keep is the same for all: as the user has it, or below the user's home.
const OF_COMPILERS: [(&str, &str); 3] =
    [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("GOCACHE", ".cache/go-build")];

/// The folders of all programs; they are removed with it. Their paths are short, since sockets are in them.
#[derive(Debug)]
pub struct Homes(PathBuf);

impl Homes {
    /// For this run.
    pub fn new() -> Self {
        Self(std::env::temp_dir().join(format!("numakit-tests-{}", std::process::id())))
    }

    /// Gives a command empty folders of this name.
    pub fn give(&self, command: &mut Command, name: &str) -> Result<()> {
        let folder = self.0.join(name.replace(' ', "-"));
        remove(&folder)?;
        for (variable, name) in FOLDERS {
            let path = folder.join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
            command.env(variable, path);
        }
        BELOW_HOME.iter().for_each(|name| _ = command.env_remove(name));
        let home = std::env::var_os("HOME").map(PathBuf::from);
        for (name, below) in OF_COMPILERS {
            if let (None, Some(home)) = (std::env::var_os(name), &home) {
                command.env(name, home.join(below));
            }
        }
        Ok(())
    }
}

impl Drop for Homes {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            eprintln!("xtask: {error:#}");
        }
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(homes: &Homes, name: &str) -> PathBuf {
        let mut command = Command::new("true");
        homes.give(&mut command, name).unwrap();
        let find = |name: &str| command.get_envs().find(|(found, _)| *found == name).unwrap().1;
        assert_eq!(find("XDG_CACHE_HOME"), None);
        PathBuf::from(find("HOME").unwrap())
    }

    #[test]
    fn folders_are_empty_and_its_own() {
        let homes = Homes(std::env::temp_dir().join(format!("numakit-homes-{}", std::process::id())));
        let (one, other) = (home(&homes, "p one"), home(&homes, "p other"));
        assert_ne!(one, other);
        fs::write(one.join("left"), "").unwrap();
        assert_eq!(home(&homes, "p one"), one);
        assert!(!one.join("left").exists() && other.is_dir());
        drop(homes);
        assert!(!one.exists());
    }
}
