//! The folder of the benchmark, and what programs need there. All is made once.

use super::programs::Program;
use crate::{install, process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that is made for a program.
#[derive(Debug)]
pub struct Step {
    /// The file that is there once it is made.
    pub made: &'static str,
    /// A file of xtask/tune, or nothing: if it is newer, this is made again.
    pub of: &'static str,
    /// Makes it, in the folder of the benchmark.
    pub script: &'static str,
}

/// Where programs run and what they need is kept.
pub fn folder() -> PathBuf {
    workspace::target().join("tune")
}

/// Installs a program and makes what it needs.
pub fn prepare(program: &Program) -> Result<()> {
    let missing = install::all(program.tools);
    if !missing.is_empty() {
        bail!("{}: {}", program.name, missing.join("; "));
    }
    let folder = folder();
    copy_sources(&folder)?;
    for step in program.steps {
        if is_stale(&folder, step) {
            println!("  makes {}", folder.join(step.made).display());
            process::run(Command::new("sh").args(["-ec", step.script]).current_dir(&folder))?;
        }
        if !folder.join(step.made).exists() {
            bail!(
                "{}: there is no {} after: {}",
                program.name,
                folder.join(step.made).display(),
                step.script
            );
        }
    }
    Ok(())
}

/// Copies the sources that are new. A copy keeps its time where nothing changed, so that nothing is made again.
fn copy_sources(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("registry"))?;
    let xtask = workspace::root().join("xtask");
    let mut sources = vec![xtask.join("python/model.py")];
    for entry in fs::read_dir(xtask.join("tune"))? {
        sources.push(entry?.path());
    }
    for source in sources {
        let copy = folder.join(source.file_name().context("a source has no name")?);
        let text = fs::read(&source)?;
        if fs::read(&copy).ok().as_ref() != Some(&text) {
            fs::write(&copy, text)?;
        }
    }
    Ok(())
}

fn is_stale(folder: &Path, step: &Step) -> bool {
    let changed = |file: &str| fs::metadata(folder.join(file)).and_then(|found| found.modified()).ok();
    match changed(step.made) {
        None => true,
        Some(made) => !step.of.is_empty() && changed(step.of).is_none_or(|source| source > made),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tune::programs::PROGRAMS;

    /// A step whose source is missing would be made again each time.
    #[test]
    fn sources_of_steps_are_in_the_repository() {
        for step in PROGRAMS.iter().flat_map(|program| program.steps).filter(|step| !step.of.is_empty()) {
            let xtask = workspace::root().join("xtask");
            let exists = ["tune", "python"].iter().any(|folder| xtask.join(folder).join(step.of).is_file());
            assert!(exists, "{}: there is no {}", step.made, step.of);
        }
    }

    #[test]
    fn what_is_newer_than_its_source_is_not_made_again() {
        let folder = std::env::temp_dir().join(format!("numakit-steps-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let step = Step { made: "made", of: "source", script: "" };
        fs::write(folder.join("source"), "").unwrap();
        assert!(is_stale(&folder, &step), "nothing is made yet");
        fs::write(folder.join("made"), "").unwrap();
        assert!(!is_stale(&folder, &step));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
        fs::File::options().append(true).open(folder.join("source")).unwrap().set_modified(later).unwrap();
        assert!(is_stale(&folder, &step), "the source is newer");
        fs::remove_dir_all(&folder).unwrap();
    }
}
