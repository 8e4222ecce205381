//! A program that is run with each allocator.

use super::WHAT;
use crate::GlobalArgs;
use crate::to_file::{self, Existing};
use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use numakit_bench::allocations::{AllocationReport, AllocationRun, Counted, ProfileError, Profiler, VERSION};
use numakit_launch::Program;
use numakit_launch::options;
use numakit_sys::command::{quoted, start_failure_status};
use numakit_sys::input::{self, StandardInput};
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::{note, print};
use numakit_terminal::alloc_profile;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How the command is run, and where what was counted is written.
#[derive(Debug, Args)]
pub(super) struct ProfileArgs {
    /// Allocators to run with: none, lowmem, uma, numa
    #[arg(long, value_name = "LIST", conflicts_with = "pid", value_delimiter = ',', default_value = "none,lowmem,uma,numa", value_parser = allocators())]
    profile: Vec<Counted>,
    /// Sample a block in this number of bytes for lives and call chains; 1 takes every block
    #[arg(long, value_name = "SIZE", conflicts_with = "pid", default_value = "4K", value_parser = every)]
    every: u64,
    /// Do not unwind call chains: the code that allocates is the caller of malloc
    #[arg(long, conflicts_with = "pid")]
    no_chains: bool,
    /// Call chains to show
    #[arg(long, value_name = "N", default_value = "10", conflicts_with = "pid", value_parser = value_parser!(u16))]
    rows: u16,
    /// Write the text to this file; '-' is standard output, and that of CMD goes to standard error
    #[arg(short, long, value_name = "FILE", conflicts_with = "pid")]
    output: Option<PathBuf>,
    /// Write a page to this file, which needs no other file
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    html: Option<PathBuf>,
    /// The command to run, with its arguments
    #[arg(trailing_var_arg = true, group = WHAT, value_name = "CMD")]
    command: Vec<OsString>,
}

fn allocators() -> impl TypedValueParser<Value = Counted> {
    let find =
        |word: String| Counted::ALL.into_iter().find(|one| one.word() == word).unwrap_or(Counted::None);
    PossibleValuesParser::new(Counted::ALL.map(Counted::word)).map(find)
}

fn every(text: &str) -> Result<u64, String> {
    const MOST: u64 = 1 << 30;
    let bytes = match text {
        "1" => 1,
        _ => options::size(text).map_err(|error| error.to_string())?,
    };
    match bytes {
        1..=MOST => Ok(bytes),
        _ => Err(format!("'{text}' is not from 1 to 1G; give a size such as 4K")),
    }
}

impl ProfileArgs {
    /// Runs the program, and prints what was counted.
    pub(super) fn run(self, json: Option<&Path>, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("programs run on this machine only")?;
        for path in json.into_iter().chain(self.output.as_deref()).chain(self.html.as_deref()) {
            to_file::check(path, Existing::Replace)?;
        }
        let input = self.input()?;
        self.check_program()?;
        let signals =
            Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP, signal::CHILD])
                .context("cannot receive signals")?;
        let results = json.into_iter().chain(self.output.as_deref()).chain(self.html.as_deref());
        let standard_output = to_file::keep_from_program(results)?;
        let mut profiler = Profiler::new(&self.command, self.every, !self.no_chains);
        let (mut runs, mut interrupted) = (Vec::new(), false);
        for allocator in &self.profile {
            input.rewind().context("cannot read the standard input again")?;
            let (run, ended) = match profiler.run(*allocator, &signals) {
                Ok(run) => run,
                Err(ProfileError::Start(error)) => {
                    note(format_args!("cannot run '{}': {error}", quoted(&self.command)));
                    return Ok(ExitCode::from(start_failure_status(&error)));
                }
                Err(error) => return Err(error.into()),
            };
            runs.push(run);
            interrupted = ended;
            if ended {
                break;
            }
        }
        to_file::give_back(standard_output)?;
        self.finish(json, runs, interrupted)
    }

    fn finish(
        &self,
        json: Option<&Path>,
        runs: Vec<AllocationRun>,
        interrupted: bool,
    ) -> anyhow::Result<ExitCode> {
        let status = runs.iter().map(|run| run.status).find(|status| *status != 0).unwrap_or(0);
        let (command, sampled_every) = (quoted(&self.command), self.every);
        self.write(json, &AllocationReport { version: VERSION, command, sampled_every, interrupted, runs })?;
        Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
    }

    /// The standard input, if all runs can read it.
    fn input(&self) -> anyhow::Result<StandardInput> {
        let input = input::standard();
        if self.profile.len() > 1 && input == StandardInput::Once {
            bail!(
                "standard input is a pipe, which only one of {} runs can read; give it as a file ('< FILE'), give none \
                 ('< /dev/null'), or run once: --profile numa",
                self.profile.len()
            );
        }
        Ok(input)
    }

    /// Refuses a program that would not run with the library, and says of one that runs without it. A program that is not there
    /// fails when it is started.
    fn check_program(&self) -> anyhow::Result<()> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let Some(program) = self.command.first().and_then(|name| Program::find(name, &path).ok()) else {
            return Ok(());
        };
        let command = quoted(&self.command[..1]);
        if let Some(sanitizer) = program.sanitizer {
            bail!(
                "'{command}' has the {}, which needs its own malloc; build it without -fsanitize",
                sanitizer.name()
            );
        }
        match program.obstacle {
            Some(obstacle) if obstacle.allows_allocator() => note(format_args!(
                "'{command}' {obstacle}: it cannot load libnumacount.so; only processes that it starts are counted"
            )),
            Some(obstacle) => bail!(
                "'{command}' {obstacle}: it cannot load libnumacount.so; give a program that is linked with glibc for this \
                 machine, without other privileges"
            ),
            None => {}
        }
        Ok(())
    }

    fn write(&self, json: Option<&Path>, report: &AllocationReport) -> anyhow::Result<()> {
        let is_output = to_file::is_standard_output;
        let text = alloc_profile::text(report, self.rows.into());
        match &self.output {
            Some(path) => put(path, &text)?,
            None if json.into_iter().chain(self.html.as_deref()).any(is_output) => {}
            None => print(&text)?,
        }
        if let Some(path) = json {
            put(path, &(serde_json::to_string_pretty(report).context("cannot write JSON")? + "\n"))?;
        }
        self.html.as_ref().map_or(Ok(()), |path| put(path, &alloc_profile::html(report)))
    }
}

fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    to_file::write(path, Existing::Replace, "", |to| Ok(to.write_all(text.as_bytes())?))
}
