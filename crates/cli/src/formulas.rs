//! The formulas of derived metrics: built-in ones, and those of the user's files.

use anyhow::{Context, bail};
use clap::Args;
use numakit_formulas::{Catalog, MAX_BYTES};
use numakit_sys::file::open_to_read;
use numakit_sys::stdio::note;
use numakit_terminal::formulas::known_metrics;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Files with formulas.
#[derive(Debug, Default, Args)]
pub struct FormulaArgs {
    /// Add the formulas in this file (see the guide 'formulas'); may be repeated
    ///
    /// /etc/numakit/formulas.txt and $XDG_CONFIG_HOME/numakit/formulas.txt
    /// (~/.config/numakit/formulas.txt) are read first, if they exist. A formula replaces an
    /// earlier one of the same name.
    #[arg(long = "formulas", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl FormulaArgs {
    /// Whether files were given.
    pub fn is_given(&self) -> bool {
        !self.files.is_empty()
    }

    /// Loads the built-in formulas, then those of the machine, of the user and of the command line.
    pub fn load(&self) -> anyhow::Result<Catalog> {
        let mut texts = Vec::new();
        for path in standard() {
            match text(&path) {
                Ok(text) => texts.push((path, text)),
                Err(error) => match io_kind(&error) {
                    // It does not exist, or belongs to another user's home.
                    Some(ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied) => {}
                    Some(_) => note(format_args!("warning: {error:#}")),
                    None => return Err(error),
                },
            }
        }
        for path in &self.files {
            texts.push((path.clone(), text(path)?));
        }
        let mut catalog = Catalog::built_in().clone();
        if texts.is_empty() {
            return Ok(catalog);
        }
        let metrics = known_metrics();
        for (path, text) in texts {
            catalog.add(&text, &path.display().to_string(), &|name| metrics.get(name).copied())?;
        }
        Ok(catalog)
    }
}

/// Files that are read if they exist.
fn standard() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
    [Some(PathBuf::from("/etc")), config]
        .into_iter()
        .flatten()
        .map(|folder| folder.join("numakit/formulas.txt"))
        .collect()
}

/// The kind of the system's error, if there is one.
fn io_kind(error: &anyhow::Error) -> Option<ErrorKind> {
    error.root_cause().downcast_ref::<std::io::Error>().map(std::io::Error::kind)
}

fn text(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read the formulas in {}", path.display());
    let mut bytes = Vec::new();
    // One byte more than allowed, to notice a file that is too long.
    open_to_read(path)
        .and_then(|f| f.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .with_context(cannot)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => {
            bail!("{} is not UTF-8 text; the guide 'formulas' describes the format", path.display())
        }
    }
}
