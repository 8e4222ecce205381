//! The command line of the original numaplace, as one of `numa run`.

use crate::originals::Translation;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};
use numakit_placement::Cores;
use std::ffi::OsString;

/// Run a program on the nearest free cores, with the options of numaplace
///
/// The command line is translated into a 'numa run' command line, which -v prints. As with the
/// original numaplace, memory comes from a NUMA allocator unless -a is given, the timer slack is 1 ns,
/// the scheduling class is SCHED_BATCH unless -p is given, and a warning appears unless transparent
/// huge pages are set to 'always' or -t is given.
#[derive(Debug, Parser)]
#[command(name = "numaplace", version = concat!(env!("CARGO_PKG_VERSION"), " (numakit)"))]
#[command(infer_long_args = true, args_override_self = true, max_term_width = 100)]
struct NumaplaceArgs {
    /// Do not use the NUMA allocator, libnumalloc.so
    #[arg(short = 'a', long)]
    no_allocator: bool,
    /// Number of cores [default: all free cores]
    #[arg(short, long, value_name = "CORES", allow_negative_numbers = true)]
    cores: Option<Cores>,
    /// Print why each core was chosen, and everything that -v prints
    #[arg(short, long)]
    debug: bool,
    /// Do not bind the main thread
    #[arg(short, long = "parent")]
    parent_free: bool,
    /// Disable transparent huge pages for the program
    #[arg(short = 't', long = "no-thp")]
    no_huge_pages: bool,
    /// Print the 'numa' command, the chosen cores and the settings
    #[arg(short, long)]
    verbose: bool,
    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// The definition of its command line.
pub fn command() -> Command {
    NumaplaceArgs::command()
}

/// Translates its arguments. Short options may be combined, long ones abbreviated while they stay
/// unambiguous; the first word that is no option begins the command.
pub fn translate(words: Vec<OsString>) -> Result<Translation, clap::Error> {
    let line = NumaplaceArgs::try_parse_from([OsString::from("numaplace")].into_iter().chain(words))?;
    if line.command.is_empty() {
        let text = "no program given; name one, as in 'numaplace -c 4 ./app'";
        return Err(command().error(ErrorKind::MissingRequiredArgument, text));
    }
    let shown = line.verbose || line.debug;
    Ok(Translation::of("run", shown)
        .option_if(shown, "--verbose")
        .option_if(line.debug, "--explain")
        .value("--cores", line.cores.map(|cores| cores.to_string()))
        .option(if line.no_allocator { "--alloc=none" } else { "--alloc=numa" })
        .option(if line.no_huge_pages { "--no-thp" } else { "--warn-thp" })
        .option("--slack=1")
        .option(if line.parent_free { "--no-bind-main" } else { "--sched=batch" })
        .command(line.command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str) -> Result<String, clap::Error> {
        let line = translate(text.split_whitespace().map(OsString::from).collect())?;
        Ok(line.words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn lines_of_the_original_are_translated() {
        command().debug_assert();
        for (line, expected) in [
            ("app", "--alloc=numa --warn-thp --slack=1 --sched=batch -- app"),
            (
                "-atv -c 6 ./app -c 7 -- x",
                "--verbose --cores=6 --alloc=none --no-thp --slack=1 --sched=batch -- ./app -c 7 -- x",
            ),
            (
                "-dpc12 app",
                "--verbose --explain --cores=12 --alloc=numa --warn-thp --slack=1 --no-bind-main -- app",
            ),
            ("-p -- -app", "--alloc=numa --warn-thp --slack=1 --no-bind-main -- -app"),
            ("- x", "--alloc=numa --warn-thp --slack=1 --sched=batch -- - x"),
            (
                "-c auto app --cores 3 -V",
                "--cores=auto --alloc=numa --warn-thp --slack=1 --sched=batch -- app --cores 3 -V",
            ),
        ] {
            assert_eq!(translated(line).unwrap(), format!("numa run {expected}"), "{line}");
        }
    }

    #[test]
    fn long_options_are_those_of_the_original() {
        let all = "--no-allocator --cores 64 --debug --parent --no-thp --verbose ./cg.C.x";
        let expected = translated("-a -c 64 -d -p -t -v ./cg.C.x").unwrap();
        for line in
            [all, &all.replace("--cores 64", "--cores=64"), "-adptv -c 64 ./cg.C.x", "-adptvc64 ./cg.C.x"]
        {
            assert_eq!(translated(line).unwrap(), expected, "{line}");
        }
        // As getopt_long reads them; the last value counts.
        assert_eq!(
            translated("--core 2 --verb --no-t -v -c 3 app").unwrap(),
            translated("-v -t -c 3 app").unwrap()
        );
        assert!(translated("--ver app").is_err(), "verbose or version");
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
            ("-v", "no program given"),
        ] {
            let error = translated(text).unwrap_err();
            assert!(error.use_stderr() && error.to_string().contains(word), "{text}: {error}");
        }
        assert!(translated("-x app").unwrap_err().to_string().contains("Usage: numaplace "));
        assert!(translated("--help").unwrap_err().to_string().contains("--no-allocator"));
    }

    #[test]
    fn the_version_names_the_program_and_numakit() {
        for line in ["-V", "--version"] {
            let answer = translated(line).unwrap_err();
            assert!(!answer.use_stderr() && answer.to_string().starts_with("numaplace 0."), "{answer}");
            assert!(answer.to_string().ends_with(" (numakit)\n"), "{answer}");
        }
    }
}
