//! The command line of `numa`. This definition is the only one: help, man pages, shell
//! completions and the documents are made from it.

mod formulas;
mod global;
mod job;
pub mod numaplace;
pub mod numascope;
mod observe;
mod page;
mod place;
mod running;
pub mod verbs;

pub use global::Global;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// See, place, feed and measure programs on NUMA machines.
#[derive(Debug, Parser)]
#[command(name = "numa", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// One line per verb; each is a file in `verbs/`.
#[derive(Debug, Subcommand)]
enum Verb {
    Topo(verbs::topo::Topo),
    Plan(verbs::plan::Plan),
    Run(verbs::run::Run),
    Ps(verbs::ps::Ps),
    Capture(verbs::capture::Capture),
    Doctor(verbs::doctor::Doctor),
    List(verbs::list::List),
    Stat(verbs::stat::Stat),
    Tasks(verbs::tasks::Tasks),
    Live(verbs::live::Live),
    View(verbs::view::View),
    Record(verbs::record::Record),
    Ctl(verbs::ctl::Ctl),
    Report(verbs::report::Report),
    Export(verbs::export::Export),
    Recover(verbs::recover::Recover),
    Mark(verbs::mark::Mark),
}

/// The definition, for man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

impl Cli {
    /// Does what the command line says. An error is about the request or the environment
    /// (exit code 2); what ran and went partly wrong is in the exit code.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let global = &self.global;
        match self.verb {
            Verb::Topo(verb) => verb.run(global),
            Verb::Plan(verb) => verb.run(global),
            Verb::Run(verb) => verb.run(global),
            Verb::Ps(verb) => verb.run(global),
            Verb::Capture(verb) => verb.run(global),
            Verb::Doctor(verb) => verb.run(global),
            Verb::List(verb) => verb.run(global),
            Verb::Stat(verb) => verb.run(global),
            Verb::Tasks(verb) => verb.run(global),
            Verb::Live(verb) => verb.run(global),
            Verb::View(verb) => verb.run(global),
            Verb::Record(verb) => verb.run(global),
            Verb::Ctl(verb) => verb.run(global),
            Verb::Report(verb) => verb.run(global),
            Verb::Export(verb) => verb.run(global),
            Verb::Recover(verb) => verb.run(global),
            Verb::Mark(verb) => verb.run(global),
        }
    }
}
