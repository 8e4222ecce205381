//! The command line of `numa`. Help, man pages, shell completions and tables in the guide are all
//! generated from this definition.

pub mod by_use;
mod calibrations;
mod choose;
mod completion;
mod cure;
mod files;
mod flame_files;
mod formulas;
mod global;
mod guide;
pub mod help;
mod jobs;
pub mod manual;
mod mistakes;
mod mpi;
mod numaplace;
mod numascope;
mod observe;
pub mod originals;
mod page;
mod pager;
mod peaks;
mod placement;
pub mod program;
mod progress;
mod projection;
mod push_to;
mod refused;
mod registry;
mod to_file;
mod tuned;
pub mod verbs;
mod words;

pub use global::GlobalArgs;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use numakit_sys::clock;
use numakit_sys::stdio::{self, OutputError};
use originals::ORIGINALS;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A group of verbs. Help, man page and guide list the verbs by group, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What most users need. The first help lists only these.
    Front,
    /// The machine and its processes, now.
    See,
    /// Recordings: writing, reading and converting them.
    Record,
    /// Cores for programs.
    Place,
    /// The installation and its rights.
    Setup,
    /// For tests of numakit and for other verbs; not in the help.
    Hidden,
}

impl Group {
    /// The groups that 'numa help more' and the man page list.
    pub const LISTED: [Self; 5] = [Self::Front, Self::See, Self::Record, Self::Place, Self::Setup];

    /// The heading of the group.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Front => "Verbs",
            Self::See => "See what the machine does",
            Self::Record => "Record and analyse",
            Self::Place => "Place programs",
            Self::Setup => "Set up and diagnose",
            Self::Hidden => "Hidden",
        }
    }
}

/// A verb: a file in `verbs/` with a structure of its options.
pub struct Verb {
    /// The name.
    pub name: &'static str,
    /// Its group.
    pub group: Group,
    /// The first lines of its help.
    pub examples: &'static Examples,
    define: fn(Command) -> Command,
    run: fn(&ArgMatches, &GlobalArgs) -> anyhow::Result<ExitCode>,
}

impl Verb {
    /// The definition without the text of its help.
    fn parser(&self) -> Command {
        (self.define)(Command::new(self.name)).hide(self.group == Group::Hidden)
    }

    /// The definition.
    fn command(&self) -> Command {
        help::with_examples(self.parser(), self.examples)
    }
}

/// The verbs that help, completions and messages name.
pub fn listed_verbs() -> impl Iterator<Item = &'static Verb> {
    VERBS.iter().filter(|verb| verb.group != Group::Hidden)
}

/// Two command lines, and what each is for.
pub type Examples = [(&'static str, &'static str); 2];

/// The name of a verb: that of its file, unless it has another one.
macro_rules! shown_name {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $shown:literal) => {
        $shown
    };
}

macro_rules! verbs {
    ($($Group:ident: $($name:ident::$Verb:ident $(as $shown:literal)?),*;)*) => {
        /// All verbs, in the order in which help lists them.
        pub const VERBS: &[Verb] = &[$($(Verb {
            name: shown_name!($name $($shown)?),
            group: Group::$Group,
            examples: &verbs::$name::$Verb::EXAMPLES,
            define: verbs::$name::$Verb::augment_args,
            run: |matches, global| verbs::$name::$Verb::from_arg_matches(matches)?.run(global),
        }),*),*];
    };
}

verbs! {
    Front: explain::ExplainArgs, run::RunArgs, tune::TuneArgs, top::TopArgs, plan::PlanArgs, record::RecordArgs, show::ShowArgs,
        topo::TopoArgs, doctor::DoctorArgs;
    See: jobs::JobsArgs, stat::StatArgs, live::LiveArgs, bench::BenchArgs, file::FileArgs, alloc::AllocArgs, list::ListArgs;
    Record: serve::ServeMetricsArgs, ctl::CtlArgs, export::ExportArgs, push::PushArgs, fetch::FetchArgs, recover::RecoverArgs, mcp::McpArgs;
    Place: moves::MoveArgs as "move", ps::PsArgs;
    Setup: help::HelpArgs, capture::CaptureArgs, man::Man, completions::Completions;
    Hidden: overview::OverviewArgs, mark::MarkArgs, alloc_work::AllocWorkArgs as "alloc-work";
}

/// The complete definition of `numa`.
pub fn command() -> Command {
    let numa = definition(|_| true, Verb::command);
    let template = help::template(&numa);
    numa.help_template(template)
}

/// The second name of `numa`, on machines where another program has that name.
pub const SECOND_NAME: &str = "numakit";

/// The definitions of all programs that this binary is, depending on its name.
pub fn programs() -> Vec<Command> {
    let originals = ORIGINALS.iter().map(|original| (original.command)());
    std::iter::once(command()).chain(originals).collect()
}

/// The definition with some of the verbs, each as `define` makes it.
fn definition(with: impl Fn(&Verb) -> bool, define: fn(&Verb) -> Command) -> Command {
    let numa = Command::new("numa")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand_value_name("VERB")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .max_term_width(100);
    let numa = GlobalArgs::augment_args(numa).about(help::ABOUT).long_about(help::LONG_ABOUT);
    numa.subcommands(VERBS.iter().filter(|verb| with(verb)).map(define))
}

/// Runs a command line; its first word is the name of the program. An error means an invalid request
/// or environment (exit code 2); otherwise the verb determines the exit code.
pub fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let words = words::with_verb(words);
    // Defining all verbs takes longer than most of the work of `numa run`, and so does the text of their help.
    let named = words.get(1).filter(|word| VERBS.iter().any(|verb| *word == verb.name));
    let define = if help::is_asked(&words) { Verb::command } else { Verb::parser };
    let definition = named.map_or_else(command, |name| definition(|verb| name == verb.name, define));
    let start = Instant::now();
    let matches = match definition.try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(other) => {
            if let Some(mistake) = mistakes::no_verb(&other) {
                anyhow::bail!(mistake);
            }
            return answer(mistakes::with_advice(other));
        }
    };
    let global = GlobalArgs::from_arg_matches(&matches)?;
    stdio::let_styles_pass(global.color());
    let (name, matches) = matches.subcommand().unwrap_or(("", &matches));
    let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
        anyhow::bail!("there is no verb '{name}'; 'numa help more' lists the verbs");
    };
    let code = (verb.run)(matches, &global)?;
    if code != ExitCode::SUCCESS
        && start.elapsed() < SOON
        && clock::ended_children().cpu() < LITTLE_CPU
        && let Some(mistake) = mistakes::option_of_program(verb, matches)
    {
        stdio::note(mistake);
    }
    Ok(code)
}

/// A program that fails sooner, and after less CPU time in ns, does not like how it was started. On a busy machine it is slow to fail.
const SOON: Duration = Duration::from_secs(60);
const LITTLE_CPU: u64 = 2_000_000_000;

/// How much of a wrong value is printed.
const SHOWN_VALUE: usize = 80;

/// Prints clap's message: the requested help or version, or an error of the command line. An error says what is wrong with a
/// long value, which need not be repeated.
fn answer(mut answer: clap::Error) -> anyhow::Result<ExitCode> {
    if let Some(ContextValue::String(value)) = answer.get(ContextKind::InvalidValue)
        && let Some((end, _)) = value.char_indices().nth(SHOWN_VALUE)
    {
        let start = format!("{}...", &value[..end]);
        answer.insert(ContextKind::InvalidValue, ContextValue::String(start));
    }
    if answer.use_stderr() {
        let _ = answer.print();
        return Ok(ExitCode::from(2));
    }
    stdio::check()?;
    answer.print().map_err(OutputError::from)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_verb_has_the_same_definition() {
        let helps = |mut definition: Command, verb: &str| {
            definition.build();
            let verb = definition.find_subcommand_mut(verb).unwrap();
            verb.render_long_help().to_string() + &verb.render_usage().to_string()
        };
        for verb in VERBS {
            let single = definition(|other| other.name == verb.name, Verb::command);
            assert_eq!(helps(single, verb.name), helps(command(), verb.name));
            let words = |command: Command| {
                let all = command.get_arguments().map(|arg| arg.get_id().to_string());
                all.chain(command.get_subcommands().map(|task| task.get_name().to_owned()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(verb.parser()), words(verb.command()));
        }
        command().debug_assert();
    }

    /// Of two with one name, clap ignores the second without a word.
    #[test]
    fn options_of_a_verb_have_different_names() {
        for verb in VERBS {
            let defined = verb.command();
            let mut names: Vec<_> = defined.get_arguments().map(clap::Arg::get_id).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", verb.name);
        }
    }
}
