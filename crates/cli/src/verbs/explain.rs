//! `numa explain`.

mod results;
mod tried;

use crate::choose::ProcessArgs;
use crate::flame_files;
use crate::observe;
use crate::peaks;
use crate::projection;
use crate::to_file::{self, Existing};
use crate::{Examples, GlobalArgs};
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use numakit_explain::explainer::{Explainer, Observed};
use numakit_explain::hint_windows::HintWindows;
use numakit_findings::comparison::explained::compare;
use numakit_findings::comparison::explained::saved::SavedResult;
use numakit_findings::explained::{JudgedReport, judge};
use numakit_findings::next::{ObservedAgain, SYMBOL_CLIENT};
use numakit_launch::options;
use numakit_model::Topology;
use numakit_observation::interval;
use numakit_observation::samples::{OpenedSamples, SampleRequest};
use numakit_processes::{ChosenProcesses, running_already};
use numakit_sampling::{MethodKind, SampleSettings};
use numakit_sys::SysRoot;
use numakit_sys::allocation_log::LogThreshold;
use numakit_sys::balancing::BalancingFiles;
use numakit_sys::command::quoted;
use numakit_sys::executable;
use numakit_sys::proc::Processor;
use numakit_sys::stdio::{note, print};
use numakit_sys::tty;
use numakit_terminal::explain;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Show where a program's time goes, which data it waits for, and what to do
///
/// It ends with one screen: the cause that costs most, or that nothing is wrong; which data and whose lines wait; and the command
/// to type next, with what it is worth at most.
///
/// --all prints all tables: objects with their verdicts, functions and source lines, locks and other waits, contended lines.
/// 'numa show' prints them of the last observation. The last one of each command line is kept, 20 at most, in
/// $XDG_STATE_HOME/numakit/explained (~/.local/state/numakit/explained; of root /var/lib/numakit/explained).
///
/// Running processes are observed together with all that they start, and with those that join the unit, container or control group
/// later, or start with the name.
///
/// 'numa explain BEFORE AFTER' compares two results of --json: what changed beyond noise. --compare compares with the last
/// observation of the same program.
///
/// A sample is taken of each thread 199 times in a second of its CPU time: the instruction that waits, the address that it uses, and
/// the node of that page. This needs no hardware counters and no root; 'numa doctor' says how it is done here.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Samples in a second of CPU time of a thread
    #[arg(short = 'F', long, value_name = "HZ", default_value = "199", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    frequency: u32,
    #[command(flatten)]
    processes: ProcessArgs,
    /// Stop after this time
    #[arg(long = "for", alias = "duration", value_name = "TIME", value_parser = interval::parse_length)]
    duration: Option<Duration>,
    /// Take samples by this method [default: the best one that is permitted]
    #[arg(long, alias = "road", value_name = "METHOD", value_parser = method())]
    method: Option<MethodKind>,
    /// Blocks and mappings of this many bytes and more are objects of their own, named by the code that allocates them
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = min_size)]
    min_size: u64,
    /// Do not preload the library that logs allocations: blocks are named by their mapping
    #[arg(long)]
    no_allocations: bool,
    /// Do not ask Java machines and Node.js for the names of their code and for what their threads do
    #[arg(long)]
    no_names: bool,
    /// Print all tables in place of one screen
    #[arg(long)]
    all: bool,
    /// With --all: rows of each table, but of functions, where those with 1 % of the CPU time are shown [default: 10]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Say first what changed since the last observation of this program
    #[arg(long)]
    compare: bool,
    /// Then run the first remedy of each verdict against none, in N pairs, and say what it gains beside what was promised
    #[arg(long = "try", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pairs: Option<u32>,
    /// Write all tables to this file; '-' is standard output, and that of CMD goes to standard error
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write JSON to this file; '-' is standard output, without the text, and that of CMD goes to standard error
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a cure to this file: the policy that each object with a verdict gets by 'numa run --apply FILE'; '-' is standard output,
    /// as with --json
    #[arg(long, value_name = "FILE")]
    cure: Option<PathBuf>,
    /// Write flame graphs to PREFIX.time.svg and PREFIX.resident.svg, and folded to PREFIX.time.folded and PREFIX.resident.folded
    ///
    /// The first is the time at memory by call chain, the other one resident memory by the call chain that touched it first;
    /// both are coloured by the node of the memory.
    #[arg(long, value_name = "PREFIX")]
    flame: Option<PathBuf>,
    /// Also estimate the same program on another machine, such as 'EPYC 9755 x2' ('numa topo --machine list' prints all
    /// names), 'package:2 node:2 core:4' or a .json file: its threads are placed by 'numa plan --policy balanced', its pages by
    /// their first touch; with the caches that are known of it
    #[arg(long = "as", value_name = "NAME|DESCRIPTION|FILE")]
    projected: Option<String>,
    /// Also find out which nodes use each page, by faults of the kernel's NUMA balancing (root)
    ///
    /// Switches kernel.numa_balancing on for 3 to 15 of every 30 seconds: a setting of the whole machine, which is restored afterwards.
    /// The kernel marks pages, and the next use of each is a fault. Meanwhile it moves pages to the nodes that use them; those of
    /// the observed program are moved back, and samples of that time are left out.
    #[arg(long)]
    hint_faults: bool,
    /// The command to run and observe, with its arguments; or two results that --json wrote, to compare them
    #[arg(trailing_var_arg = true, value_name = "CMD", group = "observed")]
    command: Vec<OsString>,
}

/// The least size of a block that is logged: of smaller ones there are too many.
const MIN_SIZE: u64 = 256;
/// The least size of an object without --min-size.
const USUAL_SIZE: u64 = 64 << 10;
/// The default of --rows.
const ROWS: usize = 10;

fn min_size(text: &str) -> Result<u64, String> {
    let least = options::size(text).map_err(|error| error.to_string())?;
    match least < MIN_SIZE {
        true => Err(format!("'{text}' is less than {MIN_SIZE} bytes; give {MIN_SIZE} or more")),
        false => Ok(least),
    }
}

/// The words of the methods.
pub fn method() -> impl TypedValueParser<Value = MethodKind> {
    let find = |word: String| {
        MethodKind::ALL.into_iter().find(|method| method.word() == word).unwrap_or(MethodKind::Perf)
    };
    PossibleValuesParser::new(MethodKind::ALL.map(MethodKind::word)).map(find)
}

/// The file of a program.
fn found(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    executable::find(name.as_ref(), &std::env::var_os("PATH").unwrap_or_default()).ok()
}

/// How often the JSON file is written meanwhile, and at most for a part of the time.
const SAVE: Duration = Duration::from_secs(2);
const SAVE_SHARE: u32 = 20;

impl ExplainArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa explain ./app", "runs it and says what costs, and what to do"),
        ("numa explain --pid 4711 --for 10s", "the same of a running program and all that it starts"),
    ];

    /// Observes, and prints the explanation.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        if let Some((before, after)) = results::named(&self.command)? {
            self.only_compares()?;
            let compared = numakit_terminal::compare::text(&compare(&before, &after), self.rows());
            return self.show(&compared, true).map(|()| ExitCode::SUCCESS);
        }
        global.only_here("samples are taken of programs on this machine")?;
        // First, since '--json ./app' takes the program for its file.
        self.check_files()?;
        self.processes.check(!self.command.is_empty())?;
        let chosen = self.processes.find(&SysRoot::host())?;
        self.say_running();
        let before = self.compare.then(|| results::last(&self.command, chosen.as_ref())).transpose()?;
        let projected = self.projected.as_deref().map(projection::machine).transpose()?;
        let topology = measured()?;
        BalancingFiles::default().left_behind().iter().for_each(note);
        let hints = if self.hint_faults { Some(HintWindows::new(&topology)?) } else { None };
        let results = self.results().map(PathBuf::as_path);
        let standard_output = to_file::keep_from_program(results)?;
        let (samples, run) = match observe::samples(&self.request(chosen.as_ref()))? {
            Ok(opened) => opened,
            Err(code) => return Ok(code),
        };
        let OpenedSamples { method, reason, log, writes_maps } = samples;
        let again = self.again(&topology, method.kind(), chosen.as_ref());
        let observed = Observed {
            program: chosen.as_ref().map_or_else(|| quoted(&self.command), ToString::to_string),
            method: format!("by {}", method.kind()),
            method_reason: reason,
            frequency: self.frequency,
            attached: chosen.as_ref().map_or_else(Vec::new, |chosen| chosen.numbers().to_vec()),
            file: self.command.first().and_then(found),
        };
        let mut explainer = Explainer::new(method, observed, run.processes(), topology)
            .with_log(log)
            .projected_on(projected)
            .with_hint_faults(hints)
            .removing_maps(writes_maps);
        if !self.no_names {
            explainer = explainer.asking_java();
        }
        self.say_how_it_ends(chosen.is_some());
        let started = run.processes().first().copied().filter(|_| chosen.is_none());
        let mut next_save = Instant::now() + SAVE;
        let ended = run.observe(&mut explainer, self.duration, |explainer| {
            if let Err(error) = explainer.hint() {
                // Another program may use it by now. What samples tell stays.
                note(format_args!("{:#}", anyhow::Error::from(error)));
            }
            let now = Instant::now();
            if now >= next_save {
                self.save(explainer, &again)?;
                next_save = Instant::now() + SAVE.max(now.elapsed() * SAVE_SHARE);
            }
            anyhow::Ok(())
        })?;
        let status = ended.status.or(ended.signal.map(|signal| 128 + signal));
        self.say_left(started.filter(|_| status.is_none()));
        to_file::give_back(standard_output)?;
        let judged = judge(explainer.explained(true, status), &again);
        drop(explainer);
        self.finish(&judged, before.as_ref(), status)
    }

    /// Writes all results, and tries the remedies if that was asked for.
    fn finish(
        &self,
        judged: &JudgedReport,
        before: Option<&SavedResult>,
        status: Option<i32>,
    ) -> anyhow::Result<ExitCode> {
        self.write(judged, before)?;
        match (self.pairs, status) {
            (Some(pairs), Some(0)) => self.try_remedies(judged, pairs)?,
            (Some(_), _) => note("--try: the program did not end well, so no remedy is tried"),
            (None, _) => {}
        }
        Ok(ExitCode::from(u8::try_from(status.unwrap_or(0)).unwrap_or(1)))
    }

    /// Measures what the remedies gain, and says it.
    fn try_remedies(&self, judged: &JudgedReport, pairs: u32) -> anyhow::Result<()> {
        let tried = tried::tried(judged, &self.command, pairs)?;
        print(numakit_terminal::tune::tried(&tried, pairs))?;
        let Some(path) = &self.json else { return Ok(()) };
        let mut result = serde_json::to_value(judged).context("cannot write JSON")?;
        result["tried"] = serde_json::to_value(&tried).context("cannot write JSON")?;
        write_json(path, &json(&result)?)
    }

    /// Says that a program of this name runs already, which may be meant.
    fn say_running(&self) {
        if let Some(running) = running_already(&SysRoot::host(), &self.command) {
            let program = quoted(&self.command[..1]);
            note(format_args!(
                "{program} runs already as process {running}, and this starts another one; 'numa explain --pid {running} --for 10s' \
                 observes the one that runs"
            ));
        }
    }

    /// Says how the observation of running processes ends.
    fn say_how_it_ends(&self, is_running: bool) {
        if is_running && self.duration.is_none() {
            note("Ctrl-C ends the observation, and the program goes on");
        }
    }

    /// Says that the program, if it still runs, is left running.
    fn say_left(&self, process: Option<u32>) {
        if let Some(process) = process {
            note(format_args!(
                "the time of --for is over, and {} runs on as process {process}; 'kill {process}' ends it",
                quoted(&self.command[..1])
            ));
        }
    }

    /// The samples that are taken.
    fn request<'a>(&'a self, chosen: Option<&'a ChosenProcesses>) -> SampleRequest<'a> {
        let usual = LogThreshold::default();
        let first = if self.min_size == USUAL_SIZE { usual.first } else { 0 };
        let threshold = LogThreshold { least: self.min_size, first, ..usual };
        SampleRequest {
            chosen,
            command: &self.command,
            method: self.method,
            settings: SampleSettings {
                frequency: self.frequency,
                first_touch: true,
                // Which thread's node a page would be on is known of each page or not at all.
                every_touch: self.projected.is_some(),
                ..SampleSettings::default()
            },
            log: (!self.no_allocations).then_some(threshold),
            names: !self.no_names,
        }
    }

    /// How the same is observed again.
    fn again(
        &self,
        topology: &Topology,
        used: MethodKind,
        chosen: Option<&ChosenProcesses>,
    ) -> ObservedAgain {
        let method = self.method.map(|method| format!("--method {}", method.word()));
        let least = (self.min_size != USUAL_SIZE).then(|| format!("--min-size {}", self.min_size));
        let flags = [("--no-allocations", self.no_allocations), ("--no-names", self.no_names)];
        let flags = flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.to_owned());
        let is_running = self.command.is_empty();
        ObservedAgain {
            options: method.into_iter().chain(least).chain(flags).collect::<Vec<_>>().join(" "),
            frequency: self.frequency,
            duration: self.duration,
            target: if is_running { self.processes.words() } else { quoted(&self.command) },
            is_running,
            is_found_again: chosen.is_some_and(ChosenProcesses::may_grow),
            is_contained: chosen.is_some_and(|chosen| chosen.are_contained(&SysRoot::host())),
            gets_symbols: found(OsStr::new(SYMBOL_CLIENT)).is_some(),
            cure: results::cure_word(self.cure.as_deref()),
            // Other methods see no page faults, which an estimate needs.
            larger_machine: (used == MethodKind::Perf)
                .then(|| projection::offered(topology, &Processor::read(&SysRoot::host()).name))
                .flatten(),
        }
    }

    /// The files that get results.
    fn results(&self) -> impl Iterator<Item = &PathBuf> {
        self.json.iter().chain(&self.output).chain(&self.cure)
    }

    /// Refuses files that cannot be written before the program runs, whose observation would be lost.
    fn check_files(&self) -> anyhow::Result<()> {
        if self.pairs.is_some() && self.command.is_empty() {
            bail!(
                "--try runs the program again: name its command; 'numa tune --pid' tries moves of a running one"
            );
        }
        if self.pairs.is_some() && self.json.as_deref().is_some_and(to_file::is_standard_output) {
            bail!("with --try, give a file in place of --json -: the result is written twice");
        }
        if self.cure.is_some() && self.results().filter(|path| to_file::is_standard_output(path)).count() > 1
        {
            bail!("two results cannot go to standard output; give a file in place of one '-'");
        }
        for path in self.results() {
            to_file::check(path, Existing::Replace)?;
        }
        self.flame.as_ref().map_or(Ok(()), |prefix| flame_files::check(prefix))
    }

    /// Refuses options that observe, where two results are compared.
    fn only_compares(&self) -> anyhow::Result<()> {
        let given = [
            ("--json", self.json.is_some()),
            ("--cure", self.cure.is_some()),
            ("--for", self.duration.is_some()),
            ("--method", self.method.is_some()),
            ("--flame", self.flame.is_some()),
            ("--as", self.projected.is_some()),
            ("--hint-faults", self.hint_faults),
            ("--compare", self.compare),
            ("--try", self.pairs.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => bail!(
                "{option} has no meaning where two results are compared; leave it out, or name a command that is to be observed"
            ),
            None => Ok(()),
        }
    }

    fn rows(&self) -> usize {
        self.rows.unwrap_or(ROWS)
    }

    /// Writes what is known so far, so that it survives if this process is killed.
    fn save(&self, explainer: &mut Explainer, again: &ObservedAgain) -> anyhow::Result<()> {
        match self.json.as_ref().filter(|path| !to_file::is_standard_output(path)) {
            Some(path) => write_json(path, &json(&judge(explainer.explained(false, None), again))?),
            None => Ok(()),
        }
    }

    fn write(&self, report: &JudgedReport, before: Option<&SavedResult>) -> anyhow::Result<()> {
        let is_output = |path: &PathBuf| to_file::is_standard_output(path);
        let text = json(report)?;
        let failure = failure(report);
        // The screen says where the rest is. That a folder cannot be written is no reason to fail.
        let is_kept = failure.is_none() && results::keep(report, &text);
        let written = self.json.as_ref().map_or(Ok(()), |path| write_json(path, &text));
        let cured = self.cure.as_ref().map_or(Ok(()), |path| write_json(path, &json(&report.cure)?));
        let flame =
            self.flame.as_ref().map_or(Ok(()), |prefix| flame_files::write(prefix, &report.report.flame));
        let mut shown = match before {
            Some(before) if failure.is_none() => {
                results::compared(before, &SavedResult::parse(Path::new("-"), text.as_bytes())?, self.rows())
            }
            _ => String::new(),
        };
        shown += &match self.all || self.rows.is_some() || self.output.is_some() {
            true => explain::text(report, self.rows()),
            false => explain::screen(report, tty::columns().unwrap_or(explain::WIDTH), is_kept),
        };
        self.show(&shown, !self.json.iter().chain(&self.cure).any(is_output))?;
        failure.iter().for_each(note);
        written.and(cured).and(flame)
    }

    /// Writes the text to the file that was asked for, or prints it if it is wanted.
    fn show(&self, text: &str, is_wanted: bool) -> anyhow::Result<()> {
        let to_file = |path: &PathBuf| {
            to_file::write(path, Existing::Replace, "", |to| Ok(to.write_all(text.as_bytes())?))
        };
        let written = self.output.as_ref().map_or(Ok(()), to_file);
        // What was collected is shown where it cannot be written.
        if (is_wanted && self.output.is_none()) || written.is_err() {
            print(text)?;
        }
        written
    }
}

/// This machine, with what its memory can do where that was measured.
fn measured() -> anyhow::Result<Topology> {
    let mut topology = numakit_topology::read(&SysRoot::host())?;
    // Without, the distances of the firmware tell what far memory costs.
    let _ = peaks::add(&SysRoot::host(), &mut topology);
    Ok(topology)
}

/// What is said of a program that failed before it did anything.
fn failure(report: &JudgedReport) -> Option<String> {
    let report = &report.report;
    let status = report.exit_status.filter(|status| *status != 0 && report.explanation.samples.total == 0)?;
    Some(format!(
        "'{}' failed with status {status} before a sample was taken: this result is not kept, and is compared with none",
        report.program
    ))
}

fn json(report: &impl Serialize) -> anyhow::Result<String> {
    serde_json::to_string_pretty(report).context("cannot write JSON")
}

fn write_json(path: &Path, json: &str) -> anyhow::Result<()> {
    to_file::write(path, Existing::Replace, "", |to| Ok(writeln!(to, "{json}")?))
}
