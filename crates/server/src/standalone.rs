//! Recordings and the page as one HTML file, which a browser opens without a server.
//!
//! The file has the page's script and style, and the data in elements that are not executed. It is
//! built in memory first, so that no partial file is ever left.

mod contents;
mod html;
mod pack;
mod steps;

pub use contents::{Contained, ContainedComparison, Contents, Stretch};

use crate::client_request_error::ClientRequestError;
use crate::comparer::{self, HeaderAddition};
use crate::page;
use crate::recordings::OpenedRecording;
use crate::wire::{Ns, RangeFindings};
use html::Shell;
use numakit_findings::Profile;
use numakit_sys::output::{Existing, OutputFile};
use pack::Packed;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Version of the format in [`contents`].
const FORMAT: u32 = 1;

/// Why the file cannot be written.
#[derive(Debug, Error)]
pub enum StandaloneError {
    /// This program was built without the page.
    #[error("{0}")]
    NoPage(page::NoPage),
    /// The file exists.
    #[error("{0} exists; give another name, or --force to replace it")]
    Exists(PathBuf),
    /// Not even a few buckets of each series fit.
    #[error(
        "{size} bytes are too few: the page and the metadata of the recordings need {needed}; set a larger --size"
    )]
    Small {
        /// The limit.
        size: u64,
        /// Size of the file without any data.
        needed: u64,
    },
    /// The recordings cannot be compared.
    #[error(transparent)]
    NotCompared(#[from] ClientRequestError),
    /// It cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// The written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its size.
    pub bytes: u64,
    /// Length of a bucket of each recording in ns; `None` if every sample is included.
    pub steps: Vec<Option<u64>>,
}

/// Checks that the file can be written, before all the work.
pub fn check(path: &Path, force: bool) -> Result<(), StandaloneError> {
    page::files().map_err(StandaloneError::NoPage)?;
    begin(path, force).map(|_| ())
}

/// A file that appears only when it is complete.
fn begin(path: &Path, force: bool) -> Result<OutputFile, StandaloneError> {
    OutputFile::create(path, Existing::forced(force)).map_err(|error| cannot(path, error))
}

fn put(path: &Path, force: bool, content: &[u8]) -> Result<(), StandaloneError> {
    let mut output = begin(path, force)?;
    let result = output.write_all(content).and_then(|()| output.persist());
    result.map(|_| ()).map_err(|error| cannot(path, error))
}

fn cannot(path: &Path, error: io::Error) -> StandaloneError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => StandaloneError::Exists(path.to_owned()),
        _ => StandaloneError::Write { path: path.to_owned(), error },
    }
}

/// Writes the recordings into one file of at most `size` bytes. Where they are compared, their headers are completed before.
pub fn write(
    path: &Path,
    force: bool,
    size: u64,
    sources: &[OpenedRecording],
    complete: HeaderAddition,
) -> Result<Written, StandaloneError> {
    check(path, force)?;
    let shell = Shell::of_page().map_err(StandaloneError::NoPage)?;
    let compared = comparisons(sources, complete)?;
    let (html, steps) = html_of(&shell, size, sources, &compared, complete)?;
    put(path, force, &html)?;
    Ok(Written { bytes: html.len() as u64, steps })
}

/// Writes the page with results of `numa explain`, as one JSON text; returns the size of the file.
pub(crate) fn write_results(path: &Path, force: bool, json: &str) -> Result<u64, StandaloneError> {
    check(path, force)?;
    let shell = Shell::of_page().map_err(StandaloneError::NoPage)?;
    let html = shell.html(std::iter::once(html::result_block(json.as_bytes()).as_str()));
    put(path, force, &html)?;
    Ok(html.len() as u64)
}

fn html_of(
    shell: &Shell<'_>,
    size: u64,
    sources: &[OpenedRecording],
    compared: &[ContainedComparison],
    complete: HeaderAddition,
) -> Result<(Vec<u8>, Vec<Option<u64>>), StandaloneError> {
    let described: Vec<_> =
        (0..).zip(sources).map(|(id, source)| contained(id, source, source.findings(complete))).collect();
    let comparisons = compared.to_vec();
    let mut contents = Contents { format: FORMAT, sources: described, comparisons };
    let block = html::block(&json(&contents));
    let needed = shell.len() + block.len() as u64;
    let small = |_| StandaloneError::Small { size, needed };
    let packed = pack_all(sources, size.saturating_sub(needed)).map_err(small)?;
    let mut block = 1;
    for (one, packed) in contents.sources.iter_mut().zip(&packed) {
        (one.block, one.step_ns) = (block, Ns(packed.step.unwrap_or(0)));
        one.stretches.clone_from(&packed.stretches);
        block += packed.blocks.len() as u32;
    }
    let block = html::block(&json(&contents));
    let blocks = packed.iter().flat_map(|p| p.blocks.iter().map(String::as_str));
    let html = shell.html(std::iter::once(block.as_str()).chain(blocks));
    Ok((html, packed.iter().map(|p| p.step).collect()))
}

/// Each recording compared with each other one.
fn comparisons(
    sources: &[OpenedRecording],
    complete: HeaderAddition,
) -> Result<Vec<ContainedComparison>, StandaloneError> {
    if sources.len() < 2 {
        return Ok(Vec::new());
    }
    let profiles: Vec<Profile> =
        sources.iter().map(|source| source.profile(complete)).collect::<Result<_, _>>()?;
    let pairs = (0..profiles.len()).flat_map(|a| (0..profiles.len()).map(move |b| (a, b)));
    let compared = |(a, b): (usize, usize)| ContainedComparison {
        first: a as u32,
        second: b as u32,
        compared: comparer::whole(&profiles[a], &profiles[b]),
    };
    Ok(pairs.filter(|(a, b)| a != b).map(compared).collect())
}

fn contained(id: u32, source: &OpenedRecording, found: RangeFindings) -> Contained {
    let (from, to) = source.data.span().unwrap_or_default();
    Contained {
        info: crate::wire::SourceInfo { id, ..source.info.clone() },
        labels: source.data.labels().into_iter().map(crate::source::label).collect(),
        found,
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

/// Each recording has an equal share of the room. What one does not use is left for the next, and
/// what the last does not use for the first that did not fit.
fn pack_all(sources: &[OpenedRecording], room: u64) -> Result<Vec<Packed>, pack::NoRoom> {
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
