//! Recordings and the page as one HTML file, which a browser opens without a server.
//!
//! The file is the page's own script and style with the data in elements that nothing
//! executes. All of it is put together in memory first, so no half of it is ever left.

mod contents;
mod html;
mod pack;
mod steps;

pub use contents::{Contained, Contents, Stretch};

use crate::page;
use crate::recordings::Opened;
use crate::wire::Ns;
use html::Shell;
use numakit_sys::output::{Existing, OutputFile};
use pack::Packed;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Version of what is described in [`contents`].
const FORMAT: u32 = 1;

/// Why there is no file.
#[derive(Debug, Error)]
pub enum CannotWrite {
    /// The page is no part of this program.
    #[error("{0}")]
    NoPage(page::NoPage),
    /// The file is there already.
    #[error("{0} exists; give another name, or --force to replace it")]
    Exists(PathBuf),
    /// Not even a few buckets of each series fit.
    #[error(
        "{size} bytes are too few: the page and the metadata of the recordings need {needed}; set a larger --size"
    )]
    Small {
        /// The bound.
        size: u64,
        /// What is needed before any data.
        needed: u64,
    },
    /// It cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its size.
    pub bytes: u64,
    /// Of each recording the length of a bucket in ns; `None` where every sample is there.
    pub steps: Vec<Option<u64>>,
}

/// Whether a file may be written there, before all the work is done for it.
pub fn check(path: &Path, force: bool) -> Result<(), CannotWrite> {
    page::files().map_err(CannotWrite::NoPage)?;
    begin(path, force).map(|_| ())
}

/// A file that appears whole in the end: who opens it sees all of it or nothing.
fn begin(path: &Path, force: bool) -> Result<OutputFile, CannotWrite> {
    OutputFile::create(path, Existing::forced(force)).map_err(|error| cannot(path, error))
}

fn put(path: &Path, force: bool, content: &[u8]) -> Result<(), CannotWrite> {
    let mut output = begin(path, force)?;
    let kept = output.write_all(content).and_then(|()| output.keep());
    kept.map(|_| ()).map_err(|error| cannot(path, error))
}

fn cannot(path: &Path, error: io::Error) -> CannotWrite {
    match error.kind() {
        io::ErrorKind::AlreadyExists => CannotWrite::Exists(path.to_owned()),
        _ => CannotWrite::Write { path: path.to_owned(), error },
    }
}

/// Writes the recordings into one file of at most so many bytes.
pub fn write(path: &Path, force: bool, size: u64, sources: &[Opened]) -> Result<Written, CannotWrite> {
    check(path, force)?;
    let shell = Shell::of_page().map_err(CannotWrite::NoPage)?;
    let (html, steps) = html_of(&shell, size, sources)?;
    put(path, force, &html)?;
    Ok(Written { bytes: html.len() as u64, steps })
}

fn html_of(
    shell: &Shell<'_>,
    size: u64,
    sources: &[Opened],
) -> Result<(Vec<u8>, Vec<Option<u64>>), CannotWrite> {
    let bare: Vec<_> = sources.iter().enumerate().map(|(id, source)| contained(id, source)).collect();
    let told = html::block(&json(&Contents { format: FORMAT, sources: bare.clone() }));
    let needed = shell.len() + told.len() as u64;
    let small = |_| CannotWrite::Small { size, needed };
    let packed = pack_all(sources, size.saturating_sub(needed)).map_err(small)?;
    let mut contents = Contents { format: FORMAT, sources: bare };
    let mut block = 1;
    for (one, packed) in contents.sources.iter_mut().zip(&packed) {
        (one.block, one.step_ns) = (block, Ns(packed.step.unwrap_or(0)));
        one.stretches.clone_from(&packed.stretches);
        block += packed.blocks.len() as u32;
    }
    let told = html::block(&json(&contents));
    let blocks = packed.iter().flat_map(|p| p.blocks.iter().map(String::as_str));
    let html = shell.html(std::iter::once(told.as_str()).chain(blocks));
    Ok((html, packed.iter().map(|p| p.step).collect()))
}

fn contained(id: usize, source: &Opened) -> Contained {
    let (from, to) = source.data.span().unwrap_or_default();
    Contained {
        info: crate::wire::SourceInfo { id: id as u32, ..source.info.clone() },
        labels: source.data.labels().into_iter().map(crate::source::label).collect(),
        from_ns: Ns(from),
        to_ns: Ns(to),
        step_ns: Ns(0),
        group: pack::GROUP as u32,
        block: 0,
        stretches: Vec::new(),
    }
}

fn json(contents: &Contents) -> Vec<u8> {
    // Numbers, names and texts only, so this cannot fail.
    serde_json::to_vec(contents).unwrap_or_default()
}

/// Each recording has its share of the room; what one leaves the next may use, and in the end
/// the first that had too little.
fn pack_all(sources: &[Opened], room: u64) -> Result<Vec<Packed>, pack::NoRoom> {
    let mut packed: Vec<Packed> = Vec::with_capacity(sources.len());
    for (id, source) in sources.iter().enumerate() {
        let left = room - packed.iter().map(|p| p.bytes).sum::<u64>();
        packed.push(pack::pack(source, id as u32, left / (sources.len() - id) as u64)?);
    }
    let used: u64 = packed.iter().map(|p| p.bytes).sum();
    if let Some(id) = packed.iter().take(sources.len().saturating_sub(1)).position(|p| p.step.is_some())
        && room - used > packed[id].bytes
    {
        packed[id] = pack::pack(&sources[id], id as u32, packed[id].bytes + room - used)?;
    }
    Ok(packed)
}

#[cfg(test)]
mod tests;
