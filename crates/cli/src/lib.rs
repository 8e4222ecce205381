//! The command line of `numa`. This definition is the only one: help, man pages, shell
//! completions and the documents are made from it.

pub mod completion;
mod formulas;
mod global;
mod job;
pub mod manual;
pub mod numaplace;
pub mod numascope;
mod observe;
mod page;
mod place;
mod running;
mod to_file;
pub mod verbs;

pub use global::Global;

use clap::{Args, Command, FromArgMatches};
use numakit_sys::stdio::{self, OutputError};
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// Every verb is a file in `verbs/`, which has the verb's name and a structure of its options.
macro_rules! verbs {
    ($($name:ident::$Verb:ident),* $(,)?) => {
        const VERBS: &[&str] = &[$(stringify!($name)),*];

        /// Adds all verbs to a definition, or the only one that is wanted.
        fn add_verbs(mut to: Command, only: Option<&OsStr>) -> Command {
            $(if only.is_none_or(|only| only == stringify!($name)) {
                to = to.subcommand(verbs::$name::$Verb::augment_args(Command::new(stringify!($name))));
            })*
            to
        }

        fn run_verb(verb: &str, matches: &clap::ArgMatches, global: &Global) -> anyhow::Result<ExitCode> {
            match verb {
                $(stringify!($name) => verbs::$name::$Verb::from_arg_matches(matches)?.run(global),)*
                _ => anyhow::bail!("there is no verb '{verb}'; 'numa --help' lists them"),
            }
        }
    };
}

verbs! {
    topo::Topo, plan::Plan, run::Run, ps::Ps, capture::Capture, doctor::Doctor, list::List, stat::Stat,
    tasks::Tasks, live::Live, view::View, record::Record, ctl::Ctl, report::Report, export::Export,
    recover::Recover, man::Man, completions::Completions, mark::Mark,
}

/// The definition of `numa`, for documents and tests.
pub fn command() -> Command {
    definition(None)
}

/// The definitions of all programs that this one is, by the name that it is called by.
pub fn programs() -> Vec<Command> {
    vec![command(), numaplace::definition()]
}

fn definition(only: Option<&OsStr>) -> Command {
    let numa = Command::new("numa")
        .version(env!("CARGO_PKG_VERSION"))
        .about("See, place, feed and measure programs on NUMA machines")
        .arg_required_else_help(true)
        .subcommand_required(true)
        .max_term_width(100);
    add_verbs(Global::augment_args(numa), only)
}

/// Does what the command line says, of which the first word is the name of this program. An error
/// is about the request or the environment (exit code 2); what ran and went partly wrong is in the
/// exit code.
pub fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    // To define all verbs takes longer than most of what `numa run` does.
    let named = words.get(1).map(OsString::as_os_str).filter(|word| VERBS.iter().any(|verb| word == verb));
    let matches = match definition(named).try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(other) => return told(&other),
    };
    let global = Global::from_arg_matches(&matches)?;
    match matches.subcommand() {
        Some((verb, matches)) => run_verb(verb, matches, &global),
        None => anyhow::bail!("no verb is given; 'numa --help' lists them"),
    }
}

/// Prints what clap has to say: help that was asked for, or what is wrong with the line.
fn told(what: &clap::Error) -> anyhow::Result<ExitCode> {
    if what.use_stderr() {
        let _ = what.print();
        return Ok(ExitCode::from(2));
    }
    stdio::check()?;
    what.print().map_err(OutputError::from)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_alone_is_defined_as_among_all() {
        let helps = |mut definition: Command, verb: &str| {
            definition.build();
            let verb = definition.find_subcommand_mut(verb).unwrap();
            verb.render_long_help().to_string() + &verb.render_usage().to_string()
        };
        for verb in VERBS {
            assert_eq!(helps(definition(Some(OsStr::new(verb))), verb), helps(command(), verb));
        }
        command().debug_assert();
    }
}
