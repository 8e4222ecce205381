//! The command line of the original numaplace, for `numa` called by that name.

use crate::verbs::run::Run;
use crate::{Global, told};
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches, Parser};
use numakit_placement::Cores;
use numakit_sys::SysRoot;
use numakit_sys::huge_pages::{SETTING, Setting};
use numakit_sys::stdio::{note, print};
use std::ffi::OsString;
use std::process::ExitCode;

/// Run a program on the nearest free cores, as numaplace did
///
/// Timers may be late by 1 ns only, and the scheduling class is 'batch' unless -p is given, as
/// with the original. All else is in 'numa run --help'.
#[derive(Debug, Default, PartialEq, Eq, Parser)]
#[command(name = "numaplace", disable_version_flag = true, infer_long_args = true, args_override_self = true)]
pub struct Line {
    /// No NUMA allocator (there is none here: accepted)
    #[arg(short = 'a', long)]
    no_allocator: bool,
    /// So many cores; without it all that are free
    #[arg(short, long, value_name = "CORES", allow_negative_numbers = true)]
    pub cores: Option<Cores>,
    /// Tell why each core was chosen, and all that -v tells
    #[arg(short, long)]
    pub debug: bool,
    /// Leave the main thread on all cores
    #[arg(short, long = "parent")]
    pub parent_free: bool,
    /// Transparent huge pages off
    #[arg(short = 't', long = "no-thp")]
    pub no_huge_pages: bool,
    /// Tell which cores were chosen, and what was set
    #[arg(short, long)]
    pub verbose: bool,
    /// Print the version
    #[arg(short = 'V', long)]
    version: bool,
    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// Runs such a command line (without the program's name).
pub fn run(words: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let line = match Line::read(words) {
        Ok(line) => line,
        Err(other) => return told(&other),
    };
    if line.version {
        print(format_args!("numaplace {} (numakit)\n", env!("CARGO_PKG_VERSION")))?;
        return Ok(ExitCode::SUCCESS);
    }
    if line.command.is_empty() {
        let text = "no program given; name one, as in 'numaplace -c 4 ./app'";
        return told(&definition().error(ErrorKind::MissingRequiredArgument, text));
    }
    if !line.no_huge_pages
        && let Some(lack) = no_huge_pages(Setting::read(&SysRoot::host()))
    {
        note(format_args!("warning: {lack}"));
    }
    Run::original(line)?.run(&Global::host())
}

/// The definition, for man pages and completions too.
pub fn definition() -> Command {
    Line::command().max_term_width(100)
}

/// What the original warns of.
fn no_huge_pages(setting: Option<Setting>) -> Option<String> {
    let now = match setting {
        Some(Setting::Always) => return None,
        Some(setting) => format!("set to '{setting}'"),
        None => "not there in this kernel".to_owned(),
    };
    let fix = match setting {
        Some(_) => {
            format!("as root: echo always > {SETTING}, or give -t if the program is better off without")
        }
        None => "boot one that is built with CONFIG_TRANSPARENT_HUGEPAGE".to_owned(),
    };
    Some(format!("transparent huge pages are {now}, which may cost performance; {fix}"))
}

impl Line {
    /// Letters may stand together behind one dash, long names may be cut short as long as they
    /// stay clear, and what is no option begins the command.
    fn read(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        let name = OsString::from("numaplace");
        let matches = definition().try_get_matches_from([name].into_iter().chain(words))?;
        Self::from_arg_matches(&matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Line, clap::Error> {
        Line::read(text.split_whitespace().map(OsString::from))
    }

    fn cores(text: &str) -> Option<Cores> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn lines_of_the_original_are_read() {
        definition().debug_assert();
        let line = parse("-atv -c 6 ./app -c 7 -- x").unwrap();
        let expected = Line {
            no_allocator: true,
            cores: cores("6"),
            no_huge_pages: true,
            verbose: true,
            command: ["./app", "-c", "7", "--", "x"].map(OsString::from).to_vec(),
            ..Line::default()
        };
        assert_eq!(line, expected);
        assert_eq!(parse("-dpc12 app").unwrap().cores, cores("12"));
        let line = parse("-d -p -- -app").unwrap();
        assert!(line.debug && line.parent_free && line.command == ["-app"]);
        assert!(parse("-V").unwrap().version && parse("--version").unwrap().version);
        assert_eq!(parse("- x").unwrap().command, ["-", "x"]);
        assert_eq!(parse("app --cores 3 -V --help").unwrap().command.len(), 5);
    }

    #[test]
    fn long_options_are_those_of_the_original() {
        let all = "--no-allocator --cores 64 --debug --parent --no-thp --verbose ./cg.C.x";
        for line in
            [all, &all.replace("--cores 64", "--cores=64"), "-adptv -c 64 ./cg.C.x", "-adptvc64 ./cg.C.x"]
        {
            let expected = Line {
                no_allocator: true,
                cores: cores("64"),
                debug: true,
                parent_free: true,
                no_huge_pages: true,
                verbose: true,
                version: false,
                command: vec!["./cg.C.x".into()],
            };
            assert_eq!(parse(line).unwrap(), expected, "{line}");
        }
        // As getopt_long took them, and again and again.
        let line = parse("--core 2 --verb --no-t -v -c 3 app").unwrap();
        assert!(line.verbose && line.no_huge_pages && line.cores == cores("3"));
        assert!(parse("--ver app").is_err(), "verbose or version");
    }

    #[test]
    fn wrong_lines_are_refused() {
        for (text, word) in [
            ("-x app", "'-x'"),
            ("-c", "--cores"),
            ("-vz app", "'-z'"),
            ("--coers 2 app", "'--cores'"),
            ("-c 0 app", "'0'"),
            ("-c -1 app", "'-1'"),
            ("--no-thp=2 app", "'--no-thp'"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.use_stderr() && error.to_string().contains(word), "{text}: {error}");
        }
        assert!(parse("-x app").unwrap_err().to_string().contains("Usage: numaplace "));
        assert!(parse("--help").unwrap_err().to_string().contains("--no-allocator"));
    }

    #[test]
    fn the_machine_that_gives_few_huge_pages_is_warned_of() {
        assert_eq!(no_huge_pages(Some(Setting::Always)), None);
        assert!(no_huge_pages(Some(Setting::Never)).unwrap().contains("set to 'never'"));
        assert!(no_huge_pages(Some(Setting::Advised)).unwrap().contains("as root: echo always > /sys/"));
        assert!(no_huge_pages(None).unwrap().contains("not there"));
    }
}
