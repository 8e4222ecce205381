//! In which form results are written.

use crate::GlobalArgs;
use crate::to_file::{self, Existing};
use clap::Args;
use numakit_bench::BenchResults;
use numakit_sys::stdio::print;
use numakit_sys::tty;
use numakit_terminal::bench::{BenchStyle, csv, html, json, page};
use std::path::PathBuf;

/// Width of a line if standard output is not a terminal.
pub(super) const WIDTH: usize = 100;

/// The form of results.
#[derive(Debug, Args)]
pub struct BenchOutputArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Write comma-separated values, one line for each value
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Show all values of alias and assoc in the text, where few of them say the same
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub all: bool,
    /// Write a page to this file, which needs no other file; '-' is standard output, without the text
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl BenchOutputArgs {
    /// Refuses a file that cannot be written, before anything is measured.
    pub fn check(&self) -> anyhow::Result<()> {
        self.html.as_ref().map_or(Ok(()), |path| to_file::check(path, Existing::Replace))
    }

    /// Writes them.
    pub fn write(&self, results: &BenchResults, global: &GlobalArgs) -> anyhow::Result<()> {
        let width = tty::columns().unwrap_or(WIDTH);
        self.write_with(results, || page(results, BenchStyle { color: global.color(), width, all: self.all }))
    }

    /// Writes them, with another text.
    pub fn write_with(&self, results: &BenchResults, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        let is_page = self.html.as_ref().is_some_and(|path| to_file::is_standard_output(path));
        match (self.json, self.csv) {
            (true, _) => print(format_args!("{}\n", json(results)?))?,
            (_, true) => print(csv(results))?,
            _ if is_page => {}
            _ => print(text())?,
        }
        let Some(path) = &self.html else { return Ok(()) };
        let text = html(results);
        to_file::write(path, Existing::Replace, "", |to| Ok(to.write_all(text.as_bytes())?))
    }
}
