//! The files of flame graphs.

use crate::to_file::{self, Existing};
use numakit_explain::{FlameGraph, FlameGraphs};
use numakit_sys::stdio::note;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const TIME: &str = ".time";
const RESIDENT: &str = ".resident";
const SVG: &str = ".svg";
const FOLDED: &str = ".folded";

fn path(prefix: &Path, graph: &str, form: &str) -> PathBuf {
    let mut path = OsString::from(prefix);
    path.push(graph);
    path.push(form);
    path.into()
}

/// Whether all can be written, before the program runs whose observation would be lost.
pub fn check(prefix: &Path) -> anyhow::Result<()> {
    let files =
        [TIME, RESIDENT].into_iter().flat_map(|graph| [SVG, FOLDED].map(|form| path(prefix, graph, form)));
    files.into_iter().try_for_each(|path| to_file::check(&path, Existing::Replace))
}

/// Writes the graphs that there are, and says why one is missing.
pub fn write(prefix: &Path, graphs: &FlameGraphs) -> anyhow::Result<()> {
    let time = "samples of this machine do not tell time";
    let resident = "no page faults were seen; that needs performance events (--method perf) from the start of the program on";
    for (graph, name, why) in [(&graphs.time, TIME, time), (&graphs.resident, RESIDENT, resident)] {
        match graph {
            Some(graph) => both(prefix, name, graph)?,
            None => note(format_args!("no {}: {why}", path(prefix, name, SVG).display())),
        }
    }
    Ok(())
}

fn both(prefix: &Path, name: &str, graph: &FlameGraph) -> anyhow::Result<()> {
    for (form, text) in [(SVG, graph.svg()), (FOLDED, graph.folded())] {
        to_file::write(&path(prefix, name, form), Existing::Replace, "", |to| {
            Ok(to.write_all(text.as_bytes())?)
        })?;
    }
    Ok(())
}
