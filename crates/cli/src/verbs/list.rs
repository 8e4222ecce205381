//! `numa list`.

use crate::formulas::FormulaArgs;
use crate::{Examples, GlobalArgs};
use anyhow::Context;
use clap::Args;
use numakit_sensors::select::where_to_look;
use numakit_sensors::{Probe, Scene, glob};
use numakit_sys::stdio::{note, print};
use numakit_terminal::list::Listing;
use std::process::ExitCode;

/// List events and derived metrics, and why some are unavailable
///
/// A PATTERN with *, ? or [..] has to match a whole name, with or without its sensor. Any other
/// text is searched for in names and descriptions. The exit code is 1 if nothing matches. The
/// option -e of other verbs accepts full names, names without the sensor and patterns. The list
/// ends with derived metrics (formulas), which 'numa stat -m' accepts by name.
#[derive(Debug, Default, Args)]
pub struct ListArgs {
    /// Name, pattern or text to search for
    pattern: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    formulas: FormulaArgs,
}

impl ListArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples =
        [("numa list", "all that can be measured here"), ("numa list 'node.*'", "the events of one sensor")];

    /// Prints the list.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        if let Some(pattern) = &self.pattern {
            glob::check(pattern, glob::MAX_BYTES).context("PATTERN cannot be searched for")?;
        }
        let formulas = self.formulas.load()?;
        let root = global.root()?;
        // If the limit cannot be raised, it is sufficient for most machines.
        let _ = numakit_sys::sched::raise_open_files();
        let topology = numakit_topology::read(&root).context("cannot read the topology")?;
        let probe = Probe::new(&Scene::new(&root, &topology));
        let listing = Listing::of(&probe, self.pattern.as_deref()).with_formulas(
            &probe,
            &topology,
            &formulas,
            self.pattern.as_deref(),
        );
        if self.json {
            print(format_args!("{:#}\n", listing.json()))?;
        } else if !listing.is_empty() {
            print(listing.table(numakit_sys::tty::columns()))?;
        }
        if listing.is_empty() {
            let pattern = self.pattern.unwrap_or_default();
            note(format_args!("nothing matches '{pattern}'; {}", where_to_look(&probe.nearest(&pattern))));
            return Ok(ExitCode::from(1));
        }
        Ok(ExitCode::SUCCESS)
    }
}
